// Rows as bytes, batch by batch, each behind the last: text or messages of Arrow. What such bytes need before all rows and
// behind them is whoever's who writes the whole (create-encoder.ts); so chunks of rows can be made by several threads
// (encoded-chunks.ts).

import type { Batch } from '../batch/vector.js'
import type { EncoderOptions } from './encoder.js'

export type RowOptions = Pick<EncoderOptions, 'context' | 'writer' | 'columns'>

export interface EncodedRows {
  /** Rows [from, to). */
  rows(batch: Batch, from: number, to: number): void
  /** Of all rows so far. */
  readonly bytes: number
}
