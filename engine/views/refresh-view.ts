// One refresh of one materialized view: computes buckets and stores them in the view. Each step is durable before the
// next one begins; storage/schema/materialized.ts explains why a crash between them does no harm.
//
//   1. Finds, in a snapshot of the base table and the view, the buckets that are not listed as stored or are no longer
//      correct. Buckets with rows in memtables of the base table are left out, as are sealed and expired ones.
//   2. Removes these buckets from the list of stored ones, if they are in it.
//   3. Replaces the view's rows of these buckets by the result of the view's query over the snapshot.
//   4. Adds the buckets to the list, with the parts (Parquet files) of the snapshot.
//
// Before that, it tries to merge rows that were only added to stored buckets (late-rows.ts), and ends there if that has
// changed buckets: the next refresh does the rest. Live views, and requests to store all buckets again, skip this.

import type { ReadSnapshot, Session } from '../api/session.js'
import { internalSession } from '../api/session.js'
import type { StopSignal } from '../api/statements.js'
import { ResourceError, SqlError } from '../base/errors.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { viewRelation } from '../sql/bind/from.js'
import type { Catalog } from '../sql/catalog.js'
import type { Plan, TimeRange, ViewBuckets } from '../sql/plan/plan.js'
import { baseTableOf, bucketsOf, isStorable } from '../sql/scope/stored-view.js'
import { addsLateRows } from '../sql/statements/materialized.js'
import { bindContext } from '../sql/statements/new-context.js'
import {
  keptRange,
  type MaterializedSchema,
  type StoredBuckets,
  sealedRanges,
  unkeptRanges,
} from '../storage/schema/materialized.js'
import type { TableSchema, TableVersion } from '../storage/schema/schema.js'
import { allOfTime, complement, intersect, normalise, unite } from '../types/interval.js'
import { formatTimestamp } from '../types/timestamp.js'
import { isReplaced, joined, type LateOperations, mergeLateRows, nullAt, rowsWithin } from './late-rows.js'
import { keptMarks, listedMarks } from './live-grid.js'
import { type MarkOperations, newMarks, storable } from './live-marks.js'
import {
  cleanRanges,
  columnsRead,
  inputOf,
  inputsOfView,
  markedRanges,
  memtableRanges,
  notedBetween,
  rightGrid,
  type SeenView,
  thisProcess,
  viewGrid,
  wholeWithin,
  withoutRows,
} from './view-ranges.js'

/** Ranges that one refresh stores; the next one takes the others. */
const rangesMax = 64
/** Stored ranges that a schema lists; buckets of further ranges are computed by readers. */
const listedMax = 1000
/** Ranges of buckets without a state of values that a schema lists. */
const unkeptMax = 250

/** What a refresh needs of the engine. */
export interface RefreshOperations extends LateOperations, MarkOperations {
  readonly memory: SharedMemory
  readonly catalog: Catalog
  readonly nowMicros: () => number
  /** Whether the log syncs commits before they are acknowledged. */
  readonly durable: boolean
  readonly holdSnapshot: () => ReadSnapshot
  readonly execute: (sql: string, session: Session, signal: StopSignal | null) => Promise<unknown>
  readonly record: (viewId: number, stored: StoredBuckets) => Promise<unknown>
  /** Flushes the memtables of a table. */
  readonly flush: (tableId: number) => Promise<unknown>
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
    const seen = seenBy(operations, snapshot, request.viewId)
    if (seen === undefined) return false
    const { inputs, grid, base } = seen
    const { within: requested, signal } = request
    const noted = unkeptRanges(seen.view.version.schema.stored)
    const makeRecord = recorder(operations, seen)
    const record: Parameters<typeof mergeLateRows>[2]['record'] = (ranges, more = []) =>
      makeRecord(ranges, { unkept: unite(noted, more) })
    const isMerged = !request.again && grid.live === undefined
    if (isMerged && (await mergeLateRows(operations, seen, { within: requested, signal, record }))) return true
    const clean = cleanRanges(inputs, grid)
    const wanted = request.again ? [allOfTime] : complement(clean)
    const within = intersect(wanted, [wholeWithin(grid, request.within)])
    const open = intersect(complement(sealedRanges(base.version.schema, request.viewId)), [keptRange(inputs.view)])
    const free = intersect(intersect(within, open), complement(normalise(changing(seen, operations.memory))))
    const ranges = grid.live?.isMarked === true ? storable(free, base.version, request.again) : free
    return await storeRanges(operations, request.signal, seen, ranges.slice(0, rangesMax))
  } finally {
    snapshot.release()
  }
}

/** What rows in memtables, and parts that change without a new id, reach. */
function changing({ base, grid }: SeenView, memory: SharedMemory): TimeRange[] {
  const reached = (range: TimeRange, isRemoval: boolean): TimeRange =>
    grid.live?.reached(range, isRemoval) ?? grid.whole(range)
  return [
    ...memtableRanges(base, memory).map((range) => reached(range, false)),
    ...markedRanges(base.version).map((range) => reached(range, true)),
  ]
}

