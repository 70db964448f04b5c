// Binds casts: `a::int` and `cast(a as int)`. Checks which types convert to each other, and casts constants while
// binding.

import { SqlError } from '../../base/errors.js'
import { decimalDigitsMax } from '../../base/limits.js'
import {
  type ColumnType,
  type DataType,
  dataType,
  intKinds,
  isList,
  sameType,
  textKinds,
  typeText,
} from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import {
  castValue,
  convertValue,
  displayText,
  inconvertibleText,
  integerDigits,
  isText,
  isTime,
  narrowValue,
} from '../../types/convert.js'
import { oids } from '../../types/pg-oids.js'
import { parseGeohash, parseIpv4, readUuid } from '../../types/text.js'
import { textArray } from '../../types/text-lists.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { sliceOpenEnd } from '../functions/array-slice.js'
import type { Expression } from '../plan/plan.js'
import { namedTime } from '../scope/interval-shift.js'
import { dayOf, dayType, isDayTypeName, truncateToDay } from '../typing/days.js'
import { deferredOf, isDeferred, isOfParameters } from '../typing/deferred-values.js'
import { exactNumber } from '../typing/exact-numbers.js'
import { castOfJson, wholeTypes } from '../typing/json-cast.js'
import { type Constant, isConstant, scalarCall, textOf } from '../typing/make-call.js'
import { isNumeral, roundedForCast, roundedOperand } from '../typing/rounded.js'
import { castToSpan } from '../typing/span.js'
import {
  castTo,
  checkedCastTo,
  constantOf,
  convertTo,
  isTypeName,
  isUntypedNull,
  learnType,
  listType,
  nullAs,
  typeOfName,
  unboundedDigits,
} from '../typing/types.js'
import { bindTextList } from './array.js'
import { asText, castToNamed, namedKind } from './catalog-calls.js'
import { bindExpression, type ExpressionScope } from './expression.js'

export function bindCast(expression: ast.CastExpression, scope: ExpressionScope): Expression {
  const value = boundCast(expression, scope)
  const { name, parameters, dimensions } = expression.type
  const [digits] = parameters
  if (digits === undefined || dimensions > 0) return value
  if (isText(value.type) && cutNames.has(name)) return cutText(value, digits, scope)
  const isRounded = name === 'timestamp' || name === 'timestamptz'
  return isRounded && digits >= 0 && digits < 6 ? roundedTime(value, digits, scope) : value
}

/** Types whose parameter is a maximum length. */
const cutNames: ReadonlySet<string> = new Set(['varchar', 'char', 'character', 'bpchar'])

/** `s::varchar(4)`: the first four characters. */
function cutText(text: Expression, length: number, { context }: ExpressionScope): Expression {
  const { position, type } = text
  const cut = scalarCall('left', [text, constantOf(length, dataType('INT'), position)], position, context)
  return { ...cut, type }
}

/** `ts::timestamp(0)`: rounded to that many digits of the second. */
function roundedTime(time: Expression, digits: number, { context }: ExpressionScope): Expression {
  const { position, type } = time
  const size = 10 ** (6 - digits)
  const half = constantOf(BigInt(size / 2), dataType('LONG'), position)
  const unit = constantOf(`${size}U`, dataType('STRING'), position)
  const moved = scalarCall('+', [time, half], position, context)
  return { ...scalarCall('timestamp_floor', [unit, moved], position, context), type }
}

