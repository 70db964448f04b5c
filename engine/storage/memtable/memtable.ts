// One memtable: the committed rows of a table from the time when it was created until it is flushed, in blocks of
// columns in shared memory. A table may have several: the newest takes rows, the others are being flushed. This file is
// the writer's side: it appends the decoded rows of a transaction, publishes them to readers, and frees the memory.
// memory/column-layout.ts describes the structure.
//
// Appending has two phases: append() copies rows after the existing ones, and publish() makes them visible. cut()
// removes rows that were not published. So a transaction that cannot be written to the log leaves nothing behind.
//
// Invariants:
//   1. visibleRows <= writtenRows. Readers never read rows after visibleRows, so those may be overwritten.
//   2. A column's memory has a value for every row up to the block's row count, NULL where none was given.
//   3. Blocks, column memory and strings do not move while the memtable exists.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { int64Max, int64Min } from '../../base/int64.js'
import { pageRowsMax } from '../../base/limits.js'
import type { RowsKernel } from '../../kernels/rows.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import {
  blockColumn,
  blockHeaderBytes,
  lastWriteMicros,
  memtableHeaderBytes,
  showRows,
  type VisibleRows,
  visibleTransaction,
} from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, isVariable, typeText, widthOf } from '../../types/column-types.js'
import type { ChunkColumn, RowChunk } from '../writer/writer-batch.js'
import { fillNull } from './memtable-values.js'

const blockRowsFirst = 32
const directoryFirst = 8
const paddingBytes = 64
const heapBytesFirst = 1024
const heapBytesMax = 1024 * 1024
const heapStateBytes = 8

interface Block {
  readonly address: number
  readonly firstRow: number
  readonly capacity: number
}

/** Kernels that are instantiated at their first use. */
export interface MemtableKernels {
  readonly rows: RowsKernel
}

export interface MemtableOptions {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: MemtableKernels
  /** Unique during the life of the data directory. */
  readonly id: number
}

export class Memtable {
  readonly id: number
  readonly address: number
  /** Rows appended, visible or not. */
  rows = 0
  /** Bytes allocated by the memtable. */
  bytes = 0
  /** Rows that are published. Readers may see more for a moment: the main thread shows rows before it says so. */
  publishedRows = 0
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private readonly blocks: Block[] = []
  /** Blocks whose rows were removed before they became visible. */
  private readonly spares: Block[] = []
  private readonly allocations: number[] = []
  private directoryCapacity = 0
  private readonly kernels: MemtableKernels
  /** Address of {next u32, end u32}: the free range of the current string heap. */
  private readonly heap: number
  private heapCount = 0
  private readonly nulls = new Map<string, number>()
  /** Transactions that are appended and not published, oldest first. `rows` is the row count at their end. */
  private readonly marks: { readonly rows: number; readonly transaction: number; readonly nowMicros: number }[] = []

  /** Throws ResourceError when the memory is exhausted. */
  constructor({ memory, allocator, kernels, id }: MemtableOptions) {
    this.memory = memory
    this.kernels = kernels
    this.allocator = allocator
    this.id = id
    this.address = allocator.allocateOrThrow(memtableHeaderBytes + heapStateBytes, budgets.memtables)
    this.heap = this.address + memtableHeaderBytes
    memory.u8.fill(0, this.address, this.heap + heapStateBytes)
    memory.f64[(this.address + 24) >>> 3] = id
    this.allocations.push(this.address)
  }

  /**
   * Appends the rows of staged batches, not yet visible. Returns false and appends nothing if the memory is exhausted.
   */
  append(chunks: readonly RowChunk[], timestampId: number): boolean {
    const before = this.rows
    for (const chunk of chunks) {
      if (this.appendChunk(chunk, timestampId)) continue
      this.cut(before)
      return false
    }
    return true
  }

  /** Removes the rows from `rows` on, which must not be visible. */
  cut(rows: number): void {
    assert(rows >= this.publishedRows, 'S1: visible rows stay')
    assert(rows <= this.rows, 'S1: only appended rows are taken back')
    this.rows = rows
    this.memory.u32[(this.address + 16) >>> 2] = rows
    for (const { address, firstRow } of this.blocks) {
      const retained = Math.max(0, rows - firstRow)
      if (retained < this.memory.u32[(address + 8) >>> 2]!) this.memory.u32[(address + 8) >>> 2] = retained
    }
    this.dropBlocks()
  }

  /** Keeps blocks after the last row for reuse, since no reader uses them. */
  private dropBlocks(): void {
    for (let last = this.blocks.at(-1); last !== undefined && last.firstRow > this.rows; last = this.blocks.at(-1)) {
      this.blocks.pop()
      this.spares.push(last)
    }
    Atomics.store(this.memory.u32, (this.address + 4) >>> 2, this.blocks.length)
  }

