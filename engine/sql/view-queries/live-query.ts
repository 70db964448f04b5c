// Checks the query of a live view: window functions over the rows of one table, without aggregation. A refresh computes
// a range of rows from the rows before it, so each function must look back a limited way and never ahead
// (live-frames.ts). Other queries are rejected with the reason and its position.

import { SqlError } from '../../base/errors.js'
import type { LiveFrames } from '../../storage/schema/materialized.js'
import type { TableSchema } from '../../storage/schema/schema.js'
import { quoteIdent } from '../../types/identifier.js'
import type * as ast from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { relationNames } from '../catalog.js'
import { scalarsNamed } from '../functions/registry/all.js'
import { advance, openCursor } from '../parse/cursor.js'
import { parseStatement } from '../parse/parse.js'
import { bucketNames } from '../plan/bucket-call.js'
import type { Expression, Plan } from '../plan/plan.js'
import { isStablePlan } from '../plan/volatile.js'
import type { BindContext } from '../scope/bind-context.js'
import { hasAggregate } from '../scope/map-syntax.js'
import { visitExpression } from '../typing/walk-expression.js'
import { framesOf } from './live-frames.js'
import { trialContext } from './materialized-query.js'

export interface CheckedLiveQuery {
  /** The table or materialized view that the query reads. */
  readonly base: TableSchema
  readonly frames: LiveFrames
  /** FROM and WHERE of the query. */
  readonly source: string
}

export function checkedLiveQuery(statement: ast.CreateLive, context: BindContext): CheckedLiveQuery {
  const { query, queryText } = statement
  const select = selectOf(query)
  checkClauses(query, select)
  const base = baseOf(select, context)
  for (const { expression } of select.items)
    if (expression.kind === 'star')
      throw new SqlError('wildcard column select is not allowed in live view queries', expression.position)
  checkNodes(query)
  if (hasAggregate(select.items)) throw new SqlError(simpleScan, select.items[0]?.position ?? select.position)
  checkAnchors(select)
  const trial = trialContext(queryText, context)
  const { plan, timestampIndex, order } = bindQuery(query, trial)
  if (!trial.cacheable || !isStablePlan(plan))
    throw new SqlError('the query of a live view must depend on nothing but its table', query.position)
  if (timestampIndex < 0 || order !== 'ascending')
    throw new SqlError('TIMESTAMP column is not present in select list', select.items[0]?.position ?? query.position)
  const window = windowOf(plan)
  if (window === undefined)
    throw new SqlError('live view query must contain window functions', select.items[0]?.position ?? query.position)
  const time = timeOf(window.input, base)
  checkFilter(window.input, time)
  const frames = framesOf(window, time)
  const source = sourceText(statement, select)
  checkSource(source, { base, frames, position: select.from?.position ?? query.position }, context)
  return { base, frames, source }
}

const simpleScan =
  'live view select must be a simple scan of a single table: joins, sub-queries, WITH, GROUP BY, SAMPLE BY, ORDER BY and LIMIT are not supported'

function selectOf({ body }: ast.Query): ast.Select {
  if (body.kind === 'select') return body
  throw new SqlError(simpleScan, body.position)
}

function checkClauses(query: ast.Query, select: ast.Select): void {
  const { sampleBy, latestOn, pivot, viewRead } = select
  const [grouped] = [...select.groupBy, ...(select.groupingSets === undefined ? [] : [select])]
  const refused = [
    ...[query.commonTables[0], query.declarations[0], select.joins[0], sampleBy, grouped, latestOn, pivot],
    ...[select.groupAll === true || select.distinct ? select : undefined, select.having, select.qualify],
    ...[query.orderBy[0], query.limit, viewRead],
  ]
  for (const part of refused) if (part !== undefined && part !== null) throw new SqlError(simpleScan, part.position)
}

function baseOf({ from, position }: ast.Select, { catalog }: BindContext): TableSchema {
  if (from === null || from.kind !== 'table') throw new SqlError(simpleScan, from?.position ?? position)
  const [alias] = from.columnAliases
  if (alias !== undefined)
    throw new SqlError('a live view takes the columns of its table by their own names', alias.position)
  if (from.timestamp !== null)
    throw new SqlError('a live view needs the designated timestamp of its table', from.timestamp.position)
  const { name, schema: namespace, position: at } = from.table
  const version = namespace === null ? catalog.table(name) : undefined
  if (version === undefined && namespace === null && catalog.view(name) !== undefined)
    throw new SqlError('a live view over a view is not supported: name the table', at)
  if (version === undefined) throw SqlError.tableMissing(name, at, relationNames(catalog))
  const { schema } = version
  if (schema.materialized?.live !== undefined)
    throw new SqlError('live views are not allowed as base tables of live views', at)
  if (schema.timestampId < 0) throw new SqlError('live view base table must have a designated timestamp', at)
  return schema
}

