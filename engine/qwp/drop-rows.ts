// Removes the given rows from a chunk of uncommitted rows, for requests that skip bad rows: moves the remaining values
// of every column together. All columns must have a value for each row.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { RowChunk } from '../storage/writer/writer-batch.js'

export function dropRows({ u8 }: SharedMemory, chunk: RowChunk, dropped: ReadonlySet<number>): void {
  const kept: number[] = []
  for (let row = 0; row < chunk.rows; row++) if (!dropped.has(row)) kept.push(row)
  for (const column of chunk.columns.values()) {
    const { address, width, filled } = column
    if (filled === 0) continue
    assert(filled === chunk.rows, 'R1: every column of a chunk has a value for each row')
    kept.forEach((row, to) => {
      if (row !== to) u8.copyWithin(address + to * width, address + row * width, address + (row + 1) * width)
    })
    column.filled = kept.length
  }
  chunk.rows = kept.length
}
