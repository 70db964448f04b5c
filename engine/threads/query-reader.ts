// The reader's side of a query result: an asynchronous iterator over result blocks in shared memory, or over rows that
// arrive in messages. A block is returned to the query thread that produced it when the reader requests the next one.

import type { ReadyRows } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { deferred } from '../base/deferred.js'
import { CancelledError, errorFromRecord, isShortage, movedError } from '../base/errors.js'
import type { FromQueryThread } from '../exec/run/messages.js'
import type { NodeProfile } from '../exec/run/profile.js'
import { setCancelFlag } from '../memory/cancel-flags.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { PackedBatch } from '../storage/jobs/messages.js'
import type { Value } from '../types/value.js'
import type { ToQueryHost } from './messages.js'

export interface QuerySummary {
  readonly rows: number
  readonly cut: boolean
  readonly executeMs: number
  readonly profile?: readonly NodeProfile[] | undefined
}

/** A running query, as its reader uses it. */
export interface RunningQuery {
  readonly queryId: number
  readonly blocks: AsyncIterable<Uint8Array>
  readonly values: AsyncIterable<readonly (readonly Value[])[]>
  readonly batches: AsyncIterable<PackedBatch>
  readonly summary: Promise<QuerySummary>
  /** The whole result, if it is already available. */
  readonly ready: ReadyRows | null
  /** Set at once: where positions of errors are in the statement. */
  moved: ((position: number) => number) | undefined
  cancel(reason: string): void
}

/** Messages of the coordinator to the query's reader. */
export type QueryReply = Exclude<FromQueryThread, { kind: 'offerFragment' | 'dismissed' | 'progress' }>
type Delivered = Extract<FromQueryThread, { kind: 'block' | 'rows' | 'packed' }>
/** The last bytes of the result, which arrive with its end. */
interface Tail {
  readonly kind: 'tail'
  readonly bytes: Uint8Array
}

export class Running implements RunningQuery {
  readonly queryId: number
  readonly ready = null
  readonly summary: Promise<QuerySummary>
  readonly #memory: SharedMemory
  readonly #post: (message: ToQueryHost) => void
  readonly #ended: () => void
  readonly #waiting: Delivered[] = []
  readonly #settle = deferred<QuerySummary>()
  #over: 'no' | 'yes' | Error = 'no'
  #tail: Tail | null = null
  #news: (() => void) | null = null
  /** Address of the block that the reader is using, 0 = none. */
  #borrowedBlocks = 0
  moved: RunningQuery['moved'] = undefined
  /** Whether anything has been passed to the reader. */
  begun = false
  /** Time and reason of a cancellation. */
  cancelled: { readonly atMs: number; readonly reason: string } | null = null

  constructor(queryId: number, memory: SharedMemory, post: (message: ToQueryHost) => void, ended: () => void) {
    this.queryId = queryId
    this.#memory = memory
    this.#post = post
    this.#ended = ended
    this.summary = this.#settle.promise
    this.summary.catch(() => {})
  }

  deliver(message: QueryReply): void {
    switch (message.kind) {
      case 'block':
      case 'rows':
      case 'packed':
        this.begun = true
        this.#waiting.push(message)
        break
      case 'end':
        this.#over = 'yes'
        if (message.tail !== undefined) this.#tail = { kind: 'tail', bytes: message.tail }
        this.#settle.resolve(message)
        break
      case 'error':
        this.#over = movedError(this.#worded(errorFromRecord(message.error)), this.moved)
        this.#settle.reject(this.#over)
        break
    }
    if (this.#over !== 'no') this.#ended()
    this.#news?.()
  }

  cancel(reason: string): void {
    if (this.#over !== 'no') return
    this.cancelled ??= { atMs: performance.now(), reason }
    setCancelFlag(this.#memory, this.queryId)
    this.#post({ kind: 'cancel', queryId: this.queryId, reason })
  }

  /** A query that is stopped within a batch does not know the reason, so it is added here. */
  #worded(error: Error): Error {
    const { cancelled } = this
    return cancelled !== null && (error instanceof CancelledError || isShortage(error))
      ? new CancelledError(cancelled.reason)
      : error
  }

  /** Blocks that have not been returned. */
  get held(): number[] {
    const waiting = this.#waiting.flatMap((message) => (message.kind === 'block' ? [message.address] : []))
    return this.#borrowedBlocks === 0 ? waiting : [...waiting, this.#borrowedBlocks]
  }

  /** Whether the query has ended and no block is in use. */
  get settled(): boolean {
    return this.#over !== 'no' && this.#borrowedBlocks === 0 && this.#waiting.length === 0
  }

  get blocks(): AsyncIterable<Uint8Array> {
    return this.#iterate((message) => {
      if (message.kind === 'tail') return message.bytes
      assert(message.kind === 'block', 'M1: this encoding sends blocks')
      this.#borrowedBlocks = message.address
      return this.#memory.u8.subarray(message.address, message.address + message.bytes)
    })
  }

  get values(): AsyncIterable<readonly (readonly Value[])[]> {
    return this.#iterate((message) => {
      assert(message.kind === 'rows', 'M1: this encoding sends values')
      return message.rows as readonly (readonly Value[])[]
    })
  }

  get batches(): AsyncIterable<PackedBatch> {
    return this.#iterate((message) => {
      assert(message.kind === 'packed', 'M1: this encoding sends batches')
      return message
    })
  }

  /** If the reader stops early, even before the first item, the query is cancelled and unread blocks are returned. */
  #iterate<T>(open: (message: Delivered | Tail) => T): AsyncIterable<T> {
    const items = this.#items(open)
    let isBegun = false
    const iterator: AsyncIterator<T> = {
      next: () => {
        isBegun = true
        return items.next()
      },
      return: () => {
        // A generator that has not begun returns without its finally block.
        if (!isBegun) this.#leave()
        return items.return(undefined)
      },
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }

  async *#items<T>(open: (message: Delivered | Tail) => T): AsyncGenerator<T> {
    try {
      for (;;) {
        const message = await this.#next()
        if (message === null) return
        yield open(message)
        if (message.kind === 'rows') this.#take(message.rows.length, 0)
        if (message.kind === 'packed') this.#take(0, message.bytes)
        this.#giveBack()
      }
    } finally {
      this.#leave()
    }
  }

  #leave(): void {
    this.#giveBack()
    this.cancel('the reader went away')
    this.#drain()
  }

  async #next(): Promise<Delivered | Tail | null> {
    for (;;) {
      const message = this.#waiting.shift()
      if (message !== undefined) return message
      if (this.#over === 'yes') return this.#takeTail()
      if (this.#over !== 'no') throw this.#over
      await new Promise<void>((resolve) => {
        this.#news = resolve
      })
      this.#news = null
    }
  }

  #takeTail(): Tail | null {
    const tail = this.#tail
    this.#tail = null
    return tail
  }

  #take(rows: number, bytes: number): void {
    if (this.#over === 'no') this.#post({ kind: 'taken', queryId: this.queryId, rows, bytes })
  }

  #giveBack(): void {
    if (this.#borrowedBlocks === 0) return
    this.#post({ kind: 'release', queryId: this.queryId, address: this.#borrowedBlocks })
    this.#borrowedBlocks = 0
  }

  #drain(): void {
    for (const message of this.#waiting.splice(0)) {
      if (message.kind === 'block') this.#post({ kind: 'release', queryId: this.queryId, address: message.address })
    }
    if (this.#over === 'no') this.#news = () => this.#drain()
  }
}
