// Validates UTF-8 of a byte stream. The bytes must not be in shared memory, since Node's isUtf8() cannot check them
// there.

import { isUtf8 } from 'node:buffer'

/** Whether the stream has been valid UTF-8 so far; blocks may end within a character. */
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

/** Number of bytes before a possibly cut last character. */
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
