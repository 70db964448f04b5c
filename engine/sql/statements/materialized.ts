// Plans CREATE, ALTER and REFRESH of materialized and live views. Such a view is a table whose schema contains the
// view's query, which the files in sql/view-queries check. Also plans the queries of a refresh that merges added rows
// of the base table into stored buckets (engine/views/late-rows.ts): the buckets that contain added rows, and the rows
// of the view that change.

import type { ViewRefresh } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import { tableColumnsMax } from '../../base/limits.js'
import type { SchemaChange } from '../../storage/jobs/messages.js'
import { lifeOf } from '../../storage/schema/age.js'
import {
  type LiveSchema,
  liveLengthMicros,
  type MaterializedSchema,
  type RefreshStrategy,
} from '../../storage/schema/materialized.js'
import {
  type ColumnSchema,
  storedColumns,
  type TableSchema,
  type TableVersion,
  viewKind,
} from '../../storage/schema/schema.js'
import { dataType } from '../../types/column-types.js'
import { parseTimestamp } from '../../types/timestamp.js'
import { ticksPerMicro } from '../../types/timestamp-calendar.js'
import { intervalTicks, type SampleInterval } from '../../types/timestamp-floor.js'
import { timeZone } from '../../types/timestamp-zone.js'
import type * as ast from '../ast/ast.js'
import { tableRelation, viewRelation } from '../bind/from.js'
import { liveOf, materializedOf } from '../bind/show.js'
import { nativeDialect } from '../dialect.js'
import { partitionUnitOf } from '../parse/table-options.js'
import { type Expression, type Plan, type PlanColumn, type Query, rowIdColumn, type TimeRange } from '../plan/plan.js'
import { lateRows } from '../plan/view-late.js'
import type { BindContext } from '../scope/bind-context.js'
import { addedRows } from '../scope/stored-view.js'
import { scalarCall } from '../typing/make-call.js'
import { constantOf } from '../typing/types.js'
import { checkedLiveQuery } from '../view-queries/live-query.js'
import { checkedQuery } from '../view-queries/materialized-query.js'
import { changesOf as alterationsOf } from './alter-table.js'
import { checkTableName, planCreateAs } from './create-table.js'
import { actionColumnId, type PlannedStatement, type TargetColumn, type UpsertQuery, upsertActions } from './planned.js'
import { queryOf } from './query-statement.js'
import { targetOf } from './target.js'

/** The materialized views that read the table, and those that read these. */
export function viewsOver(tableId: number, { catalog }: Pick<BindContext, 'catalog'>): TableSchema[] {
  const direct = catalog
    .tables()
    .map(({ schema }) => schema)
    .filter(({ materialized }) => materialized?.baseId === tableId)
  return direct.flatMap((schema) => [...viewsOver(schema.id, { catalog }), schema])
}

/** Names the kinds of these views, for errors. */
export function kindsOf(views: readonly TableSchema[]): string {
  const kinds = new Set(views.flatMap(({ materialized }) => (materialized === undefined ? [] : viewKind(materialized))))
  return kinds.size > 1 ? 'materialized and live views' : `${[...kinds].join('')}s`
}

export function planCreateMaterialized(written: ast.CreateMaterialized, session: BindContext): PlannedStatement {
  const context: BindContext = { ...session, dialect: nativeDialect }
  const { view, ifNotExists, timestamp } = written
  const tag = 'CREATE MATERIALIZED VIEW'
  checkTableName(view.name, view.position, 'Could not create materialized view, ')
  const known = context.catalog.table(view.name)
  if (known?.schema.materialized !== undefined && known.schema.materialized.live === undefined) {
    if (ifNotExists) return { kind: 'change', changes: [], tag }
    throw new SqlError('materialized view already exists', view.position)
  }
  if (known !== undefined || context.catalog.view(view.name) !== undefined)
    throw new SqlError('table or view with the requested name already exists', view.position)
  const { base, sample, query, queryText, states, stateRule } = checkedQuery(written, context)
  const statement = { ...written, query, queryText }
  const refresh = refreshOf(statement.refresh)
  const unit = statement.partitionBy?.unit ?? defaultPartition(sample.interval)
  const made = planCreateAs(asTable(statement, unit, statement.ttl), sourceOf(statement), context)
  const { schema } = made.change
  const name = schema.columns[schema.timestampId]?.name
  if (timestamp !== null && name?.toLowerCase() !== timestamp.name.toLowerCase())
    throw new SqlError(`TIMESTAMP must name the column of the bucket [column=${name ?? ''}]`, timestamp.position)
  const materialized: MaterializedSchema = {
    sql: statement.queryText,
    baseId: base.id,
    baseName: base.name,
    ...(statement.base === null ? {} : { withBase: true }),
    ...(stateRule === undefined ? {} : { stateRule }),
    refresh,
    limit: null,
  }
  const columns = [...schema.columns, ...stateColumns(states, schema.columns.length)]
  const whole = { ...schema, columns, materialized, dedupKeys: [] }
  const notes = shorterLife(base, sample.interval)
  return { kind: 'change', changes: [{ kind: 'createTable', schema: whole, ifNotExists }], notes, tag }
}

