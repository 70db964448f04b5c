// Fast path for batches of Bind and Execute of one prepared INSERT: while messages differ from the previous ones in
// their values only, the values are copied from the messages directly into the transaction's columns.
//
//   batch    (bind describe? execute sync?)*       all of the same form
//   bind     'B' length prefix (bytes:int32 value)* suffix       prefix and suffix as in the previous Bind
//   describe 'D' 6 'P' \0      execute  'E' 9 \0 rows:int32      of the unnamed portal      sync  'S' 4
//
// The format code of a NULL is ignored, because Java drivers send that of an absent value.
//
// The last Sync of a batch may be missing or in a later chunk. Value offsets are collected first; then the values are
// copied column by column. The WebAssembly kernel for rows does both (row-window.ts).
//
// A batch ends before the first message that is incomplete, differs, or contains an invalid value; the general path
// then handles that message and reports errors.

import { assert, nonNull } from '../base/assert.js'
import type { InsertTargets, WireType } from './collect-insert.js'
import type { RowCollector } from './row-collector.js'
import type { BindHead, BindRun, FoundBinds, RowWindow } from './row-window.js'

export interface BindShape extends BindHead {
  /** Parameter type of each column, the same in all rows; `binary`: its format. */
  readonly types: readonly WireType[]
  readonly binary: readonly boolean[]
  /** Number of VALUES rows of the statement, whose parameters are their values in order. */
  readonly tuples: number
}

/** Consumes complete messages from `start` on; `syncs`: including Sync messages. */
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
  return binds === found.binds ? found : { ...found, binds, at: binds === 0 ? start : found.after(binds - 1) }
}

/** Adds the rows of complete messages; returns the number of messages. */
function collectValues(
  window: RowWindow,
  found: FoundBinds,
  { tuples, types, binary }: BindShape,
  { columns, key, version }: InsertTargets,
  collector: RowCollector,
): number {
  const width = columns.length
  assert(types.length >= width, 'R1: every column of an INSERT has a type')
  assert(found.starts.length === found.binds * tuples * width, 'K3: the kernel finds every value of a message')
  const batch = collector.batch(version.schema.id, key, columns)
  let rows = found.binds * tuples
  for (let column = 0; column < width; column++) {
    const appender = nonNull(batch.columns[column])
    const run = { column, width, rows }
    rows = appender.parameters(window, found, run, nonNull(types[column]), nonNull(binary[column]))
  }
  const whole = Math.floor(rows / tuples)
  assert(whole <= found.binds, 'R4: no more messages are stored than were found')
  const retained = batch.rows + whole * tuples
  if (whole < found.binds) for (const column of batch.columns) column.truncate(retained)
  batch.rows = retained
  return whole
}
