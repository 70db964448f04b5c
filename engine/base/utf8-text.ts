// Decodes UTF-8 from clients and rejects invalid bytes, so that no replacement character is stored.

import { isUtf8 } from 'node:buffer'
import { SqlError } from './errors.js'

export function utf8Text(bytes: Buffer, start = 0, end = bytes.length): string {
  const text = bytes.toString('utf8', start, end)
  if (text.includes('\ufffd') && !isUtf8(bytes.subarray(start, end)))
    throw new SqlError('invalid byte sequence for encoding "UTF8"', 0)
  return text
}
