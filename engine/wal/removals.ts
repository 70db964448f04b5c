// Segments that are to be removed, oldest first. One request at a time: after a failure the same file comes first again,
// so that what is left has no gaps.

import { assert } from '../base/assert.js'
import type { LogReport, LogRequest } from './types.js'

export class Removals {
  #removing = false
  readonly #waiting: string[] = []
  readonly #directory: string
  readonly #send: (request: LogRequest) => void

  constructor(directory: string, send: (request: LogRequest) => void) {
    this.#directory = directory
    this.#send = send
  }

  /** A request is on its way. */
  get removing(): boolean {
    return this.#removing
  }

  remove(paths: readonly string[]): void {
    this.#waiting.push(...paths)
    if (this.#removing || this.#waiting.length === 0) return
    this.#removing = true
    this.#send({ kind: 'remove', paths: this.#waiting.splice(0), directory: this.#directory })
  }

  /** Those that are left after a failure are removed together with the next ones. */
  reported(report: Extract<LogReport, { kind: 'removed' | 'removeFailed' }>): void {
    assert(this.#removing, 'L5: every removal is reported once')
    this.#removing = false
    if (report.kind === 'removed') this.remove([])
    else this.#waiting.unshift(...report.paths)
  }
}
