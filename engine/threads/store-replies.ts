// Carries out requests to the object store, as the object store's thread does (store-thread.ts): operations on objects,
// transfers between disk and store, the local cache of blocks and sidecars of parts, and local files that are about to
// be uploaded.

import { unreachable } from '../base/assert.js'
import type { Files } from '../base/files.js'
import { parquetFooter } from '../lake/file-metrics.js'
import type { BlockCache } from '../object-store/block-cache.js'
import { bodyOf, type ObjectInfo, type ObjectStore } from '../object-store/object-store.js'
import { fetchFile, uploadBody, uploadFile, verifyObject } from '../object-store/transfer.js'
import type { UploadBuffers, UploadSpool } from '../object-store/upload-buffers.js'
import { writeSidecar } from '../storage/part/sidecar.js'
import type { StoreReply, StoreRequest } from './store-messages.js'

export type StoreOperation = Exclude<StoreRequest, { kind: 'close' }>

export interface StorePlaces {
  readonly store: ObjectStore
  readonly files: Files
  readonly blocks: BlockCache
  readonly buffers: UploadBuffers
  readonly spool: UploadSpool
}

/** Rejects with StoreError, or with the error of a file. */
export async function replyTo(places: StorePlaces, request: StoreOperation): Promise<StoreReply> {
  const { store, files, blocks, spool } = places
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
      return { kind: 'file', file: await uploadFile(store, files, request.path, request.key, places.buffers) }
    case 'uploadSpooled':
      return {
        kind: 'file',
        file: await spool.with(request.path, (body) => uploadBody(store, body, request.key)),
      }
    case 'append':
      spool.append(request.path, request.content)
      return { kind: 'done' }
    case 'parquetFooter':
      return { kind: 'content', content: await spool.with(request.path, parquetFooter) }
    case 'discard':
      spool.discard(request.path)
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