function boundCast(expression: ast.CastExpression, scope: ExpressionScope): Expression {
  const kind = namedKind(expression.type.name)
  const elements = writtenList(expression, scope)
  if (elements !== null) return elements
  const bound = bindExpression(operandOf(expression), scope)
  const isExact = expression.type.dimensions === 0 && /^(decimal|numeric)$/.test(expression.type.name)
  const operand = isExact ? exactNumber(bound, scope.context.dialect) : bound
  if (kind !== null && expression.type.dimensions === 0) return castToNamed(operand, kind, scope.context)
  const label = castToLabel(expression, operand, scope)
  if (label !== null) return label
  const list = castToList(expression, operand, scope)
  if (list !== null) return list
  const span = isSpanName(expression.type) ? castToSpan(operand, scope.context) : null
  if (span !== null) return { ...span, position: expression.position }
  const written = castType(expression, scope.context.sql)
  const isDay = isDayTypeName(expression.type, scope.context)
  const type = isDay ? dayType : isUnbounded(expression.type, scope) ? (digitsOf(operand) ?? written) : written
  const number = isJson(expression.operand) ? castOfJson(operand, type, scope.context) : null
  if (number !== null) return { ...number, position: expression.position }
  if (expression.type.name === 'time' && hasTimeOfDay(operand))
    return scalarCall('time', [operand], expression.position, scope.context)
  const value = isText(type) ? asText(operand, scope.context) : operand
  checkSource(value, type, expression, scope.context.sql)
  const text = textOf(value)
  if (text !== undefined) checkTextCast(text, value, type)
  if (text !== undefined && scope.context.dialect.strictCasts) checkInfinity(text, value, type)
  if (value.type.name === 'GEOHASH' && type.name === 'GEOHASH' && value.type.a < type.a && value.kind !== 'constant') {
    throw new SqlError(
      `there is no matching function \`cast\` with the argument types: (${typeName(value.type)})`,
      expression.position,
    )
  }
  checkDimensions(value.type, type, expression.position)
  if (type.name === 'DECIMAL' && isConstant(value) && value.value !== null)
    checkDecimal(value, value.value, type, expression, scope)
  if (isConstant(value) && value.type.name === 'GEOHASH' && type.name === 'GEOHASH' && value.type.a < type.a)
    throw new SqlError(
      `CAST cannot narrow values from GEOHASH(${value.type.a}b) to GEOHASH(${type.a}b)`,
      expression.position,
    )
  learnType(value, type)
  learnOid(value, expression.type.name)
  if (isConstant(value)) {
    const known = expression.operand.kind === 'parameter' ? castGiven : castConstant
    const given = isChecked(type, scope) ? narrowed : known
    const { dialect } = scope.context
    const cast = (): Value => {
      const numeral = { dialect, isNumeral: isNumeral(expression.operand) }
      const whole = { ...value, value: roundedForCast(value.value, value.type, type, numeral) }
      return isDay ? truncateToDay(given(whole, type)) : given(whole, type)
    }
    if (isDeferred(value)) return deferredOf(cast, type, expression.position, value)
    const { position } = expression
    if (value.value === null && type.name === 'STRING' && value.parameter === undefined)
      return { kind: 'constant', value: null, type, position, isText: true }
    return { ...nullAs(value, type, cast()), position }
  }
  if (isDay) return { ...dayOf(value, scope.context), position: expression.position }
  const cast = isChecked(type, scope) ? checkedCastTo : castTo
  const source = roundedOperand(value, type, scope.context)
  return { ...(sameType(value.type, type) ? { ...value, type } : cast(source, type)), position: expression.position }
}

/**
 * Whether a number out of range is an error: the native dialect keeps the low bits of BYTE and SHORT, PostgreSQL's
 * reports it.
 */
function isChecked(type: DataType, { context }: ExpressionScope): boolean {
  return context.dialect.strictCasts && (type.name === 'BYTE' || type.name === 'SHORT')
}

function narrowed({ value, type: from, position }: Constant, to: DataType): Value {
  const read = narrowValue(value, from, to)
  if (read === undefined) throw new SqlError(inconvertibleText(value, from, to), position)
  return read
}

/** Whether the operand may have a time of day. A parameter gets the type instead. */
function hasTimeOfDay(operand: Expression): boolean {
  const { type } = operand
  return isTime(type) || type.name === 'DATE' || (isText(type) && !isParameter(operand) && !isUntypedNull(operand))
}

function isSpanName({ name, dimensions }: ast.TypeName): boolean {
  return name === 'interval' && dimensions === 0
}

/** `'a'::mood`: a string that must be a label of the enumeration; null if the type is none. */
function castToLabel({ type, position }: ast.CastExpression, value: Expression, scope: ExpressionScope) {
  const { catalog } = scope.context
  const found = isTypeName(type.name) ? undefined : catalog.enumeration?.(type.text)
  if (found === undefined) return null
  if (type.dimensions > 0) return convertTo(value, dataType('STRING', textKinds.strings))
  scope.context.cacheable = false
  const text = isUntypedNull(value) || isText(value.type) ? value : castTo(value, dataType('STRING'))
  const [name, labels] = [found.name, textArray(found.labels)].map((known) =>
    constantOf(known, dataType('STRING'), position),
  )
  return scalarCall('enum_in', [text, name, labels] as Expression[], position, scope.context)
}

