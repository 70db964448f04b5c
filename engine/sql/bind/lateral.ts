// Binds LATERAL sub-queries, which may refer to columns of the preceding sources of FROM. A sub-query that only filters
// and computes rows is joined with the preceding rows directly. For any other, the binder numbers the preceding rows
// and joins them with the sources of the sub-query, on the equations in its WHERE. The row number becomes a further key
// of the sub-query's grouping, ORDER BY and LIMIT, so that they apply to each preceding row separately, and the results
// are joined back by it.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import { joinPlan } from '../plan/join-plan.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import { sourcesOf } from '../plan/walk-plan.js'
import { integerAt, nameAt, numbersTo, queryOf, querySource, selectBody, starItem } from '../rewrite/make-query.js'
import { type BindContext, countSources, nested, trialOf } from '../scope/bind-context.js'
import { hasAggregate, hasNode, mapNodes } from '../scope/map-syntax.js'
import { type Relation, type Scope, type ScopeColumn, scopeOf } from '../scope/scope.js'
import { scalarCall } from '../typing/make-call.js'
import { constantOf } from '../typing/types.js'
import { conjuncts } from '../typing/walk-expression.js'
import { isForeign } from './correlated-conditions.js'
import { bindCondition, bindExpression } from './expression.js'
import { bindSources, withJoins } from './from.js'
import { columnExpression, sorted } from './order.js'
import {
  longType,
  numberedPlan,
  outerColumns,
  partName,
  shiftedColumns,
  splitAggregates,
  withNumbers,
  withResults,
} from './per-row.js'
import { limitRange, plainRelation, withNames } from './query.js'
import { bindSelect } from './select.js'
import { castColumns, checkBranches, unitedColumns } from './set-operation.js'
import { isLateralFunction, withFunction } from './set-returning-call.js'

export function isLateral(source: ast.TableSource): source is ast.QuerySource & { readonly lateral: true } {
  return source.kind === 'query source' && source.lateral
}

interface LateralSource extends Pick<ast.QuerySource, 'query' | 'alias'> {
  /** Set if the sub-query may return one row at most; the position of the error about a second one. */
  readonly only?: number
}

export function bindLateral(
  left: Relation,
  { kind, on, position }: Pick<ast.Join, 'kind' | 'on' | 'position'>,
  { query, alias, only }: LateralSource,
  context: BindContext,
): Relation {
  if (kind !== 'inner' && kind !== 'cross' && kind !== 'left')
    throw new SqlError('LATERAL goes with INNER, LEFT and CROSS JOIN', position)
  return withNames(query, context, (inner) => {
    const body = inner.body.kind === 'values' ? valuesAsSelect(inner.body) : inner.body
    const select = body.kind === 'select' ? body : null
    const name = alias?.name ?? null
    const onlyRows = (plan: Plan): Plan => (only === undefined ? plan : requireOnly(plan, only, context))
    if (kind !== 'left' && select !== null && isRowByRow(inner, select)) {
      const rows = resultsBeside(left, select, name, context)
      return on === null ? rows : conditioned(rows, on, false, context)
    }
    // The preceding rows are on both sides of the join, so their sources are read twice.
    countSources(context, sourcesOf(left.plan), position)
    const numbered = withNumbers(left)
    const joined =
      select !== null && isSingle(inner, select)
        ? singleResults(numbered, inner, select, name, context)
        : withResults(
            numbered,
            {
              plan: onlyRows(queryResults(numbered, { ...inner, body }, context)),
              outer: kind === 'left',
              counts: [],
              alias: name,
            },
            context,
          )
    return on === null ? joined : conditioned(joined, on, kind === 'left', context)
  })
}

/** Whether the sub-query returns exactly one row for each preceding row. */
function isSingle({ limit }: ast.Query, body: ast.Select): boolean {
  const { groupBy, having, items } = body
  return (
    groupBy.length === 0 &&
    body.groupAll !== true &&
    body.sampleBy === null &&
    body.qualify === undefined &&
    !hasWindow(body) &&
    having === null &&
    limit === null &&
    items.some(({ expression }) => hasAggregate(expression))
  )
}

/**
 * Whether each result row comes from one row of the sources, and preceding rows without a match are dropped. Then no
 * numbering is needed.
 */
