// Decides which time buckets of a materialized view a query reads from the view, and which it computes from the base
// table, when the query gets its snapshot of both. storage/schema/materialized.ts describes the record of stored
// buckets, and why comparing it with the snapshot is sufficient.
//
//   dirty   buckets with rows in memtables of the base table, with rows that were removed, or that overlap a part
//           (Parquet file) that was added or removed since the bucket was stored: computed
//   stored  the recorded ranges without the dirty buckets: read
//
// No bucket extends across the boundary of two ranges. With a time zone, buckets around a change of the UTC offset may
// have rows on both sides of their start, so there the dirty range is extended until no bucket does.

import { type Buckets, createBuckets } from '../exec/aggregate/buckets.js'
import { blockAt, blockCount, blockRows, blockTimes } from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Plan, Query, TimeRange, ViewSide } from '../sql/plan/plan.js'
import { inputsOf, mapInputs } from '../sql/plan/walk-plan.js'
import type { MaterializedSchema } from '../storage/schema/materialized.js'
import type { ColumnSchema, TableSchema, TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import { allOfTime, complement, intersect, normalise } from '../types/interval.js'
import { microsPerDay, type TimestampUnit, ticksPerMicro } from '../types/timestamp-calendar.js'
import { timeZone } from '../types/timestamp-zone.js'

/** Identifies this process in records that only it may trust. */
export const thisProcess = `${process.pid}-${Date.now()}`

/** The query for its snapshots, which are those of `query.tables`. */
export function withViewSides(query: Query, snapshots: readonly TableSnapshot[], memory: SharedMemory): Query {
  if (!hasSide(query.plan) && !query.subqueries.some(({ plan }) => hasSide(plan))) return query
  // Both sides of a view must see the same memtables.
  const known = new Map<string, readonly TimeRange[]>()
  const storedOf = (side: ViewSide): readonly TimeRange[] => {
    const key = JSON.stringify([side.view, side.base])
    const ranges = known.get(key) ?? storedRanges(side, snapshots, memory)
    known.set(key, ranges)
    return ranges
  }
  const resolve = (plan: Plan): Plan => {
    if (plan.kind !== 'scan' || plan.viewSide === undefined) return mapInputs(plan, resolve)
    const { viewSide, ...scan } = plan
    const stored = storedOf(viewSide)
    const own = viewSide.side === 'stored' ? stored : complement(stored)
    return { ...scan, ranges: intersect(scan.ranges ?? [allOfTime], own) }
  }
  return {
    ...query,
    plan: resolve(query.plan),
    subqueries: query.subqueries.map((subquery) => ({ ...subquery, plan: resolve(subquery.plan) })),
  }
}

const sided = new WeakMap<Plan, boolean>()

function hasSide(plan: Plan): boolean {
  const known = sided.get(plan)
  if (known !== undefined) return known
  const has = plan.kind === 'scan' ? plan.viewSide !== undefined : inputsOf(plan).some(hasSide)
  sided.set(plan, has)
  return has
}

function storedRanges(
  { view, base, interval, align }: ViewSide,
  snapshots: readonly TableSnapshot[],
  memory: SharedMemory,
): readonly TimeRange[] {
  const [of, over] = [snapshots[view], snapshots[base]]
  if (of === undefined || over === undefined) return []
  const grid = bucketGrid({ interval, align }, over.version.schema)
  const { schema } = of.version
  return cleanRanges(schema, over.version, grid, memoryRanges(over, memory))
}

export interface BucketGrid {
  /** The smallest range of whole buckets that contains the range. */
  whole(range: TimeRange): TimeRange
}

/** The stored ranges of the view that are still right, if the base has rows in `memory` besides its parts. */
export function cleanRanges(
  { stored, materialized }: TableSchema,
  base: TableVersion,
  grid: BucketGrid,
  memory: readonly TimeRange[],
): readonly TimeRange[] {
  if (stored === undefined || materialized === undefined || stored.ranges.length === 0) return []
  if (stored.process !== undefined && stored.process !== thisProcess) return []
  if (stored.columns !== columnsRead(materialized, base.schema)) return []
  const listed = stored.ranges.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) }))
  const dirty = [...changedParts(stored, base), ...memory].map((range) => grid.whole(range))
  return intersect(listed, complement(normalise(dirty)))
}

