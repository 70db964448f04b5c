// Staged batches: the rows of one table that a request has delivered, decoded to columns in shared memory and not yet
// committed. At the commit both the log frame (record) and the memtable are filled from them.
//
// A batch is a list of chunks of at most `capacity` rows. A column's memory is allocated at its first value. `filled`
// is the number of rows with a value; settleChunk() fills the rest with NULL before a commit. Values of variable-width
// columns are pairs of address and length that point into the ingest ring or into the batch's heap.
//
// Owner: the line decoder of the table, or the transaction. Memory is reused by the next request.

import { assert } from '../../base/assert.js'
import { int64Max, int64Min } from '../../base/int64.js'
import { walFrameBytesMax } from '../../base/limits.js'
import type { RowsKernel } from '../../kernels/rows.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import { alignUp } from '../../wal/frame.js'
import type { ColumnValues, RowsColumn } from '../../wal/frame-rows.js'
import { cutToDays, fillNull } from '../memtable/memtable-values.js'

const paddingBytes = 64
const heapBytesFirst = 4096
const heapBytesMax = 1024 * 1024
/** From this number of rows on, a kernel packs the strings of a column for the log; the log copies fewer one by one. */
const packedRowsMin = 16

export interface ChunkColumn {
  readonly id: number
  readonly type: DataType
  readonly width: number
  readonly address: number
  filled: number
}

export interface RowChunk {
  readonly capacity: number
  rows: number
  /** Number of rows whose strings were copied from the ingest ring to the heap. */
  ownedRows: number
  readonly columns: Map<number, ChunkColumn>
  /** Range and last value of the designated timestamp. */
  minTs: bigint
  maxTs: bigint
  lastTs: bigint
  sorted: boolean
}

/** Memory for strings of a batch that are not in the ingest ring in the form in which they are stored. */
export class BatchHeap {
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private chunks: { readonly address: number; readonly bytes: number }[] = []
  private used = 0

  constructor(memory: SharedMemory, allocator: Allocator) {
    this.memory = memory
    this.allocator = allocator
  }

  /** Allocates bytes, aligned to 8. */
  reserve(bytes: number): number {
    const wanted = (bytes + 7) & ~7
    const last = this.chunks.at(-1)
    if (last === undefined || this.used + wanted > last.bytes) {
      const size = Math.max(wanted, Math.min(heapBytesMax, (last?.bytes ?? heapBytesFirst / 2) * 2))
      this.chunks.push({ address: this.allocator.allocateOrThrow(size, budgets.ingest), bytes: size })
      this.used = 0
    }
    const chunk = this.chunks.at(-1)
    assert(chunk !== undefined, 'A1: a heap has memory for what it keeps')
    const address = chunk.address + this.used
    this.used += wanted
    assert(this.used <= chunk.bytes, 'A1: what a heap keeps is in its memory')
    return address
  }

  /** Copies the bytes; returns the address of the copy. */
  put(bytes: Uint8Array): number {
    const address = this.reserve(bytes.length + 16)
    this.memory.put(bytes, address)
    return address
  }

  /** Frees all bytes but keeps the largest chunk for reuse. */
  reset(): void {
    const retained = this.chunks.pop()
    for (const { address } of this.chunks) this.allocator.free(address)
    this.chunks = retained === undefined ? [] : [retained]
    this.used = 0
  }

  free(): void {
    for (const { address } of this.chunks) this.allocator.free(address)
    this.chunks = []
    this.used = 0
  }
}

export function newChunk(capacity: number): RowChunk {
  return {
    capacity,
    rows: 0,
    ownedRows: 0,
    columns: new Map(),
    minTs: int64Max,
    maxTs: int64Min,
    lastTs: int64Min,
    sorted: true,
  }
}

/** The column's memory in the chunk, allocated if necessary. Throws ResourceError. */
export function chunkColumn(allocator: Allocator, chunk: RowChunk, id: number, type: DataType): ChunkColumn {
  const known = chunk.columns.get(id)
  if (known !== undefined) return known
  const width = widthOf(type)
  const address = allocator.allocateOrThrow(chunk.capacity * width + paddingBytes, budgets.ingest)
  const column: ChunkColumn = { id, type, width, address, filled: 0 }
  chunk.columns.set(id, column)
  return column
}

/** Fills the missing values with NULL, except for columns without any value. Truncates `dayIds` to days. */
export function settleChunk(memory: SharedMemory, chunk: RowChunk, dayIds: readonly number[] = []): void {
  for (const column of chunk.columns.values()) if (column.filled > 0) settleColumn(memory, column, chunk.rows)
  for (const id of dayIds) {
    const column = chunk.columns.get(id)
    if (column !== undefined && column.filled > 0) cutToDays(memory, column.address, chunk.rows)
  }
}

/** Fills one column with NULL up to the row count. */
export function settleColumn(memory: SharedMemory, column: ChunkColumn, rows: number): void {
  if (column.filled >= rows) return
  fillNull(memory, column.type, column.address, column.filled, rows)
  column.filled = rows
}

