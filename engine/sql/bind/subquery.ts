// Binds a sub-query that does not refer to the outer query. It is planned on its own and runs once. A sub-query in an
// expression runs before the outer query, which then uses its result as a constant. A sub-query that lists the values
// of PIVOT runs while the outer query is planned, because the values decide which columns the outer query has.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { displayText } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import type { Expression as Literal, Query } from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import { type BindContext, nested, trialOf } from '../scope/bind-context.js'
import { wholeTypes } from '../typing/json-cast.js'
import { bindQuery } from './query.js'

export function bindSubquery(query: Query, mode: 'scalar' | 'list' | 'exists', context: BindContext): Expression {
  const { plan } = nested(context, query.position, () => bindQuery(query, context))
  const [column, ...more] = plan.columns
  if (mode !== 'exists' && (column === undefined || more.length > 0)) {
    throw new SqlError('sub-query must return exactly one column', query.position)
  }
  context.subqueries.push({ plan, mode, position: query.position })
  const type = mode === 'exists' || column === undefined ? dataType('BOOLEAN') : column.type
  return { kind: 'subquery', index: context.subqueries.length - 1, type, position: query.position }
}

/**
 * The values of the query's only column, as literals. Throws NotReadyError while the query runs: the statement is then
 * planned again.
 */
export function plannedValues(query: Query, context: BindContext): readonly Literal[] {
  const { position } = query
  if (context.rowsNow === null)
    throw new SqlError('a query is not allowed here, because its result decides the columns: list the values', position)
  context.cacheable = false
  // It runs now, with the values that constants have now.
  const trial = { ...trialOf(context), deferred: null, cacheable: true }
  const { plan } = nested(context, position, () => bindQuery(query, trial))
  const [column, ...more] = plan.columns
  if (column === undefined || more.length > 0) throw new SqlError('sub-query must return exactly one column', position)
  const rows = context.rowsNow(plan, trial, position)
  return rows.map(([value]) => literalOf(value ?? null, column.type, position))
}

function literalOf(value: Value, type: DataType, position: number): Literal {
  if (value === null) return { kind: 'null', position }
  if (typeof value === 'boolean') return { kind: 'boolean', position, value }
  const text = displayText(value, type)
  if (wholeTypes.includes(type.name))
    return { kind: 'integer', position, text, digits: text, long: type.name === 'LONG' }
  if (typeof value === 'number')
    return { kind: 'float', position, text, digits: text, value, single: type.name === 'FLOAT' }
  return { kind: 'string', position, value: text }
}
