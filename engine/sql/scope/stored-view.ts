// Makes the relation of a materialized or live view in FROM: a union of the view's stored rows and of the view's query
// over the base table. When the statement has its snapshot of both tables, engine/views/view-sides.ts decides which
// time buckets come from which side, so the result is never stale. If the view's query reads another materialized view,
// it reads a union of this kind in the place of that view. If the query joins tables, only the rows of the first table,
// the base, are restricted to time buckets.
//
// Rows of the base that came after a bucket was sealed (it has lost other rows of the base) are a third part of the
// union: the query over these rows, combined with the stored rows of such buckets (plan/view-late.ts).
//
// There are exceptions. If only stored rows are requested (setting query.view.read, or a hint), the view's query is not
// computed, and the result may be stale. Transactions with uncommitted changes, and statements such as UPDATE, compute
// the query and read stored rows only for sealed buckets (the base has lost rows of them). A refresh computes the query
// over given time ranges.

import { addsToSealed, keptRange, sealedRanges } from '../../storage/schema/materialized.js'
import {
  type ColumnSchema,
  liveColumns,
  resultTypeOf,
  storedColumns,
  type TableSchema,
  type TableVersion,
} from '../../storage/schema/schema.js'
import { dataType, sameType } from '../../types/column-types.js'
import { allOfTime, complement, intersect } from '../../types/interval.js'
import { nativeDialect } from '../dialect.js'
import type { Expression, Plan, TimeRange, ViewBuckets, ViewSide } from '../plan/plan.js'
import { lateRead } from '../plan/view-late.js'
import { withStates } from '../plan/view-states.js'
import { inputsOf, mapInputs } from '../plan/walk-plan.js'
import { castTo } from '../typing/types.js'
import { type BindContext, tableIndex } from './bind-context.js'
import { rowsOfSide, rowsWithin } from './live-rows.js'
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

/** The buckets of a view's query, and those of the views below it. */
export function bucketsOf(plan: Plan): ViewBuckets[] {
  const below = inputsOfBase(plan).flatMap(bucketsOf)
  if (plan.kind !== 'sample' || plan.align.kind !== 'calendar') return below
  const { interval, align } = plan
  return [{ interval, zone: align.zone, offsetMicros: align.offsetMicros }, ...below]
}

/** The tables that a view reads, by way of other views, as indexes of the statement's tables; the base is the last. */
export interface ViewChain {
  readonly tables: readonly number[]
  readonly base: number
}

/** The inputs with rows of the base; the other side of a join has rows that are joined with them. */
function inputsOfBase(plan: Plan): readonly Plan[] {
  return plan.kind === 'join' ? [plan.left] : inputsOf(plan)
}

/** The table that the scan of a view's base reads; -1 for none. */
export function baseTableOf(plan: Plan): number {
  if (plan.kind === 'scan') return plan.table
  const [first] = inputsOf(plan)
  return first === undefined ? -1 : baseTableOf(first)
}

/**
 * The table under a view with this query and the views between them. The base is -1 if another table has taken its
 * name.
 */
export function chainOf(baseId: number, query: Plan, context: BindContext): ViewChain {
  const between: number[] = []
  let id = baseId
  for (;;) {
    const version = context.catalog.tables().find(({ schema }) => schema.id === id)
    if (version?.schema.materialized === undefined) break
    between.push(tableIndex(context, version))
    id = version.schema.materialized.baseId
  }
  const base = context.tables.findIndex(({ schema }) => schema.id === id)
  // The base may be there several times: views between may read its late rows.
  const again = context.tables.flatMap(({ schema }, index) => (schema.id === id ? [index] : []))
  const tables = [...between, ...(again.length === 0 ? [base] : again)]
  return { tables, base: tables.includes(baseTableOf(query)) ? base : -1 }
}

/** The relation of the query, whose scans of the base read these ranges only. */
function withinRanges(computed: Relation, chain: ViewChain, ranges: readonly TimeRange[]): Relation {
  return { ...computed, plan: mapScans(computed.plan, chain.tables, (scan) => cut(scan, ranges)) }
}

