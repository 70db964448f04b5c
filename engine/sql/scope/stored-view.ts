// Makes the relation of a materialized view in FROM: a union of the view's stored rows and of the view's query over the
// base table. When the query has its snapshot of both tables, engine/views/view-sides.ts decides which time buckets
// come from which side, so the result is never stale.

import { liveColumns, resultTypeOf, type TableVersion } from '../../storage/schema/schema.js'
import { sameType } from '../../types/column-types.js'
import { allOfTime } from '../../types/interval.js'
import type { Plan, TimeRange, ViewSide } from '../plan/plan.js'
import { inputsOf, mapInputs } from '../plan/walk-plan.js'
import { type Relation, scopeOf } from './scope.js'

type Sample = Extract<Plan, { kind: 'sample' }>
type Scan = Extract<Plan, { kind: 'scan' }>

/** The SAMPLE BY of a view's query. */
export function sampleOf(plan: Plan): Sample | undefined {
  if (plan.kind === 'sample') return plan
  for (const input of inputsOf(plan)) {
    const found = sampleOf(input)
    if (found !== undefined) return found
  }
  return undefined
}

/** The relation of the query, whose scans of the base read these ranges only. */
export function withinRanges(computed: Relation, base: number, ranges: readonly TimeRange[]): Relation {
  return { ...computed, plan: mapScans(computed.plan, base, (scan) => ({ ...scan, ranges })) }
}

/** Both sides of the view, in the order of its timestamp. `view` and `base` are indexes of the statement's tables. */
export function bothSides(stored: Relation, computed: Relation, view: number, base: number, alias: string): Relation {
  const sample = sampleOf(computed.plan)
  if (sample === undefined || sample.align.kind !== 'calendar') return computed
  const { interval, align } = sample
  const { zone, offsetMicros } = align
  const sideOf = (side: ViewSide['side']): ViewSide => {
    return { side, view, base, interval, align: { zone, offsetMicros } }
  }
  const { columns } = stored.plan
  const left = mapScans(stored.plan, view, (scan) => restricted(scan, sideOf('stored')))
  const right = mapScans(computed.plan, base, (scan) => restricted(scan, sideOf('computed')))
  const input: Plan = { kind: 'set', columns, operation: 'union', all: true, left, right }
  const keys = [{ index: stored.timestampIndex, descending: false, nullsFirst: true }]
  const plan: Plan = { kind: 'sort', columns, input, keys, limit: null, implied: true }
  return { plan, columns: scopeOf(plan, alias), timestampIndex: stored.timestampIndex, order: 'ascending' }
}

/** With ranges, planner rules do not take the scan for one of a whole table. */
function restricted(scan: Scan, viewSide: ViewSide): Scan {
  return { ...scan, ranges: scan.ranges ?? [allOfTime], viewSide }
}

function mapScans(plan: Plan, table: number, map: (scan: Scan) => Scan): Plan {
  if (plan.kind === 'scan') return plan.table === table ? map(plan) : plan
  return mapInputs(plan, (input) => mapScans(input, table, map))
}

/** Whether the query still returns the columns that the view's table has. */
export function hasColumnsOf({ schema }: TableVersion, { columns }: Plan): boolean {
  const live = liveColumns(schema)
  return (
    live.length === columns.length &&
    live.every((column, index) => {
      const other = columns[index]
      return other !== undefined && other.name === column.name && sameType(other.type, resultTypeOf(column))
    })
  )
}
