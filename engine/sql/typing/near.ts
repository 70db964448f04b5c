// Comparisons of doubles with constants: numbers that are 1e-10 apart, or less, are equal, as clients of this dialect know it
// (`0.1 + 0.2 = 0.3`). The doubles that equal a constant are a range, so a comparison becomes one with its ends: kernels,
// indexes and the interpreter see plain comparisons. Groups, keys of joins and CASE tell all doubles apart, and so do
// comparisons of two columns.

import { dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { isLate, laterOf } from './late-values.js'
import { type Constant, isConstant, scalarCall } from './make-call.js'
import { constantOf } from './types.js'

const tolerance = 1e-10

const mirrored: Readonly<Record<ast.ComparisonOperator, ast.ComparisonOperator>> = {
  '=': '=',
  '<>': '<>',
  '<': '>',
  '>': '<',
  '<=': '>=',
  '>=': '<=',
}

/** undefined: the sides are compared as they are. */
export function compareNear(
  operator: ast.ComparisonOperator,
  left: Expression,
  right: Expression,
  position: number,
  context: BindContext,
): Expression | undefined {
  if (left.type.name !== 'DOUBLE' || right.type.name !== 'DOUBLE') return undefined
  if (isConstant(left) && !isConstant(right)) return compareNear(mirrored[operator], right, left, position, context)
  if (!isConstant(right) || isWholeNumber(left)) return undefined
  if (!isLate(right) && !hasNeighbours(right.value)) return undefined
  const call = (name: string, ...args: Expression[]): Expression => scalarCall(name, args, position, context)
  const [low, high] = [end(right, -1), end(right, 1)]
  switch (operator) {
    case '=':
      return call('between', left, low, high)
    case '<>':
      return call('not', call('between', left, low, high))
    case '<':
    case '>=':
      return call(operator, left, low)
    case '>':
    case '<=':
      return call(operator, left, high)
  }
}

/** Its values lie further apart than that. */
function isWholeNumber(expression: Expression): boolean {
  return expression.kind === 'call' && expression.name === 'cast' && expression.args[0]?.type.name !== 'DOUBLE'
}

function hasNeighbours(value: Value): boolean {
  return typeof value === 'number' && lastEqual(value, 1) !== value
}

function end(constant: Constant, direction: 1 | -1): Expression {
  const read = (): Value => (typeof constant.value === 'number' ? lastEqual(constant.value, direction) : null)
  const { position } = constant
  return isLate(constant)
    ? laterOf(read, dataType('DOUBLE'), position)
    : constantOf(read(), dataType('DOUBLE'), position)
}

/** The last double in one direction that equals the value. */
export function lastEqual(value: number, direction: 1 | -1): number {
  let last = value + direction * tolerance
  if (!Number.isFinite(last)) return value
  while (Math.abs(last - value) > tolerance) last = next(last, -direction as 1 | -1)
  // The sum is a neighbour of the end, or it; beside zero there are more doubles than anybody asks about.
  const beyond = next(last, direction)
  return Math.abs(beyond - value) <= tolerance ? beyond : last
}

const double = new Float64Array(1)
const bits = new BigInt64Array(double.buffer)

/** The neighbour of a double. */
function next(value: number, direction: 1 | -1): number {
  if (value === 0) return direction * Number.MIN_VALUE
  double[0] = value
  bits[0] = bits[0]! + (value > 0 === direction > 0 ? 1n : -1n)
  return double[0]!
}
