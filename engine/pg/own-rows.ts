// Converts the uncommitted rows of a transaction from columns to arrays of values, one for each row, so that the
// transaction's own statements can read them: they are not in the table yet.

import { assert } from '../base/assert.js'
import { SymbolStrings } from '../exec/batch/symbols.js'
import { type ValueReader, valueReader } from '../exec/batch/values.js'
import { SharedMemory } from '../memory/shared-memory.js'
import type { PackedColumn, PackedRows } from '../storage/jobs/messages.js'
import { liveColumns, type TableVersion } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import { nullOf } from '../types/convert.js'
import type { Value } from '../types/value.js'

/** Returns all columns of the table in order; a column that a batch lacks is NULL. */
export function ownRows({ schema }: TableVersion, batches: readonly PackedRows[]): Value[][] {
  const columns = liveColumns(schema)
  return batches.flatMap(({ rows, columns: packed }) => {
    const readers = columns.map(({ id, type }): ValueReader => {
      const found = packed.find(({ columnId }) => columnId === id)
      if (found !== undefined) return packedReader(found.type, found.values)
      const absent = nullOf(type)
      return () => absent
    })
    return Array.from({ length: rows }, (_, row) => readers.map((read) => read(row)))
  })
}

/** Reads the values of a column that is packed. */
export function packedReader(type: DataType, values: PackedColumn): ValueReader {
  switch (values.kind) {
    case 'fixed':
      return vectorReader(type, values.bytes)
    case 'strings':
      return vectorReader(type, entries(values.lengths, values.bytes))
    case 'symbols': {
      const strings = symbolStrings(values.strings, values.count)
      return (row) => strings[values.ids[row]!] ?? null
    }
  }
}

/** The bytes have the memory layout of a column; a private memory makes them readable. */
function vectorReader(type: DataType, bytes: Uint8Array): ValueReader {
  const buffer = new SharedArrayBuffer(Math.ceil(bytes.length / 8) * 8)
  new Uint8Array(buffer).set(bytes)
  const memory = new SharedMemory({ buffer } as WebAssembly.Memory)
  return valueReader(memory, new SymbolStrings(memory), { type, address: 0, dictionary: 0 })
}

/** Builds entries: an address and a length per value, then the values, 8-byte aligned. */
function entries(lengths: Int32Array, bytes: Uint8Array): Uint8Array {
  const aligned = (length: number): number => (Math.max(0, length) + 7) & ~7
  const size = lengths.reduce((sum, length) => sum + aligned(length), lengths.length * 8)
  const placed = new Uint8Array(size)
  const words = new Int32Array(placed.buffer)
  let source = 0
  let target = lengths.length * 8
  for (const [row, length] of lengths.entries()) {
    words[row * 2] = target
    words[row * 2 + 1] = length
    if (length <= 0) continue
    placed.set(bytes.subarray(source, source + length), target)
    source += length
    target += aligned(length)
  }
  assert(source === bytes.length, 'R3: lengths of strings add up to their bytes')
  return placed
}

/** Decodes strings that are each stored after their length u32. */
function symbolStrings(bytes: Uint8Array, count: number): string[] {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  const strings = Array.from({ length: count }, () => {
    const start = at + 4
    at = start + source.readUInt32LE(at)
    return source.toString('utf8', start, at)
  })
  assert(at === bytes.length, 'R3: lengths of symbols add up to their bytes')
  return strings
}
