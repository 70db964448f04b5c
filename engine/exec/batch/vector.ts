// What flows between operators: batches of at most batchRowsMax rows, column by column, as addresses in shared memory.
//
//   Vector  one column: values lie at `address` as types/column-types.ts says; SYMBOL ids belong to `dictionary`.
//           An address is never 0: columns that a block or part lacks are given a run of NULLs.
//   Batch   valid until its operator is pulled again; who keeps rows copies them (row-store.ts).
//
// An operator is pulled: it answers a batch (never empty), 'working' when it did a piece of work and has no rows yet,
// 'waiting' when another thread has to do something first, or null at the end. Between pulls the query may be parked.

import { type DataType, widthOf } from '../../types/column-types.js'

/** Small enough for a core's cache, large enough that work per batch does not count. A quarter of a page of a part. */
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
   * The reader has stopped: gives back memory of what can be made or read again when it goes on. Called between two pulls,
   * when the last batch has been used up; perhaps several times.
   */
  rest?(): void
}

export function isBatch(pulled: Pull): pulled is Batch {
  return typeof pulled === 'object' && pulled !== null
}

/** Rows `from` to `to` of a batch, without copying; all of them are the batch itself. */
export function sliceBatch(batch: Batch, from: number, to: number): Batch {
  if (from === 0) return to === batch.rows ? batch : { rows: to, vectors: batch.vectors }
  return {
    rows: to - from,
    vectors: batch.vectors.map((vector) => ({ ...vector, address: vector.address + from * widthOf(vector.type) })),
  }
}