function cut(scan: Scan, ranges: readonly TimeRange[]): Scan {
  return { ...scan, ranges: intersect(scan.ranges ?? [allOfTime], ranges) }
}

/** The view's query with its states over these ranges of its base; undefined if it has others than the view. */
export function addedRows(
  version: TableVersion,
  query: Plan,
  baseId: number,
  ranges: readonly TimeRange[],
  context: BindContext,
): Plan | undefined {
  const plan = storedQuery(version, query)
  const chain = chainOf(baseId, query, context)
  if (plan === undefined || chain.base < 0) return undefined
  return mapScans(plan, chain.tables, (scan) => cut(scan, ranges))
}

/** What binds the parts of a view that late rows of sealed buckets need. */
export interface LateParts {
  query(context: BindContext): Plan
  /** A scan of the view's table. */
  rows(columns: readonly ColumnSchema[]): Plan
  call(name: string, args: readonly Expression[]): Expression
}

type SideOf = (side: ViewSide['side']) => ViewSide

const sided = (side: ViewSide) => (scan: Scan) => restricted(scan, side)

/** Both sides of the view, and late rows, in the order of its timestamp. */
function bothSides(
  stored: Relation,
  computed: Relation,
  version: TableVersion,
  chain: ViewChain,
  alias: string,
  context: BindContext,
  parts: LateParts,
): Relation {
  const view = tableIndex(context, version)
  const buckets = bucketsOf(computed.plan)
  const plainSide: SideOf = (side) => ({ side, view, base: chain.base, buckets })
  const found = lateSide(version, chain, plainSide('late'), context, parts)
  const sideOf: SideOf = found === undefined ? plainSide : (side) => ({ ...plainSide(side), late: found.index })
  const left = mapScans(stored.plan, [view], sided(sideOf('stored')))
  const right = mapScans(computed.plan, chain.tables, sided(sideOf('computed')))
  if (found === undefined) return united({ ...stored, plan: left }, right, alias)
  const { columns } = right
  const both: Plan = { kind: 'set', columns, operation: 'union', all: true, left: right, right: found.plan }
  return united({ ...stored, plan: left }, both, alias)
}

/**
 * The stored rows of sealed buckets with the late rows of the base, if there may be any and they can be combined.
 * `index`: that of the base in the statement's tables of which only the late rows are read.
 */
function lateSide(
  version: TableVersion,
  chain: ViewChain,
  plainSide: ViewSide,
  context: BindContext,
  parts: LateParts,
): { readonly plan: Plan; readonly index: number } | undefined {
  const { id } = version.schema
  const base = context.tables[chain.base]
  if (base === undefined || !addsToSealed(base.schema, id) || base.schema.dedupKeys.length > 0) return undefined
  const own = parts.query(addedContext(id, context))
  const added = storedQuery(version, own)
  if (added === undefined) return undefined
  const index = context.tables.length
  const side: ViewSide = { ...plainSide, late: index }
  const rows = mapScans(parts.rows(storedColumns(version.schema)), allTables, sided(side))
  const place: Expression = { kind: 'constant', value: 0n, type: dataType('LONG'), position: 0 }
  const plan = lateRead({
    own,
    added: mapScans(added, chain.tables, (scan) => restricted({ ...scan, table: index }, side)),
    stored: {
      ...{ kind: 'project', columns: [{ name: 'place', type: place.type }, ...rows.columns], input: rows },
      expressions: [
        place,
        ...rows.columns.map(({ type }, at): Expression => ({ kind: 'column', index: at, type, position: 0 })),
      ],
    },
    call: parts.call,
  })
  if (plan === undefined) return undefined
  context.tables.push(base)
  return { plan, index }
}

/** Views are bound as their queries, as for a refresh that adds rows. */
function addedContext(viewId: number, context: BindContext): BindContext {
  return { ...context, dialect: nativeDialect, refreshes: { viewId, ranges: [], added: true } }
}

/**
 * The rows of the view that are stored, whatever has changed since; its query need not be valid. `stored`: of the view's
 * table.
 */
