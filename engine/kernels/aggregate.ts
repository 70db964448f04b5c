// The interface of the aggregation kernel (WebAssembly), which adds the values of a column to sums, counts, minima and
// maxima, for all rows or for each group; and the structures in shared memory that it uses.
//
// Grouping takes two steps. First every row gets a group number (u32), from a dictionary id, a time bucket or a hash
// table. Then one kernel call per aggregate adds the column's values to accumulators indexed by group number. Keys of
// several columns are combined step by step: the values of the first column get numbers, then each pair of such a
// number and a value of the second column gets a number, as a 64-bit key, and so on.
//
// MASK: one byte a row, 0 = skip the row, 255 = use it; address 0 = use every row. Columns and masks are readable up to
// the next multiple of 64 bytes.
//
// NULL values (NaN; the minimum integer of i32 and i64; nothing for i16 and i8) are ignored by every aggregate.
//
// STATS (40 bytes, 8-byte aligned): sum, count i64, min, max, high. Sum, min and max are f64 for floating point columns
// and i64 for integers. The sum of an i64 column may wrap around; the exact sum follows from it and `high`, the sum of
// the high words of the values (types/wide-sum.ts). initStats sets the neutral element; kernels add rows to the present
// values.
//
// GROUPS: the members of STATS, in separate arrays with one cell of 16 bytes (or as stated) per group, so that only the
// required aggregates are computed:
//   sums {sum, count}: both f64 for f64 and f32 columns, else i64; of i64 columns {sum, count, high} (24 bytes)
//   extremes {min, max}   rows {first row u32, last row u32} (8 bytes)
// A row whose group number is not below `groups` is skipped.
//
// TABLE (64 bytes, 8-byte aligned) numbers distinct keys in order of appearance:
//
//     0  slots u32       address of the slots, zeroed: 16 bytes each, 8 for 128-bit keys
//     4  slotMask u32    slots - 1
//     8  count u32       keys so far
//    12  countMax u32    the most keys: three quarters of the slots, or fewer if `keys` has less room
//    16  keys u32        address of the distinct keys: 8 or 16 bytes, or {address u32, bytes i32} for strings
//    20  heapNext u32    strings only: address for the bytes of the next new key
//    24  heapEnd u32     strings only
//
// When a table or its heap is full, numbering stops at that row: grow it (rehash) and continue from there.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'

export type NumberStorage = 'f64' | 'f32' | 'i64' | 'i32' | 'i16' | 'i8'

/** The kernels' codes of numeric storage types. */
export const aggregateKinds = { f64: 0, f32: 1, i64: 2, i32: 3, i16: 4, i8: 5 } as const satisfies Record<
  NumberStorage,
  number
>

/** Codes that hashKeys accepts in addition: entries of strings, values of 16 and of 32 bytes. */
export const hashKinds = { ...aggregateKinds, entry: 6, b16: 7, b32: 8 } as const

export interface AggregateKernel {
  /** Adds rows to STATS. kind: aggregateKinds. */
  stats(kind: number, values: number, mask: number, rows: number, stats: number): void
  /** Like stats, but only for sum, count and high, which is faster. */
  sum(kind: number, values: number, mask: number, rows: number, stats: number): void

  /** Adds rows to the sums of their groups. The count is f64 for kinds f64 and f32, else i64. */
  groupSums(kind: number, values: number, ids: number, mask: number, rows: number, groups: number, sums: number): void
  groupExtremes(
    kind: number,
    values: number,
    ids: number,
    mask: number,
    rows: number,
    groups: number,
    extremes: number,
  ): void
  /** Adds 1 to counts[id] (i64) for each row. */
  groupCounts(ids: number, mask: number, rows: number, groups: number, counts: number): void
  /** Records the first (if none yet: 0xffffffff) and the last row of each group; rows are numbered from firstRow. */
  groupRows(ids: number, mask: number, rows: number, groups: number, firstRow: number, cells: number): void

