// ORDER BY and DISTINCT within the parentheses of an aggregate. The rows are sorted before they are grouped, so that all
// aggregates of one query that ask for an order must ask for the same; those whose result depends on the order of the
// table's own rows cannot stand beside them.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../parse/ast.js'
import type { AggregateCall, AggregateOrder, Plan } from '../plan/plan.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { sorted, sortKey, withExtra } from './order.js'
import type { Relation } from './scope.js'
import { expressionKey } from './types.js'

export function bindAggregateOrder(call: ast.Call, scope: ExpressionScope): readonly AggregateOrder[] {
  return call.orderBy.map((item) => {
    const expression = bindExpression(item.expression, scope)
    return { expression, key: sortKey(0, expression.type, item) }
  })
}

/** Aggregates over different values have names of their own. */
const distinctNames: Readonly<Record<string, string>> = {
  count: 'count_distinct',
  count_distinct: 'count_distinct',
  string_agg: 'string_distinct_agg',
  array_agg: 'array_distinct_agg',
  json_agg: 'json_distinct_agg',
  jsonb_agg: 'jsonb_distinct_agg',
  // The extremes of different values are those of all.
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

/** The input in the order that aggregates ask for. */
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

/** Known to have no rows, as the catalog's relations of what does not exist here: then there is nothing to order. */
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

/** Without the order, which the rows have now. */
export function withoutOrder({ name, args, type, position }: AggregateCall): AggregateCall {
  return { name, args, type, position }
}
