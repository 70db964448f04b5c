// Operator: computes count(), and min and max of the designated timestamp (the table's time column), from the metadata
// of parts (Parquet files) and memtable blocks, such as row counts and time bounds. Rows are read only from memtable
// blocks that are not sorted by time; a part is opened only if a time range in WHERE includes just some of its rows.

import { initStats, statsBytes } from '../../kernels/aggregate.js'
import type { AggregateCall, Plan } from '../../sql/plan/plan.js'
import { mayHaveDuplicates } from '../../storage/memtable/dedup-view.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { Operator } from '../batch/vector.js'
import { valuesOperator } from '../operators/rows-of-values.js'
import { covers, runsOf, type ScanMorsel, timeMax, timeMin, touches } from './morsels.js'
import type { ScanShape } from './scan-shape.js'

type AggregatePlan = Extract<Plan, { kind: 'aggregate' }>

interface Statistics {
  rows: number
  min: bigint
  max: bigint
}

/** undefined when the query has to read rows. */
export function metadataOperator(context: ExecContext, plan: AggregatePlan, shape: ScanShape): Operator | undefined {
  if (!isMetadataOnly(plan, shape)) return undefined
  const statistics = statisticsOf(context, shape)
  if (statistics === undefined) return undefined
  const row: Value[] = plan.aggregates.map(({ name }) => {
    if (name === 'count') return BigInt(statistics.rows)
    if (statistics.rows === 0) return null
    return name === 'min' ? statistics.min : statistics.max
  })
  return valuesOperator(context, plan.columns, (from) => (from === 0 ? [row] : []))
}

/**
 * Whether metadata can answer the aggregates. It cannot if a time range cuts an unsorted block, which shows only later.
 */
export function isMetadataOnly(
  { keys, aggregates }: Pick<AggregatePlan, 'keys' | 'aggregates'>,
  { snapshot, filter, columnIds }: Pick<ScanShape, 'snapshot' | 'filter' | 'columnIds'>,
): boolean {
  if (keys.length > 0 || filter !== null || mayHaveDuplicates(snapshot)) return false
  return aggregates.every((call) => isKnown(call, columnIds, snapshot.version.schema.timestampId))
}

function isKnown({ name, args }: AggregateCall, columnIds: readonly number[], timestampId: number): boolean {
  const [argument] = args
  if (argument === undefined) return name === 'count'
  if (argument.kind !== 'column' || timestampId < 0 || columnIds[argument.index] !== timestampId) return false
  return name === 'count' || name === 'min' || name === 'max'
}

function statisticsOf(context: ExecContext, { snapshot, ranges }: ScanShape): Statistics | undefined {
  const statistics: Statistics = { rows: 0, min: timeMax, max: timeMin }
  const { version } = snapshot
  const timed = version.schema.timestampId >= 0
  // A part within the ranges is counted by its descriptor; a part that a range cuts is opened.
  const cut = version.parts.filter((part) => timed && !covers(ranges, part.minTs, part.maxTs))
  for (const part of version.parts) {
    if (!cut.includes(part)) note(statistics, part.rows, part.minTs, part.maxTs)
  }
  const opened = cut.filter((part) => touches(ranges, part.minTs, part.maxTs))
  const rest = { ...snapshot, version: { ...version, parts: opened } }
  for (const { morsels } of runsOf(context.memory, context.partAccess, rest, ranges, context.arena)) {
    for (const morsel of morsels) if (!addMorsel(context, statistics, morsel, rest, ranges)) return undefined
  }
  return statistics
}

function note(statistics: Statistics, rows: number, min: bigint, max: bigint): void {
  statistics.rows += rows
  if (min < statistics.min) statistics.min = min
  if (max > statistics.max) statistics.max = max
}

/** False when all rows have to be read, by the general plan. */
function addMorsel(
  context: ExecContext,
  statistics: Statistics,
  morsel: ScanMorsel,
  { version }: ScanShape['snapshot'],
  ranges: ScanShape['ranges'],
): boolean {
  if (morsel.superseded !== 0) return false
  const { timestampId } = version.schema
  if (timestampId < 0) {
    note(statistics, morsel.rows, 0n, 0n)
    return true
  }
  const ts = morsel.column(timestampId)
  const { memory, kernels } = context
  if (morsel.sorted) {
    for (const { lo, hi } of ranges ?? [{ lo: timeMin, hi: timeMax }]) {
      const from = kernels.sort.lowerBound(ts, 0, morsel.rows, lo)
      const to = kernels.sort.upperBound(ts, from, morsel.rows, hi)
      if (from === to) continue
      const at = ts >>> 3
      note(statistics, to - from, memory.i64[at + from]!, memory.i64[at + to - 1]!)
    }
    morsel.release()
    return true
  }
  if (!covers(ranges, morsel.minTs, morsel.maxTs)) return false
  const stats = context.arena.keep(statsBytes)
  initStats(memory, stats, 'i64')
  kernels.aggregate.stats(2, ts, 0, morsel.rows, stats)
  note(statistics, morsel.rows, memory.i64[(stats >>> 3) + 2]!, memory.i64[(stats >>> 3) + 3]!)
  return true
}
