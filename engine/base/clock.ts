// Interfaces and implementations of clocks, which are passed to the code that needs the time, so that tests and the
// simulator control time.
//
// The system's wall clock can be changed at any moment (by NTP, by hand, after a suspend) and has a resolution of
// milliseconds. The monotonic clock cannot be changed and has microseconds, but does not know the date. AnchoredClock
// provides date and time in microseconds: it adds an offset to the monotonic clock. If the last comparison with the
// wall clock is older than `anchorMs`, nowMicros() compares again. All threads of a process share the anchor, an array
// in shared memory, so they agree on the time.
//
//   anchor, Float64Array: [0] the offset in microseconds, [1] time of the last comparison, in milliseconds of the
//   monotonic clock
//
// The wall clock bounds the offset: `wall <= offset + monotonic < wall + 1 ms`. Within the bounds nothing changes;
// otherwise the offset is corrected by the smallest amount that satisfies them. So the clock follows a slewed wall
// clock smoothly and jumps when the wall clock is set.

export interface Clock {
  /** Wall clock in microseconds since the epoch (an integer in a double, exact until the year 2255). */
  nowMicros(): number
  /** Monotonic milliseconds, for durations and deadlines. */
  monotonicMs(): number
}

/** A clock that can be shared with other threads of the process. */
export interface SharedClock extends Clock {
  readonly anchor: SharedArrayBuffer
}

/** The time sources of the machine. */
export interface TimeSource {
  /** Milliseconds since the epoch; may be changed at any time. */
  wallMs(): number
  /** Never decreases, and is the same in all threads. */
  monotonicMs(): number
  /** The date in microseconds at the start, as the initial value. */
  guessMicros(): number
}

/** Maximum age of a comparison with the wall clock. */
const anchorMs = 250
/** A larger correction means that the clock was set; a smaller one that it was slewed or misread. */
const stepMicros = 50_000
/** A reading that took longer is repeated, because the thread was interrupted during it. */
const readingMs = 0.2
const readingsMax = 3

export class AnchoredClock implements SharedClock {
  readonly anchor: SharedArrayBuffer
  readonly #source: TimeSource
  readonly #words: Float64Array
  #last = 0
  /** Time of the last call. */
  #known: number
  #stepped: (micros: number) => void = () => {}

  constructor(source: TimeSource, anchor: SharedArrayBuffer = newAnchor()) {
    this.#source = source
    this.anchor = anchor
    this.#words = new Float64Array(anchor)
    if (this.#words[1] === Number.NEGATIVE_INFINITY) this.#refresh(source.monotonicMs())
    this.#known = this.#offset
  }

  get #offset(): number {
    return this.#words[0]!
  }

  nowMicros(): number {
    let monotonicMs = this.#source.monotonicMs()
    if (monotonicMs - this.#words[1]! >= anchorMs) {
      this.#refresh(monotonicMs)
      monotonicMs = this.#source.monotonicMs()
    }
    const offset = this.#offset
    const micros = Math.round(offset + monotonicMs * 1000)
    const stepped = offset - this.#known
    this.#known = offset
    if (Math.abs(stepped) > stepMicros) {
      this.#last = micros
      this.#stepped(stepped)
      return micros
    }
    // Small corrections never turn the clock back; it stands still instead.
    if (micros > this.#last) this.#last = micros
    return this.#last
  }

  monotonicMs(): number {
    return this.#source.monotonicMs()
  }

  /** Called at the first use after the wall clock was set, with the difference in microseconds. */
  onStep(listener: (micros: number) => void): void {
    this.#stepped = listener
  }

  #refresh(monotonicMs: number): void {
    const [words, source] = [this.#words, this.#source]
    const known = words[1] === Number.NEGATIVE_INFINITY ? source.guessMicros() - monotonicMs * 1000 : this.#offset
    for (let readings = 1; ; readings++) {
      const before = source.monotonicMs()
      const wallMicros = source.wallMs() * 1000
      const after = source.monotonicMs()
      if (after - before > readingMs && readings < readingsMax) continue
      // However long the readings took, they bound the offset from both sides.
      const least = wallMicros - after * 1000
      const most = wallMicros + 1000 - before * 1000
      words[0] = Math.min(Math.max(known, least), most)
      words[1] = after
      return
    }
  }
}

export function newAnchor(): SharedArrayBuffer {
  const anchor = new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT)
  new Float64Array(anchor)[1] = Number.NEGATIVE_INFINITY
  return anchor
}

/** Difference between this thread's performance.now() and the monotonic clock that all threads share. */
const threadOriginMs = Math.max(...[1, 2, 3].map(() => Number(process.hrtime.bigint()) / 1e6 - performance.now()))

export const systemTime: TimeSource = {
  wallMs: () => Date.now(),
  monotonicMs: () => threadOriginMs + performance.now(),
  guessMicros: () => (performance.timeOrigin + performance.now()) * 1000,
}

/** Creates the process's clock on the main thread; other threads receive its anchor. */
export const systemClock = new AnchoredClock(systemTime)
