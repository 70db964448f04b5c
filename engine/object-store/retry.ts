// Retries operations of an object store that fail because it is unavailable, with exponential backoff. An operation
// gives up after a time limit. In addition, all operations share a budget of retries, refilled slowly by successes, so
// that a store that is down is not flooded with requests.

import { StoreError } from './object-store.js'

export interface RetryOptions {
  /** An operation is given up after this time. */
  readonly totalMs: number
  readonly firstDelayMs: number
  readonly delayMsMax: number
  readonly clock: { monotonicMs(): number }
  readonly sleep: (ms: number) => Promise<void>
  /** Between 0 and 1: delays are spread, so that clients do not come back all at once. */
  readonly random: () => number
}

/** Retries that all operations together may make at once. */
const budgetMax = 200
/** Successes that pay for one more retry. */
const successesPerRetry = 5

export class Retrier {
  readonly #options: RetryOptions
  #budget = budgetMax

  constructor(options: RetryOptions) {
    this.#options = options
  }

  /** Retries while the error is 'unavailable'. `attempt` counts from 0. */
  async run<T>(operation: (attempt: number) => Promise<T>): Promise<T> {
    const { clock, totalMs } = this.#options
    const deadline = clock.monotonicMs() + totalMs
    for (let attempt = 0; ; attempt++) {
      try {
        const result = await operation(attempt)
        this.#budget = Math.min(budgetMax, this.#budget + 1 / successesPerRetry)
        return result
      } catch (error) {
        const delayMs = this.#delayMs(attempt)
        const isLate = clock.monotonicMs() + delayMs >= deadline
        if (!(error instanceof StoreError) || error.kind !== 'unavailable' || isLate || this.#budget < 1) throw error
        this.#budget--
        await this.#options.sleep(delayMs)
      }
    }
  }

  #delayMs(attempt: number): number {
    const { firstDelayMs, delayMsMax, random } = this.#options
    return Math.min(delayMsMax, firstDelayMs * 2 ** attempt) * (0.5 + random() / 2)
  }
}
