// Binds ORDER BY and DISTINCT inside an aggregate call, such as `string_agg(a, ',' order by b)`. With ORDER BY, the
// input is sorted before it is grouped. Aggregates that need different orders, and those that depend on the table's own
// row order, become separate aggregations over the same input, which are joined by the group keys; if reading the input
// again could give other rows, they are an error. DISTINCT selects another aggregate function: count_distinct() for
// count().

import { SqlError } from '../../base/errors.js'
import { groupingSetsMax } from '../../base/limits.js'
import type * as ast from '../ast/ast.js'
import { type AggregatePlan, joinAggregations } from '../plan/join-aggregations.js'
import type { AggregateCall, AggregateOrder, Plan } from '../plan/plan.js'
import { isStable, isStablePlan } from '../plan/volatile.js'
import type { Relation } from '../scope/scope.js'
import { expressionKey } from '../typing/types.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { sorted, sortKey, withExtra } from './order.js'

export function bindAggregateOrder(call: ast.Call, scope: ExpressionScope): readonly AggregateOrder[] {
  return call.orderBy.map((item) => {
    const expression = bindExpression(item.expression, scope)
    return { expression, key: sortKey(0, expression.type, item) }
  })
}

/** Functions that implement an aggregate with DISTINCT. */
const distinctNames: Readonly<Record<string, string>> = {
  count: 'count_distinct',
  count_distinct: 'count_distinct',
  string_agg: 'string_distinct_agg',
  array_agg: 'array_distinct_agg',
  json_agg: 'json_distinct_agg',
  jsonb_agg: 'jsonb_distinct_agg',
  sum: 'sum_distinct',
  avg: 'avg_distinct',
  // DISTINCT does not change these aggregates.
  min: 'min',
  max: 'max',
  bool_and: 'bool_and',
  bool_or: 'bool_or',
}

export function aggregateName({ name, distinct, args, position }: ast.Call): string {
  if (!distinct) return name
  const own = distinctNames[name.toLowerCase()]
  if (own === undefined) throw new SqlError('dangling literal', args[0]?.position ?? position)
  return own
}

const ofRowOrder: ReadonlySet<string> = new Set(['first', 'last', 'first_not_null', 'last_not_null', 'isordered'])

/**
 * The aggregation, with its input in the order that each aggregate needs. The input of `plan` must be the relation's
 * plan.
 */
export function orderedGroups(relation: Relation, plan: AggregatePlan): Plan {
  const parts = partsByOrder(plan.aggregates)
  const isRepeatable = parts.length > 1 && isStablePlan(plan.input) && plan.keys.every(isStable)
  if (!isRepeatable) return inOrder(relation, plan)
  if (parts.length > groupingSetsMax)
    throw new SqlError(`too many orders of aggregates [max=${groupingSetsMax}]`, plan.aggregates.at(-1)?.position ?? 0)
  return joinAggregations(plan, parts, (part) => inOrder({ ...relation, plan: part.input }, part))
}

function inOrder(relation: Relation, plan: AggregatePlan): AggregatePlan {
  const input = orderedInput(relation, plan.aggregates).plan
  return { ...plan, input, aggregates: plan.aggregates.map(withoutOrder) }
}

/** Indexes of the aggregates that share one row order. Those that need none join the first group. */
function partsByOrder(aggregates: readonly AggregateCall[]): number[][] {
  const parts = new Map<string, number[]>()
  const free: number[] = []
  for (const [index, aggregate] of aggregates.entries()) {
    const ofRows = ofRowOrder.has(aggregate.name.toLowerCase())
    const key = ofRows ? '' : orderKey(aggregate)
    if (key === '' && !ofRows) free.push(index)
    else parts.set(key, [...(parts.get(key) ?? []), index])
  }
  const [first = [], ...more] = parts.values()
  return [[...free, ...first], ...more]
}

/** The relation sorted as the aggregates need it. */
export function orderedInput(relation: Relation, aggregates: readonly AggregateCall[]): Relation {
  const asking = aggregates.filter(({ orderBy }) => orderBy !== undefined && orderBy.length > 0)
  const [first] = asking
  if (first?.orderBy === undefined || isEmpty(relation.plan)) return relation
  const wanted = orderKey(first)
  for (const other of aggregates) {
    const isOrdered = other.orderBy !== undefined && other.orderBy.length > 0
    if (isOrdered ? orderKey(other) !== wanted : ofRowOrder.has(other.name.toLowerCase()))
      throw new SqlError('aggregates of one query cannot have different orders', other.position)
  }
  const width = relation.plan.columns.length
  const keys = first.orderBy.map(({ key }, index) => ({ ...key, index: width + index }))
  const extended = withExtra(
    relation,
    first.orderBy.map(({ expression }) => expression),
  )
  return sorted(extended, keys)
}

/** Whether the plan certainly returns no rows, as catalog relations without content do. Then sorting is unnecessary. */
function isEmpty(plan: Plan): boolean {
  switch (plan.kind) {
    case 'values':
      return plan.rows.length === 0
    case 'filter':
    case 'project':
    case 'sort':
    case 'distinct':
    case 'expand':
      return isEmpty(plan.input)
    case 'aggregate':
      return plan.keys.length > 0 && isEmpty(plan.input)
    case 'join': {
      const inner = plan.join === 'inner' || plan.join === 'cross'
      return inner ? isEmpty(plan.left) || isEmpty(plan.right) : plan.join === 'left' && isEmpty(plan.left)
    }
    default:
      return false
  }
}

function orderKey({ orderBy = [] }: AggregateCall): string {
  return orderBy.map(({ expression, key }) => `${expressionKey(expression)} ${JSON.stringify(key)}`).join()
}

/** The call without ORDER BY, for sorted input. */
export function withoutOrder({ name, args, type, position }: AggregateCall): AggregateCall {
  return { name, args, type, position }
}
