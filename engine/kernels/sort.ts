// The sort kernel (WebAssembly): sorts by timestamp, merges sorted runs, gathers by row index, and converts sort keys
// to words. Its TypeScript interface.
//
// Timestamps are i64, 8-byte aligned. A row index is u32. Sorting is stable: equal timestamps keep their row order.
// Nothing is written outside of the given buffers, except that helpers may write one value after the end.

export interface SortKernel {
  /**
   * Writes the row numbers in timestamp order to outIndex (u32[rows]). Scratch is 16-byte aligned, at least
   * sortScratchBytes(rows). Returns 1 if the rows were already in order, 0 if they were sorted, -1 if the scratch is
   * too small (outIndex is not written).
   */
  sortPermutation(ts: number, rows: number, scratch: number, scratchBytes: number, outIndex: number): number
  /** First row in [from, to) of sorted timestamps that is at or above the value; `to` if none is. from <= to. */
  lowerBound(ts: number, from: number, to: number, value: bigint): number
  /** First row in [from, to) of sorted timestamps that is above the value; `to` if none is. */
  upperBound(ts: number, from: number, to: number, value: bigint): number
  /**
   * Merges sorted runs. runs: RUN[count] of 16 bytes {ts address u32, rows u32, cursor u32, 0}, at most 255. Writes up
   * to `limit` rows as run number (u8) and row in the run (u32), in order, ties by run; moves the cursors; returns the
   * rows written. Call again until it returns 0.
   */
  mergeRuns(runs: number, count: number, limit: number, outRun: number, outRow: number): number
  /** out[i] = source[index[i]] for values of 1, 2, 4, 8, 16 or 32 bytes. */
  gather(width: number, source: number, index: number, rows: number, out: number): void
  /** The same, but row 0xffffffff reads the value at address `nothing`, the NULL of an outer join. */
  gatherOr(width: number, source: number, index: number, rows: number, nothing: number, out: number): void
  /**
   * out[i] = sources[run[i]][row[i]]: sources is u32[] of column addresses, run and row are as mergeRuns wrote them.
   */
  gatherRuns(width: number, sources: number, run: number, row: number, rows: number, out: number): void
  /**
   * Converts columns to words (i64) whose signed order is that of the values. kind: as aggregateKinds, f64 to i32. NaN,
   * or the integer `missing`, becomes nullWord; if that is the largest, integers are decreased by one, so that none
   * equals NULL. Finally all words are xor-ed with `turn` (-1 reverses the order).
   */
  orderWords(
    kind: number,
    values: number,
    rows: number,
    missing: bigint,
    nullWord: bigint,
    turn: bigint,
    out: number,
  ): void
  /** Row numbers (u32) of the rows whose word is at most `bound`; out has room for all rows. Returns their number. */
  rowsWithin(
    kind: number,
    values: number,
    rows: number,
    missing: bigint,
    nullWord: bigint,
    turn: bigint,
    bound: bigint,
    out: number,
  ): number
  /**
   * Counting sort of rows by a number (i32) in [low, low + span): writes the row numbers (u16), ascending within each
   * group, to out (u16[rows]), and the start of each group to starts (u32[span + 2], ending with `rows`). At most
   * 65,536 rows. Returns 1, or 0 if a number is out of range, in which case the output is undefined.
   */
  groupRows(numbers: number, rows: number, low: number, span: number, starts: number, out: number): number
  /** Writes 0, 1, 2, ... to out (u32[rows]). */
  identity(rows: number, out: number): void
}

/** Scratch that sortPermutation needs at most: two buffers of 16-byte pairs and the counters. */
export function sortScratchBytes(rows: number): number {
  return 8 * 1024 + rows * 32 + 128
}