/** None if the table would have too many columns. */
function stateColumns(states: readonly PlanColumn[], first: number): ColumnSchema[] {
  if (first + states.length > tableColumnsMax) return []
  return states.map(({ name, type }, index) => ({ id: first + index, name, type, dropped: false, state: true }))
}

const hoursOf = { HOUR: 1, DAY: 24, WEEK: 168, MONTH: 28 * 24, YEAR: 365 * 24 } as const

/** A note for the client if rows of the table expire before their bucket is over. */
function shorterLife(base: TableSchema, interval: SampleInterval): string[] {
  const life = lifeOf(base)
  if (life === null) return []
  const lifeMicros = BigInt(life.value * hoursOf[life.unit]) * 60n * microsPerMinute
  const [bucketMicros, more] = [intervalTicks(interval, 'TIMESTAMP'), { M: 31n * 24n, y: 366n * 24n }]
  const longest = interval.unit === 'M' || interval.unit === 'y' ? more[interval.unit] * BigInt(interval.count) : null
  const micros = bucketMicros ?? (longest ?? 0n) * 60n * microsPerMinute
  if (micros <= lifeMicros) return []
  const text = `${interval.count}${interval.unit}`
  return [
    `rows of the table expire later than its TTL says: when the bucket of the view that has them is over [table=${base.name}, bucket=${text}]`,
  ]
}

type Stored = Pick<ast.CreateMaterialized, 'position' | 'view' | 'ifNotExists' | 'partitionBy' | 'query'>

/** CREATE TABLE .. AS the query, from which the view's table takes its columns. */
function asTable(statement: Stored, unit: ast.PartitionUnit, ttl: ast.CreateTable['ttl']): ast.CreateTable {
  const { position, view, ifNotExists, partitionBy } = statement
  return {
    ...{ kind: 'create table', position, ifNotExists, table: view, source: sourceOf(statement), timestamp: null },
    partitionBy: partitionBy ?? { position, unit },
    ...{
      wal: null,
      ttl,
      policy: null,
      lake: null,
      dedupKeys: null,
      dedupSkips: false,
      options: [],
      indexes: [],
      volume: null,
    },
  }
}

function sourceOf({ query }: Pick<Stored, 'query'>): ast.CreateAs {
  return { kind: 'as', query, casts: [], batch: null }
}

const microsPerMinute = 60_000_000n

function defaultPartition(interval: SampleInterval): ast.PartitionUnit {
  const micros = intervalTicks(interval, 'TIMESTAMP')
  if (micros === null || micros > microsPerMinute * 60n) return 'year'
  return micros > microsPerMinute ? 'month' : 'day'
}

// When buckets are stored -------------------------------------------------------------------------------------------

function refreshOf({ kind, deferred, every, start, timeZone: zone, period }: ast.RefreshClause): RefreshStrategy {
  if (every !== null && every.unit === 's')
    throw new SqlError('the shortest interval of EVERY is 1m: REFRESH IMMEDIATE refreshes sooner', every.position)
  return {
    ...{ kind, deferred, every: every === null ? null : { count: every.count, unit: every.unit } },
    startMicros: start === null ? null : Number(timestampOf(start, 'TIMESTAMP')),
    timeZone: zoneOf(zone),
    period:
      period === null
        ? null
        : { length: lengthOf(period.length), timeZone: zoneOf(period.timeZone), delay: lengthOf(period.delay) },
  }
}

