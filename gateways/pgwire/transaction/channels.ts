// Registry of LISTEN: the sessions of one gateway that listen to each notification channel (a name to which NOTIFY
// sends).

/** A pending LISTEN, UNLISTEN or NOTIFY; `channel` null: all channels. */
export type PendingRequest =
  | { readonly action: 'listen'; readonly channel: string }
  | { readonly action: 'unlisten'; readonly channel: string | null }
  | { readonly action: 'notify'; readonly channel: string; readonly message: Buffer }

export interface Inbox {
  readonly messages: Buffer[]
  bytes: number
}

/** A listening session. */
export interface Listener {
  readonly inbox: Inbox
  readonly connection: { readonly id: number }
  readonly inbound: { nudge(): void }
}

export class Channels {
  readonly #listeners = new Map<string, Set<Listener>>()

  listen(listener: Listener, channel: string): void {
    const listeners = this.#listeners.get(channel) ?? new Set()
    listeners.add(listener)
    this.#listeners.set(channel, listeners)
  }

  /** `channel` null: leaves all channels. */
  leave(listener: Listener, channel: string | null): void {
    for (const name of channel === null ? this.of(listener) : [channel]) {
      const listeners = this.#listeners.get(name)
      listeners?.delete(listener)
      if (listeners?.size === 0) this.#listeners.delete(name)
    }
  }

  of(listener: Listener): string[] {
    return [...this.#listeners].filter(([, listeners]) => listeners.has(listener)).map(([channel]) => channel)
  }

  listeners(channel: string): ReadonlySet<Listener> {
    return this.#listeners.get(channel) ?? nobody
  }
}

const nobody: ReadonlySet<Listener> = new Set()
