// Tells the log about credentials that were refused: at most one record a second, however many there are.

import type { Socket } from 'node:net'
import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import { remoteAddress } from './listen.js'

const everyMs = 1000

export class Refusals {
  readonly #log: Log
  readonly #clock: Clock
  readonly #name: string
  #lastMs = Number.NEGATIVE_INFINITY
  #untold = 0

  constructor(name: string, log: Log, clock: Clock) {
    this.#name = name
    this.#log = log
    this.#clock = clock
  }

  note(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    const now = this.#clock.monotonicMs()
    if (now - this.#lastMs < everyMs) {
      this.#untold++
      return
    }
    const others = this.#untold === 0 ? '' : `, others since the last record=${this.#untold}`
    this.#log('W', this.#name, `credentials refused [from=${remoteAddress(socket)}${others}]`)
    this.#lastMs = now
    this.#untold = 0
  }
}
