// Runs of Bind and Execute of one prepared INSERT, as drivers send batches: when all that differs from the last Bind are
// the values, these go from the messages into the columns of the transaction without anything in between.
//
//   run      (bind describe? execute sync?)*       all alike
//   bind     'B' length prefix (bytes:int32 value)* suffix       prefix and suffix as the last Bind had them
//   describe 'D' 6 'P' \0      execute  'E' 9 \0 rows:int32      of the portal without a name      sync  'S' 4
//
// A run ends before the first message that is not whole, differs, or holds a value that is refused: that one goes the
// long way, which tells what is wrong.

import { SqlError } from '../base/errors.js'
import type { InsertTargets, WireType } from './collect-insert.js'
import type { ColumnAppender } from './column-appender.js'
import type { RowBatch, RowCollector } from './row-collector.js'

export interface BindShape {
  /** From the portal's name to the count of the parameters. */
  readonly prefix: Uint8Array
  /** Behind the last parameter. */
  readonly suffix: Uint8Array
  /** Of each parameter; `binary` its form. */
  readonly types: readonly WireType[]
  readonly binary: readonly boolean[]
  /** Rows of the statement: its parameters are their values, in order. */
  readonly tuples: number
}

export interface BindRun {
  /** Messages taken. */
  readonly binds: number
  /** Behind the last one. */
  readonly at: number
  /** Each had a Describe. */
  readonly described: boolean
  /** Each had a Sync behind it. */
  readonly synced: boolean
}

const executeBytes = 10
const describeBytes = 7
const syncBytes = 5

/** Takes what is whole of the messages from `start` on; `syncs`: Sync messages, too. */
export function collectBinds(
  bytes: Buffer,
  start: number,
  shape: BindShape,
  syncs: boolean,
  targets: InsertTargets,
  collector: RowCollector,
): BindRun {
  let at = start
  let binds = 0
  let described = false
  let synced = false
  for (; ; binds++) {
    const bindEnd = endOfBind(bytes, at, shape.prefix)
    if (bindEnd < 0) break
    const describes = isDescribe(bytes, bindEnd)
    if (binds > 0 && describes !== described) break
    const execute = describes ? bindEnd + describeBytes : bindEnd
    if (!isExecute(bytes, execute)) break
    const end = execute + executeBytes
    const ends = syncs && isSync(bytes, end)
    if (binds > 0 && ends !== synced) break
    if (!collectBind(bytes, at, bindEnd, shape, targets, collector)) break
    described = describes
    synced = ends
    at = ends ? end + syncBytes : end
  }
  return { binds, at, described, synced }
}

/** -1: the message is not whole or another one. */
function endOfBind(bytes: Buffer, at: number, prefix: Uint8Array): number {
  const first = at + 5
  if (first + prefix.length > bytes.length || bytes[at] !== 66) return -1
  for (let index = 0; index < prefix.length; index++) if (bytes[first + index] !== prefix[index]) return -1
  const end = at + 1 + int32At(bytes, at + 1)
  return end >= first + prefix.length && end < bytes.length ? end : -1
}

function isDescribe(bytes: Buffer, at: number): boolean {
  if (at + describeBytes > bytes.length || bytes[at] !== 68 || int32At(bytes, at + 1) !== 6) return false
  return bytes[at + 5] === 80 && bytes[at + 6] === 0
}

function isExecute(bytes: Buffer, at: number): boolean {
  if (at + executeBytes > bytes.length || bytes[at] !== 69) return false
  return int32At(bytes, at + 1) === 9 && bytes[at + 5] === 0
}

function isSync(bytes: Buffer, at: number): boolean {
  return at + syncBytes <= bytes.length && bytes[at] === 83 && int32At(bytes, at + 1) === 4
}

/** The rows of one message, all or none. */
function collectBind(
  bytes: Buffer,
  start: number,
  end: number,
  shape: BindShape,
  { columns, key, version }: InsertTargets,
  collector: RowCollector,
): boolean {
  const { tuples, prefix } = shape
  const mark = tuples > 1 ? collector.mark() : null
  let at = start + 5 + prefix.length
  let batch: RowBatch | null = null
  try {
    for (let tuple = 0; tuple < tuples && at >= 0; tuple++) {
      batch = collector.batch(version.schema.id, key, columns)
      at = collectRow(bytes, at, end, shape, tuple * columns.length, batch.columns)
      if (at >= 0 && (tuple + 1 < tuples || isSuffix(bytes, at, end, shape.suffix))) batch.rows++
      else at = -1
    }
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    at = -1
  }
  if (at >= 0) return true
  for (const column of batch?.columns ?? []) column.truncate(batch?.rows ?? 0)
  if (mark !== null) collector.backTo(mark)
  return false
}

/** Behind the row; -1 when the message is shorter. */
function collectRow(
  bytes: Buffer,
  start: number,
  end: number,
  { types, binary }: BindShape,
  first: number,
  columns: readonly ColumnAppender[],
): number {
  let at = start
  for (let index = 0; index < columns.length; index++) {
    if (at + 4 > end) return -1
    const length = int32At(bytes, at)
    at += 4
    const column = columns[index] as ColumnAppender
    if (length < 0) column.missing()
    else if (length > end - at) return -1
    else {
      const parameter = first + index
      column.parameter(bytes, at, at + length, binary[parameter] as boolean, types[parameter] as WireType, parameter)
      at += length
    }
  }
  return at
}

function isSuffix(bytes: Buffer, at: number, end: number, suffix: Uint8Array): boolean {
  if (end - at !== suffix.length) return false
  for (let index = 0; index < suffix.length; index++) if (bytes[at + index] !== suffix[index]) return false
  return true
}

function int32At(bytes: Buffer, at: number): number {
  const high = ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16)
  return high | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number)
}
