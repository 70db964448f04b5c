// Loads the dictionary of one column of a part (Parquet file) into memory of the chunk cache (the cache of decoded
// pages). Pages of the column contain indexes into it. Its entries are, for a SYMBOL column, the ids of its strings in
// the table's symbol dictionary; for other columns, the values of the Parquet dictionary page.

import { crc32 } from 'node:zlib'
import { assert } from '../../base/assert.js'
import type { File } from '../../base/files.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type ColumnMapping, encodings } from './parquet-types.js'
import { type DecodeTools, damaged, readPage } from './part-decode.js'
import type { PartColumn } from './part-index.js'

export const dictionaryHeaderBytes = 64

/** Loads the ids of a part's symbols in the table's dictionary. Chunk: {count u32, padded to 64 bytes}, i32[count]. */
export function loadSymbolIds(
  { u8, u32 }: SharedMemory,
  file: File,
  column: PartColumn,
  room: (bytes: number) => number,
): void {
  const run = column.symbols
  if (run === undefined) throw damaged({ file, offset: 0 }, 'a part has no symbol ids')
  const bytes = run.count * 4
  const data = room(dictionaryHeaderBytes + bytes)
  const ids = u8.subarray(data + dictionaryHeaderBytes, data + dictionaryHeaderBytes + bytes)
  const read = file.read(ids, run.offset)
  if (read < bytes || crc32(ids) !== run.crc) {
    throw damaged({ file, offset: run.offset }, 'the symbol ids of a part are damaged')
  }
  u32[data >>> 2] = run.count
}

/**
 * Loads a dictionary page. Chunk: {count u32, padded to 64 bytes} and the values. For strings an entry of NULL precedes
 * the others, and the numbers from 1 on follow them: with these as the dictionary, pages of codes are decoded like
 * pages of values.
 */
export function loadDictionary(
  tools: DecodeTools,
  file: File,
  column: PartColumn,
  mapping: ColumnMapping,
  room: (bytes: number) => number,
): void {
  const { dictionary, codec } = column.metadata
  const { memory } = tools.scratch
  assert(dictionary !== null, 'F2: a dictionary is loaded where there is one')
  const place = { ...dictionary, file, codec, encoding: encodings.plain }
  const raw = readPage(tools, place)
  const { count } = dictionary
  const text = mapping.conversion === 'text'
  if (!text && raw.bytes !== count * mapping.diskBytes) {
    throw damaged(place, 'a dictionary has the wrong size')
  }
  const valueBytes = text ? count * 12 : 0
  const data = room(dictionaryHeaderBytes + valueBytes + raw.bytes)
  const values = data + dictionaryHeaderBytes
  memory.u32[data >>> 2] = count
  memory.copy(values + valueBytes, raw.address, raw.address + raw.bytes)
  if (!text) return
  if (tools.kernel.plainTextEntries(values + valueBytes, raw.bytes, count, values) !== 0) {
    throw damaged(place, 'the strings of a dictionary do not match their lengths')
  }
  memory.i32.set([0, -1], (values - 8) >>> 2)
  const numbers = (values + count * 8) >>> 2
  for (let number = 0; number < count; number++) memory.u32[numbers + number] = number + 1
}
