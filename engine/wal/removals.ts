// The queue of log segments that are no longer needed. The log thread is asked to remove them one at a time, the oldest
// first. If a removal fails, the same file is tried again before any other, so that there is never a gap between the
// remaining segments.

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

  /** Whether a request is in progress. */
  get removing(): boolean {
    return this.#removing
  }

  remove(paths: readonly string[]): void {
    this.#waiting.push(...paths)
    if (this.#removing || this.#waiting.length === 0) return
    this.#removing = true
    this.#send({ kind: 'remove', paths: this.#waiting.splice(0), directory: this.#directory })
  }

  /** Takes the report of a request. Files that could not be removed are tried again with the next ones. */
  reported(report: Extract<LogReport, { kind: 'removed' | 'removeFailed' }>): void {
    assert(this.#removing, 'L5: every removal is reported once')
    this.#removing = false
    if (report.kind === 'removed') this.remove([])
    else this.#waiting.unshift(...report.paths)
  }
}
