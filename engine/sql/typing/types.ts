// Types during binding: SQL type names, the common type of several expressions, and the implicit casts that bring
// expressions to a type.

import { SqlError } from '../../base/errors.js'
import { arrayDimensionsMax, decimalDigitsMax } from '../../base/limits.js'
import { suggestion } from '../../base/nearest.js'
import {
  type ColumnType,
  type DataType,
  dataType,
  isList,
  isSpan,
  sameType,
  storedKind,
  textKinds,
  timeKinds,
} from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import {
  convertValue,
  inconvertibleText,
  integerDigits,
  isNumber,
  isText,
  isTime,
  nearestTime,
  nullOf,
} from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import type { TypeName } from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import { deferredOf, isDeferred, isDeferredParameter } from './deferred-values.js'

const typeNames: Record<string, ColumnType> = {
  boolean: 'BOOLEAN',
  bool: 'BOOLEAN',
  byte: 'BYTE',
  short: 'SHORT',
  smallint: 'SHORT',
  int2: 'SHORT',
  char: 'CHAR',
  int: 'INT',
  integer: 'INT',
  int4: 'INT',
  long: 'LONG',
  bigint: 'LONG',
  int8: 'LONG',
  date: 'DATE',
  timestamp: 'TIMESTAMP',
  timestamptz: 'TIMESTAMP',
  timestamp_ns: 'TIMESTAMP_NS',
  float: 'FLOAT',
  float4: 'FLOAT',
  real: 'FLOAT',
  double: 'DOUBLE',
  float8: 'DOUBLE',
  string: 'STRING',
  text: 'STRING',
  // A time of day is stored as a string: there is no column type for it.
  time: 'STRING',
  timetz: 'STRING',
  varchar: 'VARCHAR',
  symbol: 'SYMBOL',
  long256: 'LONG256',
  uuid: 'UUID',
  ipv4: 'IPv4',
  geohash: 'GEOHASH',
  binary: 'BINARY',
  bytea: 'BINARY',
  decimal: 'DECIMAL',
  numeric: 'DECIMAL',
  interval: 'INTERVAL',
  // Types of PostgreSQL's catalog: object ids and names.
  oid: 'INT',
  xid: 'LONG',
  cid: 'INT',
  regoper: 'INT',
  regoperator: 'INT',
  name: 'STRING',
  bpchar: 'STRING',
  json: 'STRING',
  jsonb: 'STRING',
  xml: 'STRING',
  cstring: 'STRING',
  sql_identifier: 'STRING',
  character_data: 'STRING',
  yes_or_no: 'STRING',
  cardinal_number: 'INT',
  int2vector: 'STRING',
  oidvector: 'STRING',
  aclitem: 'STRING',
  pg_node_tree: 'STRING',
  inet: 'STRING',
  cidr: 'STRING',
}

export function isTypeName(name: string): boolean {
  return Object.hasOwn(typeNames, name)
}

/** Types of other databases, with those to use here. */
const otherTypes: ReadonlyMap<string, string> = new Map([
  ['datetime', 'TIMESTAMP'],
  ['number', 'DOUBLE or DECIMAL'],
  ['tinyint', 'BYTE'],
  ['mediumint', 'INT'],
  ['blob', 'BINARY'],
  ['clob', 'VARCHAR'],
  ['nvarchar', 'VARCHAR'],
])

/** The hint of an error about an unknown type. */
export function typeHint(name: string): string {
  const meant = otherTypes.get(name)
  return meant === undefined ? suggestion(name, Object.keys(typeNames)) : `use ${meant}`
}

/**
 * The type of a type name; undefined if the name is unknown. Throws if the parameters of the type are out of bounds.
 */
export function typeOfName(written: TypeName): DataType | undefined {
  const name = typeNames[written.name]
  if (name === undefined) return undefined
  if (written.dimensions > 0) return arrayType(name, written)
  if (name === 'GEOHASH') return geohashType(written)
  if (name === 'DECIMAL') return decimalType(written)
  if (written.name === 'json' || written.name === 'jsonb' || written.name === 'time' || written.name === 'name')
    return dataType(name, textKinds[written.name])
  return written.name === 'timestamptz' ? dataType(name, timeKinds.zoned) : dataType(name)
}

