// What is known of the last row that is wanted, while the first rows of an order are looked for.

/** Chunks of one sort may share it. */
export interface Bound {
  /** No wanted row is above it. */
  word: bigint | null
  /** No wanted row comes behind it, where the first key is a text; null is NULL. */
  text?: Uint8Array | null
}
