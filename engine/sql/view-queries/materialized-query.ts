// Checks the query of a materialized view. Permitted is a SAMPLE BY (aggregation by time buckets) over one table or
// materialized view, if the result of each bucket depends only on the table's rows in that bucket, or a GROUP BY that
// can become such a SAMPLE BY (sampled-query.ts). The table may be joined with others (materialized-sources.ts). Other
// queries are rejected with the reason and its position.

import { SqlError } from '../../base/errors.js'
import { liveColumns, type TableSchema } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { nativeDialect } from '../dialect.js'
import { scalarsNamed } from '../functions/registry/all.js'
import { bucketsText } from '../plan/bucket-call.js'
import { isNested, isNestedInZone } from '../plan/nested-buckets.js'
import type { Plan, PlanColumn, ViewBuckets } from '../plan/plan.js'
import { stateRuleOf, withStates } from '../plan/view-states.js'
import { isStablePlan } from '../plan/volatile.js'
import { type BindContext, describing } from '../scope/bind-context.js'
import { hasAggregate } from '../scope/map-syntax.js'
import { bucketsOf, sampleOf } from '../scope/stored-view.js'
import { baseOf, isOfFirst } from './materialized-sources.js'
import { sampledQuery } from './sampled-query.js'

export interface CheckedQuery {
  /** The table or materialized view that the query reads. */
  readonly base: TableSchema
  readonly sample: Extract<Plan, { kind: 'sample' }>
  /** The query as the view keeps it, which has SAMPLE BY. */
  readonly query: ast.Query
  readonly queryText: string
  /** Columns that the view stores besides those that it returns. */
  readonly states: readonly PlanColumn[]
  /** Set if the states are others than those of views of earlier versions. */
  readonly stateRule?: Exclude<ReturnType<typeof stateRuleOf>, 1>
}

export function checkedQuery(statement: ast.CreateMaterialized, context: BindContext): CheckedQuery {
  const { query } = statement
  const select = selectOf(query)
  checkClauses(query, select)
  const base = baseOf(select, statement.base, context)
  checkNodes(query)
  const made = select.sampleBy === null ? asSampled(statement, select, base, context) : statement
  const trial = trialContext(made.queryText, context)
  const { plan, timestampIndex } = bindQuery(made.query, trial)
  if (!trial.cacheable || !isStablePlan(plan))
    throw new SqlError('the query of a materialized view must depend on nothing but its table', query.position)
  const sample = sampleOf(plan)
  if (sample === undefined) throw samplingMissing(query.position)
  if (!isOfFirst(sample.input, sample.timestampIndex))
    throw new SqlError('the buckets must be of the designated timestamp of the base table', query.position)
  checkLevels(bucketsOf(plan), base, select.from?.position ?? query.position)
  if (timestampIndex < 0)
    throw new SqlError('TIMESTAMP column is not present in select list', select.items[0]?.position ?? query.position)
  const { query: kept, queryText } = made
  return { base, sample, query: kept, queryText, ...statesOf(kept, queryText, context) }
}

/** Refreshes bind the query in the native dialect. */
function statesOf(
  query: ast.Query,
  queryText: string,
  context: BindContext,
): Pick<CheckedQuery, 'states' | 'stateRule'> {
  const native: BindContext = { ...trialContext(queryText, context), dialect: nativeDialect }
  const { plan } = bindQuery(query, native)
  const rule = stateRuleOf(plan)
  const states = withStates(plan, rule).columns.slice(plan.columns.length)
  return rule === 1 ? { states } : { states, stateRule: rule }
}

export function trialContext(sql: string, context: BindContext): BindContext {
  return {
    ...describing(context),
    sql,
    tables: [],
    subqueries: [],
    commonTables: [],
    cacheable: true,
    viewRead: 'fresh',
  }
}

