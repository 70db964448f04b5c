// Limits the bytes of request bodies in memory. A request of known size waits for room before it is read. One of
// unknown size fails when the budget is used up, because waiting with half-read bodies in memory could deadlock.

import { ResourceError } from '../engine/base/errors.js'

interface Waiting {
  readonly bytes: number
  readonly admit: () => void
}

export class ByteBudget {
  readonly #bytesMax: number
  readonly #queue: Waiting[] = []
  #used = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get used(): number {
    return this.#used
  }

  /** Resolves in arrival order when there is room. A size above the budget waits for the whole budget. */
  async reserve(bytes: number, signal: AbortSignal): Promise<number> {
    const size = Math.min(bytes, this.#bytesMax)
    signal.throwIfAborted()
    if (this.#queue.length === 0 && this.#used + size <= this.#bytesMax) this.#used += size
    else await this.#wait(size, signal)
    return size
  }

  /** Reserves more at once or throws ResourceError. */
  grow(bytes: number): void {
    if (this.#used + bytes > this.#bytesMax) {
      throw new ResourceError(`too many bytes of requests are buffered in memory [bytesMax=${this.#bytesMax}]`)
    }
    this.#used += bytes
  }

  release(bytes: number): void {
    this.#used -= bytes
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (this.#used + next.bytes > this.#bytesMax) return
      this.#queue.shift()
      this.#used += next.bytes
      next.admit()
    }
  }

  #wait(bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { bytes, admit: () => settle(resolve) }
      const leave = (): void => {
        this.#queue.splice(this.#queue.indexOf(waiting), 1)
        settle(() => reject(signal.reason))
      }
      const settle = (how: () => void): void => {
        signal.removeEventListener('abort', leave)
        how()
      }
      signal.addEventListener('abort', leave)
      this.#queue.push(waiting)
    })
  }
}
