// One refresh of one materialized view: computes buckets and stores them in the view. Each step is durable before the
// next one begins; storage/schema/materialized.ts explains why a crash between them does no harm.
//
//   1. Finds, in a snapshot of the base table and the view, the buckets that are not listed as stored or are no longer
//      correct. Buckets with rows in memtables of the base table are left out.
//   2. Removes these buckets from the list of stored ones, if they are in it.
//   3. Replaces the view's rows of these buckets by the result of the view's query over the snapshot.
//   4. Adds the buckets to the list, with the parts (Parquet files) of the snapshot.

import type { ReadSnapshot, Session } from '../api/session.js'
import { internalSession } from '../api/session.js'
import type { StopSignal } from '../api/statements.js'
import { SqlError } from '../base/errors.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { viewRelation } from '../sql/bind/from.js'
import type { Catalog } from '../sql/catalog.js'
import type { TimeRange } from '../sql/plan/plan.js'
import { hasColumnsOf, sampleOf } from '../sql/scope/stored-view.js'
import { bindContext } from '../sql/statements/new-context.js'
import type { MaterializedSchema, StoredBuckets } from '../storage/schema/materialized.js'
import type { TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import { allOfTime, complement, intersect, normalise, unite } from '../types/interval.js'
import { formatTimestamp } from '../types/timestamp.js'
import { type BucketGrid, bucketGrid, cleanRanges, columnsRead, memoryRanges, thisProcess } from './view-sides.js'

/** Ranges that one refresh stores; the next one takes the others. */
const rangesMax = 64
/** Stored ranges that a schema lists; buckets of further ranges are computed by readers. */
const listedMax = 1000

/** What a refresh needs of the engine. */
export interface RefreshOperations {
  readonly memory: SharedMemory
  readonly catalog: Catalog
  readonly nowMicros: () => number
  /** Whether the log syncs commits before they are acknowledged. */
  readonly durable: boolean
  readonly holdSnapshot: () => ReadSnapshot
  readonly byId: (tableId: number) => TableVersion | undefined
  readonly execute: (sql: string, session: Session, signal: StopSignal | null) => Promise<unknown>
  readonly record: (viewId: number, stored: StoredBuckets) => Promise<unknown>
}

export interface RefreshRequest {
  readonly viewId: number
  /** Store again what is stored and right. */
  readonly again: boolean
  /** The timestamps to refresh, widened to whole buckets. */
  readonly within: TimeRange
  readonly signal: StopSignal | null
}

/**
 * Whether buckets were stored, so that there may be more. Throws SqlError if the view's query does not bind any more.
 */
export async function refreshView(operations: RefreshOperations, request: RefreshRequest): Promise<boolean> {
  const snapshot = operations.holdSnapshot()
  try {
    const view = snapshot.snapshotOf(request.viewId)
    if (view === undefined) return false
    const { materialized } = view.version.schema
    const base = snapshot.snapshotOf(materialized?.baseId ?? -1)
    if (materialized === undefined || base === undefined) throw new SqlError('base table does not exist', 0)
    return await store(operations, request, { snapshot, view, base, materialized })
  } finally {
    snapshot.release()
  }
}

interface Seen {
  readonly snapshot: ReadSnapshot
  readonly view: TableSnapshot
  readonly base: TableSnapshot
  readonly materialized: MaterializedSchema
}

async function store(operations: RefreshOperations, request: RefreshRequest, seen: Seen): Promise<boolean> {
  const { view, base, materialized } = seen
  const startMicros = operations.nowMicros()
  const { schema } = view.version
  const grid = gridOf(operations, view.version, materialized)
  const memory = memoryRanges(base, operations.memory).map((range) => grid.whole(range))
  const clean = cleanRanges(schema, base.version, grid, [])
  const wanted = request.again ? [allOfTime] : complement(clean)
  const within = intersect(wanted, [wholeWithin(grid, request.within)])
  const ranges = intersect(within, complement(normalise(memory))).slice(0, rangesMax)
  if (ranges.length === 0) return false
  const left = intersect(clean, complement(ranges))
  const listed = schema.stored?.ranges.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) })) ?? []
  let changes = (schema.stored?.changes ?? 0) + 1
  const record = (stored: readonly TimeRange[]): Promise<unknown> =>
    operations.record(schema.id, {
      ...{ changes: changes++, startMicros, finishMicros: operations.nowMicros() },
      ...(operations.durable ? {} : { process: thisProcess }),
      columns: columnsRead(materialized, base.version.schema),
      ranges: longest(stored).map(({ lo, hi }) => [`${lo}`, `${hi}`]),
      parts: base.version.parts.map(({ id, minTs, maxTs }) => [id, `${minTs}`, `${maxTs}`]),
    })
  if (intersect(listed, ranges).length > 0) await record(left)
  await replaceRows(operations, request, seen, ranges)
  await record(unite(left, ranges))
  return true
}

