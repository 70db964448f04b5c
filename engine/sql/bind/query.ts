// Binds a whole query: WITH and DECLARE, the body, ORDER BY and LIMIT. Syntax tree in, relation (plan with named
// columns) out.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Expression, Plan } from '../plan/plan.js'
import { type BindContext, nested } from '../scope/bind-context.js'
import { type Relation, scopeOf } from '../scope/scope.js'
import { declaredWithin, substituteDeclarations } from '../scope/substitute.js'
import { isConstant } from '../typing/make-call.js'
import { convertTo, isUntypedNull, learnType } from '../typing/types.js'
import { bindExpression, rowlessScope } from './expression.js'
import { bindOrderOfOutput } from './order.js'
import { bindSelect } from './select.js'
import { bindSetOperation, bindValues } from './set-operation.js'
import { bindShow } from './show.js'

/** The columns have no source name: the caller sets it. */
export function bindQuery(written: ast.Query, context: BindContext): Relation {
  const isTimed = context.timedQuery === written
  return withNames(written, context, (query) => limitedBy(bindOrdered(query, isTimed, context), query.limit, context))
}

/** Binds a query with its variables substituted and its WITH names in scope. */
export function withNames(written: ast.Query, context: BindContext, bind: (query: ast.Query) => Relation): Relation {
  const query = substituteDeclarations(written)
  const before = context.commonTables.length
  const { declared } = context
  context.declared = declaredWithin(written, declared)
  const known = new Set<string>()
  try {
    for (const table of query.commonTables) {
      if (known.has(table.key)) throw new SqlError('duplicate name', table.position)
      known.add(table.key)
      context.commonTables.push(table)
    }
    return bind(query)
  } finally {
    context.commonTables.length = before
    context.declared = declared
  }
}

function bindOrdered({ body, orderBy }: ast.Query, isTimed: boolean, context: BindContext): Relation {
  if (body.kind === 'select') return bindSelect(body, orderBy, context, { isTimed })
  return bindOrderOfOutput(bindBody(body, context), orderBy, context)
}

export function bindBody(body: ast.QueryBody, context: BindContext): Relation {
  switch (body.kind) {
    case 'select':
      return bindSelect(body, [], context)
    case 'set operation':
      return nested(context, body.position, () => bindSetOperation(body, context))
    case 'values':
      return bindValues(body, context)
    case 'nested':
      return nested(context, body.position, () => bindQuery(body.query, context))
    case 'show':
      return plainRelation(bindShow(body, context))
  }
}

export function plainRelation(plan: Plan): Relation {
  return { plan, columns: scopeOf(plan, null), timestampIndex: -1, order: 'none' }
}

export function limitedBy(relation: Relation, limit: ast.Limit | null, context: BindContext): Relation {
  if (limit === null) return relation
  const [lo, hi] = limitRange(limit, context)
  if (lo === 0 && hi === null) return relation
  const plan: Plan = { kind: 'limit', columns: relation.plan.columns, input: relation.plan, lo, hi }
  return { ...relation, plan }
}

/**
 * LIMIT as a range of rows: from lo (inclusive) to hi (exclusive). Negative numbers count from the end, null is the
 * end.
 */
export function limitRange(limit: ast.Limit, context: BindContext): readonly [number, number | null] {
  const low = limitNumber(limit.low, context)
  const high = limitNumber(limit.high, context)
  if (low !== null && low < 0 && high !== null && high > 0)
    throw new SqlError('LIMIT <negative>, <positive> is not allowed', limit.low?.position ?? 0)
  return limitBounds(low, high, limitNumber(limit.offset, context))
}

/** One number is a count from the start, or from the end if negative. Two are a range. OFFSET shifts it. */
function limitBounds(low: number | null, high: number | null, offset: number | null): readonly [number, number | null] {
  // Two numbers from the same end are accepted in either order.
  if (high !== null && low !== null && low > high && low < 0 === high < 0) return [high, low]
  // Counted from the end, 0 is after the last row.
  if (high === 0 && low !== null && low < 0) return [low, null]
  if (high !== null) return [low ?? 0, high]
  if (offset !== null) return [offset, low === null ? null : offset + low]
  if (low === null) return [0, null]
  return low < 0 ? [low, null] : [0, low]
}

const limitRefused: ReadonlySet<string> = new Set(['STRING', 'VARCHAR', 'SYMBOL', 'CHAR', 'BOOLEAN', 'FLOAT', 'DOUBLE'])

function limitNumber(expression: ast.Expression | null, context: BindContext): number | null {
  if (expression === null) return null
  const value: Expression = bindExpression(expression, rowlessScope(context))
  if (isConstant(value) && value.parameter !== undefined) {
    learnType(value, dataType('LONG'))
    return null
  }
  // Drivers send parameters as strings.
  if (isConstant(value) && typeof value.value === 'string' && /^\d{1,15}$/.test(value.value)) return Number(value.value)
  if (!isConstant(value) || isUntypedNull(value) || limitRefused.has(value.type.name)) {
    const type = isUntypedNull(value) ? 'NULL' : value.type.name
    const isNumber = type !== 'BOOLEAN' && isConstant(value)
    throw new SqlError(
      isNumber ? `invalid type: ${type}` : 'LIMIT expressions must be convertible to INT',
      value.position,
    )
  }
  const number = convertTo(value, dataType('LONG'))
  const whole = isConstant(number) ? number.value : null
  return whole === null ? null : Number(whole)
}
