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
// noted first; then the values go into the columns, column by column (parameter-runs.ts).
//
// A run ends before the first message that is not whole, differs, or holds a value that is refused: that one goes the
// long way, which tells what is wrong.

import type { InsertTargets, WireType } from './collect-insert.js'
import type { ColumnAppender } from './column-appender.js'
import type { ValueRun } from './parameter-runs.js'
import type { RowCollector } from './row-collector.js'

export interface BindShape {
  /** From the portal's name to the count of the parameters. */
  readonly prefix: Uint8Array
  /** Where the formats begin in it, one for each parameter; 0: these are not as many. */
  readonly formats: number
  /** Behind the last parameter. */
  readonly suffix: Uint8Array
  /** Of each column, the same in all rows; `binary` its form. */
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
/** Values of one run, but for a message that has more. */
const valuesMax = 16_384

/** Where the values of a run lie; used again by the next one. */
let starts = new Int32Array(valuesMax)
let ends = new Int32Array(valuesMax)
/** Behind each message of a run. */
const behind = new Int32Array(valuesMax + 1)

/** Takes what is whole of the messages from `start` on; `syncs`: Sync messages, too. */
export function collectBinds(
  bytes: Buffer,
  start: number,
  shape: BindShape,
  syncs: boolean,
  targets: InsertTargets,
  collector: RowCollector,
): BindRun {
  const width = targets.columns.length
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const run = findBinds(view, start, shape, syncs, shape.tuples * width)
  if (run.binds === 0) return run
  const binds = collectValues({ bytes, view, starts, ends, width }, run.binds, shape, targets, collector)
  return binds === run.binds ? run : { ...run, binds, at: binds === 0 ? start : (behind[binds - 1] as number) }
}

/** Notes where the values of whole messages alike are. */
function findBinds(view: DataView, start: number, shape: BindShape, syncs: boolean, values: number): BindRun {
  const { prefix, suffix, formats } = shape
  if (values > starts.length) {
    starts = new Int32Array(values)
    ends = new Int32Array(values)
  }
  const bindsMax = Math.max(1, Math.floor(valuesMax / values))
  const limit = view.byteLength
  const heads = viewOf(prefix)
  const words = wordsOf(heads)
  const tails = viewOf(suffix)
  let at = start
  let binds = 0
  let described = false
  let synced = false
  while (binds < bindsMax) {
    const bindEnd = endOfBind(view, at, prefix.length, limit)
    if (bindEnd < 0) break
    const isExact = hasWords(view, at + 5, words, prefix.length)
    if (!isExact && !isAlike(view, at + 5, heads, formats, values)) break
    const describes = isDescribe(view, bindEnd, limit)
    if (binds > 0 && describes !== described) break
    const execute = describes ? bindEnd + describeBytes : bindEnd
    if (!isExecute(view, execute, limit)) break
    const end = execute + executeBytes
    const isSynced = syncs && isSync(view, end, limit)
    if (binds > 0 && synced && !isSynced) break
    const valuesEnd = bindEnd - suffix.length
    if (!notePlaces(view, at + 5 + prefix.length, valuesEnd, binds * values, values)) break
    if (!isSame(view, valuesEnd, tails, 0, suffix.length)) break
    if (!isExact && !hasFormats(view, at + 5, shape, binds * values, values)) break
    described = describes
    if (binds === 0) synced = isSynced
    at = synced ? end + syncBytes : end
    behind[binds++] = at
    // The Sync that ends a batch is left to the session.
    if (isSynced !== synced) break
  }
  return { binds, at, described, synced }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** The bytes of a prefix, four at once; the last four are some of those before them. A prefix has six bytes or more. */
function wordsOf(prefix: DataView): Int32Array {
  const words = new Int32Array(Math.ceil(prefix.byteLength / 4))
  const last = prefix.byteLength - 4
  for (let index = 0; index < words.length; index++) words[index] = prefix.getInt32(Math.min(index * 4, last))
  return words
}

function hasWords(view: DataView, at: number, words: Int32Array, bytes: number): boolean {
  const last = words.length - 1
  for (let index = 0; index < last; index++) if (view.getInt32(at + index * 4) !== words[index]) return false
  return view.getInt32(at + bytes - 4) === words[last]
}

/** -1: the message is not whole or another one. */
function endOfBind(view: DataView, at: number, prefixBytes: number, limit: number): number {
  const first = at + 5
  if (first + prefixBytes > limit || view.getUint8(at) !== 66) return -1
  const end = at + 1 + view.getInt32(at + 1)
  return end >= first + prefixBytes && end < limit ? end : -1
}

/** Bytes [from, to) of what is known. The caller has seen that there are as many. */
function isSame(view: DataView, at: number, known: DataView, from: number, to: number): boolean {
  let index = from
  for (; index + 4 <= to; index += 4) if (view.getInt32(at + index - from) !== known.getInt32(index)) return false
  for (; index < to; index++) if (view.getUint8(at + index - from) !== known.getUint8(index)) return false
  return true
}

/** As the prefix but for the formats. */
function isAlike(view: DataView, at: number, heads: DataView, formats: number, values: number): boolean {
  if (formats === 0) return false
  const behindFormats = formats + values * 2
  return isSame(view, at, heads, 0, formats) && isSame(view, at + behindFormats, heads, behindFormats, heads.byteLength)
}

/** Those of the prefix for all values but NULL. */
function hasFormats(
  view: DataView,
  at: number,
  { prefix, formats }: BindShape,
  first: number,
  values: number,
): boolean {
  for (let index = 0, place = formats; index < values; index++, place += 2) {
    const format = view.getUint16(at + place)
    if (format > 1) return false
    if (format !== prefix[place + 1] && (ends[first + index] as number) >= 0) return false
  }
  return true
}

/** 'D' 6 'P' \0 */
function isDescribe(view: DataView, at: number, limit: number): boolean {
  if (view.getUint8(at) !== 68 || at + describeBytes > limit) return false
  return view.getInt32(at + 1) === 6 && view.getUint16(at + 5) === 0x5000
}

/** 'E' 9 \0 */
function isExecute(view: DataView, at: number, limit: number): boolean {
  if (at + executeBytes > limit) return false
  return view.getInt32(at) === 0x4500_0000 && view.getUint16(at + 4) === 0x0900
}

/** 'S' 4 */
function isSync(view: DataView, at: number, limit: number): boolean {
  return at + syncBytes <= limit && view.getInt32(at) === 0x5300_0000 && view.getUint8(at + 4) === 4
}

/** False: they do not fill the bytes [start, end). */
function notePlaces(view: DataView, start: number, end: number, first: number, values: number): boolean {
  let at = start
  for (let place = first; place < first + values; place++) {
    if (at + 4 > end) return false
    const length = view.getInt32(at)
    at += 4
    starts[place] = at
    ends[place] = length < 0 ? -1 : at + length
    if (length > end - at) return false
    if (length > 0) at += length
  }
  return at === end
}

/** The rows of whole messages; answers how many messages. */
function collectValues(
  run: ValueRun,
  binds: number,
  shape: BindShape,
  { columns, key, version }: InsertTargets,
  collector: RowCollector,
): number {
  const { tuples, types, binary } = shape
  const batch = collector.batch(version.schema.id, key, columns)
  let rows = binds * tuples
  for (let index = 0; index < columns.length; index++) {
    const column = batch.columns[index] as ColumnAppender
    rows = column.parameters(run, index, rows, binary[index] as boolean, types[index] as WireType, index)
  }
  const whole = Math.floor(rows / tuples)
  const kept = batch.rows + whole * tuples
  if (whole < binds) for (const column of batch.columns) column.truncate(kept)
  batch.rows = kept
  return whole
}
