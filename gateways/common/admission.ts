// Counts the requests that run concurrently and refuses further ones above a limit; -1 means no limit.

export class Admission {
  #max: number
  #active = 0

  constructor(max: number) {
    this.#max = max < 0 ? Number.POSITIVE_INFINITY : max
  }

  /** Changes the limit; running requests are not affected. */
  limit(max: number): void {
    this.#max = max < 0 ? Number.POSITIVE_INFINITY : max
  }

  get active(): number {
    return this.#active
  }

  /** Returns whether one more may run; if so, the caller must call `leave` once. */
  enter(): boolean {
    if (this.#active >= this.#max) return false
    this.#active++
    return true
  }

  leave(): void {
    this.#active--
  }
}
