// The places of one listener: how many connections it holds, and which of them gives way when others come.
//
//   waiting   has completed no request and no sign-in yet; a connection begins here
//   working   was let in by credentials, or by a server that asks for none; there are `max` places for these
//   leaving   has had its final answer; only what it still sends is read
//
// Invariants:
//   1. Working connections are never more than `max`, and those that wait take none of their places: silent sockets lock
//      nobody out.
//   2. All connections together are at most `max + spare`. Beyond it the oldest one that leaves or waits gives way, and
//      where there is none the new one is turned away unheard.
//   3. Those that have waited for `graceMs` hold at most half of the places, and none beyond `max`: the oldest give way. The
//      grace is for clients that open many connections at once and use them afterwards.
//   4. A working connection at rest for `restMs` gives way to one that has work, where its protocol says that it rests
//      (between two requests of HTTP); others stay as long as they like.
//
// A limit for each address is checked beside these. It is off unless it is set: behind a proxy all clients are one address.

import { plainAddress } from './listen.js'

export type Limit = 'total' | 'address'

export interface PlaceLimits {
  readonly max: number
  /** 0 and less: no limit. */
  readonly perAddressMax: number
}

export interface PlaceHolder {
  readonly address: string | undefined
  /** The connection is to be closed now; its place is free already. */
  readonly dismiss: (reason: string) => void
  /** How long nothing has been under way; 0: something is. Absent: the connection never rests. */
  readonly restingMs?: () => number
}

export interface Place {
  /** What keeps it from working: a limit, or nothing. */
  refusal(): Limit | null
  /** Its request or sign-in is good. Null: it works now, or did already. */
  work(): Limit | null
  /** It has had its final answer. */
  depart(): void
  /** It is closed; may be called again. */
  leave(): void
}

export interface PlacesOptions {
  /** Connections beyond the limit that may wait to be told so; 0 where the protocol has no answers. */
  readonly spare: number
  readonly nowMs: () => number
}

const graceMs = 3000
const restMs = 30_000
const sweepMs = 500

const gaveWay = 'gave way to newer connections: no request or sign-in was completed'
const gaveWayAtRest = 'gave way to another connection: no request for half a minute'

export class Places {
  #limits: PlaceLimits
  readonly #spare: number
  readonly #nowMs: () => number
  /** Oldest first. */
  readonly #waiting = new Set<Held>()
  readonly #working = new Set<Held>()
  readonly #leaving = new Set<Held>()
  readonly #byAddress = new Map<string, number>()
  #sweep: NodeJS.Timeout | null = null

  constructor(limits: PlaceLimits, { spare, nowMs }: PlacesOptions) {
    this.#limits = limits
    this.#spare = spare
    this.#nowMs = nowMs
  }

  /** Who is in stays. */
  limit(limits: PlaceLimits): void {
    this.#limits = limits
  }

  get size(): number {
    return this.#waiting.size + this.#working.size + this.#leaving.size
  }

  /** A new connection: its place, or the limit that turns it away unheard. */
  enter(holder: PlaceHolder): Place | Limit {
    const address = plainAddress(holder.address)
    const held: Held = { holder, address, sinceMs: this.#nowMs(), isOver: this.#isCrowdedBy(address) }
    if (held.isOver && this.#spare === 0) return 'address'
    while (this.size >= this.#limits.max + this.#spare) {
      const [oldest = undefined] = this.#leaving.size > 0 ? this.#leaving : this.#waiting
      if (oldest === undefined) return 'total'
      this.#dismiss(oldest, gaveWay)
    }
    this.#waiting.add(held)
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    this.#sweepLater()
    return {
      refusal: () => this.#refusal(held),
      work: () => this.#work(held),
      depart: () => this.#depart(held),
      leave: () => this.#leave(held),
    }
  }

  /** Looks after those that wait; called by itself while they may have to go. */
  sweep(): void {
    const { max } = this.#limits
    const now = this.#nowMs()
    for (const held of this.#waiting) {
      if (now - held.sinceMs < graceMs) return
      if (held.isOver || this.#waiting.size > waitingMax(max) || this.size > max) this.#dismiss(held, gaveWay)
    }
  }

  #refusal(held: Held): Limit | null {
    if (this.#working.has(held)) return null
    if (held.isOver) return 'address'
    return this.#working.size < this.#limits.max || this.#oldestAtRest() !== null ? null : 'total'
  }

  #work(held: Held): Limit | null {
    if (this.#working.has(held)) return null
    const refused = this.#refusal(held)
    if (refused !== null) return refused
    const rested = this.#working.size < this.#limits.max ? null : this.#oldestAtRest()
    if (rested !== null) this.#dismiss(rested, gaveWayAtRest)
    if (this.#waiting.delete(held)) this.#working.add(held)
    return null
  }

  #depart(held: Held): void {
    if (this.#waiting.delete(held) || this.#working.delete(held)) this.#leaving.add(held)
  }

  #leave(held: Held): void {
    if (!this.#waiting.delete(held) && !this.#working.delete(held) && !this.#leaving.delete(held)) return
    const left = (this.#byAddress.get(held.address) ?? 1) - 1
    if (left > 0) this.#byAddress.set(held.address, left)
    else this.#byAddress.delete(held.address)
  }

  #dismiss(held: Held, reason: string): void {
    this.#leave(held)
    held.holder.dismiss(reason)
  }

  #isCrowdedBy(address: string): boolean {
    const { perAddressMax } = this.#limits
    return perAddressMax > 0 && (this.#byAddress.get(address) ?? 0) >= perAddressMax
  }

  /** Asked only while all places are taken. */
  #oldestAtRest(): Held | null {
    let oldest: Held | null = null
    let longestMs = restMs
    for (const held of this.#working) {
      const ms = held.holder.restingMs?.() ?? 0
      if (ms < longestMs) continue
      oldest = held
      longestMs = ms
    }
    return oldest
  }

  #sweepLater(): void {
    if (this.#sweep !== null || !this.#isCrowded()) return
    this.#sweep = setTimeout(() => {
      this.#sweep = null
      this.sweep()
      this.#sweepLater()
    }, sweepMs)
    this.#sweep.unref()
  }

  /** Whether some that wait may have to go. */
  #isCrowded(): boolean {
    const { max, perAddressMax } = this.#limits
    return this.#waiting.size > waitingMax(max) || this.size > max || (perAddressMax > 0 && this.#waiting.size > 0)
  }
}

interface Held {
  readonly holder: PlaceHolder
  readonly address: string
  readonly sinceMs: number
  /** Its address has more connections than one may have. */
  readonly isOver: boolean
}

function waitingMax(max: number): number {
  return Math.max(1, Math.floor(max / 2))
}
