// Comparison of a DOUBLE expression with a constant, with a tolerance of 1e-10: clients of this dialect expect `0.1 +
// 0.2 = 0.3`. The doubles that equal a constant form a range, so the comparison is rewritten to one with the ends of
// that range: `x = 5` becomes `x between low and high`. WebAssembly kernels, indexes and the interpreter then see plain
// comparisons. Comparisons of two columns, GROUP BY keys, join keys and CASE stay exact.

import { dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { deferredOf, isDeferred } from './deferred-values.js'
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

/** The rewritten comparison; undefined if the sides are compared exactly. */
export function compareWithTolerance(
  operator: ast.ComparisonOperator,
  left: Expression,
  right: Expression,
  position: number,
  context: BindContext,
): Expression | undefined {
  if (left.type.name !== 'DOUBLE' || right.type.name !== 'DOUBLE') return undefined
  if (isConstant(left) && !isConstant(right))
    return compareWithTolerance(mirrored[operator], right, left, position, context)
  if (!isConstant(right) || isWholeNumber(left)) return undefined
  if (!isDeferred(right) && !hasNeighbours(right.value)) return undefined
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

/** Whether the values were cast from another type, an integer: they differ by more than the tolerance. */
function isWholeNumber(expression: Expression): boolean {
  return expression.kind === 'call' && expression.name === 'cast' && expression.args[0]?.type.name !== 'DOUBLE'
}

function hasNeighbours(value: Value): boolean {
  return typeof value === 'number' && lastEqual(value, 1) !== value
}

function end(constant: Constant, direction: 1 | -1): Expression {
  const read = (): Value => (typeof constant.value === 'number' ? lastEqual(constant.value, direction) : null)
  const { position } = constant
  return isDeferred(constant)
    ? deferredOf(read, dataType('DOUBLE'), position, constant)
    : constantOf(read(), dataType('DOUBLE'), position)
}

/** The largest (`direction` 1) or smallest (-1) double that equals the value within the tolerance. */
export function lastEqual(value: number, direction: 1 | -1): number {
  let last = value + direction * tolerance
  if (!Number.isFinite(last)) return value
  while (Math.abs(last - value) > tolerance) last = next(last, -direction as 1 | -1)
  // The rounded sum is the limit or a neighbour of it. Near zero neighbours are so dense that the difference does not
  // matter.
  const beyond = next(last, direction)
  return Math.abs(beyond - value) <= tolerance ? beyond : last
}

const double = new Float64Array(1)
const bits = new BigInt64Array(double.buffer)

/** The next double in the given direction. */
function next(value: number, direction: 1 | -1): number {
  if (value === 0) return direction * Number.MIN_VALUE
  double[0] = value
  bits[0] = bits[0]! + (value > 0 === direction > 0 ? 1n : -1n)
  return double[0]!
}