/** Undefined if the view was dropped. Throws SqlError if its query does not bind any more. */
export function seenBy(
  operations: Pick<RefreshOperations, 'catalog' | 'nowMicros'>,
  snapshot: ReadSnapshot,
  viewId: number,
): SeenView | undefined {
  const view = snapshot.snapshotOf(viewId)
  if (view === undefined) return undefined
  const inputs = inputsOfView(view.version.schema, (id) => snapshot.snapshotOf(id)?.version)
  const base = snapshot.snapshotOf(inputs?.base.schema.id ?? -1)
  if (inputs === undefined || base === undefined) throw new SqlError('base table does not exist', 0)
  const levels = levelsOf(operations, view.version)
  const grid = viewGrid(view.version.schema, levels, base.version.schema)
  return { snapshot, view, base, inputs, levels, grid: rightGrid(grid, cleanRanges(inputs, grid)) }
}

/**
 * Stores these ranges of whole buckets, in which the base has no rows in memtables. Of parts that change without a new
 * id, buckets are stored but not listed. Returns whether there was anything to store.
 */
export async function storeRanges(
  operations: RefreshOperations,
  signal: StopSignal | null,
  seen: SeenView,
  ranges: readonly TimeRange[],
): Promise<boolean> {
  if (ranges.length === 0) return false
  const { view, base, inputs, grid } = seen
  const { schema } = view.version
  const marked = normalise(markedRanges(base.version).map((range) => withoutRows(grid, range)))
  const clean = cleanRanges(inputs, grid)
  const left = intersect(clean, complement(ranges))
  const marks = keptMarks(schema.stored, unite(complement(clean), ranges))
  const listed = schema.stored?.ranges.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) })) ?? []
  const record = recorder(operations, seen)
  const noted = unkeptRanges(schema.stored)
  if (intersect(listed, ranges).length > 0) await record(left, { marks, unkept: noted })
  await replaceRows(operations, signal, seen, ranges)
  const added = grid.live?.isMarked === true ? await newMarks(operations, signal, seen, ranges, marks) : []
  const unkept = unite(intersect(noted, complement(ranges)), await unkeptIn(operations, signal, seen, ranges))
  await record(unite(left, intersect(ranges, complement(marked))), { marks: [...marks, ...added], unkept })
  return true
}

/** The buckets in these ranges, which were stored just now, of which a state of values is not kept. */
async function unkeptIn(
  { late, byId, holdSnapshot }: RefreshOperations,
  signal: StopSignal | null,
  { view, grid }: SeenView,
  ranges: readonly TimeRange[],
): Promise<TimeRange[]> {
  const { id: viewId, materialized } = view.version.schema
  const version = byId(viewId)
  if (materialized?.stateRule !== 4 || version === undefined) return []
  const snapshot = holdSnapshot()
  try {
    const session = { ...internalSession('system'), snapshot, refreshes: { viewId, ranges } }
    const starts = await late.unkept(version, session, signal)
    return normalise(starts.map((start) => grid.whole({ lo: start, hi: start })))
  } finally {
    snapshot.release()
  }
}

interface RecordedExtras {
  readonly marks?: ReturnType<typeof keptMarks>
  readonly unkept: readonly TimeRange[]
}

/** Makes lists of the buckets that are stored and right for the snapshot durable, one after the other. */
function recorder(operations: RefreshOperations, { view, base, inputs, levels, grid }: SeenView) {
  const { schema } = view.version
  const startMicros = operations.nowMicros()
  let changes = (schema.stored?.changes ?? 0) + 1
  const { expired, addedTo, omitted: noted } = schema.stored ?? {}
  // TRUNCATE of the table removes the seals.
  const omitted = sealedRanges(base.version.schema, schema.id).length === 0 ? undefined : noted
  return (stored: readonly TimeRange[], { marks = [], unkept }: RecordedExtras): Promise<unknown> =>
    operations.record(schema.id, {
      ...{ changes: changes++, startMicros, finishMicros: operations.nowMicros() },
      ...(operations.durable ? {} : { process: thisProcess }),
      columns: columnsRead(inputs),
      ranges: longest(stored).map(({ lo, hi }) => [`${lo}`, `${hi}`]),
      parts: base.version.parts.map(({ id, minTs, maxTs }) => [id, `${minTs}`, `${maxTs}`]),
      grid: levels.map((level) => ({ ...level, offsetMicros: `${level.offsetMicros}` })),
      ...(expired === undefined ? {} : { expired }),
      ...(addedTo === undefined ? {} : { addedTo }),
      ...(omitted === undefined ? {} : { omitted }),
      ...(unkept.length === 0 ? {} : { unkept: listedUnkept(unkept) }),
      ...(grid.live?.isMarked === true ? { marks: listedMarks(marks) } : {}),
      ...(inputs.between.length === 0 ? {} : { between: notedBetween(inputs.between, base.version.schema) }),
    })
}