const timeNames: ReadonlySet<string> = new Set(['timestamp', 'timestamptz', 'timestamp_ns', 'date'])

function operandOf({ operand, type }: ast.CastExpression): ast.Expression {
  if (operand.kind !== 'string' || type.dimensions > 0 || !timeNames.has(type.name)) return operand
  return namedTime(operand.value, operand.position) ?? operand
}

/**
 * PostgreSQL types that share one of our types. A parameter of such a type is described to clients with PostgreSQL's
 * oid.
 */
const otherOids: Partial<Record<string, { readonly oid: number; readonly as: DataType['name'] }>> = {
  timestamptz: { oid: oids.timestamptz, as: 'TIMESTAMP' },
  time: { oid: oids.time, as: 'STRING' },
  inet: { oid: oids.inet, as: 'STRING' },
  cidr: { oid: oids.cidr, as: 'STRING' },
}

function learnOid(value: Expression, written: string): void {
  const other = otherOids[written]
  if (other === undefined || value.kind !== 'constant' || value.parameter?.type?.name !== other.as) return
  value.parameter.oid ??= other.oid
}

const madeOfStrings: ReadonlySet<ColumnType> = new Set(['BINARY', 'INTERVAL'])

type Types = ReadonlySet<ColumnType>
const types = (...names: ColumnType[]): Types => new Set(names)

