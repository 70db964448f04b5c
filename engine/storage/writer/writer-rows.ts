// Stages the rows that SQL statements and CSV imports send to the writer: copies them into columns in shared memory,
// from which a commit takes them, and checks the designated timestamps (values of the tables' time columns). The values
// already have the types of their columns.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { ArrayValue, Value } from '../../types/value.js'
import type { PackedColumn, PackedRows, RowsInput } from '../jobs/messages.js'
import { readBlock } from '../memtable/packed-block.js'
import { requireTypes } from '../schema/schema.js'
import {
  BatchHeap,
  type ChunkColumn,
  chunkColumn,
  freeChunk,
  newChunk,
  noteTimestamp,
  type RowChunk,
  settleColumn,
} from './writer-batch.js'
import type { StagedTable } from './writer-commit.js'
import type { WriterOptions } from './writer-state.js'
import type { WriterTable } from './writer-table.js'
import { newSlot, setArrayValue, setBytes, setInteger, setNumber, storeSlot, type ValueSlot } from './writer-values.js'

const chunkRowsMax = 8192
/** High halves of timestamps below 2^53, which doubles represent exactly. */
const exactHighMax = 2 ** 21
const encoder = new TextEncoder()

/** The staged rows of one request; free() releases their memory. */
export interface StagedRows {
  readonly tables: readonly StagedTable[]
  free(): void
}

/**
 * Throws SqlError if a designated timestamp is missing or invalid, or the type of a column has changed; ResourceError if
 * the memory is exhausted.
 */
export function stageRows(
  { memory, allocator, kernels }: Pick<WriterOptions, 'memory' | 'allocator' | 'kernels'>,
  inputs: readonly { readonly table: WriterTable; readonly input: RowsInput }[],
): StagedRows {
  const heap = new BatchHeap(memory, allocator)
  const chunks: RowChunk[] = []
  const free = () => {
    for (const chunk of chunks) freeChunk(allocator, chunk)
    heap.free()
  }
  try {
    const tables = inputs.map(({ table, input }) => {
      const first = chunks.length
      const packed = input.block === undefined ? input.packed : readBlock(input.block)
      for (const rows of packed ?? []) {
        requireTypes(table.schema, rows.columns)
        const chunk = newChunk(rows.rows)
        chunks.push(chunk)
        stagePacked({ memory, allocator, heap, kernels }, table, rows, chunk)
        checkTimestamps(memory, table, chunk)
      }
      if (packed !== undefined) return { table, chunks: chunks.slice(first) }
      requireTypes(table.schema, input.columns)
      for (let from = 0; from < input.rows; from += chunkRowsMax) {
        const chunk = newChunk(Math.min(chunkRowsMax, input.rows - from))
        chunks.push(chunk)
        stageChunk({ memory, allocator, heap }, table, input, from, chunk)
      }
      return { table, chunks: chunks.slice(first) }
    })
    return { tables, free }
  } catch (thrown) {
    free()
    throw thrown
  }
}

interface Resources {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly heap: BatchHeap
}

function stageChunk(resources: Resources, table: WriterTable, input: RowsInput, from: number, chunk: RowChunk): void {
  const { memory, allocator } = resources
  const slot = newSlot()
  for (const { columnId, type, values } of input.columns) {
    const column = chunkColumn(allocator, chunk, columnId, type)
    for (let row = 0; row < chunk.capacity; row++) {
      const value = values[from + row] ?? null
      if (value === null) continue
      settleColumn(memory, column, row)
      storeValue(resources, table, column, row, value, slot)
      column.filled = row + 1
    }
    settleColumn(memory, column, chunk.capacity)
  }
  chunk.rows = chunk.capacity
  checkTimestamps(memory, table, chunk)
}

function storeValue(
  { memory, heap }: Resources,
  table: WriterTable,
  column: ChunkColumn,
  row: number,
  value: Exclude<Value, null>,
  slot: ValueSlot,
): void {
  if (column.type.name === 'SYMBOL') {
    const bytes = encoder.encode(String(value))
    const code = table.dictionary(column.id).intern(heap.put(bytes), bytes.length)
    assert(code !== undefined, 'R2: encoded text is UTF-8')
    setNumber(slot, code)
  } else if (typeof value === 'string') {
    if (column.type.name === 'CHAR') setNumber(slot, value.length === 0 ? 0 : value.charCodeAt(0))
    else setBytes(slot, encoder.encode(value))
  } else if (typeof value === 'bigint') setInteger(slot, value)
  else if (typeof value === 'number') setNumber(slot, value)
  else if (typeof value === 'boolean') setNumber(slot, value ? 1 : 0)
  else if (value instanceof Uint8Array) setBytes(slot, value)
  else setArrayValue(slot, value as ArrayValue)
  storeSlot(memory, heap, column, row, slot)
}

