// The main thread's access to the object store: the interface of object-store.ts, the upload and download of whole
// files, and what remote parts need (blocks and sidecars: files whose rows are only in the store). Each call is a
// message to the object store's thread, which does the work.

import { type Deferred, deferred } from '../base/deferred.js'
import { NetworkError } from '../base/errors.js'
import type { BlocksRequest } from '../object-store/block-cache.js'
import {
  type ByteRange,
  type ObjectBody,
  type ObjectHead,
  type ObjectInfo,
  type ObjectStore,
  type PutCondition,
  type StoreCapabilities,
  StoreError,
} from '../object-store/object-store.js'
import type { TransferredFile } from '../object-store/transfer.js'
import type { RemoteCopy } from '../storage/schema/schema.js'
import { startWorker } from './launch.js'
import type { FromStoreThread, StoreReply, StoreRequest, StoreThreadOptions, ToStoreThread } from './store-messages.js'

export interface StoreClient extends ObjectStore {
  /** The same endpoint and keys with another bucket. */
  bucket(name: string): StoreClient
  /** Writes a local file under a new key and verifies it there. Rejects with StoreError. */
  upload(path: string, key: string): Promise<TransferredFile>
  /**
   * Appends to a spooled file (object-store/upload-buffers.ts), which the first call creates. The content must not change
   * until the promise is settled.
   */
  append(path: string, content: Uint8Array): Promise<void>
  /** The footer of a spooled Parquet file. */
  parquetFooter(path: string): Promise<Uint8Array>
  /** The same as upload() for a spooled file. */
  uploadSpooled(path: string, key: string): Promise<TransferredFile>
  /** Ends a spooled file, if there is one. */
  discard(path: string): Promise<void>
  /** Writes an object to a new local file. */
  fetch(key: string, path: string): Promise<TransferredFile>
  /** Resolves when the blocks are in the local cache. */
  fetchBlocks(request: BlocksRequest): Promise<void>
  blocksUsed(names: readonly string[]): Promise<void>
  /** Verifies the part's object, and writes the sidecar of the local part at `path` durably. */
  writeSidecar(path: string, target: string, copy: RemoteCopy): Promise<void>
}

export function openStoreClient(options: StoreThreadOptions): StoreClient {
  return storeClient(options.url, new ThreadConnection(options))
}

/** What carries requests out. Rejects with StoreError. */
export interface StoreConnection {
  send(bucket: string, request: StoreRequest): Promise<StoreReply>
  close(): Promise<void>
}

export function storeClient(url: string, connection: StoreConnection): StoreClient {
  return new Client(url, connection, '')
}

class ThreadConnection implements StoreConnection {
  readonly #worker: ReturnType<typeof startWorker>
  readonly #pending = new Map<number, Deferred<StoreReply>>()
  #lastId = 0
  #ended: Error | null = null

  constructor(options: StoreThreadOptions) {
    this.#worker = startWorker('store-thread.js', options, [])
    this.#worker.unref()
    this.#worker.on('message', ({ id, reply }: FromStoreThread) => {
      this.#pending.get(id)?.resolve(reply)
      this.#pending.delete(id)
    })
    this.#worker.on('error', (error) => this.#end(error))
    this.#worker.on('exit', () => this.#end(new NetworkError('the thread of the object store has ended')))
  }

  async send(bucket: string, request: StoreRequest): Promise<StoreReply> {
    if (this.#ended !== null) throw new StoreError('unavailable', this.#ended.message, { cause: this.#ended })
    const id = ++this.#lastId
    const waiting = deferred<StoreReply>()
    this.#pending.set(id, waiting)
    this.#worker.postMessage({ id, bucket, request } satisfies ToStoreThread)
    const reply = await waiting.promise
    if (reply.kind === 'failed') throw new StoreError(reply.error ?? 'unavailable', reply.message)
    return reply
  }

  async close(): Promise<void> {
    if (this.#ended !== null) return
    await this.send('', { kind: 'close' })
    await this.#worker.terminate()
  }

  #end(error: Error): void {
    this.#ended ??= error
    for (const waiting of this.#pending.values()) {
      waiting.reject(new StoreError('unavailable', error.message, { cause: error }))
    }
    this.#pending.clear()
  }
}

