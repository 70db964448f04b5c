// Logs refused connections. To limit the log, there is at most one record for each client address and minute. It says
// how many connections from that address were refused since the previous record.

import type { Clock } from '../../engine/base/clock.js'
import type { Log } from '../../engine/base/log.js'
import { plainAddress } from './listen.js'

const everyMs = 60_000
/** Addresses beyond this number share one record. */
const addressesMax = 1000
const otherAddresses = 'further addresses'

interface Reported {
  readonly atMs: number
  unreported: number
}

export class Refusals {
  readonly #log: Log
  readonly #clock: Clock
  readonly #name: string
  readonly #reported = new Map<string, Reported>()

  constructor(name: string, log: Log, clock: Clock) {
    this.#name = name
    this.#log = log
    this.#clock = clock
  }

  note({ remoteAddress }: { readonly remoteAddress?: string | undefined }, reason: string): void {
    const now = this.#clock.monotonicMs()
    const from = this.#keyOf(plainAddress(remoteAddress), now)
    const reported = this.#reported.get(from)
    if (reported !== undefined && now - reported.atMs < everyMs) {
      reported.unreported++
      return
    }
    const others =
      reported === undefined || reported.unreported === 0 ? '' : `, others since the last record=${reported.unreported}`
    this.#log('W', this.#name, `refused: ${reason} [from=${from}${others}]`)
    this.#reported.set(from, { atMs: now, unreported: 0 })
  }

  #keyOf(address: string, now: number): string {
    if (this.#reported.has(address) || this.#reported.size < addressesMax) return address
    for (const [known, { atMs }] of this.#reported) if (now - atMs >= everyMs) this.#reported.delete(known)
    return this.#reported.size < addressesMax ? address : otherAddresses
  }
}
