// LATERAL: a sub-query of FROM that may name columns of the sources before it. Its own sources are multiplied with the
// numbered rows before it (the comparisons in its WHERE become keys of that join), it is grouped by the number beside
// its own groups, and what it gives is joined by the number. ORDER BY and LIMIT hold for each row.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../parse/ast.js'
import { joinPlan } from '../plan/join-plan.js'
import type { Plan } from '../plan/plan.js'
import type { BindContext } from './bind-context.js'
import { isLateralFunction, withFunction } from './expand.js'
import { bindCondition } from './expression.js'
import { bindSources } from './from.js'
import { scalarCall } from './make-call.js'
import { columnExpression } from './order.js'
import {
  hasAggregate,
  isCount,
  longType,
  numberedPlan,
  outerColumns,
  shiftedColumns,
  withNumbers,
  withResults,
} from './per-row.js'
import { limitRange, withNames } from './query.js'
import type { Relation } from './scope.js'
import { bindSelect } from './select.js'
import { constantOf } from './types.js'
import { conjuncts } from './walk-expression.js'

export function isLateral(source: ast.TableSource): source is ast.QuerySource & { readonly lateral: true } {
  return source.kind === 'query source' && source.lateral
}

export function bindLateral(
  left: Relation,
  { kind, on, position }: ast.Join,
  { query, alias }: ast.QuerySource,
  context: BindContext,
): Relation {
  if (kind !== 'inner' && kind !== 'cross' && kind !== 'left')
    throw new SqlError('LATERAL goes with INNER, LEFT and CROSS JOIN', position)
  const numbered = withNumbers(left)
  return withNames(query, context, (inner) => {
    const { body } = inner
    if (body.kind !== 'select') throw new SqlError('LATERAL takes a SELECT', inner.position)
    const { plan, isSingle } = resultsOf(numbered, inner, body, context)
    const counts = isSingle ? body.items.flatMap(({ expression }, index) => (isCount(expression) ? [index] : [])) : []
    const outer = kind === 'left' || isSingle
    const joined = withResults(numbered, { plan, outer, counts, alias: alias?.name ?? null }, context)
    return on === null ? joined : conditioned(joined, on, kind === 'left', context)
  })
}

/** The select with the row's number as its last column. `isSingle`: exactly one row for each, whatever there is. */
function resultsOf(
  numbered: Relation,
  query: ast.Query,
  body: ast.Select,
  context: BindContext,
): { readonly plan: Plan; readonly isSingle: boolean } {
  checkBody(body)
  const rows = multiplied(numbered, body, context)
  const numberItem: ast.SelectItem = { position: body.position, expression: rowNumber(body.position), alias: null }
  const groupBy = body.groupBy.length > 0 ? [...body.groupBy, rowNumber(body.position)] : []
  const distinctOn = body.distinctOn.length > 0 ? [...body.distinctOn, rowNumber(body.position)] : []
  const select: ast.Select = { ...body, items: [...body.items, numberItem], groupBy, distinctOn }
  const { plan } = bindSelect(select, query.orderBy, context, rows)
  const isSingle = body.groupBy.length === 0 && body.having === null && body.items.some(hasAggregate)
  return { plan: cut(plan, query.limit, context), isSingle: isSingle && query.limit === null }
}

/** The numbered rows, each beside the rows of the sources of the sub-query. */
function multiplied(numbered: Relation, body: ast.Select, context: BindContext): Relation {
  const width = numbered.plan.columns.length
  const number = { source: null, name: '$row', type: longType, index: width - 1, hidden: true as const }
  const columns = [...outerColumns(numbered.columns), number]
  const { from } = body
  if (from !== null && body.joins.length === 0 && isLateralFunction(from))
    return withFunction({ ...numbered, columns }, from, false, context).relation
  const own = bindSources(body, context)
  return {
    plan: joinPlan('cross', numbered.plan, own.plan, []),
    columns: [...columns, ...shiftedColumns(own.columns, width)],
    timestampIndex: -1,
    order: 'none',
  }
}

function checkBody(body: ast.Select): void {
  if (body.sampleBy !== null) throw new SqlError('SAMPLE BY is not possible in LATERAL', body.sampleBy.position)
  if (body.latestOn !== null) throw new SqlError('LATEST ON is not possible in LATERAL', body.latestOn.position)
  if (body.groupingSets !== undefined) throw new SqlError('GROUPING SETS are not possible in LATERAL', body.position)
  if (body.pivot !== null) throw new SqlError('PIVOT is not possible in LATERAL', body.pivot.position)
  const over = JSON.stringify(body.items).includes('"over":{')
  if (over) throw new SqlError('window functions are not possible in LATERAL', body.position)
}

function rowNumber(position: number): ast.ColumnName {
  return { kind: 'column', position, path: ['$row'], quoted: true }
}

/** LIMIT for each row of the left: by a number within it. */
function cut(plan: Plan, limit: ast.Limit | null, context: BindContext): Plan {
  if (limit === null) return plan
  const [low, high] = limitRange(limit, context)
  if (low < 0 || (high !== null && high < 0))
    throw new SqlError('LIMIT from the end is not possible in LATERAL', limit.position)
  const width = plan.columns.length
  const input = numberedPlan(plan, [width - 1])
  const number = columnExpression({ name: '$row', type: longType }, width)
  const compare = (operator: string, value: number) =>
    scalarCall(operator, [number, constantOf(BigInt(value), longType, limit.position)], limit.position, context)
  const above = compare('>', low)
  const predicate = high === null ? above : scalarCall('and', [above, compare('<=', high)], limit.position, context)
  const filtered: Plan = { kind: 'filter', columns: input.columns, input, predicate }
  return { kind: 'project', columns: plan.columns, input: filtered, expressions: plan.columns.map(columnExpression) }
}

/** ON behind LATERAL: of a LEFT JOIN it can only be true, since rows that it drops would have to stay. */
function conditioned(joined: Relation, on: ast.Expression, isLeft: boolean, context: BindContext): Relation {
  const predicate = bindCondition(on, { context, columns: joined.columns, aggregates: null, windows: null })
  if (conjuncts(predicate).every((part) => part.kind === 'constant' && part.value === true)) return joined
  if (isLeft) throw new SqlError('LEFT JOIN LATERAL takes ON true: write the condition into the sub-query', on.position)
  const { plan } = joined
  return { ...joined, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate } }
}