/**
 * Identifies the query and those columns of the base that it may read, by id and type. A column whose name occurs in
 * the text counts as read, which is more than needed and never less.
 */
export function columnsRead({ sql }: Pick<MaterializedSchema, 'sql'>, base: TableSchema): string {
  const text = sql.toLowerCase()
  const isRead = ({ id, name, dropped }: ColumnSchema): boolean =>
    !dropped && (id === base.timestampId || text.includes(name.toLowerCase()))
  const read = base.columns.filter(isRead).map(({ id, name, type, declared }) => [id, name, type, declared ?? null])
  // The DEDUP keys decide which rows of a part are superseded.
  return JSON.stringify([base.id, base.name.toLowerCase(), sql, read, base.dedupKeys])
}

/** Ranges of the parts that the base has gained or lost. */
function changedParts({ parts }: NonNullable<TableSchema['stored']>, base: TableVersion): TimeRange[] {
  const left = new Map(parts.map(([id, lo, hi]) => [id, { lo, hi }]))
  const changed: TimeRange[] = []
  for (const { id, minTs, maxTs } of base.parts) {
    if (!left.delete(id)) changed.push({ lo: minTs, hi: maxTs })
  }
  for (const { lo, hi } of left.values()) changed.push({ lo: BigInt(lo), hi: BigInt(hi) })
  return changed
}

/**
 * Ranges of the rows in memtables, visible or not: they may be wider than the visible rows need. So are parts of which
 * upserts remove rows: they change without a new id until a compaction.
 */
export function memoryRanges({ version, visibleRows }: TableSnapshot, memory: SharedMemory): TimeRange[] {
  const marked = new Set(version.removals?.map(([partId]) => partId))
  const ranges: TimeRange[] = version.parts.flatMap(({ id, minTs, maxTs }) =>
    marked.has(id) ? [{ lo: minTs, hi: maxTs }] : [],
  )
  version.memtables.forEach(({ address }, index) => {
    let left = visibleRows[index] ?? 0
    for (let block = 0; block < blockCount(memory, address) && left > 0; block++) {
      const found = blockAt(memory, address, block)
      const { minTs, maxTs } = blockTimes(memory, found)
      ranges.push({ lo: minTs, hi: maxTs })
      left -= blockRows(memory, found)
    }
  })
  return ranges
}

/** The buckets of a view over this base. */
export function bucketGrid({ interval, align }: Pick<ViewSide, 'interval' | 'align'>, base: TableSchema): BucketGrid {
  const unit: TimestampUnit =
    base.columns.find(({ id }) => id === base.timestampId)?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const buckets = createBuckets({ align: { kind: 'calendar', ...align }, interval, from: null }, unit)
  return align.zone === null ? plainGrid(buckets) : zonedGrid(buckets, align.zone, unit)
}

function plainGrid(buckets: Buckets): BucketGrid {
  return {
    whole: ({ lo, hi }) => {
      const last = buckets.of(hi)
      return { lo: buckets.of(lo).start, hi: last.end - 1n }
    },
  }
}

/** No UTC offset changes so near to a boundary that a bucket could have rows on both sides of it. */
const calmDays = [-2, -1, 0, 1, 2]
const stepDays = 4n

function zonedGrid(buckets: Buckets, zoneName: string, unit: TimestampUnit): BucketGrid {
  const zone = timeZone(zoneName)
  const scale = ticksPerMicro(unit)
  const day = BigInt(microsPerDay) * scale
  const isCalm = (ts: bigint): boolean => {
    const offsets = calmDays.map((days) => zone?.offsetAt((ts + BigInt(days) * day) / scale))
    return new Set(offsets).size === 1
  }
  return {
    whole: ({ lo, hi }) => {
      let first = buckets.of(lo).start
      while (!isCalm(first)) first = buckets.of(first - stepDays * day).start
      let end = buckets.of(hi).end
      while (!isCalm(end)) end = buckets.of(end + stepDays * day).end
      return { lo: first, hi: end - 1n }
    },
  }
}