export function storedAlone(version: TableVersion, stored: Relation, context: BindContext): Relation {
  const view = tableIndex(context, version)
  const side: ViewSide = { side: 'alone', view, base: bottomOf(version, context), buckets: [] }
  return { ...stored, plan: mapScans(stored.plan, [view], (scan) => restricted(scan, side)) }
}

/** The table below all views that the view reads, which lists sealed buckets; -1 if it is missing. */
function bottomOf({ schema: { materialized } }: TableVersion, context: BindContext): number {
  const below = context.catalog.tables().find(({ schema }) => schema.id === materialized?.baseId)
  if (below === undefined) return -1
  return below.schema.materialized === undefined ? tableIndex(context, below) : bottomOf(below, context)
}

/** How the statement reads a view: its stored buckets where it may use them, else its query. `stored`: its table. */
export function readView(
  computed: Relation,
  stored: () => Relation,
  version: TableVersion,
  chain: ViewChain,
  alias: string,
  context: BindContext,
  parts: LateParts,
): Relation {
  if (version.schema.materialized?.live !== undefined) return readLive(computed, stored, version, chain, alias, context)
  const { refreshes, readsStored, pending, own } = context
  const { schema } = version
  const base = context.tables[chain.base]?.schema
  if (refreshes?.added === true) return computed
  if (refreshes?.viewId === schema.id)
    return withinRanges(withStoredStates(computed, version, alias), chain, refreshes.ranges)
  if (base === undefined || !hasNamesOf(version, computed.plan) || schema.stored === undefined) return computed
  const queried = (): Relation => asQueried(stored(), computed.plan)
  const isPlain = readsStored && pending.length === 0 && own === null
  if (!isPlain) return withSealed(queried, computed, schema, base, chain, alias)
  return bothSides(queried(), computed, version, chain, alias, context, parts)
}

/** The same for a live view. */
function readLive(
  computed: Relation,
  stored: () => Relation,
  version: TableVersion,
  chain: ViewChain,
  alias: string,
  context: BindContext,
): Relation {
  const { refreshes, readsStored, pending, own } = context
  const { schema } = version
  const { plan, timestampIndex } = computed
  if (refreshes?.viewId === schema.id) {
    const { ranges, inputs = ranges } = refreshes
    return { ...computed, plan: rowsWithin(withinRanges(computed, chain, inputs).plan, timestampIndex, ranges) }
  }
  const base = context.tables[chain.base]?.schema
  if (base === undefined || !hasNamesOf(version, plan) || schema.stored === undefined) return computed
  const queried = asQueried(stored(), plan)
  if (!readsStored || pending.length > 0 || own !== null) {
    const sealed = sealedRanges(base, schema.id)
    if (sealed.length === 0) return computed
    const left = mapScans(queried.plan, allTables, (scan) => ({ ...scan, ranges: sealed }))
    return united({ ...queried, plan: left }, rowsWithin(plan, timestampIndex, complement(sealed)), alias)
  }
  const view = tableIndex(context, version)
  const side = { view, base: chain.base, buckets: bucketsOf(plan), live: true } as const
  const left = mapScans(queried.plan, [view], (scan) => restricted(scan, { ...side, side: 'stored' }))
  const input = mapScans(plan, chain.tables, (scan) => restricted(scan, { ...side, side: 'input' }))
  const right = rowsOfSide(input, timestampIndex, { ...side, side: 'computed' })
  return united({ ...queried, plan: left }, right, alias)
}

/** The view's query, and the buckets that have outlived the rows of the base. Other stored buckets are not read. */
function withSealed(
  stored: () => Relation,
  computed: Relation,
  view: TableSchema,
  base: TableSchema,
  chain: ViewChain,
  alias: string,
): Relation {
  const [sealed, kept] = [sealedRanges(base, view.id), keptRange(view)]
  if (sealed.length === 0 && kept.lo === allOfTime.lo) return computed
  const right = withinRanges(computed, chain, intersect(complement(sealed), [kept])).plan
  if (sealed.length === 0) return { ...computed, plan: right }
  const ranges = intersect(sealed, [kept])
  const whole = stored()
  const left = mapScans(whole.plan, allTables, (scan) => ({ ...scan, ranges }))
  return united({ ...whole, plan: left }, right, alias)
}

