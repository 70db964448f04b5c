// Rewrites LIMIT n BY k, which returns at most n rows for each k, to a condition on a row number:
// `.. order by o limit 3 by k` becomes `.. qualify row_number() over (partition by k order by o) <= 3 order by o`.

import { SqlError } from '../../base/errors.js'
import type { BinaryOperator, Call, Expression, Limit, OrderItem, QueryBody, Select } from '../ast/ast.js'
import { callOf, queryOf, querySource, selectBody, starItem } from './make-query.js'

/** The body with at most as many rows for each key as the limit says, in the order of ORDER BY. */
export function limitedByKeys(
  body: QueryBody,
  limit: Limit,
  keys: readonly Expression[],
  orderBy: readonly OrderItem[],
): Select {
  const select = body.kind === 'select' ? body : wrapped(body)
  const { position } = limit
  const number = rowNumber(
    keys,
    orderBy.map((item) => overRows(item, select)),
    position,
  )
  const { low, high, offset } = limit
  for (const bound of [low, high, offset]) requireCount(bound)
  const [skipped, last] = high === null ? [offset, plus(low, offset)] : [plus(low, offset), plus(high, offset)]
  const lower = skipped === null ? null : compared('>', number, skipped)
  const upper = last === null ? null : compared('<=', number, last)
  const conditions = [select.qualify, lower, upper].filter((each) => each !== null && each !== undefined)
  const [first, ...more] = conditions
  if (first === undefined) return select
  return { ...select, qualify: more.reduce((left, right) => compared('and', left, right), first) }
}

/** Negative numbers would count from the end of each key's rows. */
function requireCount(bound: Expression | null): void {
  if (bound?.kind === 'null') throw new SqlError('invalid type: NULL', bound.position)
  if (bound?.kind === 'unary' && bound.operator === '-')
    throw new SqlError('LIMIT .. BY takes no negative numbers', bound.position)
}

function rowNumber(keys: readonly Expression[], orderBy: readonly OrderItem[], position: number): Call {
  const over = { position, base: null, partitionBy: keys, orderBy, frame: null }
  return { ...callOf('row_number', [], position), over }
}

/** A position in ORDER BY means the item of the list at it. */
function overRows(item: OrderItem, { items }: Select): OrderItem {
  const { expression } = item
  if (expression.kind !== 'integer') return item
  const named = items[Number(expression.digits) - 1]
  if (named === undefined || items.some((each) => each.expression.kind === 'star'))
    throw new SqlError('LIMIT .. BY needs expressions or names in ORDER BY', expression.position)
  return { ...item, expression: named.expression }
}

function wrapped(body: QueryBody): Select {
  const { position } = body
  return selectBody(querySource(queryOf(body)), [starItem(position)], null, position)
}

function plus(left: Expression | null, right: Expression | null): Expression | null {
  return left === null || right === null ? (left ?? right) : compared('+', left, right)
}

function compared(operator: BinaryOperator, left: Expression, right: Expression): Expression {
  return { kind: 'binary', operator, left, right, position: right.position }
}
