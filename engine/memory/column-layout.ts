// Layouts and accessors of the memtables and symbol dictionaries in shared memory, which the writer thread fills and
// query threads read. The writer stores the number of rows or strings after their contents. So a reader that first
// reads the number finds everything complete up to it, without a lock.
//
// SYMBOL DICTIONARY: offsets are in dictionary-layout.ts.
//
//   Id i is in chunk k = 31 - clz32((i >>> 8) + 1), at index i - 256 * ((1 << k) - 1) of the chunk.
//   At least 16 readable bytes follow each string. Kernels look strings up in the dictionary's hash table, but only
//   TypeScript enlarges that table.
//
// MEMTABLE (64 bytes, 64-byte aligned): one memtable. Its rows are in blocks, in commit order:
//
//     0  visibleRows u32  rows that readers may use (stored with Atomics inside the publish sequence lock)
//     4  blockCount u32   blocks in the directory (stored with Atomics)
//     8  directory u32    address of block addresses u32[]; replaced by a longer copy when full
//    12  directoryCapacity u32                                             (writer only)
//    16  writtenRows u32  rows appended, visible or not                    (writer only)
//    24  id f64           memtable id, unique over the life of the data directory
//    32  visibleTxn f64   the last table transaction among the visible rows, 0 before the first
//    40  lastWriteMicros f64   wall clock of the last publication, 0 before the first
//
// BLOCK (64 bytes + 4 per column, 64-byte aligned): a run of rows with the columns' memory:
//
//     0  firstRow u32     index of the block's first row in the memtable
//     4  capacity u32     maximum number of rows
//     8  rows u32         rows written (readers: min(rows, visibleRows - firstRow))
//    12  columnCount u32  entries of `columns`; a column id beyond it reads as null
//    16  minTs i64        of the designated timestamp, in the table's unit (conservative for readers)
//    24  maxTs i64
//    32  sorted u32       1 while the designated timestamps are ascending within the block
//    36  superseded u32   address of u32[capacity] or 0: index + 1 of the row (in this memtable) that replaced the
//                         row of a DEDUP table; the row does not exist for a reader that sees its replacement
//    64  columns u32[]    address of the column's values by column id; 0 = all null (BOOLEAN false, BYTE/SHORT/CHAR 0)
//
//   A column's memory is 64-byte aligned and padded to a multiple of 64 bytes; 64 more bytes are readable.

import { assert } from '../base/assert.js'
import * as layout from './dictionary-layout.js'
import type { SharedMemory } from './shared-memory.js'

export const dictionaryBytes = 192
export const dictionaryChunkFirst = 256
export const dictionaryChunksMax = 24
export const dictionarySlotBytes = layout.slotBytes
export const memtableHeaderBytes = 64
export const blockHeaderBytes = 64
/** Id of a NULL symbol. */
export const symbolNull = -1

/** Number of entries of a dictionary that may be read now. */
export function dictionaryCount(memory: SharedMemory, dictionary: number): number {
  return Atomics.load(memory.u32, (dictionary + layout.count) >>> 2)
}

export function dictionarySerial(memory: SharedMemory, dictionary: number): number {
  return memory.u32[(dictionary + layout.serial) >>> 2]!
}

/**
 * Keeps the strings in memory until the reader releases them; false if they were evicted and the writer must load them.
 */
export function holdDictionary({ i32 }: SharedMemory, dictionary: number): boolean {
  const word = (dictionary + layout.holders) >>> 2
  for (;;) {
    const holders = Atomics.load(i32, word)
    if (holders < 0) return false
    if (Atomics.compareExchange(i32, word, holders, holders + 1) === holders) return true
  }
}

export function releaseDictionary({ i32 }: SharedMemory, dictionary: number): void {
  const holders = Atomics.sub(i32, (dictionary + layout.holders) >>> 2, 1)
  assert(holders > 0, 'A5: a dictionary is released by a reader that holds it')
}

/** Address of the {text address, text bytes} pair of an id below the dictionary's count. */
export function dictionaryEntry(memory: SharedMemory, dictionary: number, id: number): number {
  const chunk = 31 - Math.clz32((id >>> 8) + 1)
  const base = memory.u32[(dictionary + layout.chunks + chunk * 4) >>> 2]!
  return base + (id - dictionaryChunkFirst * ((1 << chunk) - 1)) * 8
}

/** Rows of a memtable that readers may use now. Call inside readPublished for a consistent snapshot of all tables. */
export function visibleRows(memory: SharedMemory, memtable: number): number {
  return Atomics.load(memory.u32, memtable >>> 2)
}

export function blockCount(memory: SharedMemory, memtable: number): number {
  return Atomics.load(memory.u32, (memtable + 4) >>> 2)
}

/** Address of the block with that index. */
export function blockAt(memory: SharedMemory, memtable: number, index: number): number {
  const directory = memory.u32[(memtable + 8) >>> 2]!
  return memory.u32[(directory >>> 2) + index]!
}

/** What readers may see of a memtable: its first `rows` rows, the last of which completes `transaction`. */
export interface VisibleRows {
  /** Address of the memtable. */
  readonly address: number
  readonly rows: number
  readonly transaction: number
  /** Wall clock of the writer when it took the transaction. */
  readonly micros: number
}

/** Lets readers see the rows. Call it within the publish sequence lock or on the readers' thread. */
export function showRows({ u32, f64 }: SharedMemory, { address, rows, transaction, micros }: VisibleRows): void {
  Atomics.store(u32, address >>> 2, rows)
  f64[(address + 32) >>> 3] = transaction
  f64[(address + 40) >>> 3] = micros
}

/** The last table transaction visible in the memtable; 0 before the first. */
export function visibleTransaction(memory: SharedMemory, memtable: number): number {
  return memory.f64[(memtable + 32) >>> 3]!
}

/** Wall clock of the memtable's last publication in microseconds; 0 before the first. */
export function lastWriteMicros(memory: SharedMemory, memtable: number): number {
  return memory.f64[(memtable + 40) >>> 3]!
}

/** Rows written to a block, visible or not. */
export function blockRows(memory: SharedMemory, block: number): number {
  return memory.u32[(block + 8) >>> 2]!
}

/** Bounds of the block's designated timestamps, in the table's unit; they may be wider than the rows need. */
export function blockTimes(memory: SharedMemory, block: number): { readonly minTs: bigint; readonly maxTs: bigint } {
  const word = (block + 16) >>> 3
  return { minTs: memory.i64[word]!, maxTs: memory.i64[word + 1]! }
}

/** Whether the designated timestamps ascend within the block. */
export function isBlockSorted(memory: SharedMemory, block: number): boolean {
  return memory.u32[(block + 32) >>> 2] === 1
}

/** Address of the block's replacements of rows (`superseded`); 0: no row was replaced. */
export function supersededRows(memory: SharedMemory, block: number): number {
  return Atomics.load(memory.u32, (block + 36) >>> 2)
}

/** Address of a column's values in a block; 0 when every value is null. */
export function blockColumn(memory: SharedMemory, block: number, columnId: number): number {
  const columnCount = memory.u32[(block + 12) >>> 2]!
  return columnId < columnCount ? memory.u32[(block + blockHeaderBytes + columnId * 4) >>> 2]! : 0
}
