// Queries that could not get memory while others had it. Each is run again, one at a time in the order of their failures, as
// soon as little is held; who comes meanwhile has a small share of the memory and waits behind them when it wants more. So
// the one whose turn it is finds nearly everything free, whatever comes, and those that need little go on.
//
// Memory that somebody holds for long (a slow reader) does not keep a query from its turns: it tries with what there is.

import { type Allocator, budgets } from '../memory/budgets.js'

/** A query that waits, or has its turn. */
export interface Starved {
  /** How many turns it had. */
  turns: number
  /** When it is to end, in milliseconds of performance.now(). */
  readonly deadlineMs: number
  /** Its turn. */
  readonly start: () => void
  /** Its deadline has passed. */
  readonly expire: () => void
}

/** The first turn begins when no more than one of so many parts of the budget is held, the others at half as much each, */
const quietParts = 4
/** or after so long, the others twice as long. */
const patienceMs = 2500
/** Parts of the budget of which somebody has one while others wait. */
const shareParts = 32
/** A query that had so much of what is free at rest needs more than there is. */
const enough = 7 / 8
const lookMs = 20

export class MemoryQueue {
  readonly #allocator: Pick<Allocator, 'used' | 'limit'>
  /** What is held while nothing runs. */
  readonly #idleBytes: number
  readonly #waiting: { readonly query: Starved; readonly sinceMs: number }[] = []
  #turn: Starved | null = null
  /** What others held when the turn began. */
  #heldBytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(allocator: Pick<Allocator, 'used' | 'limit'>) {
    this.#allocator = allocator
    this.#idleBytes = allocator.used(budgets.queries)
  }

  /** Bytes that a query may hold that begins now out of its turn; undefined: as much as there is. */
  get share(): number | undefined {
    return this.#turn === null && this.#waiting.length === 0 ? undefined : this.#limit / shareParts
  }

  /** Whether so many others, with their share each, may have kept the query whose turn it is from what it needs. */
  crowdedBy(others: number): boolean {
    const freeBytes = this.#limit - this.#idleBytes
    return this.#heldBytes + (others * this.#limit) / shareParts > freeBytes * (1 - enough)
  }

  join(query: Starved): void {
    this.#waiting.push({ query, sinceMs: performance.now() })
    this.#timer ??= setInterval(() => this.look(), lookMs)
    this.look()
  }

  /** The query is over, or its turn is. */
  leave(query: Starved): void {
    if (this.#turn === query) this.#turn = null
    const index = this.#waiting.findIndex((waiting) => waiting.query === query)
    if (index >= 0) this.#waiting.splice(index, 1)
    this.look()
  }

  /** Whether something has changed for those who wait. */
  look(): void {
    const now = performance.now()
    const late = this.#waiting.filter(({ query }) => query.deadlineMs < now)
    for (const { query } of late) query.expire()
    const [first] = this.#waiting
    if (first === undefined) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const held = this.#allocator.used(budgets.queries) - this.#idleBytes
    const times = 2 ** first.query.turns
    const quiet = held <= this.#limit / quietParts / times
    if (this.#turn !== null || !(quiet || now - first.sinceMs > patienceMs * times)) return
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
