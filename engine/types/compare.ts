// Compares two values of the same type, by one order for WHERE, GROUP BY and min/max. NULL equals NULL and is the
// smallest value. ORDER BY has the same order, except that NULL of a FLOAT or DOUBLE, which is NaN, is the largest
// value (compareForSort). Strings compare by code points, which is the order of their UTF-8 bytes.

import type { DataType } from './column-types.js'
import { typeText } from './column-types.js'
import { formatArray } from './text.js'
import type { ArrayValue, IntervalValue, Value } from './value.js'

/** Returns -1, 0 or 1; both values have the same type (or are both strings). NULL comes first. */
export function compareValues(left: Value, right: Value): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? -1 : 1
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right)
  if (isPlain(left) && isPlain(right)) return left < right ? -1 : left > right ? 1 : 0
  if (left instanceof Uint8Array && right instanceof Uint8Array) return Buffer.compare(left, right)
  return compareText(keyText(left), keyText(right))
}

function isPlain(value: Value): value is number | bigint | boolean {
  return typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean'
}

export function compareText(left: string, right: string): number {
  const length = Math.min(left.length, right.length)
  for (let index = 0; index < length; index++) {
    const a = left.charCodeAt(index)
    const b = right.charCodeAt(index)
    if (a !== b) return fixSurrogate(a) - fixSurrogate(b) < 0 ? -1 : 1
  }
  return Math.sign(left.length - right.length)
}

/** Surrogates represent code points above all others of 16 bits. */
function fixSurrogate(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

export function equalValues(left: Value, right: Value): boolean {
  return compareValues(left, right) === 0
}

/** Order of ORDER BY: like compareValues, but the NULL of a double, NaN, is the largest value. */
export function compareForSort(left: Value, right: Value, type: DataType): number {
  if ((left === null) === (right === null) || (type.name !== 'DOUBLE' && type.name !== 'FLOAT'))
    return compareValues(left, right)
  return left === null ? 1 : -1
}

/** A group key: a string that is equal exactly for equal values of a type. */
export function keyText(value: Value): string {
  if (value === null) return 'n'
  switch (typeof value) {
    case 'string':
      return `s${value.length}:${value}`
    case 'number':
      return `d${Object.is(value, -0) ? 0 : value}`
    case 'bigint':
      return `i${value}`
    case 'boolean':
      return value ? 't' : 'f'
    default:
      return objectKey(value)
  }
}

function objectKey(value: Uint8Array | ArrayValue | IntervalValue): string {
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString('hex')}`
  if ('shape' in value) return `a${formatArray(value)}`
  return `v${value.lo},${value.hi}`
}

/** The type's name in error messages. */
export function typeName(type: DataType): string {
  return type.name === 'ARRAY' || type.name === 'GEOHASH' || type.name === 'DECIMAL' ? typeText(type) : type.name
}