  /** Removes columns that were never published, from this id on. Their ids may be reused with another type. */
  forgetColumns(columnCount: number): void {
    if (this.types.length <= columnCount) return
    for (const { address } of [...this.blocks, ...this.spares]) {
      const columnsAt = (address + blockHeaderBytes) >>> 2
      const end = this.memory.u32[(address + 12) >>> 2]!
      for (let id = columnCount; id < end; id++) Atomics.store(this.memory.u32, columnsAt + id, 0)
    }
    this.types.length = columnCount
  }

  /** Makes the rows up to this count visible to readers. Call it within the publish sequence lock. */
  publish(rows: number): void {
    assert(rows >= this.publishedRows, 'S1: visible rows only grow')
    this.publishedRows = rows
    showRows(this.memory, this.visibility(rows))
    while (this.marks[0] !== undefined && this.marks[0].rows <= rows) this.marks.shift()
  }

  /** What readers see once the rows up to this count are visible. */
  visibility(rows: number): VisibleRows {
    assert(rows <= this.rows, 'S1: only appended rows are published')
    const { memory, address } = this
    let transaction = visibleTransaction(memory, address)
    let micros = lastWriteMicros(memory, address)
    for (const mark of this.marks) {
      if (mark.rows > rows) break
      transaction = mark.transaction
      micros = mark.nowMicros
    }
    return { address, rows, transaction, micros }
  }

  /** Records that the rows so far complete this transaction. Readers see its number when they see the rows. */
  mark(transaction: number, nowMicros: number): void {
    assert(transaction > (this.marks.at(-1)?.transaction ?? 0), 'S3: transactions of a table only grow')
    this.marks.push({ rows: this.rows, transaction, nowMicros })
  }

  /** Smallest and largest designated timestamp of the blocks; undefined without rows. */
  timeRange(): { readonly min: bigint; readonly max: bigint } | undefined {
    let min = int64Max
    let max = int64Min
    for (const { address } of this.blocks) {
      const blockMin = this.memory.i64[(address + 16) >>> 3]!
      const blockMax = this.memory.i64[(address + 24) >>> 3]!
      if (blockMin < min) min = blockMin
      if (blockMax > max) max = blockMax
    }
    return min <= max ? { min, max } : undefined
  }

  /** Whether the designated timestamp of some row satisfies `is`. */
  anyTime(timestampId: number, is: (timestamp: bigint) => boolean): boolean {
    assert(timestampId >= 0, 'S2: rows with times have a designated timestamp')
    for (const { address } of this.blocks) {
      const first = blockColumn(this.memory, address, timestampId) >>> 3
      const end = first + this.rowsOf(address)
      for (let at = first; at < end; at++) if (is(this.memory.i64[at]!)) return true
    }
    return false
  }

  /** Designated timestamp of a row. */
  timeOf(row: number, timestampId: number): bigint {
    const { address, index } = this.blockOfRow(row)
    assert(index < this.rowsOf(address), 'S1: the row is in the memtable')
    return this.memory.i64[(blockColumn(this.memory, address, timestampId) >>> 3) + index]!
  }

  /** Frees all memory. The memtable must have no readers. */
  free(): void {
    for (const address of this.allocations) this.allocator.free(address)
    this.allocations.length = 0
  }

  private appendChunk(chunk: RowChunk, timestampId: number): boolean {
    for (let from = 0; from < chunk.rows; ) {
      const block = this.blockWithRoom(chunk.rows - from, columnCountOf(chunk))
      if (block === undefined) return false
      const at = this.rows - block.firstRow
      const count = Math.min(chunk.rows - from, block.capacity - at)
      assert(at >= 0, 'S1: rows are appended after the last one')
      assert(count > 0, 'A1: a block takes rows while it has room')
      if (!this.copyRows(chunk, from, block, at, count)) return false
      this.noteTimes(chunk, from, block, at, count, timestampId)
      this.clearSuperseded(block, at, count)
      this.memory.u32[(block.address + 8) >>> 2] = at + count
      this.rows += count
      this.memory.u32[(this.address + 16) >>> 2] = this.rows
      from += count
    }
    return true
  }

  private copyRows(chunk: RowChunk, from: number, block: Block, at: number, count: number): boolean {
    const { u32 } = this.memory
    const columnsAt = (block.address + blockHeaderBytes) >>> 2
    const columnCount = u32[(block.address + 12) >>> 2]!
    for (const column of chunk.columns.values()) {
      if (column.filled === 0) continue
      const target = this.columnOf(block, column, at)
      if (target === 0) return false
      const source = column.address + from * column.width
      this.memory.copy(target + at * column.width, source, source + count * column.width)
      if (isVariable(column.type) && !this.copyStrings(target, at, count)) return false
    }
    for (let id = 0; id < columnCount; id++) {
      const address = u32[columnsAt + id]!
      if (address === 0) continue
      const column = chunk.columns.get(id)
      if (column === undefined || column.filled === 0) fillNull(this.memory, this.typeOf(id), address, at, at + count)
    }
    return true
  }