function arrayType(element: ColumnType, { dimensions, position }: TypeName): DataType {
  if (!isFloating(element)) return listType(element)
  if (dimensions > arrayDimensionsMax)
    throw new SqlError(`array dimension limit exceeded [limit=${arrayDimensionsMax}]`, position)
  return dataType('ARRAY', dimensions)
}

function isFloating(element: ColumnType): boolean {
  return element === 'DOUBLE' || element === 'FLOAT'
}

/** Lists of other elements are strings of the form `{a,b}`. */
export function listType(element: ColumnType, kind = 0): DataType {
  if (element === 'STRING' && kind === textKinds.name) return dataType('STRING', textKinds.names)
  const isShort = element === 'INT' || element === 'SHORT' || element === 'BYTE'
  return dataType('STRING', isShort ? textKinds.ints : element === 'LONG' ? textKinds.longs : textKinds.strings)
}

function geohashType({ parameters, unit, position, name }: TypeName): DataType {
  const bits = (parameters[0] ?? 60) * (unit === 'c' ? 5 : 1)
  if (bits < 1 || bits > 60) {
    // The position of the size: after the name and the parenthesis.
    throw new SqlError(
      `invalid GEOHASH type precision range, must be [1, 60] bits, provided=${bits}`,
      position + name.length + 1,
    )
  }
  return dataType('GEOHASH', bits)
}

/**
 * Precision and scale of `numeric` without parameters. In PostgreSQL such a value keeps all its digits. Sinks and
 * object mappers declare decimals of any scale that way, and GORM declares float64 so; the native default of (18, 3)
 * would round them.
 */
export const unboundedDigits = [38, 18] as const

function decimalType({ parameters, position }: TypeName): DataType {
  const [precision = 18, scale = parameters.length === 0 ? 3 : 0] = parameters
  if (precision < 1 || precision > decimalDigitsMax)
    throw new SqlError('invalid DECIMAL type, the precision must be between 1 and 76', position)
  if (scale < 0 || scale > precision)
    throw new SqlError('invalid DECIMAL type, the scale must be between 0 and the precision', position)
  return dataType('DECIMAL', precision, scale)
}

/** Whether the expression is NULL without a type of its own: the literal, which converts to any type. */
export function isUntypedNull(expression: Expression): boolean {
  if (expression.kind !== 'constant' || expression.type.name !== 'STRING' || isDeferredParameter(expression))
    return false
  return expression.value === null && expression.isText !== true && !isList(expression.type)
}

/** Like `isUntypedNull`, but also true for a NULL that was cast to a string type. */
export function isNullText(expression: Expression): boolean {
  return isUntypedNull(expression) || (expression.kind === 'constant' && expression.isText === true)
}

/** Converts an untyped NULL to the type. A parameter without a type gets the type. */
export function nullAs(missing: Expression, type: DataType, value: Value = null): Expression {
  learnType(missing, type)
  const { position } = missing
  if (missing.kind !== 'constant' || missing.parameter === undefined) return constantOf(value, type, position)
  // It stays a parameter: checks of its value wait until there is one.
  return { kind: 'constant', value, type, position, parameter: missing.parameter }
}

/** Records the inferred type of a parameter. The first inferred type wins. */
export function learnType(expression: Expression, type: DataType): void {
  if (expression.kind === 'constant' && expression.parameter !== undefined) expression.parameter.type ??= type
}

export function constantOf(
  value: Extract<Expression, { kind: 'constant' }>['value'],
  type: DataType,
  position: number,
): Expression {
  return { kind: 'constant', value, type, position }
}

/** Explicit or widening cast. Callers that fold constants convert them themselves. */
export function castTo(expression: Expression, type: DataType): Expression {
  return { kind: 'call', name: 'cast', args: [expression], type, position: expression.position }
}

/** A cast that preserves the number. BYTE and SHORT have no NULL, so a value out of their range is an error. */
export function checkedCastTo(expression: Expression, type: DataType): Expression {
  const cast = castTo(expression, type)
  const isSmall = type.name === 'BYTE' || type.name === 'SHORT'
  return isSmall ? ({ ...cast, name: 'narrow' } as Expression) : cast
}

