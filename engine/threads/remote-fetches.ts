// The main thread's side of reading remote parts (Parquet files whose rows are only in the object store): passes
// requests for blocks from query threads to the object store's thread, and passes the replies back. A query or job that
// failed for lack of a block is run again when the requests of its thread have their replies (`settled`).

import type { BlocksRequest } from '../object-store/block-cache.js'
import type { FromBlockReader } from '../storage/part/remote-blocks.js'
import type { ToQueryHost } from './messages.js'
import type { Thread } from './thread.js'

/** The object store's thread, as far as reading parts needs it. */
export interface BlockSource {
  fetchBlocks(request: BlocksRequest): Promise<void>
  blocksUsed(names: readonly string[]): Promise<void>
}

export class RemoteFetches {
  readonly #source: BlockSource | null
  /** By thread id. */
  readonly #running = new Map<number, Set<Promise<void>>>()

  constructor(source: BlockSource | null) {
    this.#source = source
  }

  receive(thread: Thread<ToQueryHost>, message: FromBlockReader): void {
    if (message.kind === 'fetchBlocks') this.#fetch(thread, message.requestId, message.request)
    // Only the order in which blocks are removed depends on it.
    else this.#source?.blocksUsed(message.names).catch(() => {})
  }

  /** Resolves when the requests that the thread has made so far have their replies. */
  async settled(threadId: number): Promise<void> {
    await Promise.all(this.#running.get(threadId) ?? [])
  }

  #fetch(thread: Thread<ToQueryHost>, requestId: number, request: BlocksRequest): void {
    const running = this.#running.get(thread.threadId) ?? new Set()
    this.#running.set(thread.threadId, running)
    const fetching = this.#fetched(request).then((error) => {
      running.delete(fetching)
      thread.post({ kind: 'fetched', requestId, error })
    })
    running.add(fetching)
  }

  /** The error, if there is one. */
  async #fetched(request: BlocksRequest): Promise<string | null> {
    if (this.#source === null) {
      return 'rows are in object storage, and none is configured [setting=object.store.url]'
    }
    try {
      await this.#source.fetchBlocks(request)
      return null
    } catch (error) {
      return `rows could not be read from object storage: ${error instanceof Error ? error.message : error}`
    }
  }
}