function united(stored: Relation, right: Plan, alias: string): Relation {
  const { plan: left, timestampIndex } = stored
  const { columns } = left
  const input: Plan = { kind: 'set', columns, operation: 'union', all: true, left, right }
  const keys = [{ index: timestampIndex, descending: false, nullsFirst: true }]
  const plan: Plan = { kind: 'sort', columns, input, keys, limit: null, implied: true }
  return { plan, columns: scopeOf(plan, alias), timestampIndex, order: 'ascending' }
}

/** With ranges, planner rules do not take the scan for one of a whole table. */
function restricted(scan: Scan, viewSide: ViewSide): Scan {
  return { ...scan, ranges: scan.ranges ?? [allOfTime], viewSides: [...(scan.viewSides ?? []), viewSide] }
}

const allTables = null

function mapScans(plan: Plan, tables: readonly number[] | null, map: (scan: Scan) => Scan): Plan {
  if (plan.kind === 'scan') return tables === null || tables.includes(plan.table) ? map(plan) : plan
  if (plan.kind === 'join') return { ...plan, left: mapScans(plan.left, tables, map) }
  return mapInputs(plan, (input) => mapScans(input, tables, map))
}

/** The view's query with the states that its table has; undefined if it has other columns or states now. */
export function storedQuery({ schema }: TableVersion, query: Plan): Plan | undefined {
  // Views of earlier versions have no states.
  const plan = schema.columns.some(({ state }) => state === true)
    ? withStates(query, schema.materialized?.stateRule ?? 1)
    : query
  return isOfColumns(storedColumns(schema), plan) ? plan : undefined
}

/** Whether a refresh can store the query's result. Its states may be others than those of the table. */
export function isStorable({ schema }: TableVersion, query: Plan): boolean {
  return isOfColumns(liveColumns(schema), query)
}

function isOfColumns(columns: readonly ColumnSchema[], plan: Plan): boolean {
  const isSame = (column: ColumnSchema, index: number): boolean =>
    sameType(plan.columns[index]?.type ?? column.type, resultTypeOf(column))
  return hasNames(columns, plan) && columns.every(isSame)
}

/** What a refresh stores. States are NULL if the query has other ones since the types of the table have changed. */
function withStoredStates(computed: Relation, version: TableVersion, alias: string): Relation {
  const plan = storedQuery(version, computed.plan) ?? withoutStates(version, computed.plan)
  return plan === computed.plan ? computed : { ...computed, plan, columns: scopeOf(plan, alias) }
}

function withoutStates({ schema }: TableVersion, query: Plan): Plan {
  const states = storedColumns(schema).slice(query.columns.length)
  const read = query.columns.map(({ type }, index): Expression => ({ kind: 'column', index, type, position: 0 }))
  const nulls = states.map(({ type }): Expression => ({ kind: 'constant', value: null, type, position: 0 }))
  const columns = [...query.columns, ...states.map(({ name, type }) => ({ name, type }))]
  return { kind: 'project', columns, input: query, expressions: [...read, ...nulls] }
}

/** Whether the columns have the same names, and perhaps other types. */
function hasNamesOf({ schema }: TableVersion, plan: Plan): boolean {
  return hasNames(liveColumns(schema), plan)
}

function hasNames(live: readonly ColumnSchema[], { columns }: Plan): boolean {
  return live.length === columns.length && live.every(({ name }, index) => columns[index]?.name === name)
}

/** The stored rows as the query returns them now: a column of the base table may have got another type. */
function asQueried(stored: Relation, { columns }: Plan): Relation {
  if (columns.every(({ type }, index) => sameType(type, stored.plan.columns[index]?.type ?? type))) return stored
  const expressions = columns.map(({ type }, index): Expression => {
    const from = stored.plan.columns[index]?.type ?? type
    const column: Expression = { kind: 'column', index, type: from, position: 0 }
    return sameType(from, type) ? column : castTo(column, type)
  })
  return { ...stored, plan: { kind: 'project', columns, input: stored.plan, expressions } }
}