function checkTimestamps(memory: SharedMemory, table: WriterTable, chunk: RowChunk): void {
  const { timestampId } = table.schema
  if (timestampId < 0) return
  const column = chunk.columns.get(timestampId)
  if (column === undefined) throw new SqlError('designated timestamp is missing', 0)
  if (noteTimes(memory, column.address >>> 2, chunk)) return
  for (let row = 0; row < chunk.rows; row++) {
    const ts = memory.i64[(column.address >>> 3) + row]!
    if (ts === -(2n ** 63n)) throw new SqlError('designated timestamp column cannot be NULL', 0)
    if (ts < 0n) throw new SqlError('designated timestamp before 1970-01-01 is not allowed', 0)
    noteTimestamp(chunk, ts)
  }
}

/**
 * Computes range and order of timestamps as doubles, if all are exact; false otherwise. A bigint each is much slower.
 */
function noteTimes({ i32, u32 }: SharedMemory, word: number, chunk: RowChunk): boolean {
  let last = -1
  let min = Number.POSITIVE_INFINITY
  let max = -1
  let sorted = true
  for (let row = 0; row < chunk.rows; row++) {
    const high = i32[word + row * 2 + 1]!
    if (high < 0 || high >= exactHighMax) return false
    const ts = high * 2 ** 32 + u32[word + row * 2]!
    if (ts < last) sorted = false
    last = ts
    if (ts < min) min = ts
    if (ts > max) max = ts
  }
  if (chunk.rows === 0) return true
  assert(min <= max, 'T1: the time range of a chunk is not empty')
  chunk.sorted = sorted
  chunk.lastTs = BigInt(last)
  chunk.minTs = BigInt(min)
  chunk.maxTs = BigInt(max)
  return true
}

type PackedResources = Resources & { readonly kernels: Pick<Kernels, 'rows'> }

/**
 * Copies a batch that arrives in columns (from SQL or CSV). Each batch numbers its symbols on its own, so each distinct
 * string is looked up once in the table's dictionary.
 */
function stagePacked(resources: PackedResources, table: WriterTable, rows: PackedRows, chunk: RowChunk): void {
  for (const { columnId, type, values } of rows.columns) {
    const column = chunkColumn(resources.allocator, chunk, columnId, type)
    stageColumn(resources, table, column, values, rows.rows)
    column.filled = rows.rows
  }
  chunk.rows = rows.rows
}

function stageColumn(
  { memory, heap, kernels }: PackedResources,
  table: WriterTable,
  column: ChunkColumn,
  values: PackedColumn,
  rows: number,
): void {
  switch (values.kind) {
    case 'fixed':
      assert(values.bytes.length === rows * column.width, 'R1: every row has a value')
      memory.put(values.bytes, column.address)
      return
    case 'strings': {
      const { lengths, bytes } = values
      assert(lengths.length === rows, 'R1: every row has a length')
      const lengthsAt = heap.put(new Uint8Array(lengths.buffer, lengths.byteOffset, lengths.byteLength))
      kernels.rows.entriesOf(lengthsAt, lengths.length, heap.put(bytes), column.address)
      return
    }
    case 'symbols':
      assert(values.ids.length === rows, 'R1: every row has a code')
      stageSymbols(memory, heap, table, column, values)
  }
}

function stageSymbols(
  { i32, u32 }: SharedMemory,
  heap: BatchHeap,
  table: WriterTable,
  { id, address }: ChunkColumn,
  { ids, strings, count }: Extract<PackedColumn, { kind: 'symbols' }>,
): void {
  const dictionary = table.dictionary(id)
  const known = new Int32Array(count)
  let at = heap.put(strings)
  for (let index = 0; index < count; index++) {
    const bytes = unaligned(u32, at)
    const code = dictionary.intern(at + 4, bytes)
    if (code === undefined) throw new SqlError('a symbol is not valid UTF-8', 0)
    known[index] = code
    at += 4 + bytes
  }
  for (let row = 0; row < ids.length; row++) {
    const local = ids[row]!
    i32[(address >>> 2) + row] = local < 0 ? -1 : known[local]!
  }
}

/** Reads a u32 from an unaligned address. */
function unaligned(u32: Uint32Array, address: number): number {
  const shift = (address & 3) * 8
  const low = u32[address >>> 2]!
  if (shift === 0) return low
  return ((low >>> shift) | (u32[(address >>> 2) + 1]! << (32 - shift))) >>> 0
}
