// Syncs that the log role was asked for and has not reported, and the descriptors that have to stay open until then.

import { assert } from '../base/assert.js'
import type { File } from '../base/files.js'
import type { Lsn } from './types.js'

interface SyncOnItsWay {
  readonly sequence: number
  readonly endLsn: Lsn
}

/** The descriptor of a full or poisoned segment stays open until its last sync was reported. */
interface Closing {
  readonly file: File
  readonly lastSequence: number
}

export class SyncRequests {
  #closing: Closing[] = []
  readonly #onTheirWay: SyncOnItsWay[] = []

  get isEmpty(): boolean {
    return this.#onTheirWay.length === 0
  }

  asked(sequence: number, endLsn: Lsn): void {
    assert(sequence > (this.#onTheirWay.at(-1)?.sequence ?? 0), 'L1: sync requests are numbered in their order')
    this.#onTheirWay.push({ sequence, endLsn })
  }

  /** Forgets the requests up to the sequence; returns the end of the last one. */
  reported(sequence: number): Lsn | undefined {
    const index = this.#onTheirWay.findLastIndex((request) => request.sequence <= sequence)
    const endLsn = this.#onTheirWay[index]?.endLsn
    this.#onTheirWay.splice(0, index + 1)
    this.#closeReported()
    return endLsn
  }

  /** Closes the file when its syncs are reported. */
  close(file: File, lastSequence: number): void {
    this.#closing.push({ file, lastSequence })
    this.#closeReported()
  }

  /** Closes them all. */
  end(): void {
    for (const { file } of this.#closing) file.close()
    this.#closing = []
  }

  #closeReported(): void {
    const next = this.#onTheirWay[0]?.sequence ?? Number.POSITIVE_INFINITY
    this.#closing = this.#closing.filter(({ file, lastSequence }) => {
      if (lastSequence >= next) return true
      file.close()
      return false
    })
  }
}
