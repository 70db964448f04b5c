// Creates the refresher of materialized views (engine/views/view-refresher.ts) on the main thread, and provides the
// engine's functions that it calls: snapshots, statements, flushes, the record of stored buckets, and the queries with
// which a refresh merges added rows into stored buckets (engine/views/late-rows.ts) or replaces a few buckets.

import type { Session } from '../api/session.js'
import type { ExecuteOptions, StatementResult, StopSignal } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { ResourceError } from '../base/errors.js'
import type { Catalog } from '../sql/catalog.js'
import type { Query, TimeRange } from '../sql/plan/plan.js'
import { lateActions } from '../sql/plan/view-late.js'
import { planLateRows, planStatement, planStoredPlaces, planUnkept } from '../sql/statements/plan-statement.js'
import { actionColumnId, type TargetColumn } from '../sql/statements/planned.js'
import type { PackedRows, TableReplacement } from '../storage/jobs/messages.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import { quoteIdent } from '../types/identifier.js'
import type { Value } from '../types/value.js'
import type { LateSession } from '../views/late-rows.js'
import { ViewRefresher } from '../views/view-refresher.js'
import type { InsertOperations } from './inserts.js'
import type { LocalEngineOptions } from './local-options.js'
import { allRows, cancelAtAbort, rowsOf } from './plan-helpers.js'
import { fixedColumn, type Held, RowIds, upsertBytesMax } from './upserts.js'

/** Options of a statement without rows that the server itself executes. */
export const internalStatement: Omit<ExecuteOptions, 'session' | 'signal'> = {
  ...allRows,
  encoding: { kind: 'count' },
  parameters: [],
  columns: null,
  timeoutMs: 0,
  explain: false,
}

/** Runs a statement of the server itself. */
export type RefreshExecute = (
  sql: string,
  session: Session,
  signal: StopSignal | null,
  encoding: ExecuteOptions['encoding'],
) => Promise<StatementResult>

export function openRefresher(
  { view, memory, clock, log, durable = false }: LocalEngineOptions,
  catalog: Catalog,
  requests: WriterRequests,
  execute: RefreshExecute,
  inserts: (options: ExecuteOptions) => InsertOperations,
): ViewRefresher {
  const optionsOf = (session: LateSession, signal: StopSignal | null): Held => ({
    ...{ ...internalStatement, session, signal },
  })
  return new ViewRefresher({
    ...{ memory, catalog, log, durable },
    execute: (sql, session, signal) => execute(sql, session, signal, internalStatement.encoding),
    rows: async (sql, session, signal) => {
      const result = await execute(sql, session, signal, { kind: 'values' })
      const rows: (readonly Value[])[] = []
      if (result.kind === 'rows') for await (const some of result.values) rows.push(...some)
      return rows
    },
    late: {
      buckets: (version, session, signal) => {
        const held = optionsOf(session, signal)
        return lateBuckets(version, session.refreshes, held, inserts(held))
      },
      changes: (version, session, signal) => {
        const held = optionsOf(session, signal)
        return lateChanges(version, session.refreshes, held, inserts(held))
      },
      computed: (version, session, signal) => {
        const held = optionsOf(session, signal)
        return computedRows(version, session.refreshes.ranges, held, inserts(held))
      },
      unkept: (version, session, signal) => {
        const held = optionsOf(session, signal)
        const operations = inserts(held)
        const query = planUnkept(version, session.refreshes.ranges, operations.planOptions(held))
        return query === null ? Promise.resolve([]) : bucketStarts(version, query, held, operations)
      },
      replace: (tables) => requests.replace(tables),
    },
    nowMicros: () => clock.nowMicros(),
    monotonicMs: () => clock.monotonicMs(),
    holdSnapshot: () => view.holdSnapshot(),
    byId: (tableId) => view.byId(tableId),
    tables: () => view.tables(),
    transaction: (version) => view.visibleTransaction(version),
    flush: (tableId) => requests.send((requestId) => ({ kind: 'checkpoint', requestId, tableId })),
    change: (change) => requests.change(change),
    record: (tableId, stored) => requests.change({ kind: 'alterTable', tableId, changes: { stored } }),
  })
}

// Late rows ---------------------------------------------------------------------------------------------------------

interface LateChanges {
  /** The changes of the view's rows, for the writer. */
  readonly replaced: TableReplacement
  /** Starts of buckets that have to be computed. They are not to be changed like this. */
  readonly unclear: readonly bigint[]
  /** Starts of buckets of which a state of values is not kept afterwards. */
  readonly unkept: readonly bigint[]
}

