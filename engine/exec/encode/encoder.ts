// Encoders turn the rows of a result into the form that its reader wants; create-encoder.ts makes them.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import type { PackedRows } from '../../storage/jobs/messages.js'
import type { Value } from '../../types/value.js'
import type { ByteWriter } from '../batch/byte-writer.js'
import type { ExecContext } from '../batch/context.js'
import type { Batch, Operator } from '../batch/vector.js'

/** Rows of a result that are wanted. */
export interface RowWindow {
  readonly skip: number
  readonly rowsMax: number
}

export interface Encoder {
  /** Before the first row, also when there is none. */
  begin(): void
  /** Rows [from, to) of a batch. */
  rows(batch: Batch, from: number, to: number): void
  /** Behind the last row. */
  end(): void
  /**
   * Produces and encodes the rows of the window by itself: its batches without vectors count rows of the plan, those outside
   * of the window, too. undefined: the rows have to be given to rows().
   */
  operator?(plan: Plan, window: RowWindow): Operator | undefined
  /** Writes a block of what is finished, also behind end(); false when nothing waits. */
  drain?(): boolean
}

/** Encodes batches behind one another; what stands before all rows and behind them is not its concern. */
export interface BatchEncoder {
  /** Rows [from, to). */
  rows(batch: Batch, from: number, to: number): void
  /** Of all rows so far. */
  readonly bytes: number
}

export type BatchOptions = Pick<EncoderOptions, 'context' | 'writer' | 'columns'>

export interface EncoderOptions {
  readonly context: ExecContext
  readonly writer: ByteWriter
  readonly columns: readonly PlanColumn[]
  readonly postRows: (rows: readonly (readonly Value[])[]) => void
  readonly postPacked: (packed: PackedRows, bytes: number) => void
}
