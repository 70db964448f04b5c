// `(query) timestamp(ts)`: names the designated timestamp of rows. Rows that are not known to lie in its order are sorted, and
// a NULL among its values is an error.

import { SqlError } from '../../base/errors.js'
import { isTime } from '../functions/convert.js'
import type * as ast from '../parse/ast.js'
import type { Expression, Plan } from '../plan/plan.js'
import { inputsOf } from '../plan/walk-plan.js'
import { columnExpression, sorted } from './order.js'
import type { Relation } from './scope.js'

export function withTimestamp(relation: Relation, timestamp: ast.Name | null): Relation {
  if (timestamp === null) return relation
  const found = relation.columns.find(({ name }) => name.toLowerCase() === timestamp.name.toLowerCase())
  if (found === undefined) throw SqlError.columnMissing(timestamp.name, timestamp.position)
  if (!isTime(found.type)) throw new SqlError('not a TIMESTAMP', timestamp.position)
  const { index } = found
  const isInOrder = relation.timestampIndex === index && relation.order !== 'none'
  // Without a sort the order is that of a table, whose timestamps are never NULL.
  if (isInOrder && !hasSort(relation.plan)) return relation
  const present = withoutNull(relation, index, timestamp.position)
  return isInOrder ? present : sorted(present, [{ index, descending: false, nullsFirst: true }])
}

function hasSort(plan: Plan): boolean {
  return plan.kind === 'sort' || inputsOf(plan).some(hasSort)
}

function withoutNull(relation: Relation, index: number, position: number): Relation {
  const { columns } = relation.plan
  const expressions = columns.map((column, at): Expression => {
    const value = columnExpression(column, at)
    return at === index ? { kind: 'call', name: 'present_time', args: [value], type: column.type, position } : value
  })
  return { ...relation, plan: { kind: 'project', columns, input: relation.plan, expressions } }
}
