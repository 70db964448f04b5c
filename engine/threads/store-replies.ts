// Carries out requests to the object store, as the object store's thread does (store-thread.ts): operations on objects,
// transfers between disk and store, the local cache of blocks and sidecars of parts, and local files that are about to
// be uploaded.

import { dirname } from 'node:path'
import { unreachable } from '../base/assert.js'
import type { Files } from '../base/files.js'
import { parquetFooter } from '../lake/file-metrics.js'
import type { BlockCache } from '../object-store/block-cache.js'
import { bodyOf, type ObjectInfo, type ObjectStore } from '../object-store/object-store.js'
import { fetchFile, uploadFile, verifyObject } from '../object-store/transfer.js'
import { writeSidecar } from '../storage/part/sidecar.js'
import type { StoreReply, StoreRequest } from './store-messages.js'

export type StoreOperation = Exclude<StoreRequest, { kind: 'close' }>

export interface StorePlaces {
  readonly store: ObjectStore
  readonly files: Files
  readonly blocks: BlockCache
}

/** Rejects with StoreError, or with the error of a file. */
export async function replyTo({ store, files, blocks }: StorePlaces, request: StoreOperation): Promise<StoreReply> {
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
      append(files, request)
      return { kind: 'done' }
    case 'parquetFooter':
      return { kind: 'content', content: parquetFooter(files, request.path) }
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

function append(files: Files, { path, offset, content }: Extract<StoreRequest, { kind: 'append' }>): void {
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
