// Binds literals and parameters of the syntax tree to typed constants.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { longMax } from '../../types/number.js'
import { parseGeohash, parseGeohashBits } from '../../types/text.js'
import type { IntegerLiteral, Literal, Parameter } from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { decimalOfDigits } from './exact-numbers.js'
import { constantOf } from './types.js'

export function bindLiteral(literal: Literal, { deferred }: Pick<BindContext, 'deferred'>): Expression {
  const { position } = literal
  const later = deferred?.literal(literal) ?? null
  if (later !== null) return later
  switch (literal.kind) {
    case 'null':
      return constantOf(null, dataType('STRING'), position)
    case 'boolean':
      return constantOf(literal.value, dataType('BOOLEAN'), position)
    case 'integer':
      return bindInteger(literal)
    case 'float': {
      if (isOutside(literal)) throw new SqlError(`invalid constant: ${literal.text}`, position)
      if (Number.isNaN(literal.value)) return constantOf(null, dataType('STRING'), position)
      if (literal.single) return constantOf(Math.fround(literal.value), dataType('FLOAT'), position)
      return { kind: 'constant', value: literal.value, type: dataType('DOUBLE'), position, digits: literal.digits }
    }
    case 'decimal':
      return bindDecimal(literal.digits, position)
    case 'hex':
      return constantOf(BigInt(`0x${literal.digits}`), dataType('LONG256'), position)
    case 'string':
      return constantOf(literal.value, dataType(isCharacter(literal.value) ? 'CHAR' : 'STRING'), position)
    case 'geohash':
      return bindGeohash(literal)
    case 'interval':
      // `5M` is five months in SAMPLE BY; elsewhere the suffix `m` or `M` marks a DECIMAL.
      if (literal.text.endsWith('M')) return bindDecimal(literal.text.slice(0, -1).replaceAll('_', ''), position)
      throw new SqlError(`invalid constant: ${literal.text}`, position)
  }
}

/** One-character literals are CHAR, except a quote (written as two), which is a STRING. */
function isCharacter(text: string): boolean {
  return text.length === 1 && text !== "'"
}

/** Whether the number overflows a DOUBLE, or underflows to zero. */
function isOutside({ value, digits }: Extract<Literal, { kind: 'float' }>): boolean {
  return Math.abs(value) === Number.POSITIVE_INFINITY || (value === 0 && /[1-9]/.test(digits.replace(/e.*/i, '')))
}

/** INT if the value fits, then LONG; larger integers are DOUBLE. */
function bindInteger({ digits, long, text, position }: IntegerLiteral): Expression {
  const value = BigInt(digits)
  if (!long && value <= 2_147_483_647n) return constantOf(Number(value), dataType('INT'), position)
  if (value <= longMax) return constantOf(value, dataType('LONG'), position)
  if (long) throw new SqlError(`invalid constant: ${text}`, position)
  return { kind: 'constant', value: Number(digits), type: dataType('DOUBLE'), position, digits }
}

function bindDecimal(text: string, position: number): Expression {
  const value = decimalOfDigits(text, position)
  if (value === null) throw new SqlError(`invalid constant: ${text}m`, position)
  return value
}

function bindGeohash(literal: Extract<Literal, { kind: 'geohash' }>): Expression {
  const value = literal.binary ? parseGeohashBits(literal.digits) : parseGeohash(literal.digits, literal.bits)
  if (value === null) throw new SqlError(`invalid constant: ${literal.text}`, literal.position)
  const shift = literal.binary ? BigInt(literal.digits.length - literal.bits) : 0n
  return constantOf(value >> shift, dataType('GEOHASH', literal.bits), literal.position)
}

export function bindParameter({ index, name, position }: Parameter, context: BindContext): Expression {
  const parameter = name === null ? context.parameters[index - 1] : undefined
  if (parameter === undefined) throw new SqlError('bind variable service is not provided', position)
  const { type, slot } = parameter
  const deferred = context.deferred?.constant(index - 1, type, position) ?? null
  if (deferred !== null) return deferred
  return slot === undefined
    ? constantOf(parameter.value, type, position)
    : { kind: 'constant', value: parameter.value, type, position, parameter: slot }
}
