// Binds ORDER BY: positions, names of result columns, and expressions. NULL sorts as the smallest value, except for
// DOUBLE and FLOAT, whose NULL is NaN and sorts as the largest.

import { SqlError } from '../../base/errors.js'
import type { DataType } from '../../types/column-types.js'
import { isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import type { Expression, Plan, PlanColumn, SortKey } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { bindExpression } from './expression.js'

export function sortKey(index: number, type: DataType, item: ast.OrderItem): SortKey {
  if (type.name === 'BINARY') throw new SqlError('BINARY is not a supported type in ORDER BY clause', item.position)
  return { index, descending: item.descending, nullsFirst: nullsFirst(type, item) }
}

export function nullsFirst({ name }: DataType, { descending, nulls }: ast.OrderItem): boolean {
  const nullsLargest = name === 'DOUBLE' || name === 'FLOAT'
  return nulls === null ? nullsLargest === descending : nulls === 'first'
}

/** Index of the output column that an ORDER BY or GROUP BY item names by number; null if it is no number. */
export function positionOf(expression: ast.Expression, count: number, clause = 'ORDER BY'): number | null {
  if (expression.kind !== 'integer') return null
  const position = Number(expression.digits)
  if (position < 1 || position > count)
    throw new SqlError(
      clause === 'GROUP BY'
        ? `GROUP BY position ${expression.digits} is not in select list`
        : `order column position is out of range [max=${count}]`,
      expression.position,
    )
  return position - 1
}

/** The sorted relation. If the first key is a timestamp, it becomes the designated timestamp. */
export function sorted(relation: Relation, keys: readonly SortKey[]): Relation {
  const [first] = keys
  if (first === undefined) return relation
  const plan: Plan = { kind: 'sort', columns: relation.plan.columns, input: relation.plan, keys, limit: null }
  const column = relation.plan.columns[first.index]
  const timed = column !== undefined && isTime(column.type)
  return {
    ...relation,
    plan,
    timestampIndex: timed ? first.index : -1,
    order: timed ? (first.descending ? 'descending' : 'ascending') : 'none',
  }
}

/** ORDER BY after a set operation, which may refer to output columns only. */
export function bindOrderOfOutput(
  relation: Relation,
  orderBy: readonly ast.OrderItem[],
  context: BindContext,
): Relation {
  if (orderBy.length === 0) return relation
  const width = relation.plan.columns.length
  const extra: Expression[] = []
  const keys = orderBy.map((item) => {
    const position = positionOf(item.expression, width)
    if (position !== null) return sortKey(position, (relation.plan.columns[position] as PlanColumn).type, item)
    const bound = bindExpression(item.expression, {
      context,
      columns: relation.columns,
      aggregates: null,
      windows: null,
    })
    if (bound.kind === 'column') return sortKey(bound.index, bound.type, item)
    return sortKey(width + extra.push(bound) - 1, bound.type, item)
  })
  return dropExtra(sorted(withExtra(relation, extra), keys), width)
}

/** Appends hidden columns. */
export function withExtra(relation: Relation, extra: readonly Expression[]): Relation {
  if (extra.length === 0) return relation
  const { plan } = relation
  const columns = [...plan.columns, ...extra.map(({ type }, index) => ({ name: `$${index}`, type }))]
  const expressions = [...plan.columns.map(columnExpression), ...extra]
  return { ...relation, plan: { kind: 'project', columns, input: plan, expressions } }
}

export function columnExpression({ type }: PlanColumn, index: number): Expression {
  return { kind: 'column', index, type, position: 0 }
}

/** Drops columns after the first `width`. */
export function dropExtra(relation: Relation, width: number): Relation {
  const { plan } = relation
  if (plan.columns.length === width) return relation
  const columns = plan.columns.slice(0, width)
  const timestampIndex = relation.timestampIndex < width ? relation.timestampIndex : -1
  return {
    ...relation,
    plan: { kind: 'project', columns, input: plan, expressions: columns.map(columnExpression) },
    timestampIndex,
  }
}
