// Number literals with a fraction are DOUBLE. In PostgreSQL they are exact. So for its clients, a literal that becomes
// a DECIMAL keeps the digits that were written: in a cast, in a DECIMAL column, and beside a DECIMAL in an operation.

import { decimalDigitsMax } from '../../base/limits.js'
import { dataType } from '../../types/column-types.js'
import { formatDecimal, parseDecimal } from '../../types/number.js'
import type { Dialect } from '../dialect.js'
import type { Expression } from '../plan/plan.js'
import { constantOf } from './types.js'

/**
 * The DECIMAL constant of `1.50`, `-1.5` or `1e-3`, whose precision and scale follow the spelling; null if it has too
 * many digits.
 */
export function decimalOfDigits(text: string, position: number): Expression | null {
  const [mantissa = '', exponent = '0'] = text.split(/e/i)
  const [, fraction = ''] = mantissa.split('.')
  const scale = Math.max(0, fraction.length - Number(exponent))
  const value = scale > decimalDigitsMax ? null : parseDecimal(text, decimalDigitsMax, scale)
  if (value === null) return null
  const precision = formatDecimal(value, scale).replace(/[-.]/g, '').length
  return precision > decimalDigitsMax ? null : constantOf(value, dataType('DECIMAL', precision, scale), position)
}

/** The literal as a DECIMAL, if the dialect has exact literals; any other expression as it is. */
export function exactNumber(expression: Expression, { exactNumbers }: Dialect): Expression {
  if (!exactNumbers || expression.kind !== 'constant' || expression.digits === undefined) return expression
  return decimalOfDigits(expression.digits, expression.position) ?? expression
}

/** Literals beside a DECIMAL as DECIMALs, if the dialect has exact literals. */
export function besideDecimals<T extends readonly Expression[]>(expressions: T, dialect: Dialect): T | Expression[] {
  if (!dialect.exactNumbers || !expressions.some(({ type }) => type.name === 'DECIMAL')) return expressions
  return expressions.map((expression) => exactNumber(expression, dialect))
}