/** Throws SqlError if the view has become invalid. */
function gridOf(
  { catalog, nowMicros }: RefreshOperations,
  view: TableVersion,
  { sql, baseId }: MaterializedSchema,
): BucketGrid {
  const context = bindContext({ sql, catalog, parameters: [], nowMicros: nowMicros(), user: '', describes: true })
  const { plan } = viewRelation(sql, context)
  const sample = sampleOf(plan)
  const base = context.tables.find(({ schema }) => schema.id === baseId)
  if (base === undefined) throw new SqlError('another table has taken the name of the base table', 0)
  if (!hasColumnsOf(view, plan) || sample === undefined || sample.align.kind !== 'calendar')
    throw new SqlError('the columns of the query have changed: create the view again', 0)
  return bucketGrid({ interval: sample.interval, align: sample.align }, base.schema)
}

/** Bounds that lie within the buckets are moved: the first bucket is included, and so is the last one. */
function wholeWithin(grid: BucketGrid, { lo, hi }: TimeRange): TimeRange {
  return {
    lo: lo <= allOfTime.lo ? allOfTime.lo : grid.whole({ lo, hi: lo }).lo,
    hi: hi >= allOfTime.hi ? allOfTime.hi : grid.whole({ lo: hi, hi }).hi,
  }
}

function longest(ranges: readonly TimeRange[]): readonly TimeRange[] {
  if (ranges.length <= listedMax) return ranges
  const byLength = [...ranges].sort((x, y) => (x.hi - x.lo > y.hi - y.lo ? -1 : 1))
  return normalise(byLength.slice(0, listedMax))
}

async function replaceRows(
  { memory, byId, execute }: RefreshOperations,
  { viewId, signal }: RefreshRequest,
  { snapshot, view }: Seen,
  ranges: readonly TimeRange[],
): Promise<void> {
  const { schema, parts } = view.version
  const name = `"${schema.name}"`
  const session: Session = { ...internalSession('system'), refreshes: { viewId, ranges } }
  const present = [...parts.map(({ minTs, maxTs }) => ({ lo: minTs, hi: maxTs })), ...memoryRanges(view, memory)]
  if (intersect(normalise(present), ranges).length > 0)
    await execute(`delete from ${name}${condition(schema, ranges)}`, session, signal)
  if (byId(viewId) === undefined) throw new SqlError('the view was dropped', 0)
  await execute(`insert into ${name} select * from ${name}`, { ...session, snapshot }, signal)
}

function condition({ columns, timestampId }: TableVersion['schema'], ranges: readonly TimeRange[]): string {
  const column = columns.find(({ id }) => id === timestampId)
  const unit = column?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const text = (ts: bigint): string => `'${formatTimestamp(ts, unit)}'`
  const within = ranges.map(({ lo, hi }) => {
    const after = lo <= allOfTime.lo ? [] : [`"${column?.name}" >= ${text(lo)}`]
    const before = hi >= allOfTime.hi ? [] : [`"${column?.name}" <= ${text(hi)}`]
    return [...after, ...before].join(' and ')
  })
  return within.includes('') ? '' : ` where ${within.map((range) => `(${range})`).join(' or ')}`
}
