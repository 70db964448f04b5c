// What the writer has requested of the log thread, and the log thread has not yet reported: SyncRequests has the syncs,
// and Removals the log segments that are to be removed.

import { assert } from '../base/assert.js'
import type { File } from '../base/files.js'
import type { LogReport, LogRequest, Lsn } from './types.js'

interface PendingSync {
  readonly sequence: number
  readonly endLsn: Lsn
}

/** The file of a full or poisoned segment, which stays open until its last sync is reported. */
interface Closing {
  readonly file: File
  readonly lastSequence: number
}

/** Keeps the file descriptors of segments open until their syncs are reported. */
export class SyncRequests {
  #closing: Closing[] = []
  readonly #inFlight: PendingSync[] = []

  get isEmpty(): boolean {
    return this.#inFlight.length === 0
  }

  requested(sequence: number, endLsn: Lsn): void {
    assert(sequence > (this.#inFlight.at(-1)?.sequence ?? 0), 'L1: sync requests are numbered in their order')
    this.#inFlight.push({ sequence, endLsn })
  }

  /** Removes the requests up to the sequence; returns the log position that the last one covers. */
  reported(sequence: number): Lsn | undefined {
    const index = this.#inFlight.findLastIndex((request) => request.sequence <= sequence)
    const endLsn = this.#inFlight[index]?.endLsn
    this.#inFlight.splice(0, index + 1)
    this.#closeReported()
    return endLsn
  }

  /** Closes the file when all its syncs are reported. */
  close(file: File, lastSequence: number): void {
    this.#closing.push({ file, lastSequence })
    this.#closeReported()
  }

  /** Closes all files. */
  end(): void {
    for (const { file } of this.#closing) file.close()
    this.#closing = []
  }

  #closeReported(): void {
    const next = this.#inFlight[0]?.sequence ?? Number.POSITIVE_INFINITY
    this.#closing = this.#closing.filter(({ file, lastSequence }) => {
      if (lastSequence >= next) return true
      file.close()
      return false
    })
  }
}

/**
 * The queue of log segments that are no longer needed. The log thread is asked to remove them, the oldest first. If a
 * removal fails, the same file is tried again before any other, so that there is never a gap between the remaining
 * segments.
 */
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
