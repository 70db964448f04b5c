// Time as a dependency, so that tests and the simulator steer it.
//
// The wall clock of the system can be set at any moment: by NTP, by hand, behind a suspend; and it tells whole milliseconds
// only. The monotonic clock cannot be set and tells microseconds, but not the date. AnchoredClock tells the date in
// microseconds: an offset, the anchor, leads from the monotonic clock to the date, and is compared with the system's clock
// at least every `anchorMs`. The threads of a process have one anchor in shared memory, so they agree, whichever of them
// compares.
//
//   anchor, Float64Array: [0] date minus monotonic clock in microseconds, [1] monotonic milliseconds of the last comparison
//
// The system's clock bounds the offset: `wall ms <= offset + monotonic < wall ms + 1`. Within the bounds nothing changes;
// a difference is corrected by as little as reaches them. So the clock follows the system's when that is slewed, and is
// set when that is set.

export interface Clock {
  /** Wall clock in microseconds since the epoch (an integer in a double, exact until the year 2255). */
  nowMicros(): number
  /** Monotonic milliseconds, for durations and deadlines. */
  monotonicMs(): number
}

/** A clock that other threads of the process can have, too. */
export interface SharedClock extends Clock {
  readonly anchor: SharedArrayBuffer
}

/** What a machine knows about time. */
export interface TimeSource {
  /** Whole milliseconds since the epoch; may be set. */
  wallMs(): number
  /** Never goes back, and is the same in all threads. */
  monotonicMs(): number
  /** The date in microseconds as it was known at the start, to begin with. */
  guessMicros(): number
}

/** How old a comparison with the system's clock may be. */
const anchorMs = 250
/** A correction of more than this means that the clock was set; less, that it is slewed or was read badly. */
const stepMicros = 50_000
/** A reading that took longer is repeated: the thread was interrupted in its midst. */
const readingMs = 0.2
const readingsMax = 3

export class AnchoredClock implements SharedClock {
  readonly anchor: SharedArrayBuffer
  readonly #source: TimeSource
  readonly #words: Float64Array
  #last = 0
  /** At the last question. */
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
    // Corrections that are no step never turn the clock back: it waits.
    if (micros > this.#last) this.#last = micros
    return this.#last
  }

  monotonicMs(): number {
    return this.#source.monotonicMs()
  }

  /** Told when the system's clock was set, at the next question behind it: by how many microseconds. */
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
      // Whatever came between the readings, the offset is at least the one, and less than the other.
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

/** From the origin of this thread's performance.now() to that of the monotonic clock, which all threads share. */
const threadOriginMs = Math.max(...[1, 2, 3].map(() => Number(process.hrtime.bigint()) / 1e6 - performance.now()))

export const systemTime: TimeSource = {
  wallMs: () => Date.now(),
  monotonicMs: () => threadOriginMs + performance.now(),
  guessMicros: () => (performance.timeOrigin + performance.now()) * 1000,
}

/** The clock of a process on its main thread; other threads are given its anchor. */
export const systemClock = new AnchoredClock(systemTime)
