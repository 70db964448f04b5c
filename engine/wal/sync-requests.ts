// Tracks the syncs that the writer has requested and the log thread has not yet reported, and keeps the file
// descriptors open until the reports arrive.

import { assert } from '../base/assert.js'
import type { File } from '../base/files.js'
import type { Lsn } from './types.js'

interface PendingSync {
  readonly sequence: number
  readonly endLsn: Lsn
}

/** The file of a full or poisoned segment, which stays open until its last sync is reported. */
interface Closing {
  readonly file: File
  readonly lastSequence: number
}

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