/** Source types that a type refuses, since the values are unrelated. Strings are not listed. */
const notMadeOf: Partial<Record<ColumnType, Types>> = {
  DECIMAL: types('BOOLEAN', 'GEOHASH', 'ARRAY'),
  UUID: types(
    'BOOLEAN',
    'BYTE',
    'SHORT',
    'INT',
    'LONG',
    'FLOAT',
    'DOUBLE',
    'DATE',
    'TIMESTAMP',
    'TIMESTAMP_NS',
    'LONG256',
  ),
  IPv4: types('BOOLEAN', 'FLOAT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'LONG256'),
  GEOHASH: types('BOOLEAN', 'FLOAT', 'DOUBLE'),
  ARRAY: types('BOOLEAN', 'LONG256'),
}
const becomesOnly: Partial<Record<ColumnType, Types>> = {
  GEOHASH: types('GEOHASH', 'STRING', 'VARCHAR'),
  BINARY: types('BINARY', 'STRING', 'VARCHAR', 'SYMBOL'),
  ARRAY: types('ARRAY', 'STRING', 'VARCHAR'),
  DECIMAL: types('DECIMAL', 'BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'STRING', 'VARCHAR'),
}

/** Throws unless the type accepts the source. BINARY and INTERVAL accept only themselves and strings. */
function checkSource(value: Expression, type: DataType, { position, type: written }: ast.CastExpression, sql: string) {
  const from = value.type.name
  if (from === type.name || isText(value.type) || isUntypedNull(value) || isParameter(value)) return
  const isOfStrings = madeOfStrings.has(type.name)
  if (isOfStrings && !sql.startsWith('::', position)) throw new SqlError('unsupported cast', written.position)
  const isRefused = isOfStrings || notMadeOf[type.name]?.has(from) || becomesOnly[from]?.has(type.name) === false
  if (!isRefused) return
  const pair = `${typeName(value.type)}, ${typeName(type)}`
  throw new SqlError(`there is no matching function \`cast\` with the argument types: (${pair})`, position)
}

/** PostgreSQL's dialect has infinite timestamps. NULL would be wrong, so the cast is an error. */
function checkInfinity(text: string, { type: from, position }: Expression, type: DataType): void {
  if ((isTime(type) || type.name === 'DATE') && /^\s*[+-]?infinity\s*$/i.test(text))
    throw new SqlError(inconvertibleText(text, from, type), position)
}

function checkDimensions(from: DataType, to: DataType, position: number): void {
  if (from.name !== 'ARRAY' || to.name !== 'ARRAY' || from.a <= to.a) return
  const sides = `[from=${typeName(from)} (${from.a}D), to=${typeName(to)} (${to.a}D)]`
  const hint = "Use array flattening operation (e.g. 'flatten(arr)') instead"
  throw new SqlError(`cannot cast array to lower dimension ${sides}. ${hint}`, position)
}

/** A literal of one digit is also a number. */
function castConstant({ value, type: from }: Constant, to: DataType): Value {
  const counts = isTime(to) || to.name === 'DATE' || to.name === 'LONG256'
  if (typeof value === 'string' && from.name === 'CHAR' && counts && value !== '')
    return castValue(BigInt(value), dataType('LONG'), to)
  return castValue(value, from, to)
}

/**
 * Casts a parameter that the client sent as a string. If it does not parse, it is an error, as for a parameter without
 * a type.
 */
function castGiven(given: Constant, to: DataType): Value {
  const { value, type: from, position } = given
  if (typeof value !== 'string' || isText(to) || madeOfStrings.has(to.name)) return castConstant(given, to)
  const read = convertValue(value, from, to)
  if (read === undefined) throw new SqlError(inconvertibleText(value, from, to), position)
  return read
}

function isJson(operand: ast.Expression): boolean {
  return operand.kind === 'call' && operand.name.toLowerCase() === 'json_extract'
}

function isParameter(value: Expression): boolean {
  return isConstant(value) && value.parameter !== undefined
}

/** `array[a, $1]::text[]`: a list of elements that are cast one by one. */
function writtenList({ type, operand, position }: ast.CastExpression, scope: ExpressionScope): Expression | null {
  if (type.dimensions !== 1 || operand.kind !== 'array' || operand.elements.some(({ kind }) => kind === 'array'))
    return null
  const element = { ...type, dimensions: 0 }
  const to = typeOfName(element)
  if (to === undefined || namedKind(type.name) !== null || to.name === 'DOUBLE' || to.name === 'FLOAT') return null
  // A BOOLEAN has no NULL, but a list element has.
  const elements = operand.elements.map((value) =>
    value.kind === 'null'
      ? bindExpression(value, scope)
      : bindCast({ kind: 'cast', operand: value, type: element, position: value.position }, scope),
  )
  return bindTextList(elements, position, scope, listType(to.name, to.a))
}

/** `'{a,b}'::text[]`, `array[1]::int[]`: lists stay lists, and arrays of numbers stay arrays. */
function castToList(
  { type, operand, position }: ast.CastExpression,
  value: Expression,
  scope: ExpressionScope,
): Expression | null {
  const element = typeOfName({ ...type, dimensions: 0 })
  if (type.dimensions === 0 || element?.name === 'DOUBLE' || element?.name === 'FLOAT') return null
  if (operand.kind === 'array' && operand.elements.length === 0)
    return constantOf('{}', listType(element?.name ?? 'STRING'), position)
  if (value.type.name === 'ARRAY') return value
  if (!isText(value.type)) return null
  if (isConstant(value) && value.parameter !== undefined && element !== undefined) {
    value.parameter.isList = true
    learnType(value, type.name === 'oid' ? dataType('INT', intKinds.oid) : element)
  }
  const isNamed = type.name === 'oid' || element === undefined
  if (isNamed) return { ...value, type: dataType('STRING', textKinds.numbers) }
  if (isConstant(value) || isList(value.type)) return { ...value, type: listType(element.name, element.a) }
  // Vectors of the catalog have another form: `1 2`.
  const all = [1, sliceOpenEnd].map((bound) => constantOf(bound, dataType('INT'), position))
  return {
    ...scalarCall('list_slice', [value, ...all], position, scope.context),
    type: listType(element.name, element.a),
  }
}

/** `x::float` means DOUBLE, as in PostgreSQL; `cast(x as float)` means FLOAT. */
function castType({ type, position }: ast.CastExpression, sql: string): DataType {
  if (type.name === 'float' && type.dimensions === 0 && sql.startsWith('::', position)) return dataType('DOUBLE')
  // Drivers select the number of a type that way; sqlx sends `$1::regtype::oid`.
  if (type.name === 'oid' && type.dimensions === 0) return dataType('INT', intKinds.oid)
  const found = typeOfName(type)
  if (found === undefined)
    throw new SqlError(
      /^cast/i.test(sql.slice(position)) ? 'unsupported cast' : `invalid constant: ${type.name}`,
      type.position,
    )
  if (type.dimensions > 0 && found.name !== 'ARRAY')
    throw new SqlError(`unsupported array element type [type=${type.name.toUpperCase()}]`, type.position)
  return found
}

/**
 * Whether the type is NUMERIC without parameters, which holds any number. DECIMAL without them has the native default.
 */
function isUnbounded({ name, parameters, dimensions }: ast.TypeName, { context }: ExpressionScope): boolean {
  const isNumeric = name === 'numeric' || (name === 'decimal' && context.dialect.unboundedNumeric)
  return isNumeric && parameters.length === 0 && dimensions === 0
}

/** The DECIMAL type that holds all digits of the value, or the maximum for a column of its type; null for NULL. */
function digitsOf(value: Expression): DataType | null {
  const { type } = value
  if (type.name === 'DECIMAL') return type
  if (isConstant(value) && value.value === null && value.parameter === undefined) return null
  if (isConstant(value) && !isOfParameters(value) && value.value !== null) return writtenDigits(String(value.value))
  if (!wholeTypes.includes(type.name)) return dataType('DECIMAL', ...unboundedDigits)
  return dataType('DECIMAL', Math.max(integerDigits(type), precisionDefault))
}

const precisionDefault = 18

function writtenDigits(text: string): DataType | null {
  const match = /^\s*[+-]?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\s*$/.exec(text)
  if (match === null) return null
  const [, before = '', fraction = '', exponent = '0'] = match
  const places = Math.max(0, fraction.length - Number(exponent))
  const precision = Math.max(before.length + Math.max(fraction.length, Number(exponent)), places, precisionDefault)
  return precision > decimalDigitsMax ? null : dataType('DECIMAL', precision, places)
}

/**
 * Throws if a constant exceeds the digits of the type, where a column would yield NULL. With the name `numeric` the
 * fraction is rounded.
 */
function checkDecimal(
  { type: from, position }: Expression,
  value: Exclude<Value, null>,
  to: DataType,
  cast: ast.CastExpression,
  { context }: ExpressionScope,
): void {
  const isRounded = context.dialect.unboundedNumeric || cast.type.name === 'numeric'
  const places = fractionLength(value, from)
  if (!isRounded && places > to.b && from.name === 'DOUBLE')
    throw new SqlError(`decimal '${value}' has ${places} decimal places but scale is limited to ${to.b}`, position)
  if (castValue(value, from, to) !== null && (isRounded || places <= to.b)) return
  const [shown, name] = isText(from) ? [`\`${value}\``, 'STRING'] : [displayText(value, from), typeText(from)]
  throw new SqlError(
    `inconvertible value: ${shown} [${name} -> DECIMAL(${to.a},${to.b})]`,
    from.name === 'DECIMAL' ? cast.position : position,
  )
}

/** Number of digits after the decimal point. */
function fractionLength(value: Exclude<Value, null>, from: DataType): number {
  const text =
    from.name === 'DOUBLE' ? String(value) : isText(from) || from.name === 'DECIMAL' ? displayText(value, from) : ''
  return /^[+-]?\d*\.(\d*?)0*$/.exec(text)?.[1]?.length ?? 0
}

function geohashProblem(text: string, bits: number): string {
  if (text.length * 5 >= bits) return 'invalid GEOHASH'
  return `string is too short to cast to chosen GEOHASH precision [len=${text.length}, precision=${bits}]`
}

/** Throws if a one-character literal, or a UUID, IPv4 address or geohash literal, does not parse. */
function checkTextCast(text: string, value: Expression, type: DataType): void {
  if (text === '') return
  if (type.name === 'UUID' && readUuid(text) === null) throw new SqlError('invalid UUID constant', value.position)
  if (type.name === 'IPv4' && parseIpv4(text) === null) throw new SqlError('invalid IPv4 constant', value.position)
  if (type.name === 'GEOHASH' && parseGeohash(text, type.a) === null)
    throw new SqlError(geohashProblem(text, type.a), value.position)
  const needsDigit =
    ['BYTE', 'SHORT', 'INT', 'LONG', 'LONG256', 'FLOAT', 'DOUBLE', 'DATE'].includes(type.name) || isTime(type)
  const isConvertible = type.name === 'BOOLEAN' ? /^[01tf]$/i.test(text) : !needsDigit || /^\d$/.test(text)
  if (value.type.name === 'CHAR' && !isConvertible) {
    throw new SqlError(`inconvertible value: ${text} [CHAR -> ${type.name}]`, value.position)
  }
}
