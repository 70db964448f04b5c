// Binds extract() and date_part() for arguments for which the ordinary functions do not suffice. In the PostgreSQL
// dialect seconds and epoch keep their fraction, so functions with that result are called instead. In the native
// dialect (that of HTTP clients) a difference of two timestamps is a plain number, whose unit (micro- or nanoseconds)
// is taken from the two operands.

import { type DataType, dataType, isSpan } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import { isExactPart } from '../functions/times-exact.js'
import type { Expression } from '../plan/plan.js'
import { scalarCall, textOf } from '../typing/make-call.js'
import { castTo, commonType } from '../typing/types.js'
import { isTimestamp } from './comparison.js'
import { bindExpression, type ExpressionScope } from './expression.js'

/** Null if the scalar function applies, or for any other call. */
export function partOfTime(
  { name: written, args: [, operand], position }: ast.Call,
  [part, time, ...more]: readonly Expression[],
  scope: ExpressionScope,
): Expression | null {
  const name = written.toLowerCase()
  if (name !== 'extract' && name !== 'date_part') return null
  if (operand === undefined || part === undefined || time === undefined || more.length > 0) return null
  const { context } = scope
  const call = (called: string, of: Expression): Expression =>
    scalarCall(called, [part, of], position, context, written)
  const isExact = isExactPart(textOf(part) ?? '')
  const isDouble = isExact && name === 'date_part'
  if (context.dialect.exactTimeParts && isSpan(time.type))
    return call(isDouble ? 'span_date_part' : 'span_part', castTo(time, dataType('LONG')))
  if (context.dialect.exactTimeParts && isExact) return call(isDouble ? 'exact_date_part' : 'exact_part', time)
  const unit = isSpan(time.type) ? null : unitOfDistance(operand, scope)
  return unit === null ? null : call(name, castTo(time, unit))
}

/**
 * The unit of a difference of two timestamps: a number in the finer unit, whose fields are those of a timestamp that
 * long after the epoch. Null for other operands.
 */
function unitOfDistance(operand: ast.Expression, scope: ExpressionScope): DataType | null {
  if (operand.kind !== 'binary' || operand.operator !== '-') return null
  const [left, right] = [operand.left, operand.right].map((side) => bindExpression(side, scope).type)
  if (left === undefined || right === undefined || !isTimestamp(left) || !isTimestamp(right)) return null
  return commonType(left, right)
}
