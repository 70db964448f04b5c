// Converts a column to strings for output formats that lack its type, such as UUID in Arrow, or INTERVAL in QWP
// (columnar protocol over WebSocket). The strings are the same as in text results.

import type { Scratch } from '../../storage/part/part-scratch.js'
import { displayText } from '../../types/convert.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'

/**
 * Writes the texts of the rows [from, from + rows) to scratch memory. Returns the address of their entries: address and
 * length of each, in UTF-8; length -1 is NULL.
 */
export function displayedStrings(
  { memory, strings }: ExecContext,
  scratch: Scratch,
  vector: Vector,
  from: number,
  rows: number,
): number {
  const read = valueReader(memory, strings, vector)
  const texts: (Buffer | null)[] = []
  let bytes = 0
  for (let row = 0; row < rows; row++) {
    const value = read(from + row)
    const text = value === null ? null : Buffer.from(displayText(value, vector.type), 'utf8')
    texts.push(text)
    bytes += text?.length ?? 0
  }
  const entries = scratch.room('entries', rows * 8)
  let at = scratch.room('texts', bytes)
  for (const [row, text] of texts.entries()) {
    memory.u32[(entries >>> 2) + row * 2] = at
    memory.i32[(entries >>> 2) + row * 2 + 1] = text?.length ?? -1
    if (text === null) continue
    memory.put(text, at)
    at += text.length
  }
  return entries
}
