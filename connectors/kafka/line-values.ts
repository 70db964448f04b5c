// Records that are line protocol already: one line or more, text and binary values. They are passed on as they are; here
// is only counted what the server will count, so that a line that it refuses is found in its record.

import { BadRecordError } from './bad-record.js'

const newline = 10
const equals = 61
const backslash = 92
const binaryDouble = 16
const binaryArray = 14

/** Lines of the value, empty ones included. A newline behind a backslash or within a binary value ends no line. */
export function countLines(bytes: Uint8Array): number {
  let lines = 0
  let lineStart = 0
  let at = 0
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === newline) {
      lines++
      at++
      lineStart = at
    } else if (byte === backslash) at += 2
    else if (byte === equals && bytes[at + 1] === equals) at = binaryEnd(bytes, at)
    else at++
  }
  if (at > bytes.length) throw new BadRecordError('the last line is cut off')
  return lineStart < bytes.length ? lines + 1 : lines
}

/** Behind the binary value whose `==` stands there. */
function binaryEnd(bytes: Uint8Array, at: number): number {
  const type = bytes[at + 2]
  if (type === binaryDouble) return at + 11
  if (type !== binaryArray) return at + 2
  const dimensions = bytes[at + 4] ?? 0
  const values = at + 5 + dimensions * 4
  if (values > bytes.length) return values
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  let count = 1
  for (let index = 0; index < dimensions; index++) count *= view.getUint32(at + 5 + index * 4, true)
  return values + count * 8
}
