// A lightweight abort signal for statements. An AbortController with a listener costs about as much as a short query,
// so one is created only when a Node API asks for it; the engine checks this object directly.

import type { StopSignal } from '../../engine/engine.js'

export class LazySignal implements StopSignal {
  #controller: AbortController | null = null
  #listeners: Set<() => void> | null = null
  aborted = false
  reason: unknown

  /** Creates the AbortSignal, for streams and workers. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.aborted) this.#controller.abort(this.reason)
    return this.#controller.signal
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners ??= new Set()
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener)
  }

  /** `reason` is reported to the client if it is still connected. Only the first call notifies listeners. */
  abort(reason?: string): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.#controller?.abort(reason)
    const listeners = [...(this.#listeners ?? [])]
    this.#listeners = null
    for (const listener of listeners) listener()
  }
}