/** Implicit conversion to a type: constants are converted now, other expressions by a checking call. */
export function convertTo(expression: Expression, type: DataType): Expression {
  if (sameType(expression.type, type) && !isUntypedNull(expression))
    return expression.type.a === type.a && expression.type.b === type.b ? expression : { ...expression, type }
  if (expression.kind === 'constant') {
    if (isDeferred(expression))
      return deferredOf(() => converted(expression, type), type, expression.position, expression)
    if (expression.value === null) return nullAs(expression, type, nullOf(type))
    const { position, ofStatement } = expression
    return { kind: 'constant', value: converted(expression, type), type, position, ...(ofStatement && { ofStatement }) }
  }
  if (isText(expression.type) && isText(type)) return castTo(expression, type)
  const isChecked = isText(expression.type) || isFiner(type, expression.type)
  return !isChecked ? castTo(expression, type) : ({ ...castTo(expression, type), name: 'convert' } as Expression)
}

/** Whether timestamps of one type have a finer unit, and so a smaller range, than those of another. */
export function isFiner(type: DataType, than: DataType): boolean {
  const rank = timeRank.indexOf(than.name)
  return rank >= 0 && timeRank.indexOf(type.name) > rank
}

/** Converts a side of a comparison. A timestamp beyond the range of a finer unit keeps its place in the order. */
export function convertCompared(expression: Expression, type: DataType): Expression {
  if (!isFiner(type, expression.type)) return convertTo(expression, type)
  const { position, type: from } = expression
  if (expression.kind !== 'constant') return { kind: 'call', name: 'nearest', args: [expression], type, position }
  if (isDeferred(expression))
    return deferredOf(() => nearestTime(expression.value, from, type), type, position, expression)
  const nearest = nearestTime(expression.value, from, type)
  return nearest === null ? convertTo(expression, type) : { ...expression, value: nearest, type }
}

/**
 * Converts an alternative of CASE or coalesce(). A string column is parsed as UUID or IPv4; what does not parse is
 * NULL.
 */
export function castAlternative(expression: Expression, type: DataType): Expression {
  const isRead = expression.kind !== 'constant' && stringTypes.has(expression.type.name) && isName(type)
  return isRead ? castTo(expression, type) : convertTo(expression, type)
}

function converted({ value, type: from, position }: Extract<Expression, { kind: 'constant' }>, type: DataType): Value {
  if (value === null) return nullOf(type)
  const found = convertValue(value, from, type)
  if (found === undefined) throw new SqlError(inconvertibleText(value, from, type), position)
  return found
}

const numberRank: readonly ColumnType[] = ['BYTE', 'SHORT', 'INT', 'LONG', 'DECIMAL', 'FLOAT', 'DOUBLE']

/** The wider of two numeric types. */
function widerNumber(left: DataType, right: DataType): DataType {
  if (left.name === 'DECIMAL' && right.name === 'DECIMAL') {
    const scale = Math.max(left.b, right.b)
    return dataType('DECIMAL', Math.min(76, Math.max(left.a - left.b, right.a - right.b) + scale), scale)
  }
  if ((left.name === 'LONG' && right.name === 'FLOAT') || (left.name === 'FLOAT' && right.name === 'LONG'))
    return dataType('DOUBLE')
  const [low, high] = numberRank.indexOf(left.name) < numberRank.indexOf(right.name) ? [left, right] : [right, left]
  if (high.name !== 'DECIMAL') return high
  return dataType('DECIMAL', Math.min(76, Math.max(high.a, integerDigits(low) + high.b)), high.b)
}

const timeRank: readonly ColumnType[] = ['DATE', 'TIMESTAMP', 'TIMESTAMP_NS']