function isRowByRow({ limit, orderBy }: ast.Query, body: ast.Select): boolean {
  const { groupBy, having, distinct, distinctOn, items } = body
  return (
    limit === null &&
    orderBy.length === 0 &&
    groupBy.length === 0 &&
    body.groupingSets === undefined &&
    body.groupAll !== true &&
    body.sampleBy === null &&
    body.latestOn === null &&
    body.qualify === undefined &&
    !hasWindow(body) &&
    having === null &&
    !distinct &&
    distinctOn.length === 0 &&
    !items.some(({ expression }) => hasAggregate(expression))
  )
}

/** The preceding rows joined directly with the results, so that they are read once. */
function resultsBeside(left: Relation, body: ast.Select, alias: string | null, context: BindContext): Relation {
  checkBody(body)
  const { columns: retained } = left.plan
  const items = retained.map((_, index): ast.SelectItem => {
    const { position } = body
    return { position, expression: { kind: 'column', position, path: [leftName(index)], quoted: true }, alias: null }
  })
  const lefts = retained.map(({ type }, index) => ({
    source: null,
    name: leftName(index),
    type,
    index,
    hidden: true as const,
  }))
  const rows = rowsBeside(left, [...outerColumns(left.columns), ...lefts], body, context)
  const { plan } = bindSelect({ ...body, items: [...body.items, ...items] }, [], context, { from: rows })
  const found = plan.columns.length - retained.length
  const order = [...retained.map((_, index) => found + index), ...plan.columns.keys()].slice(0, plan.columns.length)
  const columns = order.map((index) => plan.columns[index] as PlanColumn)
  const expressions = order.map((from, index) => columnExpression(columns[index] as PlanColumn, from))
  const project: Plan = { kind: 'project', columns, input: plan, expressions }
  return { ...left, plan: project, columns: [...left.columns, ...scopeOf(project, alias).slice(retained.length)] }
}

const leftName = (index: number): string => `$left${index}`

/**
 * Joins the aggregates by row number. Expressions over them are computed above the join, so that rows without a group
 * have a result, too.
 */
function singleResults(
  numbered: Relation,
  query: ast.Query,
  body: ast.Select,
  alias: string | null,
  context: BindContext,
): Relation {
  const { columns: named } = resultsOf(numbered, query, body, trialOf(context))
  const calls: ast.Expression[] = []
  const parts = body.items.map(({ expression }) => {
    const part = splitAggregates(expression, calls.length)
    calls.push(...part.calls)
    return part.over
  })
  const items = calls.map((expression, index): ast.SelectItem => {
    const { position } = expression
    return { position, expression, alias: { name: partName(index), position, quoted: true } }
  })
  const plan = resultsOf(numbered, { ...query, orderBy: [] }, { ...body, items }, context)
  const joined = withResults(numbered, { plan, outer: true, counts: [], alias: null }, context)
  const scope = { context, columns: joined.columns, aggregates: null, windows: null }
  const values = parts.map((part) => bindExpression(part, scope))
  const retained = numbered.plan.columns
  const columns = [...retained, ...values.map(({ type }, index) => ({ name: named[index]?.name ?? '', type }))]
  const expressions = [...retained.map(columnExpression), ...values]
  const project: Plan = { kind: 'project', columns, input: joined.plan, expressions }
  return {
    ...numbered,
    plan: project,
    columns: [...numbered.columns, ...scopeOf(project, alias).slice(retained.length)],
  }
}

/** Whether FROM is a sub-query that refers to columns of the outer query. */
export function readsOuter({ from, joins }: ast.Select, columns: Scope, context: BindContext): boolean {
  if (from?.kind !== 'query source' || from.columnAliases.length > 0) return false
  // Rows that an outer join adds would belong to no outer row.
  if (!joins.every(({ kind }) => kind === 'inner' || kind === 'left' || kind === 'cross')) return false
  return isForeign(from.query, [], { context, columns })
}

/** The sub-query's rows, with the row number as their last column. */
function queryResults(numbered: Relation, query: ast.Query, context: BindContext): Plan {
  const { body, orderBy, limit, position } = query
  if (body.kind === 'select') return resultsOf(numbered, query, body, context)
  if (orderBy.length === 0 && limit === null) return bodyResults(numbered, body, context)
  const plain: ast.Query = { ...query, orderBy: [], limit: null }
  const outer = selectBody(querySource(plain, null, true), [starItem(position)], null, position)
  return resultsOf(numbered, { ...query, body: outer }, outer, context)
}

