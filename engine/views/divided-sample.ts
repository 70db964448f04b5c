// Makes queries over both sides of a materialized view as fast as those over a table, once their snapshots are known:
//
//   - A side without rows is left out. A scan of stored buckets then takes the place of a union in the order of time, so
//     an aggregation over it is fused with the scan, and runs in parallel.
//   - A SAMPLE BY over stored and computed buckets is divided by time: its own buckets with computed rows are
//     aggregated over both sides, all others over the scan of stored buckets alone. No group is in both.

import type { SharedMemory } from '../memory/shared-memory.js'
import type { Plan, TimeRange, ViewSide } from '../sql/plan/plan.js'
import { inputsOf } from '../sql/plan/walk-plan.js'
import type { TableSnapshot } from '../storage/schema/schema.js'
import { sameType } from '../types/column-types.js'
import { allOfTime, complement, intersect, normalise } from '../types/interval.js'
import type { BucketGrid } from './live-grid.js'
import { memtableRanges } from './view-ranges.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

/** What the plan reads. */
export interface ReadTables {
  readonly snapshots: readonly TableSnapshot[]
  readonly memory: SharedMemory
}

/** A SAMPLE BY over both sides of a view. */
interface SampledSides {
  readonly sample: PlanOf<'sample'>
  /** The union of both sides. */
  readonly both: PlanOf<'set'>
  readonly stored: PlanOf<'scan'>
}

/** Undefined for a plan of another form. */
function sampledSides(plan: Plan): SampledSides | undefined {
  if (plan.kind !== 'sample' || plan.align.kind !== 'calendar' || plan.from !== null || plan.to !== null)
    return undefined
  if (plan.fills.some(({ kind }) => kind !== 'none') || plan.span !== undefined) return undefined
  const sort = plan.input
  if (sort.kind !== 'sort' || sort.implied !== true || sort.limit !== null) return undefined
  const [key, ...more] = sort.keys
  const both = sort.input
  if (key === undefined || more.length > 0 || key.descending || key.index !== plan.timestampIndex) return undefined
  if (both.kind !== 'set' || both.operation !== 'union' || !both.all) return undefined
  const { left } = both
  return left.kind === 'scan' ? { sample: plan, both, stored: left } : undefined
}

/** The side of a view that a SAMPLE BY reads as stored, before its ranges are known; undefined if it does not. */
export function sampledSide(plan: Plan): ViewSide | undefined {
  const [side, ...more] = sampledSides(plan)?.stored.viewSides ?? []
  return more.length === 0 && side?.side === 'stored' ? side : undefined
}

/** Where the computed rows are, with all of the view's and the query's buckets that have any of them. */
export interface ComputedRows {
  readonly ranges: readonly TimeRange[]
  readonly grid: BucketGrid
  readonly sampled: BucketGrid
}

/** The same rows in the same order. The sides of the plan are resolved: its scans have their ranges. */
export function divided(plan: Plan, { ranges, grid, sampled }: ComputedRows, tables: ReadTables): Plan {
  const sides = sampledSides(plan)
  if (sides === undefined) return plan
  const { sample, both, stored } = sides
  const present = normalise(extentsOf(both.right, tables))
  const touched = normalise(intersect(ranges, present).map((range) => grid.whole(range)))
  const mixed = normalise(touched.map((range) => sampled.whole(range)))
  const alone = inOrder(stored)
  if (mixed.length === 0) return { ...sample, input: alone }
  const within = (scan: PlanOf<'scan'>, over: readonly TimeRange[]): PlanOf<'scan'> => ({
    ...scan,
    ranges: intersect(scan.ranges ?? [allOfTime], over),
  })
  const rest = within(alone, complement(mixed))
  if (isVoid(rest, tables)) return sample
  const union: Plan = { ...both, left: within(stored, mixed) }
  const { input } = sample
  const computed: Plan = { ...sample, input: input.kind === 'sort' ? { ...input, input: union } : union }
  const { columns } = sample
  const all: Plan = {
    ...{ kind: 'set', columns, operation: 'union', all: true },
    left: { ...sample, input: rest },
    right: computed,
  }
  const keys = [{ index: 0, descending: false, nullsFirst: true }]
  return { kind: 'sort', columns, input: all, keys, limit: null, implied: true }
}

/** The union or sort of a plan, without a side that has no rows; its inputs are simplified already. */
export function withoutVoid(plan: Plan, tables: ReadTables): Plan {
  if (plan.kind === 'set' && plan.operation === 'union' && plan.all) {
    if (!hasTypesOf(plan.left, plan.right)) return plan
    return isVoid(plan.right, tables) ? plan.left : isVoid(plan.left, tables) ? plan.right : plan
  }
  if (plan.kind !== 'sort' || plan.implied !== true || plan.limit !== null || plan.input.kind !== 'scan') return plan
  const [key, ...more] = plan.keys
  const { schema } = tables.snapshots[plan.input.table]?.version ?? {}
  const isTime = key !== undefined && plan.input.columnIds[key.index] === schema?.timestampId
  return isTime && more.length === 0 && !key.descending ? inOrder(plan.input) : plan
}

function inOrder(scan: PlanOf<'scan'>): PlanOf<'scan'> {
  return { ...scan, order: 'ascending' }
}

function hasTypesOf(left: Plan, right: Plan): boolean {
  return left.columns.every(({ type }, index) => sameType(type, right.columns[index]?.type ?? type))
}

/** Whether the plan has no rows, as far as parts and memtables tell. */
function isVoid(plan: Plan, tables: ReadTables): boolean {
  switch (plan.kind) {
    case 'scan':
      return plan.ranges !== null && intersect(plan.ranges, normalise(extentsOf(plan, tables))).length === 0
    case 'sample':
      return plan.from === null && plan.to === null && isVoid(plan.input, tables)
    case 'aggregate':
      return plan.keys.length > 0 && isVoid(plan.input, tables)
    case 'filter':
    case 'project':
    case 'sort':
    case 'limit':
      return isVoid(plan.input, tables)
    case 'set':
      return plan.operation === 'union' && isVoid(plan.left, tables) && isVoid(plan.right, tables)
    case 'join':
      return plan.join !== 'right' && plan.join !== 'full' && plan.join !== 'splice' && isVoid(plan.left, tables)
    default:
      return false
  }
}

/** The times of the parts and memtables that the plan scans: of a join, those on its left. */
function extentsOf(plan: Plan, tables: ReadTables): TimeRange[] {
  if (plan.kind === 'join') return extentsOf(plan.left, tables)
  if (plan.kind !== 'scan') return inputsOf(plan).flatMap((input) => extentsOf(input, tables))
  const snapshot = tables.snapshots[plan.table]
  if (snapshot === undefined || snapshot.version.schema.timestampId < 0) return [allOfTime]
  const parts = snapshot.version.parts.map(({ minTs, maxTs }) => ({ lo: minTs, hi: maxTs }))
  return [...parts, ...memtableRanges(snapshot, tables.memory)]
}
