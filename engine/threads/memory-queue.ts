// Admission control by memory: the queue of queries that failed because other queries held the memory. Each is run
// again, one at a time in the order of the failures, as soon as most memory is free. While the queue is not empty, new
// queries may use only a small share of the memory, and join the queue if they need more. So the first query of the
// queue gets nearly all memory, while small queries continue.
//
// Memory that is held for long (by a slow reader) only delays a turn: after a while the query tries with what is free.

import { type Allocator, budgets } from '../memory/budgets.js'

/** A query that waits for its turn, or has it. */
export interface QueuedQuery {
  /** Number of turns it had. */
  turns: number
  /** Its deadline, in milliseconds of performance.now(). */
  readonly deadlineMs: number
  /** Called when its turn begins. */
  readonly start: () => void
  /** Called when its deadline has passed. */
  readonly expire: () => void
}

/** The first turn begins when at most 1 / quietParts of the budget is in use, later ones at half as much each, */
const quietParts = 4
/** or after this time in ms, later ones after twice as much each. */
const timeoutMs = 2500
/** New queries may use 1 / shareParts of the budget while others wait. */
const shareParts = 32
/** A query that failed although it could use this share of the budget needs more than there is. */
const enough = 7 / 8
const lookMs = 20

export class MemoryQueue {
  readonly #allocator: Pick<Allocator, 'used' | 'limit'>
  /** Bytes of the budget in use while no query runs. */
  readonly #idleBytes: number
  readonly #waiting: { readonly query: QueuedQuery; readonly sinceMs: number }[] = []
  #turn: QueuedQuery | null = null
  /** Bytes that others held when the turn began. */
  #heldBytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(allocator: Pick<Allocator, 'used' | 'limit'>) {
    this.#allocator = allocator
    this.#idleBytes = allocator.used(budgets.queries)
  }

  /** Bytes that a new query may use; undefined: no limit but the budget. */
  get share(): number | undefined {
    return this.#turn === null && this.#waiting.length === 0 ? undefined : this.#limit / shareParts
  }

  /** Whether `others` queries, with a share each, may have used the memory that the query on its turn needed. */
  crowdedBy(others: number): boolean {
    const freeBytes = this.#limit - this.#idleBytes
    return this.#heldBytes + (others * this.#limit) / shareParts > freeBytes * (1 - enough)
  }

  join(query: QueuedQuery): void {
    this.#waiting.push({ query, sinceMs: performance.now() })
    this.#timer ??= setInterval(() => this.look(), lookMs)
    this.look()
  }

  /** The query, or its turn, has ended. */
  leave(query: QueuedQuery): void {
    if (this.#turn === query) this.#turn = null
    const index = this.#waiting.findIndex((waiting) => waiting.query === query)
    if (index >= 0) this.#waiting.splice(index, 1)
    this.look()
  }

  /** Expires late queries, and starts the next turn if it is due. */
  look(): void {
    const now = performance.now()
    const expired = this.#waiting.filter(({ query }) => query.deadlineMs < now)
    for (const { query } of expired) query.expire()
    const [first] = this.#waiting
    if (first === undefined) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const held = this.#allocator.used(budgets.queries) - this.#idleBytes
    const times = 2 ** first.query.turns
    const quiet = held <= this.#limit / quietParts / times
    if (this.#turn !== null || !(quiet || now - first.sinceMs > timeoutMs * times)) return
    this.#waiting.shift()
    this.#turn = first.query
    first.query.turns++
    this.#heldBytes = held
    first.query.start()
  }

  get #limit(): number {
    return this.#allocator.limit(budgets.queries)
  }
}