function bodyResults(numbered: Relation, body: ast.QueryBody, context: BindContext): Plan {
  const { position } = body
  switch (body.kind) {
    case 'nested':
      return withNames(body.query, context, (inner) => plainRelation(queryResults(numbered, inner, context))).plan
    case 'set operation': {
      countSources(context, sourcesOf(numbered.plan), position)
      const left = bodyResults(numbered, body.left, context)
      const right = nested(context, position, () => bodyResults(numbered, body.right, context))
      checkBranches(left, right, body.left.position, body.right.position)
      const { operation, all } = body
      const columns = unitedColumns(left, right, operation === 'union')
      return {
        kind: 'set',
        columns,
        operation,
        all,
        left: castColumns(left, columns),
        right: castColumns(right, columns),
      }
    }
    case 'values':
      return bodyResults(numbered, valuesAsSelect(body), context)
    case 'select':
      return resultsOf(numbered, queryOf(body), body, context)
    default:
      throw new SqlError('LATERAL takes a SELECT', position)
  }
}

/** The sub-query's select, with the row number as its last column. */
function resultsOf(numbered: Relation, query: ast.Query, body: ast.Select, context: BindContext): Plan {
  checkBody(body)
  const number = {
    source: null,
    name: '$row',
    type: longType,
    index: numbered.plan.columns.length - 1,
    hidden: true as const,
  }
  const rows = rowsBeside(numbered, [...outerColumns(numbered.columns), number], body, context)
  const numberItem: ast.SelectItem = { position: body.position, expression: rowNumber(body.position), alias: null }
  const keyed = keyedByRow(body)
  const select: ast.Select = { ...keyed, items: [...keyed.items, numberItem] }
  const { plan } = bindSelect(select, query.orderBy, context, { from: rows })
  return cut(plan, query.limit, context)
}

/**
 * The preceding rows, with their columns as `outer`, joined with the sub-query's sources. Sources that are themselves
 * LATERAL are bound for each row.
 */
function rowsBeside(before: Relation, outer: ScopeColumn[], body: ast.Select, context: BindContext): Relation {
  const { plan } = before
  const width = plan.columns.length
  const { from, position } = body
  if (from === null) return { plan, columns: outer, timestampIndex: -1, order: 'none' }
  if (from.kind === 'query source' && readsOuter(body, before.columns, context)) {
    const left: Relation = { plan, columns: outer, timestampIndex: -1, order: 'none' }
    return withJoins(bindLateral(left, { kind: 'inner', on: null, position }, from, context), body.joins, context)
  }
  if (body.joins.length === 0 && isLateralFunction(from))
    return withFunction({ ...before, columns: outer }, from, false, context).relation
  const own = bindSources(body, context)
  const rows: Relation = {
    plan: joinPlan('cross', plan, own.plan, []),
    columns: [...outer, ...shiftedColumns(own.columns, width)],
    timestampIndex: -1,
    order: 'none',
  }
  if (body.sampleBy === null || own.timestampIndex < 0) return rows
  const timestampIndex = width + own.timestampIndex
  const inOrder = sorted(rows, [{ index: timestampIndex, descending: false, nullsFirst: true }])
  return { ...inOrder, timestampIndex, order: 'ascending' }
}

/** The select with the row number as a further key of whatever combines rows. */
function keyedByRow(body: ast.Select): ast.Select {
  const { groupBy, distinctOn, latestOn, position } = body
  const key = rowNumber(position)
  const withKey = (keys: readonly ast.Expression[]): readonly ast.Expression[] =>
    keys.length > 0 ? [...keys, key] : keys
  const keyed: ast.Select = {
    ...body,
    groupBy: withKey(groupBy),
    distinctOn: withKey(distinctOn),
    latestOn: latestOn === null ? null : { ...latestOn, partitionBy: [...latestOn.partitionBy, key] },
  }
  if (!hasWindow(body)) return keyed
  const { items, windows, qualify } = mapWindows(
    { items: body.items, windows: body.windows, qualify: body.qualify },
    key,
  )
  return { ...keyed, items, windows, ...(qualify === undefined ? {} : { qualify }) }
}

/** Adds a key to PARTITION BY of every window, except where it comes from the WINDOW clause. */
function mapWindows<Node>(tree: Node, key: ast.Expression): Node {
  return mapNodes(tree, (part) => {
    if (!isWindow(part)) return undefined
    return part.base === null ? { ...part, partitionBy: [...part.partitionBy, key] } : part
  })
}

function hasWindow({ items, qualify, windows }: ast.Select): boolean {
  return windows.length > 0 || hasNode([items, qualify], isWindow)
}

