// Connection slots of one listener: limits its connections and decides which one to evict in favour of new ones.
//
//   waiting   has completed no request and no sign-in yet; every connection starts here
//   working   was authenticated, or needed no credentials; limited to `max`
//   leaving   has received its final response; only its remaining input is read
//
// Invariants:
//   1. At most `max` connections are working. Waiting connections take none of their slots, so idle sockets cannot lock
//      clients out.
//   2. All connections together are at most `max + spare`. Above that, the oldest leaving or waiting connection is
//      evicted; if there is none, the new connection is closed at once.
//   3. Of the connections that have waited longer than `graceMs`, the oldest are evicted while more than `max / 2` are
//      waiting, and while there are more than `max` connections altogether. The grace period serves clients that open
//      many connections first and use them later.
//   4. A working connection that has been idle for `idleMsMin` is evicted in favour of an active one, if its protocol
//      can tell that it is idle (HTTP between two requests); otherwise connections stay as long as they like.
//
// A limit per client address applies in addition. It is off by default: behind a proxy all clients share an
// address.

import { plainAddress } from './listen.js'

export type Limit = 'total' | 'address'

export interface SlotLimits {
  readonly max: number
  /** 0 or less: no limit. */
  readonly perAddressMax: number
}

export interface SlotHolder {
  readonly address: string | undefined
  /** Closes the evicted connection; its slot has already been released. */
  readonly dismiss: (reason: string) => void
  /** How long the connection has been idle; 0: active. Absent: never idle. */
  readonly idleMs?: () => number
}

export interface ConnectionSlot {
  /** The limit that keeps the connection from becoming working, if any. */
  refusal(): Limit | null
  /**
   * Marks the connection as working after a valid request or sign-in. Returns the limit that prevents it, or null.
   *
   */
  work(): Limit | null
  /** Marks the connection as leaving: its final response has been sent. */
  depart(): void
  /** Releases the slot of a closed connection; may be called repeatedly. */
  leave(): void
}

export interface SlotOptions {
  /** Connections beyond the limit that may stay to receive an error; 0 for protocols without responses. */
  readonly spare: number
  readonly nowMs: () => number
}

const graceMs = 3000
const idleMsMin = 30_000
const sweepMs = 500

const evicted = 'evicted in favour of newer connections: no request or sign-in was completed'
const evictedIdle = 'evicted in favour of another connection: no request for half a minute'

export class ConnectionSlots {
  #limits: SlotLimits
  readonly #spare: number
  readonly #nowMs: () => number
  /** Oldest first. */
  readonly #waiting = new Set<Held>()
  readonly #working = new Set<Held>()
  readonly #leaving = new Set<Held>()
  readonly #byAddress = new Map<string, number>()
  #sweep: NodeJS.Timeout | null = null

  constructor(limits: SlotLimits, { spare, nowMs }: SlotOptions) {
    this.#limits = limits
    this.#spare = spare
    this.#nowMs = nowMs
  }

  /** Changes the limits; existing connections stay. */
  limit(limits: SlotLimits): void {
    this.#limits = limits
  }

  get size(): number {
    return this.#waiting.size + this.#working.size + this.#leaving.size
  }

  /** Returns a slot for a new connection, or the limit because of which to close it at once. */
  enter(holder: SlotHolder): ConnectionSlot | Limit {
    const address = plainAddress(holder.address)
    const held: Held = { holder, address, sinceMs: this.#nowMs(), isOver: this.#isCrowdedBy(address) }
    if (held.isOver && this.#spare === 0) return 'address'
    while (this.size >= this.#limits.max + this.#spare) {
      const [oldest = undefined] = this.#leaving.size > 0 ? this.#leaving : this.#waiting
      if (oldest === undefined) return 'total'
      this.#dismiss(oldest, evicted)
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

  /** Evicts connections that have waited too long; reschedules itself while there may be more. */
  sweep(): void {
    const { max } = this.#limits
    const now = this.#nowMs()
    for (const held of this.#waiting) {
      if (now - held.sinceMs < graceMs) return
      if (held.isOver || this.#waiting.size > waitingMax(max) || this.size > max) this.#dismiss(held, evicted)
    }
  }

  #refusal(held: Held): Limit | null {
    if (this.#working.has(held)) return null
    if (held.isOver) return 'address'
    return this.#working.size < this.#limits.max || this.#oldestIdle() !== null ? null : 'total'
  }

  #work(held: Held): Limit | null {
    if (this.#working.has(held)) return null
    const refused = this.#refusal(held)
    if (refused !== null) return refused
    const idle = this.#working.size < this.#limits.max ? null : this.#oldestIdle()
    if (idle !== null) this.#dismiss(idle, evictedIdle)
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

  /** Called only while all slots are taken. */
  #oldestIdle(): Held | null {
    let oldest: Held | null = null
    let longestMs = idleMsMin
    for (const held of this.#working) {
      const ms = held.holder.idleMs?.() ?? 0
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

  /** Whether some waiting connections may have to be evicted. */
  #isCrowded(): boolean {
    const { max, perAddressMax } = this.#limits
    return this.#waiting.size > waitingMax(max) || this.size > max || (perAddressMax > 0 && this.#waiting.size > 0)
  }
}

interface Held {
  readonly holder: SlotHolder
  readonly address: string
  readonly sinceMs: number
  /** Whether its address exceeds the limit per address. */
  readonly isOver: boolean
}

function waitingMax(max: number): number {
  return Math.max(1, Math.floor(max / 2))
}