/** Updates the time range and order for an appended designated timestamp. */
export function noteTimestamp(chunk: RowChunk, ts: bigint): void {
  if (ts < chunk.lastTs) chunk.sorted = false
  chunk.lastTs = ts
  if (ts < chunk.minTs) chunk.minTs = ts
  if (ts > chunk.maxTs) chunk.maxTs = ts
}

/** Empties the chunk; the memory of its columns is kept. */
export function resetChunk(chunk: RowChunk): void {
  chunk.rows = 0
  chunk.ownedRows = 0
  chunk.minTs = int64Max
  chunk.maxTs = int64Min
  chunk.lastTs = int64Min
  chunk.sorted = true
  for (const column of chunk.columns.values()) column.filled = 0
}

export function freeChunk(allocator: Allocator, chunk: RowChunk): void {
  for (const { address } of chunk.columns.values()) allocator.free(address)
  chunk.columns.clear()
}

/** Removes rows, by their numbers among all rows of the chunks, which must be settled. Bounds of times stay as they are. */
export function dropChunkRows(memory: SharedMemory, chunks: readonly RowChunk[], dropped: ReadonlySet<number>): void {
  let first = 0
  for (const chunk of chunks) {
    const { rows } = chunk
    const own = new Set([...dropped].flatMap((row) => (row >= first && row < first + rows ? [row - first] : [])))
    if (own.size > 0) dropRows(memory, chunk, own)
    first += rows
  }
}

/** Moves the remaining values of every column together. All columns must have a value for each row. */
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
  chunk.ownedRows = Math.min(chunk.ownedRows, chunk.rows)
}

/** Copies strings from the ingest ring to the heap, because the ring's message is about to be released. */
export function ownStrings(memory: SharedMemory, heap: BatchHeap, chunk: RowChunk): void {
  const from = chunk.ownedRows
  assert(from <= chunk.rows, 'R4: only rows of the chunk are owned')
  chunk.ownedRows = chunk.rows
  const { u32, i32 } = memory
  for (const column of chunk.columns.values()) {
    if (!isVariable(column.type)) continue
    for (let row = from; row < column.filled; row++) {
      const word = (column.address >>> 2) + row * 2
      const bytes = i32[word + 1]!
      if (bytes <= 0) continue
      const address = heap.reserve(bytes)
      const source = u32[word]!
      memory.copy(address, source, source + bytes)
      u32[word] = address
    }
  }
}

/** What packing the columns of a log frame takes. */
export interface FrameTools {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: { readonly rows: RowsKernel }
  /** Receives the addresses of memory that the columns use, to be freed when they are in the log. */
  readonly packed: number[]
}

/** The columns of the chunks for a log frame. A column that only some chunks have is filled with NULL in the others. */
export function frameColumns(tools: FrameTools, chunks: readonly RowChunk[]): RowsColumn[] {
  const types = new Map<number, DataType>()
  let rows = 0
  for (const chunk of chunks) {
    // A column without values in this request may still have memory of an earlier request.
    for (const { id, type, filled } of chunk.columns.values()) if (filled > 0) types.set(id, type)
    rows += chunk.rows
  }
  const frame: RowsColumn[] = []
  for (const [id, type] of types) {
    const places = chunks.map((chunk) => wholeColumn(tools, chunk, id, type))
    const packed = rows >= packedRowsMin && isVariable(type) ? packedValues(tools, places, rows) : undefined
    frame.push({ id, type, values: packed ?? { kind: 'places', places, memory: tools.memory.u8 } })
  }
  return frame
}

function wholeColumn({ memory, allocator }: FrameTools, chunk: RowChunk, id: number, type: DataType): ChunkColumn {
  const column = chunkColumn(allocator, chunk, id, type)
  settleColumn(memory, column, chunk.rows)
  assert(column.filled === chunk.rows, 'R1: every column of a batch has a value for each row')
  return column
}

/** Strings as in a frame; undefined if there is no memory for that. */
function packedValues(
  { memory, allocator, kernels, packed }: FrameTools,
  columns: readonly ChunkColumn[],
  rows: number,
): ColumnValues | undefined {
  const bytes = columns.reduce((sum, { address, filled }) => sum + kernels.rows.stringsBytes(address, filled), 0)
  if (bytes > walFrameBytesMax) return undefined
  const lengths = allocator.allocate(alignUp(rows * 4) + bytes + paddingBytes, budgets.ingest)
  if (lengths === 0) return undefined
  packed.push(lengths)
  const start = lengths + alignUp(rows * 4)
  let [lengthAt, end] = [lengths, start]
  for (const { address, filled } of columns) {
    end = kernels.rows.packStrings(address, filled, lengthAt, end) >>> 0
    lengthAt += filled * 4
  }
  assert(end === start + bytes, 'R3: packed strings fill their column')
  return {
    kind: 'packed',
    lengths: memory.u8.subarray(lengths, lengths + rows * 4),
    bytes: memory.u8.subarray(start, end),
  }
}
