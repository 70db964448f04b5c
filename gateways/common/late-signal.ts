// An AbortController that is made only when somebody asks for its signal: most statements are over before anybody does.

export class LateSignal {
  #controller: AbortController | null = null
  #aborted = false
  #reason: string | undefined

  get aborted(): boolean {
    return this.#aborted
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#aborted) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  /** `reason`: what the client is told, if it is still there. */
  abort(reason?: string): void {
    this.#aborted = true
    this.#reason ??= reason
    this.#controller?.abort(reason)
  }
}