/** How a record lists such ranges. Near ones are joined, if they are many. */
export function listedUnkept(ranges: readonly TimeRange[]): NonNullable<StoredBuckets['unkept']> {
  return joined(ranges, unkeptMax).map(({ lo, hi }) => [`${lo}`, `${hi}`])
}

/** Throws SqlError if the view has become invalid. */
function levelsOf(operations: Pick<RefreshOperations, 'catalog' | 'nowMicros'>, view: TableVersion): ViewBuckets[] {
  const { materialized } = view.schema
  const plan = materialized === undefined ? undefined : queryOf(operations, materialized)
  const levels = plan === undefined ? [] : bucketsOf(plan)
  if (plan === undefined || !isStorable(view, plan) || (levels.length === 0 && materialized?.live === undefined))
    throw new SqlError('the columns of the query have changed: create the view again', 0)
  return levels
}

/** The plan of a view's query. Throws SqlError if it does not bind any more. */
export function queryOf(
  { catalog, nowMicros }: Pick<RefreshOperations, 'catalog' | 'nowMicros'>,
  { sql, baseId }: MaterializedSchema,
): Plan {
  const context = bindContext({ sql, catalog, parameters: [], nowMicros: nowMicros(), user: '', describes: true })
  const { plan } = viewRelation(sql, context)
  const first = context.tables[baseTableOf(plan)]
  const isBase = catalog.tables().some(({ schema }) => schema.id === baseId && isNamed(schema, first, catalog))
  if (!isBase) throw new SqlError('another table has taken the name of the base table', 0)
  return plan
}

/**
 * Whether late rows can be added to sealed buckets of the view; null: not while its query has other states than the
 * view. Throws SqlError if the query does not bind any more.
 */
export function addsLate(
  { catalog, nowMicros }: Pick<RefreshOperations, 'catalog' | 'nowMicros'>,
  version: TableVersion,
): boolean | null {
  const sql = version.schema.materialized?.sql ?? ''
  const refreshes = { viewId: version.schema.id, ranges: [], added: true } as const
  const options = { sql, catalog, parameters: [], nowMicros: nowMicros(), user: '', describes: true, refreshes }
  return addsLateRows(version, bindContext(options))
}

/** Whether the query reads this table or view, and not another one that has taken its name. `first`: of its scans. */
function isNamed(schema: TableSchema, first: TableVersion | undefined, catalog: Catalog): boolean {
  if (schema.materialized !== undefined) return catalog.table(schema.name)?.schema.id === schema.id
  return first?.schema.id === schema.id
}

function longest(ranges: readonly TimeRange[]): readonly TimeRange[] {
  if (ranges.length <= listedMax) return ranges
  const byLength = [...ranges].sort((x, y) => (x.hi - x.lo > y.hi - y.lo ? -1 : 1))
  return normalise(byLength.slice(0, listedMax))
}

async function replaceRows(
  { memory, byId, execute, late }: RefreshOperations,
  signal: StopSignal | null,
  { snapshot, view, base, grid }: SeenView,
  ranges: readonly TimeRange[],
): Promise<void> {
  const { schema, parts } = view.version
  const { id: viewId } = schema
  const name = `"${schema.name}"`
  const session: Session = {
    ...internalSession('system'),
    refreshes: { viewId, ranges, inputs: inputOf(grid, ranges) },
  }
  const present = [...parts.map(({ minTs, maxTs }) => ({ lo: minTs, hi: maxTs })), ...memtableRanges(view, memory)]
  if (intersect(normalise(present), ranges).length > 0) {
    if (grid.live === undefined && isSmall(view.version, base.version, ranges)) {
      const computing = { ...session, snapshot, refreshes: { viewId, ranges } }
      const replaced = await nullAt([ResourceError], late.computed(view.version, computing, signal))
      if (replaced !== null && replaced.input.rows > 0 && (await isReplaced(late, byId(viewId), replaced))) return
    }
    await execute(`delete from ${name}${condition(schema, ranges)}`, session, signal)
  }
  if (byId(viewId) === undefined) throw new SqlError('the view was dropped', 0)
  await execute(`insert into ${name} select * from ${name}`, { ...session, snapshot }, signal)
}

/** Rows of the base that are computed for one transaction. */
const computedMax = 200_000
/** DELETE writes whole parts: rows are replaced one by one if it would write so many times as many. */
const writtenMin = 4

function isSmall({ parts }: TableVersion, base: TableVersion, ranges: readonly TimeRange[]): boolean {
  const touched = parts.filter(({ minTs, maxTs }) => intersect(ranges, [{ lo: minTs, hi: maxTs }]).length > 0)
  const written = touched.reduce((sum, { rows }) => sum + rows, 0)
  if (rowsWithin(touched, ranges) * writtenMin > written) return false
  return rowsWithin(base.parts, ranges) <= computedMax
}

export function condition({ columns, timestampId }: TableVersion['schema'], ranges: readonly TimeRange[]): string {
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
