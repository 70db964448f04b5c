// The bound of a top-N sort: the first sort key of the worst row that is currently in the result. Scans and sorts use
// it to drop rows early.

/** The chunks of one sort share it. */
export interface Bound {
  /** Rows with a higher sort word are not in the result; null when nothing is known yet. */
  word: bigint | null
  /** For a string as first key: rows with a later string are not in the result. null is NULL. */
  text?: Uint8Array | null
}
