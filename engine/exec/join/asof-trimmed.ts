// Shortens the right input of an ASOF or LT JOIN whose left input begins late in the table's history. Of the right rows
// before the first left row, only the latest row of each key can match. A backward scan finds these latest rows, as for
// LATEST ON. The later right rows are read forward from the time of the first left row. If the backward scan takes too
// long, the whole right input is read instead.
//
// No backward scan is needed if the join has a tolerance or looks forward only. The right rows are then read from the
// first left row's time on, less the tolerance if the join looks backward.

import type { Plan, TimeRange } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { type Batch, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { limitOperator } from '../operators/limit.js'
import { symbolsOf } from '../scan/indexed-rows.js'
import { latestOfTable } from '../scan/latest.js'
import { timeMax, timeMin } from '../scan/morsels.js'
import { orderedScanOperator } from '../scan/scan-ordered.js'
import { type ScanShape, scanShape } from '../scan/scan-shape.js'
import type { TimeScales } from './asof-times.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

/** With fewer right rows before the start of the left input, reading them all is fast enough. */
const rowsBeforeMin = 300_000
/** Limit for the scan backwards, in pulls: it then has read about as many rows. */
const stepsMax = 32

/** `left`: the first batch of the left input. null when this is not applicable or saves too little. */
export function trimmedSide(
  context: ExecContext,
  plan: JoinPlan,
  scales: TimeScales,
  left: Batch,
  all: Operator,
): Operator | null {
  const { right, tolerance } = plan
  const first = firstTime(context, plan, left)
  const start = tolerance === null ? first : first - tolerance
  const shape = shapeBefore(context, plan, scales, start)
  if (shape === null || right.kind !== 'scan') return null
  const rest = orderedScanOperator(context, within(shape, start, timeMax), false)
  return tolerance === null ? joined(latestBefore(context, plan, right, shape, first), rest, all) : rest
}

/** The right rows that a search (asof-search.ts) can return; null where these are all, or nearly all. */
export function reachedSide(context: ExecContext, plan: JoinPlan, scales: TimeScales, left: Batch): Operator | null {
  const { tolerance, direction } = plan
  if (direction !== 'forward' && tolerance === null) return null
  const first = firstTime(context, plan, left)
  const start = direction === 'forward' || tolerance === null ? first : first - tolerance
  const shape = shapeBefore(context, plan, scales, start)
  return shape === null ? null : orderedScanOperator(context, within(shape, start, timeMax), false)
}

function firstTime({ memory }: ExecContext, { leftTimestamp }: JoinPlan, { vectors }: Batch): bigint {
  return memory.i64[(vectors[leftTimestamp] as Vector).address >>> 3]!
}

/** The scan of the right side if it is by the designated timestamp and many rows are before `start`. */
function shapeBefore(context: ExecContext, plan: JoinPlan, scales: TimeScales, start: bigint): ScanShape | null {
  const { right } = plan
  if (right.kind !== 'scan' || scales.left || scales.right || start < 0n) return null
  const shape = scanShape(context, right)
  const { timestampId } = shape.snapshot.version.schema
  if (timestampId < 0 || shape.columnIds[plan.rightTimestamp] !== timestampId) return null
  return rowsBefore(shape, start) < rowsBeforeMin ? null : shape
}

/** Rows of the parts that end before `time`. */
function rowsBefore({ snapshot, ranges }: ScanShape, time: bigint): number {
  const lo = ranges?.[0]?.lo ?? timeMin
  let rows = 0
  for (const part of snapshot.version.parts) if (part.maxTs < time && part.maxTs >= lo) rows += part.rows
  return rows
}

function within(shape: ScanShape, lo: bigint, hi: bigint): ScanShape {
  const ranges: readonly TimeRange[] = shape.ranges ?? [{ lo: timeMin, hi: timeMax }]
  const cut = ranges.map((range) => ({ lo: range.lo > lo ? range.lo : lo, hi: range.hi < hi ? range.hi : hi }))
  return { ...shape, ranges: cut.filter((range) => range.lo <= range.hi) }
}

function latestBefore(
  context: ExecContext,
  { rightKeys, rightTimestamp }: JoinPlan,
  right: Extract<Plan, { kind: 'scan' }>,
  shape: ScanShape,
  time: bigint,
): Operator {
  const before = within(shape, timeMin, time - 1n)
  const { columns } = right
  if (rightKeys.length === 0) return limitOperator(context, orderedScanOperator(context, before, true), columns, 0, 1)
  const keys = rightKeys.map((index) => {
    const columnId = shape.columnIds[index] as number
    return { columnId, requested: symbolsOf(context, shape, columnId) }
  })
  const plan = { kind: 'latest', columns, input: right, timestampIndex: rightTimestamp, keys: rightKeys } as const
  return latestOfTable(context, plan, keys, (skips) => orderedScanOperator(context, before, true, skips))
}

/** Returns the rows of `latest`, which come all at its end, and then those of `rest`. */
function joined(latest: Operator, rest: Operator, all: Operator): Operator {
  let from: Operator = latest
  let steps = 0
  const pull = (): Pull => {
    const pulled = from.pull()
    if (from !== latest || isBatch(pulled) || pulled === 'waiting') return pulled
    if (pulled === null) from = rest
    else if (++steps > stepsMax) from = all
    return 'working'
  }
  return { pull }
}
