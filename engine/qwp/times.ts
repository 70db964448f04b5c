// The designated timestamps (the table's time column) of the rows in a message of QWP (columnar protocol over
// WebSocket): gives the server's time to rows without one, reports rows whose timestamp is NULL or before 1970, and
// records in the chunk its minimum and maximum and whether they are sorted.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { ColumnSchema } from '../storage/schema/schema.js'
import type { ChunkColumn, RowChunk } from '../storage/writer/writer-batch.js'
import type { ColumnDecoding } from './columns.js'
import type { WireColumn } from './message.js'

/** The high word of NULL, whose low word is 0. */
const nullHigh = -0x8000_0000

/** Gives the server's time to rows without one. */
export function fillTimes(
  { memory: { i64 }, u8, rows }: Pick<ColumnDecoding, 'memory' | 'u8' | 'rows'>,
  column: ChunkColumn,
  { type }: ColumnSchema,
  wire: WireColumn | undefined,
  nowMicros: number,
): void {
  const now = BigInt(nowMicros) * (type.name === 'TIMESTAMP_NS' ? 1000n : 1n)
  const first = column.address >>> 3
  if (wire === undefined || wire.values === 0) {
    i64.fill(now, first, first + rows)
    column.filled = rows
    return
  }
  if (wire.nulls < 0) return
  for (let row = 0; row < rows; row++) {
    if ((u8[wire.nulls + (row >>> 3)]! >>> (row & 7)) & 1) i64[first + row] = now
  }
}

/** Notes order and range of the times. Calls `misfit` for rows whose time is NULL or before 1970. */
export function noteTimes(
  { i32, u32, i64 }: SharedMemory,
  column: ChunkColumn,
  chunk: RowChunk,
  misfit: (row: number, why: string) => void,
): void {
  const { rows } = chunk
  assert(rows > 0, 'R1: a chunk has rows')
  const word = column.address >>> 2
  let lastHigh = -1
  let lastLow = 0
  let sorted = true
  for (let row = 0; row < rows; row++) {
    const low = u32[word + row * 2]!
    const high = i32[word + row * 2 + 1]!
    if (high < 0) {
      misfit(row, high === nullHigh && low === 0 ? 'the designated timestamp is NULL' : before1970)
      continue
    }
    if (high < lastHigh || (high === lastHigh && low < lastLow)) sorted = false
    lastHigh = high
    lastLow = low
  }
  chunk.sorted = sorted
  const first = column.address >>> 3
  chunk.lastTs = i64[first + rows - 1]!
  const [least, most] = sorted ? [0, rows - 1] : extremes(i32, u32, word, rows)
  chunk.minTs = i64[first + least]!
  chunk.maxTs = i64[first + most]!
}

const before1970 = 'designated timestamp before 1970-01-01 is not allowed'

/** Rows of the least and the largest of times that are not negative. */
function extremes(i32: Int32Array, u32: Uint32Array, word: number, rows: number): [number, number] {
  let least = 0
  let most = 0
  for (let row = 1; row < rows; row++) {
    const low = u32[word + row * 2]!
    const high = i32[word + row * 2 + 1]!
    const leastHigh = i32[word + least * 2 + 1]!
    const mostHigh = i32[word + most * 2 + 1]!
    if (high < leastHigh || (high === leastHigh && low < u32[word + least * 2]!)) least = row
    if (high > mostHigh || (high === mostHigh && low > u32[word + most * 2]!)) most = row
  }
  return [least, most]
}