/** The buckets of the added rows, which are the base's rows in the snapshot. Null: they cannot be merged. */
async function lateBuckets(
  version: TableVersion,
  refreshes: LateSession['refreshes'],
  options: Held,
  operations: InsertOperations,
): Promise<bigint[] | null> {
  const planned = planLateRows(version, refreshes, operations.planOptions(options))
  const query = planned?.buckets() ?? null
  return query === null ? null : bucketStarts(version, query, options, operations)
}

/** Runs a query for starts of buckets. */
async function bucketStarts(
  version: TableVersion,
  query: Query,
  options: Held,
  operations: InsertOperations,
): Promise<bigint[]> {
  const { timestampId, columns } = version.schema
  const time = columns.find(({ id }) => id === timestampId)
  assert(time !== undefined, 'B4: a view has a designated timestamp')
  const target: TargetColumn = { columnId: timestampId, name: time.name, type: time.type }
  const starts: bigint[] = []
  for await (const packed of packedRows(query, [target], -1, options, operations))
    starts.push(...timesOf(packed, timestampId))
  return starts.sort((x, y) => (x < y ? -1 : 1))
}

/** What merging the added rows changes in these buckets. */
async function lateChanges(
  version: TableVersion,
  refreshes: LateSession['refreshes'],
  options: Held,
  operations: InsertOperations,
): Promise<LateChanges | null> {
  const { id: tableId, timestampId } = version.schema
  const planned = planLateRows(version, refreshes, operations.planOptions(options))
  const target = options.session.snapshot.snapshotOf(tableId)
  if (planned === null || target === undefined) return null
  const { query, columns } = planned.changes
  const places = new RowIds(target)
  const packed: PackedRows[] = []
  const [unclear, unkept] = [new Set<bigint>(), new Set<bigint>()]
  let rows = 0
  for await (const batch of packedRows(query, columns, timestampId, options, operations)) {
    const actions = fixedColumn(batch.columns, actionColumnId)
    const times = timesOf(batch, timestampId)
    for (const [row, time] of times.entries()) {
      const action = actions?.getInt32(row * 4, true)
      if (action === lateActions.compute) unclear.add(time)
      if (action === lateActions.unkept) unkept.add(time)
    }
    places.add(batch, rows)
    rows += batch.rows
    packed.push({ ...batch, columns: batch.columns.filter(({ columnId }) => columnId >= 0) })
  }
  const input = { ...rowsOf(tableId, packed), refreshes: true } as const
  return { replaced: { input, removal: places.removal('MERGE') }, unclear: [...unclear], unkept: [...unkept] }
}

/** Replaces the view's rows in the ranges of the refresh by those that its query has in the snapshot. */
async function computedRows(
  version: TableVersion,
  ranges: readonly TimeRange[],
  options: Held,
  operations: InsertOperations,
): Promise<TableReplacement> {
  const { id: tableId, timestampId, name } = version.schema
  const quoted = quoteIdent(name)
  const target = options.session.snapshot.snapshotOf(tableId)
  const planOptions = operations.planOptions(options)
  const planned = planStatement(`insert into ${quoted} select * from ${quoted}`, planOptions)
  assert(planned.kind === 'insertSelect', 'B4: a refresh inserts the rows of a query')
  assert(target !== undefined, 'Q1: the snapshot of a refresh has the view')
  const stored = planStoredPlaces(version, ranges, planOptions)
  const places = new RowIds(target)
  for await (const batch of packedRows(stored.query, stored.columns, -1, options, operations)) places.add(batch, 0)
  const packed: PackedRows[] = []
  for await (const batch of packedRows(planned.query, planned.columns, timestampId, options, operations))
    packed.push(batch)
  return { input: { ...rowsOf(tableId, packed), refreshes: true }, removal: places.removal('MERGE') }
}

async function* packedRows(
  query: Query,
  columns: readonly TargetColumn[],
  timestampId: number,
  options: ExecuteOptions,
  operations: InsertOperations,
): AsyncGenerator<PackedRows> {
  const encoding = { kind: 'packed', columns, timestampId, batchRows: 65_536 } as const
  const running = operations.run('', query, { ...options, ...allRows, encoding })
  cancelAtAbort(options.signal, running)
  let all = 0
  for await (const { packed, bytes } of running.batches) {
    all += bytes
    if (all > upsertBytesMax)
      throw new ResourceError(`late rows change too much for one transaction [maxBytes=${upsertBytesMax}]`)
    yield packed
  }
}

function timesOf({ rows, columns }: PackedRows, timestampId: number): bigint[] {
  const times = fixedColumn(columns, timestampId)
  if (times === null) return []
  return Array.from({ length: rows }, (_, row) => times.getBigInt64(row * 8, true))
}