/** A type that can represent the values of both; null if there is none. */
export function commonType(left: DataType, right: DataType): DataType | null {
  if (sameType(left, right)) return left.name === 'ARRAY' ? commonArray(left, right) : left
  if (isNumber(left) && isNumber(right)) return widerNumber(left, right)
  if (isText(left) && isText(right))
    return dataType(left.name === 'VARCHAR' && right.name === 'VARCHAR' ? 'VARCHAR' : 'STRING')
  const [leftTime, rightTime] = [timeRank.indexOf(left.name), timeRank.indexOf(right.name)]
  if (leftTime >= 0 && rightTime >= 0) return leftTime > rightTime ? left : right
  if (leftTime >= 0 && (right.name === 'LONG' || right.name === 'INT')) return left
  if (rightTime >= 0 && (left.name === 'LONG' || left.name === 'INT')) return right
  if (left.name === 'GEOHASH' && right.name === 'GEOHASH') return left.a < right.a ? left : right
  return null
}

function commonArray(left: DataType, right: DataType): DataType {
  return left.b > 0 && right.b > 0 ? dataType('ARRAY', left.a, Math.max(left.b, right.b)) : storedKind(left)
}

/** The common type of the alternatives of CASE, COALESCE and the like. String literals get the type of the others. */
export function unify(expressions: readonly Expression[], what: string, isAnything = isUntypedNull): DataType {
  let type: DataType | null = null
  for (const expression of expressions) {
    if (isAnything(expression)) continue
    if (type === null) {
      type = expression.type
      continue
    }
    const common: DataType | null = commonType(type, expression.type) ?? readText(type, expression)
    if (common === null) {
      const [from, to] = [typeName(expression.type), typeName(type)]
      throw new SqlError(`inconvertible types: ${from} -> ${to} [from=${from}, to=${to}]${what}`, expression.position)
    }
    type = common
  }
  return type ?? dataType('STRING')
}

const readable: ReadonlySet<ColumnType> = new Set(['UUID', 'IPv4', 'DATE'])

/**
 * The type as which a string is parsed beside `type`: literals as timestamps, intervals, UUIDs or addresses; string
 * columns as UUIDs and addresses only. Null if it stays a string.
 */
function readText(type: DataType, expression: Expression): DataType | null {
  const literal = expression.kind === 'constant' && expression.type.name === 'STRING'
  if (literal && (isSpan(type) || isTime(type) || readable.has(type.name))) return type
  if (isName(type) && stringTypes.has(expression.type.name)) return type
  return isName(expression.type) && stringTypes.has(type.name) ? expression.type : null
}

const stringTypes: ReadonlySet<ColumnType> = new Set(['STRING', 'VARCHAR'])

function isName({ name }: DataType): boolean {
  return name === 'UUID' || name === 'IPv4'
}

/** The type of a column of a set operation: columns without a common type become strings. */
export function unionType(left: DataType, right: DataType): DataType {
  const common = commonType(left, right)
  const [first, second] = [left.name, right.name]
  const isVarchar = first === 'VARCHAR' || second === 'VARCHAR'
  if (isVarchar && (common === null || first === 'SYMBOL' || second === 'SYMBOL')) return dataType('VARCHAR')
  return common ?? dataType('STRING')
}

/** A string that is equal for equal expressions, used as a key. `keyOf` computes the keys of arguments. */
export function expressionKey(expression: Expression, keyOf: (argument: Expression) => string = expressionKey): string {
  if (expression.kind === 'column') {
    const { index, type } = expression
    return type.name === 'TIMESTAMP' ? `${index} ${type.name}` : `${index} ${type.name} ${type.a} ${type.b}`
  }
  if (expression.kind === 'call') {
    const { kind: _, args, position: __, ...own } = expression
    return `${plainKey(own)}(${args.map((argument) => keyOf(argument)).join()})`
  }
  return plainKey(expression)
}

/**
 * A function that computes the key of each expression once: for callers that ask for an expression and then for its
 * parts, where a chain of calls would otherwise be written again at each of its levels.
 */
export function expressionKeys(): (expression: Expression) => string {
  const keys = new Map<Expression, string>()
  const keyOf = (expression: Expression): string => {
    const known = keys.get(expression)
    if (known !== undefined) return known
    const key = expressionKey(expression, keyOf)
    keys.set(expression, key)
    return key
  }
  return keyOf
}

function plainKey(value: object): string {
  return JSON.stringify(value, (name, part: unknown) => {
    if (name === 'position' || name === 'digits') return undefined
    if (typeof part === 'bigint') return `${part}n`
    return ArrayBuffer.isView(part) ? Array.from(part as Uint8Array) : part
  })
}