/** Parts of expressions that are refused wherever they are written. */
function checkNodes(tree: unknown): void {
  if (typeof tree !== 'object' || tree === null) return
  const at = 'position' in tree && typeof tree.position === 'number' ? tree.position : 0
  const kind = 'kind' in tree ? tree.kind : ''
  if (kind === 'subquery' || kind === 'exists') throw new SqlError('sub-queries are not supported in live views', at)
  if (kind === 'parameter') throw new SqlError('a live view takes no parameters', at)
  if (kind === 'call' && 'name' in tree && typeof tree.name === 'string' && isVolatile(tree.name))
    throw new SqlError(`non-deterministic function cannot be used in live view: ${tree.name}`, at)
  for (const member of Object.values(tree)) checkNodes(member)
}

function isVolatile(name: string): boolean {
  return scalarsNamed(name.toLowerCase()).some(({ volatility }) => volatility !== undefined)
}

/** At most one window has an anchor, which names a bucket of time. */
function checkAnchors({ windows }: ast.Select): void {
  const [first, second] = windows.flatMap(({ window }) => window.anchor ?? [])
  if (second !== undefined) throw new SqlError('a live view supports at most one anchored window', second.position)
  const { kind } = first?.expression ?? {}
  if (first === undefined || (first.expression.kind === 'call' && bucketNames.has(first.expression.name.toLowerCase())))
    return
  const reason =
    kind === 'column' || kind === 'call'
      ? "must be a bucket of the designated timestamp, such as timestamp_floor('1h', ts)"
      : 'must not be constant'
  throw new SqlError(`ANCHOR EXPRESSION of a live view ${reason}`, first.expression.position)
}

function windowOf(plan: Plan): Extract<Plan, { kind: 'window' }> | undefined {
  if (plan.kind === 'window') return plan
  return plan.kind === 'project' || plan.kind === 'sort' || plan.kind === 'filter' ? windowOf(plan.input) : undefined
}

/** The column of the designated timestamp. */
function timeOf({ columns }: Plan, base: TableSchema): number {
  const name = timeName(base)
  return columns.findIndex((column) => column.name === name)
}

function timeName({ columns, timestampId }: TableSchema): string {
  return columns.find(({ id }) => id === timestampId)?.name ?? ''
}

function checkFilter(plan: Plan, time: number): void {
  if (plan.kind !== 'filter') return
  let at: Expression | undefined
  visitExpression(plan.predicate, (part) => {
    if (part.kind === 'column' && part.index === time) at ??= part
  })
  if (at !== undefined) throw new SqlError('a live view cannot filter on the designated timestamp', at.position)
  checkFilter(plan.input, time)
}

/** FROM and WHERE. Each of the words FROM and WINDOW may occur before, as in IS DISTINCT FROM. */
function sourceText({ query, queryText }: ast.CreateLive, { from, windows }: ast.Select): string {
  const table = from?.position ?? query.end
  const window = windows[0]?.name.position
  let [begun, end] = [0, queryText.length]
  for (const cursor = openCursor(queryText); cursor.kind !== 'end'; advance(cursor)) {
    const { word, start, previousEnd } = cursor
    const position = start + query.position
    if (word === 'from' && position < table) begun = start
    if (word === 'window' && window !== undefined && position < window) end = previousEnd
  }
  return queryText.slice(begun, end)
}

/** Refreshes read the source by itself (views/live-marks.ts). */
function checkSource(
  source: string,
  { frames, base, position }: Omit<CheckedLiveQuery, 'source'> & { readonly position: number },
  context: BindContext,
): void {
  const names = [timeName(base), ...frames.keys.flat()].map(quoteIdent)
  const text = `select ${[...new Set(names)].join(', ')} ${source}`
  try {
    const statement = parseStatement(text)
    if (statement.kind === 'query') bindQuery(statement, trialContext(text, context))
  } catch (thrown) {
    if (!(thrown instanceof SqlError)) throw thrown
    throw new SqlError(`FROM and WHERE of a live view must be a query by themselves: ${thrown.message}`, position)
  }
}
