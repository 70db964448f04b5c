// Logs rejected connections, rate-limited to one record per address and minute.

import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import { plainAddress } from './listen.js'

const everyMs = 60_000
/** Addresses beyond this number share one record. */
const addressesMax = 1000
const everybodyElse = 'more addresses than are told apart'

interface Told {
  readonly atMs: number
  untold: number
}

export class Refusals {
  readonly #log: Log
  readonly #clock: Clock
  readonly #name: string
  readonly #told = new Map<string, Told>()

  constructor(name: string, log: Log, clock: Clock) {
    this.#name = name
    this.#log = log
    this.#clock = clock
  }

  note({ remoteAddress }: { readonly remoteAddress?: string | undefined }, reason: string): void {
    const now = this.#clock.monotonicMs()
    const from = this.#keyOf(plainAddress(remoteAddress), now)
    const told = this.#told.get(from)
    if (told !== undefined && now - told.atMs < everyMs) {
      told.untold++
      return
    }
    const others = told === undefined || told.untold === 0 ? '' : `, others since the last record=${told.untold}`
    this.#log('W', this.#name, `refused: ${reason} [from=${from}${others}]`)
    this.#told.set(from, { atMs: now, untold: 0 })
  }

  #keyOf(address: string, now: number): string {
    if (this.#told.has(address) || this.#told.size < addressesMax) return address
    for (const [known, { atMs }] of this.#told) if (now - atMs >= everyMs) this.#told.delete(known)
    return this.#told.size < addressesMax ? address : everybodyElse
  }
}
