// Parses byte strings in PostgreSQL's text formats of BYTEA, hexadecimal (`\x0102`) and octal escapes, and recognises
// the hexadecimal one.

const backslash = 0x5c

/**
 * Whether a string literal is bytes as PostgreSQL clients write them; other strings remain an error in this
 * dialect.
 */
export function isBytesText(value: unknown): value is string {
  return typeof value === 'string' && /^\\x(?:[0-9a-f]{2})*$/i.test(value)
}

/** Parses `\x0102`, or the older form: UTF-8 with octal escapes. */
export function byteaOf(text: string): Uint8Array {
  if (text.startsWith('\\x')) return new Uint8Array(Buffer.from(text.slice(2), 'hex'))
  const bytes = new Uint8Array(Buffer.from(text, 'utf8'))
  if (!text.includes('\\')) return bytes
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const octal = bytes[at] === backslash ? octalAt(bytes, at + 1) : -1
    if (octal >= 0) {
      bytes[length++] = octal
      at += 3
    } else {
      if (bytes[at] === backslash && bytes[at + 1] === backslash) at++
      bytes[length++] = bytes[at]!
    }
  }
  return bytes.slice(0, length)
}

/** Value of three octal digits; -1: there are none. */
function octalAt(bytes: Uint8Array, at: number): number {
  let value = 0
  for (let index = at; index < at + 3; index++) {
    const digit = (bytes[index] ?? 0) - 48
    if (digit < 0 || digit > 7) return -1
    value = value * 8 + digit
  }
  return value
}
