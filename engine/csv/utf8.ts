// Whether a stream of bytes is UTF-8; the bytes lie outside the shared memory, where node can look at them.

import { isUtf8 } from 'node:buffer'

/** Whether a file is UTF-8 as far as it has come; characters may be cut by the ends of blocks. */
export class Utf8Check {
  valid = true
  private pending: Uint8Array = new Uint8Array(0)

  add(block: Uint8Array, last: boolean): void {
    if (!this.valid) return
    const bytes = this.pending.length === 0 ? block : Buffer.concat([this.pending, block])
    const whole = last ? bytes.length : wholeCharacters(bytes)
    this.valid = isUtf8(bytes.subarray(0, whole))
    this.pending = bytes.slice(whole)
  }
}

/** Bytes before a character that the end may have cut. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) break
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return needed > back ? bytes.length - back : bytes.length
    }
  }
  return bytes.length
}