function isWindow(node: object): node is ast.WindowSpecification {
  return 'partitionBy' in node && 'frame' in node && 'base' in node
}

function checkBody(body: ast.Select): void {
  if (body.sampleBy !== null) checkSamples(body.sampleBy)
  if (body.groupingSets !== undefined) throw new SqlError('GROUPING SETS are not supported in LATERAL', body.position)
  if (body.pivot !== null) throw new SqlError('PIVOT is not supported in LATERAL', body.pivot.position)
}

/** Buckets begin and end for all preceding rows alike, so they must not depend on the rows of each. */
function checkSamples({ fill, from, to, align, position }: ast.SampleBy): void {
  if (align?.kind === 'first observation')
    throw new SqlError('ALIGN TO FIRST OBSERVATION is not supported in LATERAL', align.position)
  const isFilled = fill.some(({ kind }) => kind !== 'none')
  if (isFilled && (from === null || to === null))
    throw new SqlError('FILL in LATERAL needs FROM and TO', fill[0]?.position ?? position)
}

function rowNumber(position: number): ast.ColumnName {
  return { kind: 'column', position, path: ['$row'], quoted: true }
}

/** LIMIT per preceding row, by numbering the results within it. */
function cut(plan: Plan, limit: ast.Limit | null, context: BindContext): Plan {
  if (limit === null) return plan
  const [low, high] = limitRange(limit, context)
  if (low < 0 || (high !== null && high < 0))
    throw new SqlError('LIMIT from the end is not supported in LATERAL', limit.position)
  const width = plan.columns.length
  const input = numberedPlan(plan, [width - 1])
  const number = columnExpression({ name: '$row', type: longType }, width)
  const compare = (operator: string, value: number) =>
    scalarCall(operator, [number, constantOf(BigInt(value), longType, limit.position)], limit.position, context)
  const above = compare('>', low)
  const predicate = high === null ? above : scalarCall('and', [above, compare('<=', high)], limit.position, context)
  return filtered(input, predicate, plan.columns)
}

/** An error if there is a second result for one preceding row. */
function requireOnly(plan: Plan, position: number, context: BindContext): Plan {
  const width = plan.columns.length
  const input = numberedPlan(plan, [width - 1])
  const number = columnExpression({ name: '$row', type: longType }, width)
  return filtered(input, scalarCall('only_row', [number], position, context), plan.columns)
}

function filtered(input: Plan, predicate: Expression, columns: readonly PlanColumn[]): Plan {
  const retained: Plan = { kind: 'filter', columns: input.columns, input, predicate }
  return { kind: 'project', columns, input: retained, expressions: columns.map(columnExpression) }
}

/** The ON condition after LATERAL. For LEFT JOIN it may only be true, because rows that it drops would have to stay. */
function conditioned(joined: Relation, on: ast.Expression, isLeft: boolean, context: BindContext): Relation {
  const predicate = bindCondition(on, { context, columns: joined.columns, aggregates: null, windows: null })
  if (conjuncts(predicate).every((part) => part.kind === 'constant' && part.value === true)) return joined
  if (isLeft) throw new SqlError('LEFT JOIN LATERAL takes ON true: write the condition into the sub-query', on.position)
  const { plan } = joined
  return { ...joined, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate } }
}

// `lateral (values (a, 1), (b, 2))`: becomes a SELECT over row numbers, whose columns choose their value by number.

const numberName = '$values'

function valuesAsSelect({ rows, position }: ast.Values): ast.Select {
  const [first] = rows
  const width = first?.values.length ?? 0
  const odd = rows.find(({ values }) => values.length !== width)
  if (odd !== undefined) throw new SqlError('VALUES lists must all be the same length', odd.position)
  const items = Array.from({ length: width }, (_, index): ast.SelectItem => {
    const values = rows.flatMap((row) => row.values.slice(index, index + 1))
    return { position, expression: chosen(values, position), alias: nameAt(`column${index + 1}`, position) }
  })
  return selectBody(rows.length === 1 ? null : numbersTo(rows.length, numberName, position), items, null, position)
}

/** The n-th value, for row number n. */
function chosen(values: readonly ast.Expression[], position: number): ast.Expression {
  const [only] = values
  if (only !== undefined && values.length === 1) return only
  const operand: ast.Expression = { kind: 'column', position, path: [numberName, numberName], quoted: true }
  const branches = values.map((result, index) => ({ when: integerAt(index + 1, position), result }))
  return { kind: 'case', position, operand, branches, otherwise: null }
}
