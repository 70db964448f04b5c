// Polls the sockets for up to a quarter of a millisecond after a short response instead of letting the event loop
// sleep. A client that sends one small query after another sends the next one within that time, and waking a sleeping
// thread takes longer than such a query, above all on virtual machines. After some polls without a request, polling
// is tried only now and then.

import { availableParallelism } from 'node:os'

const waitMs = 0.25
/** Number of consecutive polls without a request after which polling pauses. */
const missesMax = 4
/** While polling pauses, one of this many responses is still followed by a poll. */
const retryEvery = 64

export interface PollTools {
  readonly nowMs: () => number
  /** Calls back in the next turn of the event loop, without sleeping before it. */
  readonly turn: (look: () => void) => void
}

const loopTools: PollTools = { nowMs: () => performance.now(), turn: setImmediate }

export class BusyPoll {
  readonly #tools: PollTools
  readonly #enabled: boolean
  #polling = false
  /** 0: a request has arrived. */
  #untilMs = 0
  #misses = 0
  #skipped = 0

  /** Never polls on a machine with a single processor, which the clients need. */
  constructor(enabled: boolean, tools: PollTools = loopTools, processors = availableParallelism()) {
    this.#enabled = enabled && processors > 1
    this.#tools = tools
  }

  /** Call when a request arrives. */
  asked(): void {
    if (!this.#polling) return
    this.#untilMs = 0
    this.#misses = 0
  }

  /** Call after a short response has been sent. */
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
