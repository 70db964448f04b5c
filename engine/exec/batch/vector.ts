// Vector, Batch and Operator: the interface between operators. Operators exchange batches of up to batchRowsMax rows,
// as columns whose values are in shared memory.
//
//   Vector  one column: its values are at `address`, in the layout of types/column-types.ts. SYMBOL ids belong to
//           `dictionary`. The address is never 0: a column that a block of rows lacks is a run of NULLs.
//   Batch   valid until its operator is pulled again; an operator that keeps rows copies them (row-buffer.ts).
//
// pull() returns a batch (never empty), 'working' when the operator did some work and has no rows yet, 'waiting' when
// another thread has to act first, or null at the end. Any time may pass between two calls, as the query waits while
// its client does not read.

import { type DataType, widthOf } from '../../types/column-types.js'

/** Fits a core's cache, and makes the fixed cost of a batch negligible. A quarter of a page of a part. */
export const batchRowsMax = 16_384

export interface Vector {
  readonly type: DataType
  readonly address: number
  /** SYMBOL: address of the DICTIONARY (memory/column-layout.ts); else 0. */
  readonly dictionary: number
}

export interface Batch {
  readonly rows: number
  readonly vectors: readonly Vector[]
}

export type Pull = Batch | 'working' | 'waiting' | null

export interface Operator {
  pull(): Pull
  /**
   * The client has stopped reading: frees memory that can be recomputed or read again. Called between two pulls, after
   * the last batch has been consumed; may be called repeatedly.
   */
  goIdle?(): void
  /**
   * Its rows come in another order than those of the same operator with temporary files: it cannot begin again with
   * them after it has returned rows.
   */
  readonly hasOwnOrder?: boolean
}

export function isBatch(pulled: Pull): pulled is Batch {
  return typeof pulled === 'object' && pulled !== null
}

/** Rows `from` to `to` of a batch, not copied; the batch itself if these are all its rows. */
export function sliceBatch(batch: Batch, from: number, to: number): Batch {
  if (from === 0) return to === batch.rows ? batch : { rows: to, vectors: batch.vectors }
  return {
    rows: to - from,
    vectors: batch.vectors.map((vector) => ({ ...vector, address: vector.address + from * widthOf(vector.type) })),
  }
}
