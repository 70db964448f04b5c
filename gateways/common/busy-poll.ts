// Behind a short answer the event loop looks at its sockets without going to sleep, for a quarter of a millisecond at most:
// who asks one small query behind the other sends the next within that time, and waking a thread that sleeps takes longer
// than such a query, above all on virtual machines. With nobody to ask again it costs nothing: a few waits in vain, and it
// is tried again only now and then.

import { availableParallelism } from 'node:os'

const waitMs = 0.25
/** Waits in vain, one behind the other, until it is given up; */
const missesMax = 4
/** then one answer of so many is tried. */
const retryEvery = 64

export interface PollTools {
  readonly nowMs: () => number
  /** Calls back in the next turn of the event loop, which does not sleep before. */
  readonly turn: (look: () => void) => void
}

const loopTools: PollTools = { nowMs: () => performance.now(), turn: setImmediate }

export class BusyPoll {
  readonly #tools: PollTools
  readonly #enabled: boolean
  #polling = false
  /** 0: somebody asked. */
  #untilMs = 0
  #misses = 0
  #skipped = 0

  /** A single processor belongs to the clients meanwhile. */
  constructor(enabled: boolean, tools: PollTools = loopTools, processors = availableParallelism()) {
    this.#enabled = enabled && processors > 1
    this.#tools = tools
  }

  /** A request has come. */
  asked(): void {
    if (!this.#polling) return
    this.#untilMs = 0
    this.#misses = 0
  }

  /** A short answer has been sent. */
  answered(): void {
    if (!this.#enabled) return
    if (this.#misses >= missesMax && ++this.#skipped % retryEvery !== 0) return
    this.#untilMs = this.#tools.nowMs() + waitMs
    if (this.#polling) return
    this.#polling = true
    this.#tools.turn(this.#look)
  }

  readonly #look = (): void => {
    if (this.#tools.nowMs() < this.#untilMs) this.#tools.turn(this.#look)
    else this.#sleep()
  }

  #sleep(): void {
    this.#polling = false
    if (this.#untilMs > 0) this.#misses++
  }
}
