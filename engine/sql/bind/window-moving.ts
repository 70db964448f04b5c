// Binds avg() as a window function for moving averages. Its second argument selects exponential smoothing by a factor
// (`avg(price, 'alpha', 0.2)`), by a number of rows (`avg(price, 'period', 10)`) or by a time constant
// (`avg(price, 'minute', 5)`). An optional fourth argument is a volume, by which the values are weighted.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { isNumber, isText, isTime } from '../../types/convert.js'
import { ticksPerUnit } from '../../types/timestamp-floor.js'
import type * as ast from '../ast/ast.js'
import { timeUnitOf } from '../parse/literal.js'
import type { Expression, WindowCall } from '../plan/plan.js'
import { isConstant } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { constantOf, convertTo, isUntypedNull } from '../typing/types.js'
import { bindExpression, type ExpressionScope } from './expression.js'

const doubleType = dataType('DOUBLE')

export function isMovingAverage(call: ast.Call): boolean {
  return call.name.toLowerCase() === 'avg' && (call.args.length === 3 || call.args.length === 4)
}

export function bindMovingAverage(
  call: ast.Call,
  window: ast.WindowSpecification,
  scope: ExpressionScope,
): Pick<WindowCall, 'name' | 'args' | 'type'> {
  const args = call.args.map((argument) => bindExpression(argument, scope))
  const [value, kind, amount, volume] = args as [Expression, Expression, Expression, Expression | undefined]
  const [first, ...more] = window.orderBy
  if (!isNumber(value.type) || (volume !== undefined && !isNumber(volume.type)))
    throw noMatch(call.name, args, call.position)
  const word = kindOf(kind)
  const number = amountOf(amount)
  if (window.frame !== null)
    throw new SqlError('avg() does not support framing; remove ROWS/RANGE clause', call.position)
  if (first === undefined) throw new SqlError('avg() requires ORDER BY', call.position)
  const [double, volumes] = [value, volume].map((part) => (part === undefined ? [] : [convertTo(part, doubleType)]))
  const constant = (share: number): Expression => constantOf(share, doubleType, amount.position)
  if (word === 'alpha' || word === 'period') {
    if (word === 'alpha' && number > 1)
      throw new SqlError('alpha must be between 0 (exclusive) and 1 (inclusive)', amount.position)
    const share = constant(word === 'alpha' ? number : 2 / (number + 1))
    return { name: 'moving_avg', args: [...(double ?? []), share, ...(volumes ?? [])], type: doubleType }
  }
  const time = bindExpression(first.expression, scope)
  if (!isTime(time.type) || more.length > 0)
    throw new SqlError('avg() over time requires ORDER BY of a timestamp', call.position)
  const ticks = ticksPerUnit(word, time.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP')
  const span = constant((number * Number(ticks)) / (time.type.name === 'DATE' ? 1000 : 1))
  return { name: 'moving_avg_time', args: [...(double ?? []), time, span, ...(volumes ?? [])], type: doubleType }
}

function kindOf(kind: Expression): 'alpha' | 'period' | ast.TimeUnit {
  if (isUntypedNull(kind)) throw new SqlError('kind parameter cannot be null', kind.position)
  if (!isConstant(kind)) throw new SqlError('kind parameter must be a constant', kind.position)
  const word = isText(kind.type) || kind.type.name === 'CHAR' ? String(kind.value).toLowerCase() : ''
  if (word === 'alpha' || word === 'period') return word
  const unit = word.length > 1 ? timeUnitOf(word) : undefined
  // Months and years have no fixed length.
  if (unit !== undefined && unit !== 'M' && unit !== 'y') return unit
  throw new SqlError(
    "invalid kind parameter: expected 'alpha', 'period', or a time unit (second, minute, hour, day, week)",
    kind.position,
  )
}

function amountOf(amount: Expression): number {
  if (!isConstant(amount)) throw new SqlError('parameter value must be a constant', amount.position)
  const number = isUntypedNull(amount) || amount.value === null ? Number.NaN : Number(amount.value)
  if (!(number > 0 && number < Number.POSITIVE_INFINITY))
    throw new SqlError('parameter value must be a positive number', amount.position)
  return number
}
