// Binds a sub-query of an expression that does not refer to the outer query. It is planned on its own and runs once,
// before the outer query, which then uses its result as a constant.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type { Query } from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import { type BindContext, nested } from '../scope/bind-context.js'
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