function lengthOf(length: ast.TimeLength | null): RefreshStrategy['every'] {
  return length === null ? null : { count: length.count, unit: length.unit }
}

function zoneOf(written: { readonly position: number; readonly name: string } | null): string | null {
  if (written === null) return null
  if (timeZone(written.name) === null) throw new SqlError(`invalid timezone: ${written.name}`, written.position)
  return written.name
}

function timestampOf(
  { name, position }: { readonly position: number; readonly name: string },
  unit: 'TIMESTAMP' | 'TIMESTAMP_NS',
): bigint {
  const value = parseTimestamp(name, unit)
  if (value === null) throw new SqlError(`invalid timestamp value [${name}]`, position)
  return value
}

const limitUnits = { hour: 'HOUR', day: 'DAY', week: 'WEEK', month: 'MONTH', year: 'YEAR' } as const

// ALTER and REFRESH -------------------------------------------------------------------------------------------------

export function planAlterMaterialized(
  { view, action, live = false }: ast.AlterMaterialized,
  context: BindContext,
): PlannedStatement {
  const version = live ? liveOf(view, context) : materializedOf(view, context)
  const { id: tableId, materialized } = version.schema
  const changed = (changes: readonly SchemaChange[]): PlannedStatement => ({
    ...{ kind: 'change', changes, tag: live ? 'ALTER LIVE VIEW' : 'ALTER MATERIALIZED VIEW' },
  })
  if (materialized === undefined) return changed([])
  const alter = (members: Partial<MaterializedSchema>): PlannedStatement =>
    changed([{ kind: 'alterTable', tableId, changes: { materialized: { ...materialized, ...members } } }])
  switch (action.kind) {
    case 'set refresh':
      return alter({ refresh: refreshOf(action.refresh) })
    case 'set refresh limit': {
      const { count, unit } = action.limit
      return alter({ limit: count === 0 ? null : { value: count, unit: limitUnits[unit] } })
    }
    case 'table action': {
      const { kind, position } = action.action
      if (live && kind !== 'resume wal') throw new SqlError("'resume wal' expected", position)
      if (kind !== 'add index' && kind !== 'drop index' && kind !== 'resume wal' && kind !== 'set ttl')
        throw new SqlError(
          "'set refresh', 'set refresh limit', 'set ttl', 'alter column' or 'resume wal' expected",
          position,
        )
      return changed(alterationsOf(action.action, version, context, view.position))
    }
  }
}

export function planRefresh(
  { view, mode, range, live = false }: ast.RefreshMaterialized,
  context: BindContext,
): PlannedStatement {
  const { schema } = live ? liveOf(view, context) : materializedOf(view, context)
  const unit = schema.columns[schema.timestampId]?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const planned = { kind: 'refresh', viewId: schema.id, mode } as const
  const tag = live ? 'REFRESH LIVE VIEW' : 'REFRESH MATERIALIZED VIEW'
  if (range === null) return { ...planned, tag, range: null }
  const [lo, end] = [timestampOf(range.from, unit), timestampOf(range.to, unit)]
  if (lo >= end) throw new SqlError('FROM must be before TO', range.to.position)
  return { ...planned, tag, range: { lo, hi: end - 1n } }
}

// CREATE LIVE VIEW --------------------------------------------------------------------------------------------------

