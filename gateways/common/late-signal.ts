// What tells a statement that its reader is gone. An AbortController with a listener takes about 0.1 ms, a good part of what a
// short query does, so it is made only where Node wants one; the engine is told without it.

import type { StopSignal } from '../../engine/engine.js'

export class LateSignal implements StopSignal {
  #controller: AbortController | null = null
  readonly #listeners = new Set<() => void>()
  aborted = false
  reason: unknown

  /** For streams and workers. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.aborted) this.#controller.abort(this.reason)
    return this.#controller.signal
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }

  /** `reason`: what the client is told, if it is still there. Listeners hear of the first call alone. */
  abort(reason?: string): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.#controller?.abort(reason)
    const listeners = [...this.#listeners]
    this.#listeners.clear()
    for (const listener of listeners) listener()
  }
}
