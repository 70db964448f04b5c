// Sorting by timestamp, merging of sorted runs, gathering by row index: the interface of the kernel.
//
// Timestamps are i64, 8-byte aligned. A row index is u32. Sorting is stable: equal timestamps keep their row order.
// Nothing is written outside the named areas; splitChunk-like helpers may write one value behind their last.

export interface SortKernel {
  /**
   * Writes the row numbers in timestamp order to outIndex (u32[rows]). Scratch is 16-byte aligned, at least
   * sortScratchBytes(rows). Returns 1 when the rows were in order already, 0 when they were sorted, -1 when the scratch
   * is too small (nothing is written to outIndex).
   */
  sortPermutation(ts: number, rows: number, scratch: number, scratchBytes: number, outIndex: number): number
  /** First row in [from, to) of sorted timestamps that is at or above the value; `to` if none. from <= to. */
  lowerBound(ts: number, from: number, to: number, value: bigint): number
  /** First row in [from, to) of sorted timestamps that is above the value. */
  upperBound(ts: number, from: number, to: number, value: bigint): number
  /**
   * Merges sorted runs. runs: RUN[count] of 16 bytes {ts address u32, rows u32, cursor u32, 0}, at most 255. Writes up to
   * `limit` rows as run number (u8) and row in the run (u32), in order, ties by run; moves the cursors; returns the rows
   * written. Call again until it returns 0.
   */
  mergeRuns(runs: number, count: number, limit: number, outRun: number, outRow: number): number
  /** out[i] = source[index[i]] for values of 1, 2, 4, 8, 16 or 32 bytes. */
  gather(width: number, source: number, index: number, rows: number, out: number): void
  /** The same, but row 0xffffffff reads as the value at address `nothing`: the NULL of an outer join. */
  gatherOr(width: number, source: number, index: number, rows: number, nothing: number, out: number): void
  /** out[i] = sources[run[i]][row[i]]: sources is u32[] of column addresses, run and row are as mergeRuns wrote them. */
  gatherRuns(width: number, sources: number, run: number, row: number, rows: number, out: number): void
  /**
   * Columns as words (i64) whose signed order is theirs. kind: as aggregateKinds, f64 to i32. NaN, or the integer
   * `missing`, becomes nullWord; where that is the largest, integers become one less, so that none ties with NULL. Then all
   * words are xor-ed with `turn` (-1 turns the order round).
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
  /** Numbers (u32) of the rows whose word is at most `bound`; out has room for all rows. Returns how many. */
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
   * Groups rows by a number (i32) of [low, low + span): writes their row numbers (u16), ascending in each group, to out
   * (u16[rows]), and where each group begins to starts (u32[span + 2]; behind the last one is `rows`). Rows are at most
   * 65,536. Returns 1; 0 when a number is none of these, and what was written means nothing.
   */
  groupRows(numbers: number, rows: number, low: number, span: number, starts: number, out: number): number
  /** Writes 0, 1, 2, ... to out (u32[rows]). */
  identity(rows: number, out: number): void
}

/** Scratch that sortPermutation needs in any case: two buffers of 16-byte pairs and the counters. */
export function sortScratchBytes(rows: number): number {
  return 8 * 1024 + rows * 32 + 128
}
