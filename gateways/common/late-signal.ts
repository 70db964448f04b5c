// An AbortController that is made only when somebody asks for its signal: most statements are over before anybody does.

export class LateSignal {
  #controller: AbortController | null = null
  #aborted = false

  get aborted(): boolean {
    return this.#aborted
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#aborted) this.#controller.abort()
    return this.#controller.signal
  }

  abort(): void {
    this.#aborted = true
    this.#controller?.abort()
  }
}