  /** Types of the columns that have memory, by column id. */
  private readonly types: (DataType | undefined)[] = []

  private typeOf(id: number): DataType {
    const type = this.types[id]
    assert(type !== undefined, 'R1: a column with memory has a type')
    return type
  }

  /** Address of the column's memory in the block, allocated at its first value; 0 if the memory is exhausted. */
  private columnOf(block: Block, column: ChunkColumn, rows: number): number {
    const word = ((block.address + blockHeaderBytes) >>> 2) + column.id
    const known = this.memory.u32[word]!
    if (known !== 0) return known
    const address = this.take(block.capacity * widthOf(column.type) + paddingBytes)
    if (address === 0) return 0
    this.types[column.id] = column.type
    fillNull(this.memory, column.type, address, 0, rows)
    // Readers of earlier rows may read the column as soon as its address is stored.
    Atomics.store(this.memory.u32, word, address)
    return address
  }

  /**
   * Copies the strings of entries that are already in the block to the memtable's heap, 8-byte aligned for array
   * elements.
   */
  private copyStrings(column: number, at: number, count: number): boolean {
    const end = at + count
    for (let from = at; ; ) {
      from += this.kernels.rows.moveStrings(column + from * 8, end - from, this.heap)
      assert(from <= end, 'K3: a kernel moves no more strings than it was given')
      if (from === end) return true
      if (!this.addHeap(this.memory.i32[(column >>> 2) + from * 2 + 1]!)) return false
    }
  }

  private addHeap(bytes: number): boolean {
    const size = Math.max(bytes + 8, Math.min(heapBytesMax, heapBytesFirst << Math.min(10, this.heapCount)))
    const address = this.take(size + paddingBytes)
    if (address === 0) return false
    this.heapCount++
    this.memory.u32[this.heap >>> 2] = address
    this.memory.u32[(this.heap >>> 2) + 1] = address + size
    return true
  }

  private noteTimes(chunk: RowChunk, from: number, block: Block, at: number, count: number, timestampId: number): void {
    const { i64, u32 } = this.memory
    const column = chunk.columns.get(timestampId)
    if (column === undefined) return
    const first = i64[(column.address >>> 3) + from]!
    // An unsorted batch contributes the bounds of the whole batch, since readers expect limits, not exact bounds.
    const min = chunk.sorted ? first : chunk.minTs
    const max = chunk.sorted ? i64[(column.address >>> 3) + from + count - 1]! : chunk.maxTs
    assert(min <= max, 'T1: the time range of a block is not empty')
    const minAt = (block.address + 16) >>> 3
    const sortedAt = (block.address + 32) >>> 2
    if (at === 0) {
      i64[minAt] = min
      i64[minAt + 1] = max
      u32[sortedAt] = chunk.sorted ? 1 : 0
      return
    }
    if (!chunk.sorted || first < i64[minAt + 1]!) u32[sortedAt] = 0
    if (min < i64[minAt]!) i64[minAt] = min
    if (max > i64[minAt + 1]!) i64[minAt + 1] = max
  }

  private clearSuperseded(block: Block, at: number, count: number): void {
    const address = this.memory.u32[(block.address + 36) >>> 2]!
    if (address !== 0) this.memory.u32.fill(0, (address >>> 2) + at, (address >>> 2) + at + count)
  }

  /** The last block, or a new one if it is full or has no entries for some of the batch's columns. */
  private blockWithRoom(rows: number, columnCount: number): Block | undefined {
    const last = this.blocks.at(-1)
    if (last !== undefined) {
      const known = this.memory.u32[(last.address + 12) >>> 2]!
      if (this.rows < last.firstRow + last.capacity && columnCount <= known) return last
      if (this.rows === last.firstRow) return this.replaceEmpty(last, columnCount)
    }
    return this.addBlock(rows, columnCount)
  }

  /** Replaces a block without rows that has too few column entries, as after cut(). It stays allocated until free(). */
  private replaceEmpty(last: Block, columnCount: number): Block | undefined {
    this.blocks.pop()
    Atomics.store(this.memory.u32, (this.address + 4) >>> 2, this.blocks.length)
    return this.addBlock(last.capacity, columnCount)
  }

