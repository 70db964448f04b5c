// Entry point of the object store's thread, a worker: carries out requests of the main thread to the object store and
// posts the replies. As it waits for the network, it runs in Node's event loop, not in a loop that polls for work like
// other worker threads. Files are transferred between disk and store here, so their contents do not pass through other
// threads.

import { dirname } from 'node:path'
import { MessagePort, parentPort } from 'node:worker_threads'
import { assert, unreachable } from '../base/assert.js'
import { systemClock } from '../base/clock.js'
import { nodeFiles } from '../base/files.js'
import { BlockCache } from '../object-store/block-cache.js'
import { bodyOf, type ObjectInfo, type ObjectStore, StoreError } from '../object-store/object-store.js'
import { openStore } from '../object-store/open-store.js'
import { fetchFile, uploadFile, verifyObject } from '../object-store/transfer.js'
import { writeSidecar } from '../storage/part/sidecar.js'
import type { FromStoreThread, StoreReply, StoreRequest, StoreThreadOptions, ToStoreThread } from './store-messages.js'

assert(parentPort instanceof MessagePort, 'a worker has a parent port')
const port = parentPort
const files = nodeFiles()

type StoreOf = (bucket: string) => ObjectStore

/** The first message says what to open. */
port.once('message', (options: StoreThreadOptions) => {
  const stores = new Map<string, ObjectStore>()
  const storeOf: StoreOf = (bucket) => {
    const store = stores.get(bucket) ?? openStore(bucket === '' ? options : { ...options, url: `s3://${bucket}` })
    stores.set(bucket, store)
    return store
  }
  const blocks = new BlockCache(options.blocks, files, systemClock)
  port.on('message', ({ id, bucket, request }: ToStoreThread) => {
    const replying = request.kind === 'close' ? close(stores) : execute(storeOf, bucket, request, blocks)
    void replying.then((reply) => port.postMessage({ id, reply } satisfies FromStoreThread))
  })
})

type Operation = Exclude<StoreRequest, { kind: 'close' }>

async function execute(storeOf: StoreOf, bucket: string, request: Operation, blocks: BlockCache): Promise<StoreReply> {
  try {
    return await replyTo(storeOf(bucket), request, blocks)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { kind: 'failed', error: error instanceof StoreError ? error.kind : null, message }
  }
}

async function replyTo(store: ObjectStore, request: Operation, blocks: BlockCache): Promise<StoreReply> {
  switch (request.kind) {
    case 'put':
      return { kind: 'object', info: await put(store, request) }
    case 'get':
      return { kind: 'content', content: await store.get(request.key, request.range ?? undefined) }
    case 'head':
      return { kind: 'head', head: await store.head(request.key) }
    case 'list': {
      const objects: ObjectInfo[] = []
      for await (const info of store.list(request.prefix)) objects.push(info)
      return { kind: 'list', objects }
    }
    case 'delete':
      await store.delete(request.key)
      return { kind: 'done' }
    case 'probe':
      return { kind: 'capabilities', capabilities: await store.probe() }
    case 'upload':
      return { kind: 'file', file: await uploadFile(store, files, request.path, request.key) }
    case 'append':
      append(request)
      return { kind: 'done' }
    case 'discard':
      if (files.exists(request.path)) files.remove(request.path)
      return { kind: 'done' }
    case 'fetch':
      return { kind: 'file', file: await fetchFile(store, files, request.key, request.path) }
    case 'fetchBlocks':
      await blocks.fetch(store, request.request)
      return { kind: 'done' }
    case 'blocksUsed':
      blocks.used(request.names)
      return { kind: 'done' }
    case 'sidecar':
      await verifyObject(store, files.size(request.path), request.copy)
      writeSidecar(files, request.path, request.target, request.copy)
      return { kind: 'done' }
    default:
      return unreachable(request)
  }
}

function append({ path, offset, content }: Extract<StoreRequest, { kind: 'append' }>): void {
  if (offset === 0) files.makeDirectory(dirname(path))
  const file = files.open(path, offset === 0 ? 'create' : 'write')
  try {
    file.write([content], offset)
  } finally {
    file.close()
  }
}

function put(store: ObjectStore, { key, content, condition }: Extract<StoreRequest, { kind: 'put' }>) {
  const body = bodyOf(content)
  switch (condition.kind) {
    case 'always':
      return store.put(key, body)
    case 'absent':
      return store.putIfAbsent(key, body)
    case 'match':
      return store.putIfMatch(key, body, condition.etag)
  }
}

async function close(stores: ReadonlyMap<string, ObjectStore>): Promise<StoreReply> {
  for (const store of stores.values()) await store.close()
  // With its last listener the thread ends, as soon as the reply has left.
  setImmediate(() => port.close())
  return { kind: 'done' }
}
