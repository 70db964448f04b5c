// Converts fractions to integers, in a cast or when a value is stored in an integer column. The native dialect (that of
// HTTP clients) truncates. The PostgreSQL dialect rounds: DOUBLE and FLOAT to the nearest, halves to even; number
// literals and DECIMALs, which are exact, with halves away from zero. A DECIMAL stored in a column is rounded in both
// dialects (types/convert.ts).

import { type DataType, dataType } from '../../types/column-types.js'
import { isFraction, roundedQuotient } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import type { Dialect } from '../dialect.js'
import { roundDecimal } from '../functions/math.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from './make-call.js'
import { castTo, constantOf } from './types.js'

const wholeNames: ReadonlySet<string> = new Set(['BYTE', 'SHORT', 'INT', 'LONG'])

function isRounded(from: DataType, to: DataType, dialect: Dialect): boolean {
  return dialect.roundsFractions && isFraction(from) && wholeNames.has(to.name)
}

const arithmetic: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%'])

/** Whether the expression consists of numerals alone: `2.5`, `-2.5`, `1.5 + 1`. */
export function isNumeral(written: ast.Expression): boolean {
  switch (written.kind) {
    case 'integer':
      return true
    case 'float':
      return !written.single
    case 'unary':
      return written.operator === '-' && isNumeral(written.operand)
    case 'binary':
      return arithmetic.has(written.operator) && isNumeral(written.left) && isNumeral(written.right)
    default:
      return false
  }
}

/** Rounds a constant of type `from` for its conversion to `to`, if the dialect rounds. */
export function roundedValue(
  value: Value,
  from: DataType,
  to: DataType,
  written: { readonly dialect: Dialect; readonly isNumeral: boolean },
): Value {
  if (typeof value !== 'number' || !isRounded(from, to, written.dialect)) return value
  return roundDecimal(value, 0, written.isNumeral ? 'halfUp' : 'halfEven')
}

/** Rounds the values of an expression for their conversion to the type, if the dialect rounds. */
export function roundedExpression(value: Expression, to: DataType, dialect: Dialect): Expression {
  if (!isRounded(value.type, to, dialect)) return value
  const { position } = value
  const double = dataType('DOUBLE')
  const number = value.type.name === 'DOUBLE' ? value : castTo(value, double)
  const args = [number, constantOf(0, dataType('INT'), position)]
  return { kind: 'call', name: 'round_half_even', args, type: double, position }
}

/** Rounds a constant for a cast, which in the dialect of PostgreSQL also rounds DECIMALs. */
export function roundedForCast(
  value: Value,
  from: DataType,
  to: DataType,
  written: { readonly dialect: Dialect; readonly isNumeral: boolean },
): Value {
  const isExact = typeof value === 'bigint' && isRoundedDecimal(from, to, written.dialect)
  if (!isExact) return roundedValue(value, from, to, written)
  return roundedQuotient(value, from.b) * 10n ** BigInt(from.b)
}

/** Rounds the values of an expression for a cast. */
export function roundedOperand(value: Expression, to: DataType, context: BindContext): Expression {
  if (!isRoundedDecimal(value.type, to, context.dialect)) return roundedExpression(value, to, context.dialect)
  const { position } = value
  return scalarCall('round', [value, constantOf(0, dataType('INT'), position)], position, context)
}

function isRoundedDecimal(from: DataType, to: DataType, dialect: Dialect): boolean {
  return dialect.roundsFractions && from.name === 'DECIMAL' && from.b > 0 && wholeNames.has(to.name)
}
