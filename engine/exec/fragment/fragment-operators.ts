// Operators for GROUP BY and SAMPLE BY over a table scan when generated code (WebAssembly compiled for the query) can
// execute scan, filter and aggregation together (fragment-aggregate.ts). The operators start the work on this thread
// and on others, and return the result.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import { type Buckets, createBuckets } from '../aggregate/buckets.js'
import { filledBuckets, filledRows, repeatsResults } from '../aggregate/sample-fill.js'
import type { ExecContext } from '../batch/context.js'
import type { Operator } from '../batch/vector.js'
import { valuesOperator } from '../operators/rows-of-values.js'
import type { ChunkWorker, FragmentDetails } from '../parallel/coordinator.js'
import type { ScanShape } from '../scan/scan-shape.js'
import { type FragmentQuery, type FragmentRun, fragmentRun, fragmentWorker } from './fragment-aggregate.js'
import type { FillBuckets, FragmentColumns } from './fragment-columns.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

export function aggregateFragmentOperator(
  context: ExecContext,
  plan: PlanOf<'aggregate'>,
  scan: ScanShape,
): Operator | undefined {
  const run = fragmentRun(context, aggregateQuery(plan), scan)
  return run === undefined ? undefined : columnsOperator(run, plan.columns, false)
}

/** A worker's work for this operator; undefined when it cannot take part. */
export function planWorker(
  context: ExecContext,
  plan: Plan,
  scan: ScanShape,
  details: FragmentDetails,
): ChunkWorker | undefined {
  if (plan.kind === 'aggregate') return fragmentWorker(context, aggregateQuery(plan), scan, details)
  return plan.kind === 'sample' ? fragmentWorker(context, sampleQuery(plan), scan, details) : undefined
}

function aggregateQuery(plan: PlanOf<'aggregate'>): FragmentQuery {
  const { keys, aggregates } = plan
  return { plan, keys, aggregates, buckets: null }
}

function sampleQuery(plan: PlanOf<'sample'>): FragmentQuery & { readonly buckets: Buckets } {
  const { keys, aggregates } = plan
  const { type } = plan.columns[0] as PlanColumn
  return { plan, keys, aggregates, buckets: createBuckets(plan, type.name as TimestampUnit) }
}

/** SAMPLE BY with calendar alignment. Alignment to the first observation would need the first row before all others. */
export function sampleFragmentOperator(
  context: ExecContext,
  plan: PlanOf<'sample'>,
  scan: ScanShape,
): Operator | undefined {
  const { timestampId } = scan.snapshot.version.schema
  if (plan.align.kind !== 'calendar' || scan.columnIds[plan.timestampIndex] !== timestampId) return undefined
  const query = sampleQuery(plan)
  const run = fragmentRun(context, query, scan)
  if (run === undefined) return undefined
  const filling = plan.fills.some(({ kind }) => kind !== 'none')
  if (!filling) return columnsOperator(run, plan.columns, true)
  if (repeatsResults(plan)) {
    const fill: FillBuckets = (bucketResults, blank) => filledBuckets(plan, query.buckets, bucketResults, blank)
    return columnsOperator(run, plan.columns, true, fill)
  }
  return resultOperator(context, plan.columns, run, () => filledSampleRows(plan, run, query.buckets))
}

function columnsOperator(
  run: FragmentRun,
  columns: readonly PlanColumn[],
  timed: boolean,
  fill?: FillBuckets,
): Operator {
  let results: FragmentColumns | null = null
  return {
    pull: () => {
      if (results !== null) return results.batch()
      const outcome = run.step()
      if (outcome === 'done') results = run.columns(columns, timed, fill)
      return outcome === 'waiting' ? 'waiting' : 'working'
    },
  }
}

/** Renumbers the groups from 0 in their order, as sample-fill.ts requires. */
function filledSampleRows(plan: PlanOf<'sample'>, run: FragmentRun, buckets: Buckets): Generator<readonly Value[]> {
  const order = run.groups()
  const numbers = new Map(order.map((group, index) => [group, index]))
  const results = [...run.slots()].flatMap(({ bucket, groups }) => {
    if (bucket === null) return []
    const values = new Map(groups.map(({ group, aggregates }) => [numbers.get(group) ?? 0, aggregates]))
    return [{ ...bucket, results: values }]
  })
  const keyed = plan.keys.length > 0
  return filledRows(plan, {
    buckets,
    results,
    count: keyed ? order.length : 1,
    keysOf: (index) => (keyed ? run.keysOf(order[index] as number, null) : []),
  })
}

function resultOperator(
  context: ExecContext,
  columns: readonly PlanColumn[],
  run: FragmentRun,
  results: () => Iterator<readonly Value[]>,
): Operator {
  let rows: Iterator<readonly Value[]> | null = null
  const output = valuesOperator(context, columns, (_from, count) => {
    const taken: (readonly Value[])[] = []
    for (let next = rows?.next(); next !== undefined && !next.done; next = rows?.next()) {
      taken.push(next.value)
      if (taken.length === count) break
    }
    return taken
  })
  return {
    pull: () => {
      if (rows !== null) return output.pull()
      const outcome = run.step()
      if (outcome === 'done') rows = results()
      return outcome === 'waiting' ? 'waiting' : 'working'
    },
  }
}
