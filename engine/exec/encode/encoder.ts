// The Encoder interface: turns the rows of a result into the bytes or messages that the client requested.
// create-encoder.ts creates the implementations.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import type { PackedRows } from '../../storage/jobs/messages.js'
import type { Value } from '../../types/value.js'
import type { ByteWriter } from '../batch/byte-writer.js'
import type { ExecContext } from '../batch/context.js'
import type { Batch, Operator } from '../batch/vector.js'

/** The rows of a result that are requested. */
export interface RowWindow {
  readonly skip: number
  readonly rowsMax: number
}

export interface Encoder {
  /** Called before the first row, even if there are no rows. */
  begin(): void
  /** Encodes the rows [from, to) of a batch. */
  rows(batch: Batch, from: number, to: number): void
  /** Called after the last row. */
  end(): void
  /**
   * An operator that produces and encodes the rows of the window itself. Its batches have no vectors; they count rows
   * of the plan, including rows outside of the window. undefined: rows must be passed to rows().
   */
  operator?(plan: Plan, window: RowWindow): Operator | undefined
  /** Writes a block of finished output, also after end(); false when nothing waits. */
  drain?(): boolean
}

/** Encodes a sequence of batches, without the head and tail of the output. */
export interface BatchEncoder {
  /** Encodes the rows [from, to). */
  rows(batch: Batch, from: number, to: number): void
  /** Bytes of all rows so far. */
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