export function planCreateLive(statement: ast.CreateLive, session: BindContext): PlannedStatement {
  const context: BindContext = { ...session, dialect: nativeDialect }
  const { view, ifNotExists, flushEvery, inMemory } = statement
  const tag = 'CREATE LIVE VIEW'
  checkTableName(view.name, view.position, 'Could not create live view, ')
  checkLengths(flushEvery, inMemory)
  const known = context.catalog.table(view.name)
  if (known?.schema.materialized?.live !== undefined) {
    if (ifNotExists) return { kind: 'change', changes: [], tag }
    throw new SqlError('live view already exists', view.position)
  }
  if (known !== undefined || context.catalog.view(view.name) !== undefined)
    throw new SqlError('table or view with the requested name already exists', view.position)
  const { base, frames, source } = checkedLiveQuery(statement, context)
  const unit = statement.partitionBy?.unit ?? partitionUnitOf(base.partitionBy.toLowerCase()) ?? 'none'
  const { schema } = planCreateAs(asTable(statement, unit, null), sourceOf(statement), context).change
  const live: LiveSchema = {
    ...{ flushEvery: flushEvery.text, inMemory: inMemory?.text ?? null },
    ...{ start: startOf(statement.start, base, context), source, frames },
  }
  const materialized: MaterializedSchema = {
    ...{ sql: statement.queryText, baseId: base.id, baseName: base.name, live, limit: null },
    refresh: { kind: 'immediate', deferred: false, every: null, startMicros: null, timeZone: null, period: null },
  }
  const whole = { ...schema, materialized, dedupKeys: [] }
  return { kind: 'change', changes: [{ kind: 'createTable', schema: whole, ifNotExists }], tag }
}

const shortestMicros = 100_000
const longestMicros = 3_600_000_000

function checkLengths(flush: ast.LiveLength, memory: ast.LiveLength | null): void {
  const flushMicros = liveLengthMicros(flush.text)
  if (flushMicros < shortestMicros) throw new SqlError('live view FLUSH EVERY must be at least 100ms', flush.position)
  if (flushMicros > longestMicros) throw new SqlError('live view FLUSH EVERY must be at most 60m', flush.position)
  if (memory === null) return
  const memoryMicros = liveLengthMicros(memory.text)
  if (memoryMicros < flushMicros)
    throw new SqlError('live view IN MEMORY must be at least FLUSH EVERY', memory.position)
  if (memoryMicros > longestMicros) throw new SqlError('live view IN MEMORY must be at most 60m', memory.position)
}

/** In the unit of the base. */
function startOf({ kind, timestamp }: ast.LiveStart, base: TableSchema, context: BindContext): string | null {
  const type = base.columns.find(({ id }) => id === base.timestampId)?.type.name
  const unit = type === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  if (kind === 'now') return `${BigInt(context.evaluation.nowMicros) * ticksPerMicro(unit)}`
  return timestamp === null ? null : `${timestampOf(timestamp, unit)}`
}

// Late rows ---------------------------------------------------------------------------------------------------------

interface LateQueries {
  /** A query for the start of each bucket that has added rows. */
  buckets(): Query | null
  /** The changes of the view's rows, with an action of view-late.ts. */
  readonly changes: UpsertQuery
}

/** Null if added rows cannot be merged. Throws SqlError if the view's query does not bind. */
export function lateQueries(
  version: TableVersion,
  { ranges, sealed }: Pick<ViewRefresh, 'ranges' | 'sealed'>,
  context: () => BindContext,
): LateQueries | null {
  const changes = changesOf(version, ranges, sealed === true, context())
  return changes === null ? null : { changes, buckets: () => bucketsOf(version, ranges, context()) }
}

/**
 * Whether late rows can be added to sealed buckets of the view; null: not while its query has other states than the
 * view. Throws SqlError if the query does not bind.
 */
export function addsLateRows(version: TableVersion, context: BindContext): boolean | null {
  const bound = addedOf(version, [], context)
  return bound === undefined ? null : changesIn(version, bound, [], true, context) !== null
}

function bucketsOf(version: TableVersion, ranges: readonly TimeRange[], context: BindContext): Query | null {
  const added = addedOf(version, ranges, context)?.added
  const time = storedColumns(version.schema).findIndex(({ id }) => id === version.schema.timestampId)
  const column = added?.columns[time]
  if (added === undefined || column === undefined) return null
  const key: Expression = { kind: 'column', index: time, type: column.type, position: 0 }
  return queryOf({ kind: 'aggregate', columns: [column], input: added, keys: [key], aggregates: [] }, -1, context)
}

/** The view's query without states, and the same with states over the added rows in the ranges. */
interface BoundQuery {
  readonly own: Plan
  readonly added: Plan
}