  /** out[row] = previous[row] * cardinality + ids[row] + 1 (NULL, -1, becomes 0); previous 0 = zeros. */
  combineIds(ids: number, rows: number, cardinality: number, previous: number, out: number): void
  /** out[row] = the 64-bit key {low[row], high[row]}; high 0 = zeros. */
  pairIds(low: number, high: number, rows: number, out: number): void
  /**
   * Writes a value of 4 or 8 bytes for each row from `from` on while low <= ts <= last, and returns the first row
   * outside. Used for time buckets, since most timestamps are in the bucket of the preceding row.
   */
  fillWithin(
    ts: number,
    from: number,
    rows: number,
    low: bigint,
    last: bigint,
    width: 4 | 8,
    value: bigint,
    out: number,
  ): number

  /** Numbers 64-bit keys by a TABLE; masked rows get 0xffffffff. Returns the number of rows processed. */
  numberKeys8(table: number, keys: number, mask: number, rows: number, ids: number): number
  numberKeys16(table: number, keys: number, mask: number, rows: number, ids: number): number
  /**
   * The same for entries of strings {address u32, bytes i32}; NULL (bytes -1) is a key. Copies new keys to the heap.
   */
  internStrings(table: number, entries: number, mask: number, rows: number, ids: number): number
  /**
   * The same for dictionary-encoded strings: codes (u32), `entries` by code, and `idsByCode` (u32), which caches the
   * number + 1 of each code (0 = not looked up yet).
   */
  numberCodes(
    table: number,
    codes: number,
    entries: number,
    idsByCode: number,
    mask: number,
    rows: number,
    ids: number,
  ): number
  /**
   * Mixes a column into hashes (u32 a row). Equal values give equal hashes; all zeros count as equal, and so do all
   * NaN. kind: hashKinds.
   */
  hashKeys(kind: number, values: number, rows: number, hashes: number): void
  /**
   * Row numbers by partition, the hash's bits from `shift` on: starts (u32[partitions + 1]) says where in out
   * (u32[rows]) a partition's rows begin, which come in their order.
   */
  spreadRows(hashes: number, rows: number, shift: number, starts: number, out: number): void
  /** Inserts the table's keys into its new, zeroed slots. width: 8, 16, or 0 for strings. */
  rehashKeys(table: number, width: number): void
}

export const statsBytes = 40
export const tableBytes = 64
export const tableFullId = 0xffff_ffff

const longMin = -0x8000_0000_0000_0000n
const longMax = 0x7fff_ffff_ffff_ffffn

/** Sets STATS to the neutral element. */
export function initStats(memory: SharedMemory, at: number, kind: NumberStorage): void {
  assert(at % 8 === 0, 'K1: statistics are aligned to 8 bytes')
  const floating = kind === 'f64' || kind === 'f32'
  // Word by word, because SAMPLE BY does this for every bucket.
  const { f64, i64 } = memory
  const word = at >>> 3
  i64[word] = 0n
  i64[word + 1] = 0n
  i64[word + 4] = 0n
  if (floating) {
    f64[word + 2] = Number.POSITIVE_INFINITY
    f64[word + 3] = Number.NEGATIVE_INFINITY
  } else {
    i64[word + 2] = longMax
    i64[word + 3] = longMin
  }
}

/** Sets the extremes of groups to the neutral element. */
export function initExtremes(memory: SharedMemory, at: number, groups: number, kind: NumberStorage): void {
  assert(at % 8 === 0, 'K1: extremes are aligned to 8 bytes')
  const floating = kind === 'f64' || kind === 'f32'
  for (let i = 0; i < groups; i++) {
    if (floating) memory.f64.set([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY], (at >>> 3) + i * 2)
    else memory.i64.set([longMax, longMin], (at >>> 3) + i * 2)
  }
}

export interface KeyTable {
  readonly slots: number
  readonly slotCount: number
  readonly countMax: number
  readonly keys: number
  readonly heap: number
  readonly heapBytes: number
}

/** Writes an empty TABLE; the caller has zeroed the slots. */
export function writeKeyTable(memory: SharedMemory, at: number, table: KeyTable): void {
  assert((table.slotCount & (table.slotCount - 1)) === 0, 'K2: the slots of a key table are a power of two')
  assert(table.countMax * 4 <= table.slotCount * 3, 'K2: at most three quarters of the slots of a key table are used')
  assert(table.heap + table.heapBytes <= memory.bytes, 'K2: the heap of a key table is in the memory')
  memory.u32.set(
    [table.slots, table.slotCount - 1, 0, table.countMax, table.keys, table.heap, table.heap + table.heapBytes, 0],
    at >>> 2,
  )
}