  private addBlock(rows: number, columnCount: number): Block | undefined {
    const capacity = capacityFor(Math.max(rows, this.blocks.at(-1)?.capacity ?? 0, this.rows))
    if (this.blocks.length === this.directoryCapacity && !this.growDirectory()) return undefined
    const spare = this.spares.pop()
    if (spare !== undefined && columnCount <= this.memory.u32[(spare.address + 12) >>> 2]!) {
      return this.enterBlock(spare.address, spare.capacity)
    }
    const bytes = blockHeaderBytes + columnCount * 4
    const address = this.take(bytes)
    if (address === 0) return undefined
    const { u32, u8 } = this.memory
    u8.fill(0, address, address + bytes)
    u32[(address + 4) >>> 2] = capacity
    u32[(address + 12) >>> 2] = columnCount
    return this.enterBlock(address, capacity)
  }

  /** Adds the block after the last row. */
  private enterBlock(address: number, capacity: number): Block {
    const { u32 } = this.memory
    u32[address >>> 2] = this.rows
    u32[(address + 32) >>> 2] = 1
    assert(this.blocks.length < this.directoryCapacity, 'A1: a block has its entry in the directory')
    const directory = u32[(this.address + 8) >>> 2]!
    u32[(directory >>> 2) + this.blocks.length] = address
    const block = { address, firstRow: this.rows, capacity }
    this.blocks.push(block)
    Atomics.store(u32, (this.address + 4) >>> 2, this.blocks.length)
    return block
  }

  /** The old directory stays allocated, because readers may use it. */
  private growDirectory(): boolean {
    const { u32, u8 } = this.memory
    const capacity = Math.max(directoryFirst, this.directoryCapacity * 2)
    const address = this.take(capacity * 4)
    if (address === 0) return false
    const old = u32[(this.address + 8) >>> 2]!
    u8.copyWithin(address, old, old + this.blocks.length * 4)
    this.directoryCapacity = capacity
    u32[(this.address + 12) >>> 2] = capacity
    Atomics.store(u32, (this.address + 8) >>> 2, address)
    return true
  }

  /** Block and index within it of a row, for the DEDUP index. */
  blockOfRow(row: number): { readonly address: number; readonly index: number } {
    let low = 0
    let high = this.blocks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if ((this.blocks[middle] as Block).firstRow <= row) low = middle
      else high = middle - 1
    }
    const block = this.blocks[low] as Block
    return { address: block.address, index: row - block.firstRow }
  }

  /** Address of the block's superseded array, allocated at its first use; 0 if the memory is exhausted. */
  supersededOf(block: number): number {
    const word = (block + 36) >>> 2
    const known = this.memory.u32[word]!
    if (known !== 0) return known
    const capacity = this.memory.u32[(block + 4) >>> 2]!
    const address = this.take(capacity * 4 + paddingBytes)
    if (address === 0) return 0
    this.memory.u32.fill(0, address >>> 2, (address >>> 2) + capacity)
    Atomics.store(this.memory.u32, word, address)
    return address
  }

  /** Makes room for the mark of a row; false if the memory is exhausted. */
  reserveMark(row: number): boolean {
    return this.supersededOf(this.blockOfRow(row).address) !== 0
  }

  /** Marks the row, which has room for it: readers who see the first `rows` rows skip it. */
  markSuperseded(row: number, rows: number): void {
    const { address, index } = this.blockOfRow(row)
    const marks = this.supersededOf(address)
    assert(marks !== 0, 'S1: a row is marked in reserved memory')
    Atomics.store(this.memory.u32, (marks >>> 2) + index, rows)
  }

  /** Number of rows in a block, visible or not. */
  rowsOf(block: number): number {
    return this.memory.u32[(block + 8) >>> 2]!
  }

  /** Whether a row of a block, by its index there, is marked. */
  isSuperseded(block: number, index: number): boolean {
    const marks = this.memory.u32[(block + 36) >>> 2]!
    return marks !== 0 && this.memory.u32[(marks >>> 2) + index] !== 0
  }

  /** Address of one NULL of a fixed-width type. */
  nullValue(type: DataType): number {
    const known = this.nulls.get(typeText(type))
    if (known !== undefined) return known
    const address = this.take(paddingBytes)
    if (address === 0) throw new ResourceError('out of memory for a key')
    fillNull(this.memory, type, address, 0, 1)
    this.nulls.set(typeText(type), address)
    return address
  }

  private take(bytes: number): number {
    const address = this.allocator.allocate(bytes, budgets.memtables)
    if (address === 0) return 0
    this.allocations.push(address)
    this.bytes += bytes
    return address
  }
}

/** Number of column entries that the batch needs in a block. */
function columnCountOf(chunk: RowChunk): number {
  let count = 0
  for (const { id, filled } of chunk.columns.values()) if (filled > 0 && id >= count) count = id + 1
  return count
}

function capacityFor(rows: number): number {
  let capacity = blockRowsFirst
  while (capacity < rows && capacity < pageRowsMax) capacity *= 2
  return capacity
}
