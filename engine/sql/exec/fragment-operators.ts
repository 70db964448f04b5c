// Aggregations and samples of a table that generated kernels do as a whole: plans on one side, rows of results on the
// other.

import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { ticksPerMicro } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { type FragmentRun, fragmentRun } from './fragment-aggregate.js'
import { bucketKey } from './fragment-keys.js'
import { valuesOperator } from './rows-of-values.js'
import type { ScanShape } from './scan-slices.js'
import type { Operator } from './vector.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

export function aggregateFragmentOperator(
  context: ExecContext,
  plan: PlanOf<'aggregate'>,
  scan: ScanShape,
): Operator | undefined {
  const run = fragmentRun(context, { ...plan, bucket: null }, scan)
  if (run === undefined) return undefined
  return resultOperator(context, plan.columns, run, ({ keys, aggregates }) => [...keys, ...aggregates])
}

/** Samples of fixed length on the calendar of UTC, without fills. */
export function sampleFragmentOperator(
  context: ExecContext,
  plan: PlanOf<'sample'>,
  scan: ScanShape,
): Operator | undefined {
  const { align, fills, from, timestampIndex, interval } = plan
  if (align.kind !== 'calendar' || align.zone !== null || from !== null) return undefined
  if (fills.some(({ kind }) => kind !== 'none')) return undefined
  const type = (plan.input.columns[timestampIndex] as PlanColumn).type
  const time: Expression = { kind: 'column', index: timestampIndex, type, position: 0 }
  const offset = align.offsetMicros * ticksPerMicro(type.name as TimestampUnit)
  const run = fragmentRun(context, { ...plan, bucket: (source) => bucketKey(source, time, interval, offset) }, scan)
  if (run === undefined) return undefined
  return resultOperator(context, plan.columns, run, ({ keys, aggregates }) => [
    keys[keys.length - 1] ?? null,
    ...keys.slice(0, -1),
    ...aggregates,
  ])
}

type Result = ReturnType<FragmentRun['results']> extends Iterable<infer R> ? R : never

function resultOperator(
  context: ExecContext,
  columns: readonly PlanColumn[],
  run: FragmentRun,
  rowOf: (result: Result) => readonly Value[],
): Operator {
  let results: Iterator<Result> | null = null
  const output = valuesOperator(context, columns, (_from, count) => {
    const rows: (readonly Value[])[] = []
    for (let next = results?.next(); next !== undefined && !next.done; next = results?.next()) {
      rows.push(rowOf(next.value))
      if (rows.length === count) break
    }
    return rows
  })
  return {
    pull: () => {
      if (results !== null) return output.pull()
      if (!run.step()) results = run.results()[Symbol.iterator]()
      return 'working'
    },
  }
}
