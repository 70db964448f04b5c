// The mark that old clients, psql 15 among them, send behind the rows of a CSV: a line of its own, `\\.`. It is dropped
// where it is the last that comes; elsewhere it is a row like others.

const marks = ['\\', '\\.', '\\.\r', '\\.\n', '\\.\r\n']
const wholeMark = /^\\\.(?:\r\n|\r|\n)?$/
const markBytesMax = 4
const lf = 10
const noBytes = Buffer.alloc(0)

export class EndMark {
  /** What may be the mark, or its beginning. */
  #held: Buffer = noBytes
  #isLineStart = true

  /** What is no mark for certain; `last`: nothing follows. */
  pass(chunk: Buffer, last: boolean): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const end = bytes.length - this.#markBytes(bytes)
    this.#held = Buffer.from(bytes.subarray(end))
    if (end > 0) this.#isLineStart = bytes[end - 1] === lf
    return last && !wholeMark.test(this.#held.toString('latin1')) ? bytes : bytes.subarray(0, end)
  }

  /** At the end of the bytes. */
  #markBytes(bytes: Buffer): number {
    for (let count = Math.min(markBytesMax, bytes.length); count > 0; count--) {
      const start = bytes.length - count
      if (start === 0 ? !this.#isLineStart : bytes[start - 1] !== lf) continue
      if (marks.includes(bytes.toString('latin1', start))) return count
    }
    return 0
  }
}
