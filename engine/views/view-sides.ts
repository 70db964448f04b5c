// A query of a materialized view has two scans: one reads stored buckets from the view, the other computes buckets from
// the base table. When the query gets its snapshot of view and base table, this file gives both scans their time ranges
// (view-ranges.ts). If the view has sealed buckets, two more scans read the rows of the base that these lack (this scan
// has a snapshot of the base with late parts alone), and the stored rows of these buckets. A query that may read stored
// buckets although they have changed since has the first scan only. divided-sample.ts then simplifies the plan.

import type { SharedMemory } from '../memory/shared-memory.js'
import type { Plan, Query, TimeRange, ViewSide } from '../sql/plan/plan.js'
import { inputsOf, mapInputs } from '../sql/plan/walk-plan.js'
import { resolvedRows } from '../sql/scope/live-rows.js'
import type { TableSnapshot } from '../storage/schema/schema.js'
import { allOfTime, intersect, unite } from '../types/interval.js'
import { divided, type ReadTables, sampledSide, withoutVoid } from './divided-sample.js'
import {
  inputsOfView,
  lateParts,
  memtableRanges,
  sidesOf,
  sidesOfRows,
  storedAlone,
  type ViewSides,
  viewGrid,
} from './view-ranges.js'

interface ReadQuery {
  readonly query: Query
  readonly snapshots: readonly TableSnapshot[]
}

/**
 * The query for its snapshots, which are those of `query.tables`; and the snapshots to read, of which one at
 * ViewSide.late has late parts alone. Unless `isSimplified`, the query has the nodes that it had.
 */
export function withViewSides(
  query: Query,
  snapshots: readonly TableSnapshot[],
  memory: SharedMemory,
  isSimplified = true,
): ReadQuery {
  if (!hasSide(query.plan) && !query.subqueries.some(({ plan }) => hasSide(plan))) return { query, snapshots }
  const read = [...snapshots]
  // All sides of a view must see the same memtables.
  const known = new Map<string, ViewSides>()
  const rangesOf = (side: ViewSide): readonly TimeRange[] => {
    if (side.side === 'alone') return aloneOf(side, snapshots)
    const rows = side.rows?.map(({ lo, hi }) => `${lo}-${hi}`) ?? null
    const key = JSON.stringify([side.view, side.base, rows, side.late, side.unkept])
    const sides = known.get(key) ?? bothSides(side, snapshots, memory)
    known.set(key, sides)
    const late = side.late === undefined ? undefined : lateSnapshot(side, snapshots)
    if (side.late !== undefined && late !== undefined) read[side.late] = late
    return sides[side.side]
  }
  const tables = { snapshots: read, memory }
  const resolve = (plan: Plan): Plan => {
    const sampled = isSimplified ? sampledSide(plan) : undefined
    if (sampled !== undefined && plan.kind === 'sample')
      return dividedBy(sampled, plan, mapInputs(plan, resolve), rangesOf, tables)
    if (plan.kind === 'filter' && plan.viewSide !== undefined)
      return resolvedRows({ ...plan, input: resolve(plan.input) }, rangesOf(plan.viewSide))
    if (plan.kind !== 'scan' || plan.viewSides === undefined) {
      const mapped = mapInputs(plan, resolve)
      return isSimplified ? withoutVoid(mapped, tables) : mapped
    }
    const { viewSides, ...scan } = plan
    return { ...scan, ranges: viewSides.reduce((ranges, side) => intersect(ranges, rangesOf(side)), ownRanges(plan)) }
  }
  const resolved = {
    ...query,
    plan: resolve(query.plan),
    subqueries: query.subqueries.map((subquery) => ({ ...subquery, plan: resolve(subquery.plan) })),
  }
  return { query: resolved, snapshots: read }
}

/** A SAMPLE BY over both sides, whose ranges are known in `resolved`. */
function dividedBy(
  side: ViewSide,
  { align, interval }: Extract<Plan, { kind: 'sample' }>,
  resolved: Plan,
  rangesOf: (side: ViewSide) => readonly TimeRange[],
  tables: ReadTables,
): Plan {
  const [view, base] = [side.view, side.base].map((index) => tables.snapshots[index]?.version.schema)
  if (view === undefined || base === undefined || align.kind !== 'calendar') return resolved
  const own = { interval, zone: align.zone, offsetMicros: align.offsetMicros }
  const late = side.late === undefined ? [] : rangesOf({ ...side, side: 'late' })
  const ranges = unite(rangesOf({ ...side, side: 'computed' }), late)
  const [grid, sampled] = [viewGrid(view, side.buckets, base), viewGrid(view, [own], base)]
  return divided(resolved, { ranges, grid, sampled }, tables)
}

/** The base with the parts that have late rows; its memtables have no other rows of sealed buckets. */
function lateSnapshot({ view, base }: ViewSide, snapshots: readonly TableSnapshot[]): TableSnapshot | undefined {
  const [of, over] = [snapshots[view], snapshots[base]]
  if (of === undefined || over === undefined) return undefined
  const { version } = over
  return { ...over, version: { ...version, parts: lateParts({ view: of.version.schema, base: version }) } }
}

function ownRanges({ ranges }: Extract<Plan, { kind: 'scan' }>): TimeRange[] {
  return [...(ranges ?? [allOfTime])]
}

const sided = new WeakMap<Plan, boolean>()

function hasSide(plan: Plan): boolean {
  const known = sided.get(plan)
  if (known !== undefined) return known
  const has = plan.kind === 'scan' ? plan.viewSides !== undefined : inputsOf(plan).some(hasSide)
  sided.set(plan, has)
  return has
}

function aloneOf({ view, base }: ViewSide, snapshots: readonly TableSnapshot[]): readonly TimeRange[] {
  const schema = snapshots[view]?.version.schema
  return schema === undefined ? [] : storedAlone(schema, snapshots[base]?.version.schema)
}

function bothSides(
  { view, base, buckets, rows, late, unkept }: ViewSide,
  snapshots: readonly TableSnapshot[],
  memory: SharedMemory,
): ViewSides {
  const [of, over] = [snapshots[view], snapshots[base]]
  const byId = (tableId: number) => snapshots.find(({ version }) => version.schema.id === tableId)?.version
  const inputs = of === undefined ? undefined : inputsOfView(of.version.schema, byId)
  if (over === undefined || inputs === undefined)
    return { ...{ stored: [], late: [] }, computed: [allOfTime], input: [allOfTime] }
  const grid = viewGrid(inputs.view, buckets, over.version.schema)
  if (rows !== undefined)
    return sidesOfRows(inputs, grid, memtableRanges(over, memory), { rows, isOfValues: unkept === true })
  return sidesOf(inputs, grid, memtableRanges(over, memory), late !== undefined)
}