class Client implements StoreClient {
  readonly url: string
  readonly #connection: StoreConnection
  readonly #bucket: string

  constructor(url: string, connection: StoreConnection, bucket: string) {
    this.url = url
    this.#connection = connection
    this.#bucket = bucket
  }

  bucket(name: string): StoreClient {
    return new Client(`s3://${name}`, this.#connection, name)
  }

  async put(key: string, body: ObjectBody): Promise<ObjectInfo> {
    const info = await this.#put(key, body, { kind: 'always' })
    if (info === null) throw new StoreError('conflict', `an unconditional write was refused [key=${key}]`)
    return info
  }

  putIfAbsent(key: string, body: ObjectBody): Promise<ObjectInfo | null> {
    return this.#put(key, body, { kind: 'absent' })
  }

  putIfMatch(key: string, body: ObjectBody, etag: string): Promise<ObjectInfo | null> {
    return this.#put(key, body, { kind: 'match', etag })
  }

  async get(key: string, range?: ByteRange): Promise<Uint8Array> {
    return (await this.#ask({ kind: 'get', key, range: range ?? null }, 'content')).content
  }

  async head(key: string): Promise<ObjectHead | null> {
    return (await this.#ask({ kind: 'head', key }, 'head')).head
  }

  async *list(prefix: string): AsyncIterable<ObjectInfo> {
    yield* (await this.#ask({ kind: 'list', prefix }, 'list')).objects
  }

  async delete(key: string): Promise<void> {
    await this.#ask({ kind: 'delete', key }, 'done')
  }

  async probe(): Promise<StoreCapabilities> {
    return (await this.#ask({ kind: 'probe' }, 'capabilities')).capabilities
  }

  async upload(path: string, key: string): Promise<TransferredFile> {
    return (await this.#ask({ kind: 'upload', path, key }, 'file')).file
  }

  async append(path: string, content: Uint8Array): Promise<void> {
    await this.#ask({ kind: 'append', path, content }, 'done')
  }

  async uploadSpooled(path: string, key: string): Promise<TransferredFile> {
    return (await this.#ask({ kind: 'uploadSpooled', path, key }, 'file')).file
  }

  async parquetFooter(path: string): Promise<Uint8Array> {
    return (await this.#ask({ kind: 'parquetFooter', path }, 'content')).content
  }

  async discard(path: string): Promise<void> {
    await this.#ask({ kind: 'discard', path }, 'done')
  }

  async fetch(key: string, path: string): Promise<TransferredFile> {
    return (await this.#ask({ kind: 'fetch', key, path }, 'file')).file
  }

  async fetchBlocks(request: BlocksRequest): Promise<void> {
    await this.#ask({ kind: 'fetchBlocks', request }, 'done')
  }

  async blocksUsed(names: readonly string[]): Promise<void> {
    await this.#ask({ kind: 'blocksUsed', names }, 'done')
  }

  async writeSidecar(path: string, target: string, copy: RemoteCopy): Promise<void> {
    await this.#ask({ kind: 'sidecar', path, target, copy }, 'done')
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  async #put(key: string, body: ObjectBody, condition: PutCondition): Promise<ObjectInfo | null> {
    const content = body.read(0, body.bytes)
    return (await this.#ask({ kind: 'put', key, content, condition }, 'object')).info
  }

  async #ask<Kind extends StoreReply['kind']>(
    request: StoreRequest,
    kind: Kind,
  ): Promise<Extract<StoreReply, { kind: Kind }>> {
    const reply = await this.#connection.send(this.#bucket, request)
    if (isKind(reply, kind)) return reply
    throw new StoreError('unavailable', `the thread of the object store replies with ${reply.kind}`)
  }
}

function isKind<Kind extends StoreReply['kind']>(
  reply: StoreReply,
  kind: Kind,
): reply is Extract<StoreReply, { kind: Kind }> {
  return reply.kind === kind
}
