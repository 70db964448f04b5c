// Joining rows by numbered keys: the interface of the kernel.
//
// Rows are known by their key's code (u32, equal keys have equal codes) and by row number (u32); 0xffffffff as a row is
// "none". A LISTING names the rows of each code: starts u32[codes + 1], rows u32[starts[codes]] in ascending order of
// whatever order they were listed in. States are little structures in shared memory that let a call go on where the last
// one stopped; their first words are set by the caller:
//
//   EXPAND   row u32 (next row), taken u32 (of its list), matched u32 (matchKeys: it had a match)
//   SETTLE   matched u32 (number + 1 of the last left row that had a match, 0 = none)
//   ASOF     left:  ts u32, codes u32, rows u32, cursor u32
//            right: ts u32, codes u32 (of row `first` on), rows u32, cursor u32
//            last u32 (u32 per code: its latest right row, or none), first u32, strict u32 (LT), complete u32 (no more
//            right rows will come), tolerance i64 (negative: any distance), out u32 (u32 per left row)
//   SPLICE   left: ts u32, codes u32, rows u32, cursor u32; right: the same; lastLeft u32, lastRight u32, tieLeft u32,
//            tieRight u32 (ends of the rows of the present timestamp: begin with 0)

// A BUCKETS table lists rows by bits of a hash (mask: buckets - 1), with what is compared beside each place of the list:
//   starts u32, mask u32, list u32, stored u32 (addresses), width u32 (of what is stored: 4 or 8 bytes)
// A RANGE table says the one row of each key of 4 or 8 bytes between two bounds, and of NULL, the minimum of its width:
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

/** What `expand` writes for a row beside its matches. */
export const expandModes = {
  /** Nothing. */
  matches: 0,
  /** {row, none} when there is no match. */
  orNone: 1,
  /** {row, none} behind its matches: `settle` decides whether it stays. */
  andNone: 2,
} as const

export interface JoinKernel {
  /** Words {low, high} of 8 bytes; high = 0: zeros. */
  pairWords(low: number, high: number, rows: number, out: number): void
  /** Signed ids to codes: id + 1 (0 = NULL) of the map's entry, or of the id itself without a map. Stops at an id that the
   * map (u32[mapRows]) does not have or that has none yet; returns the rows done. */
  mapIds(ids: number, rows: number, map: number, mapRows: number, out: number): number
  /** counts[code] += 1 */
  countCodes(codes: number, rows: number, counts: number): void
  /** Turns `count` counts into starts; writes the total behind them. */
  startsOf(counts: number, count: number): void
  /** Lists rows [from, to) of `order` (0: the rows themselves), moving each code's cursor (a copy of the starts). */
  listRows(codes: number, order: number, from: number, to: number, cursors: number, out: number): void
  /** Writes at most `limit` pairs {left row, right row}; returns how many. Done when it returns less. */
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
   * The same as `expand` for rows whose words (of the table's width) at `keys` equal those stored in the bucket that
   * their hash names.
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
  /** Enters rows [from, to) into a RANGE, of which the rows are none before; 0 when a key has a row already. */
  fillRange(range: number, width: 4 | 8, keys: number, from: number, to: number): number
  /** The same as `expand` by a RANGE: a row has one match at most, and a pair with none when the mode is not 0. */
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
  /** 1 when a bucket in [from, to) has two places with equal words. */
  repeatsKeys(table: number, from: number, to: number): number
  /** Keeps pairs, in place, whose values are equal (kind: hashKinds i64, i32, f64, entry, b16, b32), and those with none. */
  keepEqual(kind: number, left: number, right: number, leftRows: number, rightRows: number, count: number): number
  /** Keeps pairs, in place, whose mask byte is 1; a pair with none stays when the left row had no match. */
  settle(state: number, mask: number, left: number, right: number, count: number): number
  /** marks[row] = 1; none is passed over. */
  markRows(rows: number, count: number, marks: number): void
  /** Row numbers in [from, to) whose mark is `wanted`, at most `limit`; returns how many. */
  rowsMarked(marks: number, wanted: number, from: number, to: number, limit: number, out: number): number
  /** Renumbers rows: values[i] = map[values[i]], none stays. */
  renumber(values: number, count: number, map: number): void
  /** Advances until all left rows have their row in out or right rows are used up; returns the left cursor. */
  asof(state: number): number
  /** Writes at most `limit` pairs; returns how many, less than `limit` at the end only. */
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
