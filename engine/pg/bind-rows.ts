// Runs of Bind and Execute of one prepared INSERT, as drivers send batches: when all that differs from the last Bind are
// the values, these go from the messages into the columns of the transaction without anything in between.
//
//   run      (bind describe? execute sync?)*       all alike
//   bind     'B' length prefix (bytes:int32 value)* suffix       prefix and suffix as the last Bind had them
//   describe 'D' 6 'P' \0      execute  'E' 9 \0 rows:int32      of the portal without a name      sync  'S' 4
//
// The format of a NULL means nothing and may be another one: drivers of Java have the format of the value that is not there.
//
// The last Sync of a run may miss or be there alone: its message is taken, and what follows is not. Places of values are
// noted first; then the values go into the columns, column by column, both by the kernel for rows (row-window.ts).
//
// A run ends before the first message that is not whole, differs, or holds a value that is refused: that one goes the
// long way, which tells what is wrong.

import type { InsertTargets, WireType } from './collect-insert.js'
import type { ColumnAppender } from './column-appender.js'
import type { RowCollector } from './row-collector.js'
import type { BindHead, BindRun, FoundBinds, RowWindow } from './row-window.js'

export interface BindShape extends BindHead {
  /** Of each column, the same in all rows; `binary` its form. */
  readonly types: readonly WireType[]
  readonly binary: readonly boolean[]
  /** Rows of the statement: its parameters are their values, in order. */
  readonly tuples: number
}

/** Takes what is whole of the messages from `start` on; `syncs`: Sync messages, too. */
export function collectBinds(
  window: RowWindow,
  bytes: Buffer,
  start: number,
  shape: BindShape,
  syncs: boolean,
  targets: InsertTargets,
  collector: RowCollector,
): BindRun {
  const found = window.find(bytes, start, shape, syncs, shape.tuples * targets.columns.length)
  if (found.binds === 0) return found
  const binds = collectValues(window, found, shape, targets, collector)
  return binds === found.binds ? found : { ...found, binds, at: binds === 0 ? start : found.behind(binds - 1) }
}

/** The rows of whole messages; answers how many messages. */
function collectValues(
  window: RowWindow,
  found: FoundBinds,
  { tuples, types, binary }: BindShape,
  { columns, key, version }: InsertTargets,
  collector: RowCollector,
): number {
  const width = columns.length
  const batch = collector.batch(version.schema.id, key, columns)
  let rows = found.binds * tuples
  for (let column = 0; column < width; column++) {
    const appender = batch.columns[column] as ColumnAppender
    const run = { column, width, rows }
    rows = appender.parameters(window, found, run, types[column] as WireType, binary[column] as boolean)
  }
  const whole = Math.floor(rows / tuples)
  const kept = batch.rows + whole * tuples
  if (whole < found.binds) for (const column of batch.columns) column.truncate(kept)
  batch.rows = kept
  return whole
}
