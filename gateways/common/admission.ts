// How many may be served at one time. -1 means any number.

export class Admission {
  #max: number
  #active = 0

  constructor(max: number) {
    this.#max = max < 0 ? Number.POSITIVE_INFINITY : max
  }

  /** Who is in stays. */
  limit(max: number): void {
    this.#max = max < 0 ? Number.POSITIVE_INFINITY : max
  }

  get active(): number {
    return this.#active
  }

  /** Whether one more is let in; who is calls `leave` once. */
  enter(): boolean {
    if (this.#active >= this.#max) return false
    this.#active++
    return true
  }

  leave(): void {
    this.#active--
  }
}