function addedOf(version: TableVersion, ranges: readonly TimeRange[], context: BindContext): BoundQuery | undefined {
  const { materialized } = version.schema
  if (materialized === undefined) return undefined
  const own = viewRelation(materialized.sql, context).plan
  const added = addedRows(version, own, materialized.baseId, ranges, context)
  return added === undefined ? undefined : { own, added }
}

function changesOf(
  version: TableVersion,
  ranges: readonly TimeRange[],
  isSealed: boolean,
  context: BindContext,
): UpsertQuery | null {
  const bound = addedOf(version, ranges, context)
  return bound === undefined ? null : changesIn(version, bound, ranges, isSealed, context)
}

function changesIn(
  version: TableVersion,
  { own, added }: BoundQuery,
  ranges: readonly TimeRange[],
  isSealed: boolean,
  context: BindContext,
): UpsertQuery | null {
  const { schema } = version
  const columns = storedColumns(schema)
  const stored = placedRows(version, columns, ranges, context)
  const call = (name: string, args: readonly Expression[]): Expression => scalarCall(name, args, 0, context)
  const plan = lateRows({ own, added, stored, isSealed, call })
  if (plan === undefined) return null
  const targets = [...changeColumns, ...columns.map(targetOf)]
  return { query: queryOf(plan, -1, context), columns: targets, schemaVersion: schema.version }
}

const changeColumns: readonly TargetColumn[] = [
  { columnId: actionColumnId, name: 'action', type: dataType('INT') },
  { columnId: rowIdColumn, name: 'place', type: dataType('LONG') },
]

/** The rows of the table in these ranges, with their places as the first column. */
function placedRows(
  version: TableVersion,
  columns: readonly ColumnSchema[],
  ranges: readonly TimeRange[],
  context: BindContext,
): Plan {
  const { plan: scan } = tableRelation(version, version.schema.name, context, columns)
  if (scan.kind !== 'scan') throw new RangeError('a table is scanned')
  return {
    ...{ ...scan, ranges, order: 'any' },
    columns: [{ name: 'place', type: dataType('LONG') }, ...scan.columns],
    columnIds: [rowIdColumn, ...scan.columnIds],
  }
}

/** The places of the view's rows in these ranges, as an upsert that replaces them has them. */
export function storedPlaces(
  version: TableVersion,
  ranges: readonly TimeRange[],
  context: BindContext,
): Pick<UpsertQuery, 'query' | 'columns'> {
  const input = placedRows(version, [], ranges, context)
  const action = constantOf(upsertActions.update, dataType('INT'), 0)
  const place: Expression = { kind: 'column', index: 0, type: dataType('LONG'), position: 0 }
  const columns = changeColumns.map(({ name, type }) => ({ name, type }))
  const plan: Plan = { kind: 'project', columns, input, expressions: [action, place] }
  return { query: queryOf(plan, -1, context), columns: changeColumns }
}

/** A query for the starts of buckets in these ranges that lack a state of values. Null: the view keeps none. */
export function unkeptBuckets(version: TableVersion, ranges: readonly TimeRange[], context: BindContext): Query | null {
  const { materialized, timestampId } = version.schema
  const columns = storedColumns(version.schema)
  const states = columns.filter(({ type }) => type.name === 'BINARY')
  const time = columns.find(({ id }) => id === timestampId)
  if (materialized?.stateRule !== 4 || states.length === 0 || time === undefined) return null
  const input = placedRows(version, [time, ...states], ranges, context)
  const columnAt = (index: number): Expression => ({
    ...{ kind: 'column', index, type: input.columns[index]?.type ?? time.type, position: 0 },
  })
  const predicate = states
    .map((_, index) => scalarCall('length', [columnAt(index + 2)], 0, context))
    .map((bytes) => scalarCall('<', [bytes, constantOf(0n, dataType('LONG'), 0)], 0, context))
    .reduce((one, other) => scalarCall('or', [one, other], 0, context))
  const found: Plan = { kind: 'filter', columns: input.columns, input, predicate }
  const key = columnAt(1)
  return queryOf(
    { kind: 'aggregate', columns: [{ name: time.name, type: key.type }], input: found, keys: [key], aggregates: [] },
    -1,
    context,
  )
}
