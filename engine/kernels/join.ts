// The interface of the join kernel (WebAssembly), which finds the pairs of rows that a join returns, and the structures
// in shared memory that it uses.
//
// Each row is given by the code of its key and by its row number; matchKeys() and matchRange() compare the keys
// themselves. A code is a u32 that stands for the values of the key columns: rows with equal keys have equal codes. Row
// number 0xffffffff means "none". A LISTING contains the rows of each code: starts u32[codes + 1], rows
// u32[starts[codes]], in the order in which they were added. States are small structures in shared memory with which a
// call continues where the last one stopped. The caller initialises their first words:
//
//   EXPAND   row u32 (next row), taken u32 (position in its list), matched u32 (matchKeys: it had a match)
//   SETTLE   matched u32 (number + 1 of the last left row that had a match, 0 = none)
//   ASOF     left:  ts u32, codes u32, rows u32, cursor u32
//            right: ts u32, codes u32 (of row `first` on), rows u32, cursor u32
//            last u32 (u32 per code: its latest right row, or none), first u32, strict u32 (LT), complete u32 (no more
//            right rows will come), tolerance i64 (negative: any distance), out u32 (u32 per left row)
//   SPLICE   left: ts u32, codes u32, rows u32, cursor u32; right: the same; lastLeft u32, lastRight u32, tieLeft u32,
//            tieRight u32 (ends of the rows of the present timestamp: begin with 0)

// A BUCKETS table lists rows by bits of a hash (mask: buckets - 1), with the compared words next to the list:
//   starts u32, mask u32, list u32, stored u32 (addresses), width u32 (of what is stored: 4 or 8 bytes)
// A RANGE table maps each key of 4 or 8 bytes between two bounds, and NULL, the minimum of its width, to at most one
// row:
//   min i64, count u32 (of keys), rows u32 (address of u32[count + 1], that of NULL last; none where there is no row)

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'

export const noRow = 0xffff_ffff
export const bucketsBytes = 64
export const rangeBytes = 64
export const expandStateBytes = 16
export const settleStateBytes = 16
export const asofStateBytes = 64
export const spliceStateBytes = 64

/** What `expand` writes for a row in addition to its matches. */
export const expandModes = {
  /** Nothing. */
  matches: 0,
  /** {row, none} if there is no match (outer join). */
  orNone: 1,
  /** {row, none} after its matches: `settle` decides whether it is kept. */
  andNone: 2,
} as const

export interface JoinKernel {
  /** Combines words {low, high} to 8 bytes; high = 0: zeros. */
  pairWords(low: number, high: number, rows: number, out: number): void
  /**
   * Maps signed ids to codes: id + 1 (0 = NULL) of the map's entry, or of the id itself without a map. Stops at an id
   * that the map (u32[mapRows]) lacks or has no code for yet; returns the number of rows processed.
   */
  mapIds(ids: number, rows: number, map: number, mapRows: number, out: number): number
  /** counts[code] += 1 */
  countCodes(codes: number, rows: number, counts: number): void
  /** Turns `count` counts into starts (prefix sum), followed by the total. */
  startsOf(counts: number, count: number): void
  /**
   * Adds rows [from, to) of `order` (0: the rows themselves) to the lists, advancing each code's cursor (a copy of the
   * starts).
   */
  listRows(codes: number, order: number, from: number, to: number, cursors: number, out: number): void
  /** Writes at most `limit` pairs {left row, right row}; returns their number. Done if it is less than `limit`. */
  expand(
    state: number,
    codes: number,
    rows: number,
    starts: number,
    codeCount: number,
    list: number,
    mode: number,
    outLeft: number,
    outRight: number,
    limit: number,
  ): number
  /** out[i] = words[i] & mask */
  maskWords(words: number, rows: number, mask: number, out: number): void
  /**
   * Like `expand`, for rows whose words (of the table's width) at `keys` equal words stored in the bucket of their
   * hash.
   */
  matchKeys(
    state: number,
    table: number,
    hashes: number,
    keys: number,
    rows: number,
    mode: number,
    outLeft: number,
    outRight: number,
    limit: number,
  ): number
  /** Adds rows [from, to) to a RANGE that is initially empty; returns 0 if a key occurs twice. */
  fillRange(range: number, width: 4 | 8, keys: number, from: number, to: number): number
  /** Like `expand` with a RANGE: a row has at most one match, and a pair with none if the mode is not 0. */
  matchRange(
    state: number,
    range: number,
    width: 4 | 8,
    keys: number,
    rows: number,
    mode: number,
    outLeft: number,
    outRight: number,
    limit: number,
  ): number
  /** 1 if a bucket in [from, to) contains equal words twice. */
  repeatsKeys(table: number, from: number, to: number): number
  /**
   * Keeps pairs, in place, whose values are equal (kind: hashKinds i64, i32, f64, entry, b16, b32), and pairs with
   * none.
   */
  keepEqual(kind: number, left: number, right: number, leftRows: number, rightRows: number, count: number): number
  /** Keeps pairs, in place, whose mask byte is 1, and a pair with none if the left row had no match. */
  settle(state: number, mask: number, left: number, right: number, count: number): number
  /** marks[row] = 1; skips none. */
  markRows(rows: number, count: number, marks: number): void
  /** Row numbers in [from, to) whose mark is `wanted`, at most `limit`; returns how many. */
  rowsMarked(marks: number, wanted: number, from: number, to: number, limit: number, out: number): number
  /** Renumbers rows: values[i] = map[values[i]]; none is kept. */
  renumber(values: number, count: number, map: number): void
  /** Advances until all left rows have their row in out, or the right rows are used up; returns the left cursor. */
  asof(state: number): number
  /** Writes at most `limit` pairs; returns their number, which is less than `limit` only at the end. */
  splice(state: number, outLeft: number, outRight: number, limit: number): number
}

export interface Buckets {
  readonly starts: number
  readonly mask: number
  readonly list: number
  readonly stored: number
  readonly width: 4 | 8
}

/** Writes a BUCKETS table. */
export function writeBuckets({ u32 }: SharedMemory, at: number, { starts, mask, list, stored, width }: Buckets): void {
  assert((mask & (mask + 1)) === 0, 'K2: buckets are a power of two')
  assert(at % 4 === 0, 'K1: buckets are aligned to their words')
  u32.set([starts, mask, list, stored, width], at >>> 2)
}

/** Writes a RANGE table. */
export function writeRange({ u32, i64 }: SharedMemory, at: number, min: bigint, count: number, rows: number): void {
  assert(at % 8 === 0, 'K1: a range is aligned to 8 bytes')
  i64[at >>> 3] = min
  u32.set([count, rows], (at >>> 2) + 2)
}