/** Buckets of a view over a view consist of whole buckets of that one, so that each level is stored by itself. */
function checkLevels([own, below]: readonly ViewBuckets[], base: TableSchema, position: number): void {
  if (base.materialized === undefined || own === undefined || below === undefined) return
  if (!isNested(own, below) && !isNestedInZone(own, below))
    throw new SqlError(
      `the buckets of the view are not made of whole buckets of the view that it reads [view=${base.name}, buckets=${bucketsText(below)}]`,
      position,
    )
}

/** The query with SAMPLE BY in place of GROUP BY. */
function asSampled(
  statement: ast.CreateMaterialized,
  select: ast.Select,
  base: TableSchema,
  context: BindContext,
): Pick<CheckedQuery, 'query' | 'queryText'> {
  if (select.groupingSets !== undefined)
    throw new SqlError('GROUPING SETS is not supported in materialized views', select.groupBy[0]?.position ?? 0)
  if (select.groupBy.length === 0 && !hasAggregate(select.items)) throw samplingMissing(select.position)
  const time = liveColumns(base).findIndex(({ id }) => id === base.timestampId)
  return sampledQuery(statement, select, time, (sql) => trialContext(sql, context))
}

function samplingMissing(position: number): SqlError {
  return new SqlError('materialized view query requires a sampling interval: SAMPLE BY is missing', position)
}

function selectOf({ body }: ast.Query): ast.Select {
  if (body.kind === 'select') return body
  throw new SqlError('the query of a materialized view must be a single SELECT', body.position)
}

/** Clauses whose result in a bucket depends on other buckets, or on which bucket is the first or last one. */
function checkClauses(query: ast.Query, select: ast.Select): void {
  const { limit, orderBy, commonTables, declarations } = query
  const refuse = (text: string, position: number): never => {
    throw new SqlError(`${text} is not supported in materialized views`, position)
  }
  const [common] = commonTables
  if (common !== undefined) refuse('WITH', common.position)
  const [declared] = declarations
  if (declared !== undefined) refuse('DECLARE', declared.position)
  if (limit !== null) refuse('LIMIT', limit.position)
  const [order] = orderBy
  if (order !== undefined) refuse('ORDER BY', order.position)
  if (select.viewRead !== undefined) refuse(`the hint view_${select.viewRead.read}`, select.viewRead.position)
  if (select.latestOn !== null) refuse('LATEST ON', select.latestOn.position)
  if (select.distinct) refuse('DISTINCT', select.position)
  if (select.pivot !== null) refuse('PIVOT', select.position)
  if (select.qualify !== undefined) refuse('QUALIFY', select.position)
  const { sampleBy } = select
  if (sampleBy === null) return
  const bound = sampleBy.from ?? sampleBy.to
  if (bound !== null) refuse('FROM-TO', bound.position)
  const [fill] = sampleBy.fill
  if (fill !== undefined) refuse('FILL', fill.position)
  if (sampleBy.align?.kind === 'first observation') refuse('ALIGN TO FIRST OBSERVATION', sampleBy.align.position)
}

/** Parts of expressions that are refused wherever they are written. */
function checkNodes(tree: unknown): void {
  if (typeof tree !== 'object' || tree === null) return
  const at = 'position' in tree && typeof tree.position === 'number' ? tree.position : 0
  const kind = 'kind' in tree ? tree.kind : ''
  if (kind === 'subquery' || kind === 'exists')
    throw new SqlError('sub-queries are not supported in materialized views', at)
  if (kind === 'parameter') throw new SqlError('a materialized view takes no parameters', at)
  if (isCall(tree)) checkCall(tree)
  for (const member of Object.values(tree)) checkNodes(member)
}

function isCall(node: object): node is ast.Call {
  return 'kind' in node && node.kind === 'call'
}

function checkCall({ name, over, position }: ast.Call): void {
  if (over !== null) throw new SqlError('window functions are not supported in materialized views', position)
  if (scalarsNamed(name.toLowerCase()).some(({ volatility }) => volatility !== undefined))
    throw new SqlError(`non-deterministic function cannot be used in materialized view: ${name}`, position)
}
