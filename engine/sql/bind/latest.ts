// LATEST ON: the newest row per key.

import { SqlError } from '../../base/errors.js'
import { isTime } from '../functions/convert.js'
import type * as ast from '../parse/ast.js'
import type { Expression, Plan } from '../plan/plan.js'
import type { BindContext } from './bind-context.js'
import { bindExpression } from './expression.js'
import { dropExtra, withExtra } from './order.js'
import type { Relation } from './scope.js'

export function bindLatest(relation: Relation, latest: ast.LatestOn, context: BindContext): Relation {
  const scope = { context, columns: relation.columns, aggregates: null, windows: null }
  const timestampIndex =
    latest.timestamp === null ? relation.timestampIndex : timestampOf(bindExpression(latest.timestamp, scope))
  if (timestampIndex < 0)
    throw new SqlError('latest by query does not provide dedicated TIMESTAMP column', latest.position)
  const width = relation.plan.columns.length
  const extra: Expression[] = []
  const keys = latest.partitionBy.map((expression) => {
    const bound = bindExpression(expression, scope)
    return bound.kind === 'column' ? bound.index : width + extra.push(bound) - 1
  })
  const input = withExtra(relation, extra)
  const plan: Plan = { kind: 'latest', columns: input.plan.columns, input: input.plan, timestampIndex, keys }
  return dropExtra({ ...input, plan, timestampIndex, order: 'ascending' }, width)
}

function timestampOf(expression: Expression): number {
  if (expression.kind !== 'column' || !isTime(expression.type))
    throw new SqlError('not a TIMESTAMP', expression.position)
  return expression.index
}
