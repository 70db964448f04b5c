// The interface by which ORDER BY .. LIMIT tells scans which rows it no longer needs: the first sort key of the last
// row currently in the result. Rows that sort after it are dropped early.

/** The chunks of one sort share it. */
export interface Bound {
  /** Rows with a higher sort word are not in the result; null when nothing is known yet. */
  word: bigint | null
  /** For a string as first key: rows with a later string are not in the result. null is NULL. */
  text?: Uint8Array | null
}
