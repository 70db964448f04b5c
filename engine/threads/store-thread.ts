// Entry point of the object store's thread, a worker: carries out requests of the main thread to the object store and
// posts the replies. As it waits for the network, it runs in Node's event loop, not in a loop that polls for work like
// other worker threads. Files are transferred between disk and store here, so their contents do not pass through other
// threads.

import { parentPort } from 'node:worker_threads'
import { nonNull } from '../base/assert.js'
import { systemClock } from '../base/clock.js'
import { nodeFiles } from '../base/files.js'
import { BlockCache } from '../object-store/block-cache.js'
import { type ObjectStore, StoreError } from '../object-store/object-store.js'
import { openStore } from '../object-store/open-store.js'
import { UploadBuffers, UploadSpool } from '../object-store/upload-buffers.js'
import type { FromStoreThread, StoreReply, StoreThreadOptions, ToStoreThread } from './store-messages.js'
import { replyTo, type StoreOperation, type StorePlaces } from './store-replies.js'

const port = nonNull(parentPort)
const files = nodeFiles()

type StoreOf = (bucket: string) => ObjectStore
type LocalPlaces = Omit<StorePlaces, 'store'>

/** The first message says what to open. */
port.once('message', (options: StoreThreadOptions) => {
  const stores = new Map<string, ObjectStore>()
  const storeOf: StoreOf = (bucket) => {
    const store = stores.get(bucket) ?? openStore(bucket === '' ? options : { ...options, url: `s3://${bucket}` })
    stores.set(bucket, store)
    return store
  }
  const blocks = new BlockCache(options.blocks, files, systemClock)
  const buffers = new UploadBuffers()
  const local: LocalPlaces = { files, blocks, buffers, spool: new UploadSpool(files, buffers) }
  port.on('message', ({ id, bucket, request }: ToStoreThread) => {
    const replying = request.kind === 'close' ? close(stores) : execute(storeOf, bucket, request, local)
    void replying.then((reply) => port.postMessage({ id, reply } satisfies FromStoreThread))
  })
})

async function execute(
  storeOf: StoreOf,
  bucket: string,
  request: StoreOperation,
  local: LocalPlaces,
): Promise<StoreReply> {
  try {
    return await replyTo({ ...local, store: storeOf(bucket) }, request)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { kind: 'failed', error: error instanceof StoreError ? error.kind : null, message }
  }
}

async function close(stores: ReadonlyMap<string, ObjectStore>): Promise<StoreReply> {
  for (const store of stores.values()) await store.close()
  // With its last listener the thread ends, as soon as the reply has left.
  setImmediate(() => port.close())
  return { kind: 'done' }
}
