// Drops the end-of-data marker of old clients (psql 15 and earlier): a final line `\\.` after the rows of a CSV.
// Anywhere else such a line is an ordinary row.

const marks = ['\\', '\\.', '\\.\r', '\\.\n', '\\.\r\n']
const wholeMark = /^\\\.(?:\r\n|\r|\n)?$/
const markBytesMax = 4
const lf = 10
const noBytes = Buffer.alloc(0)

export class EndMark {
  /** Bytes that may be the marker or its beginning. */
  #held: Buffer = noBytes
  #isLineStart = true

  /** Returns the bytes that cannot be part of the marker; `last`: nothing follows. */
  pass(chunk: Buffer, last: boolean): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const end = bytes.length - this.#markBytes(bytes)
    this.#held = Buffer.from(bytes.subarray(end))
    if (end > 0) this.#isLineStart = bytes[end - 1] === lf
    return last && !wholeMark.test(this.#held.toString('latin1')) ? bytes : bytes.subarray(0, end)
  }

  /** Size of the marker, or of its beginning, at the end of the bytes. */
  #markBytes(bytes: Buffer): number {
    for (let count = Math.min(markBytesMax, bytes.length); count > 0; count--) {
      const start = bytes.length - count
      if (start === 0 ? !this.#isLineStart : bytes[start - 1] !== lf) continue
      if (marks.includes(bytes.toString('latin1', start))) return count
    }
    return 0
  }
}
