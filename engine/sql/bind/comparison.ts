// Binds comparisons and BETWEEN: brings both sides to a common type. A string literal beside a timestamp is parsed as a
// timestamp in the column's unit. IN, ANY and ALL are in members.ts.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, sameType } from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import { convertValue, isFraction, isIntOrLong, isNumber, isPlainText, isText, isTime } from '../../types/convert.js'
import { longMax } from '../../types/number.js'
import { isBytesText } from '../../types/pg-bytea.js'
import { parseGeohash } from '../../types/text.js'
import { parseDate, parseTimestamp } from '../../types/timestamp.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { comparableAsIs } from '../functions/comparisons.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { deferredOf, isDeferredParameter } from '../typing/deferred-values.js'
import { besideDecimals } from '../typing/exact-numbers.js'
import { argumentsAsLists } from '../typing/lists.js'
import { isConstant, scalarCall, textOf } from '../typing/make-call.js'
import { stringsAsTimesOfDay } from '../typing/times-of-day.js'
import { compareWithTolerance } from '../typing/tolerance.js'
import {
  castTo,
  commonType,
  constantOf,
  convertCompared,
  isNullText,
  isUntypedNull,
  learnType,
  nullAs,
} from '../typing/types.js'
import { bindExpression, type ExpressionScope } from './expression.js'

export function bindComparison(
  operator: ast.ComparisonOperator,
  left: Expression,
  right: Expression,
  position: number,
  context: BindContext,
): Expression {
  const given = besideDecimals([left, right], context.dialect)
  const [one = left, other = right] = stringsAsTimesOfDay(argumentsAsLists(operator, given, context))
  const [known, sides] = bindSides(operator, one, other, position)
  return (
    known ??
    compareWithTolerance(operator, ...sides, position, context) ??
    scalarCall(operator, sides, position, context)
  )
}

/** The comparison of `case a when b`, which is exact for doubles. */
export function bindSame(left: Expression, right: Expression, position: number, context: BindContext): Expression {
  const [known, sides] = bindSides('=', left, right, position, noBranch)
  return known ?? scalarCall('=', sides, position, context)
}

function noBranch(_operator: string, { type }: Expression, branch: Expression, position: number): SqlError {
  return new SqlError(`type mismatch [expected=${typeName(type)}, actual=${typeName(branch.type)}]`, position)
}

type Sides = readonly [Expression, Expression]

/** The result if it is known while binding, else null; and both sides in their common type. */
function bindSides(
  operator: ast.ComparisonOperator,
  left: Expression,
  right: Expression,
  position: number,
  refused = noComparison,
): readonly [Expression | null, Sides] {
  const known = (value: boolean) => [constantOf(value, dataType('BOOLEAN'), position), [left, right]] as const
  const missing = isUntypedNull(left) ? right : isUntypedNull(right) ? left : null
  if (missing !== null && neverNull.has(missing.type.name)) {
    learnType(missing === right ? left : right, missing.type)
    return known(operator === '<>')
  }
  if ((operator === '=' || operator === '<>') && (isNoValueOf(left, right.type) || isNoValueOf(right, left.type)))
    return known(operator === '<>')
  if (missing !== null && missing.type.name === 'CHAR' && (operator === '<' || operator === '>')) return known(false)
  return [null, alignSides(operator, left, right, position, refused)]
}

/**
 * Whether `id = 'x'` matches no row because the literal does not parse. Clients expect that for these types, and an
 * error for others.
 */
function isNoValueOf(literal: Expression, type: DataType): boolean {
  const isCharacter = literal.type.name === 'CHAR'
  const silent = withoutValue.has(type.name) || (isCharacter && (type.name === 'LONG' || type.name === 'DATE'))
  const text = silent && isText(literal.type) ? textOf(literal) : undefined
  if (text === undefined) return false
  return (text === '' && type.name === 'UUID') || convertValue(text, literal.type, type) === undefined
}

const withoutValue: ReadonlySet<string> = new Set(['BYTE', 'SHORT', 'INT', 'UUID', 'LONG256'])
const neverNull: ReadonlySet<string> = new Set(['BOOLEAN', 'BYTE', 'SHORT'])

/** Both sides in a common type. `refused` makes the error for types that cannot be compared. */
export function alignSides(
  operator: string,
  left: Expression,
  right: Expression,
  position: number,
  refused = noComparison,
): readonly [Expression, Expression] {
  if (isUntypedNull(left)) return [isUntypedNull(right) ? left : typedNull(left, right.type), right]
  if (isUntypedNull(right)) return [left, typedNull(right, left.type)]
  if (comparableAsIs(left.type, right.type)) return [asText(left, right.type), asText(right, left.type)]
  if (left.type.name === 'LONG' && isEmptyText(right)) return [left, typedNull(right, left.type)]
  if (right.type.name === 'LONG' && isEmptyText(left)) return [typedNull(left, right.type), right]
  if (left.type.name === 'GEOHASH' || right.type.name === 'GEOHASH')
    return withGeohash(operator, left, right, position, refused)
  if (isTime(left.type) || left.type.name === 'DATE') {
    if (operator === '=' && isTime(left.type) && isNoTime(right))
      throw new SqlError('invalid timestamp', right.position)
    if (isText(right.type)) return [left, timeLiteral(right, left, operator)]
  } else if ((isTime(right.type) || right.type.name === 'DATE') && isText(left.type)) {
    return [timeLiteral(left, right, operator), right]
  }
  const written = writtenSymbol(operator, left, right)
  if (written !== null) return written
  const lenient = orderedSymbol(operator, left.type, right.type)
  if (lenient !== null) return [castTo(left, lenient), castTo(right, lenient)]
  if (isWholeLiteral(left) && isWhole(right.type)) return [asLong(left), right]
  if (isWholeLiteral(right) && isWhole(left.type)) return [left, asLong(right)]
  if (operator === '=' || operator === '<>') {
    // A digit character equals its number; any other character equals no number.
    if (left.type.name === 'CHAR' && isWhole(right.type)) return [asLong(left), asLong(right)]
    if (right.type.name === 'CHAR' && isWhole(left.type)) return [asLong(left), asLong(right)]
  }
  const type = comparisonType(left, right)
  if (type === null || isNoLiteral(left, type) || isNoLiteral(right, type))
    throw refused(operator, left, right, position)
  return [convertCompared(left, type), convertCompared(right, type)]
}

/** Whether the string does not parse as the type, for types where the comparison as a whole is then refused. */
export function isNoLiteral(literal: Expression, type: DataType): boolean {
  if (type.name !== 'BOOLEAN' && type.name !== 'ARRAY' && type.name !== 'DECIMAL') return false
  return isForeignText(literal, type)
}

export function isForeignText(literal: Expression, type: DataType): boolean {
  const text = isText(type) ? undefined : textOf(literal)
  if (text === undefined || (isConstant(literal) && literal.parameter !== undefined)) return false
  return convertValue(text, literal.type, type) === undefined
}

/** A geohash equals only strings, and is ordered with no other type. */
function withGeohash(
  operator: string,
  left: Expression,
  right: Expression,
  position: number,
  refused: typeof noComparison,
): readonly [Expression, Expression] {
  const other = left.type.name === 'GEOHASH' ? right : left
  const takesText = operator === '=' || operator === '<>' || operator === 'in'
  const fits = other.type.name === 'GEOHASH' || (isText(other.type) && takesText)
  if (!fits && operator !== 'in') throw refused(operator, left, right, position)
  return left.type.name === 'GEOHASH'
    ? [left, geohashLiteral(right, left.type, position)]
    : [geohashLiteral(left, right.type, position), right]
}

/** Beside a string, CHAR is converted to a string, so that its empty character is NULL. */
function asText(side: Expression, other: DataType): Expression {
  const isCharacter = side.type.name === 'CHAR' && other.name !== 'CHAR' && !isConstant(side)
  return isCharacter ? castTo(side, dataType('STRING')) : side
}

/** An empty string beside a LONG is NULL. */
function isEmptyText(literal: Expression): boolean {
  return isText(literal.type) && textOf(literal) === ''
}

function isNoTime({ kind, type }: Expression): boolean {
  return kind === 'constant' && (type.name === 'BOOLEAN' || type.name === 'DOUBLE' || type.name === 'FLOAT')
}

function noComparison(operator: string, left: Expression, right: Expression, position: number): SqlError {
  if (operator === 'in') return noMember(left, right, position)
  if (operator === '<>') operator = '!='
  return new SqlError(
    `there is no matching operator \`${operator}\` with the argument types: ${typeName(left.type)} ${operator} ${typeName(right.type)}`,
    position,
  )
}

/** The type's name in errors: clients expect one name for all integers. */
export function memberName({ name }: DataType): string {
  return name === 'BYTE' || name === 'SHORT' || name === 'INT' || name === 'LONG256' ? 'LONG' : name
}

export function noMember(operand: Expression, member: Expression, position: number): SqlError {
  if (operand.type.name === 'SYMBOL')
    return new SqlError(isConstant(member) ? 'STRING constant expected' : 'constant expected', position)
  const name = operand.type.name === 'CHAR' && isConstant(operand) ? 'STRING' : memberName(operand.type)
  return new SqlError(`cannot compare ${name} with type ${typeName(member.type)}`, position)
}

/** `symbol = 5` becomes `symbol = '5'`. */
function writtenSymbol(
  operator: string,
  left: Expression,
  right: Expression,
): readonly [Expression, Expression] | null {
  if (operator !== '=' && operator !== '<>') return null
  if (left.type.name === 'SYMBOL' && isWholeConstant(right)) return [left, castTo(right, dataType('STRING'))]
  return right.type.name === 'SYMBOL' && isWholeConstant(left) ? [castTo(left, dataType('STRING')), right] : null
}

function isWholeConstant({ kind, type }: Expression): boolean {
  return kind === 'constant' && isIntOrLong(type)
}

/** NULL in the type of the other side. The NULL of CHAR is the empty character. */
export function typedNull(missing: Expression, type: DataType): Expression {
  return nullAs(missing, type, type.name === 'CHAR' ? '' : null)
}

function comparisonType(left: Expression, right: Expression): DataType | null {
  const [a, b] = [left.type, right.type]
  if (a.name === 'FLOAT' && b.name === 'DOUBLE' && fitsFloat(right)) return a
  if (b.name === 'FLOAT' && a.name === 'DOUBLE' && fitsFloat(left)) return b
  if (isTimestamp(a) && smallIntegers.has(b.name)) return a
  if (isTimestamp(b) && smallIntegers.has(a.name)) return b
  const common = commonType(a, b)
  if (common !== null) return common
  if ((isTimestamp(a) && isFraction(b)) || (isTimestamp(b) && isFraction(a))) return dataType('DOUBLE')
  if (isText(a) && isConstant(left)) return literalTarget(left.value, b)
  if (isText(b) && isConstant(right)) return literalTarget(right.value, a)
  if (isPlainText(a) && isNumber(b)) return dataType('DOUBLE')
  if (isPlainText(b) && isNumber(a)) return dataType('DOUBLE')
  if (isText(a) && (b.name === 'UUID' || b.name === 'IPv4')) return dataType('STRING')
  if (isText(b) && (a.name === 'UUID' || a.name === 'IPv4')) return dataType('STRING')
  return null
}

const smallIntegers: ReadonlySet<string> = new Set(['BYTE', 'SHORT'])

/** Whether the constant is finite as a FLOAT. */
function fitsFloat(literal: Expression): boolean {
  if (!isConstant(literal)) return false
  const { value } = literal
  return typeof value !== 'number' || !Number.isFinite(value) || Number.isFinite(Math.fround(value))
}

export function isTimestamp(type: DataType): boolean {
  return isTime(type) || type.name === 'DATE'
}

/** `n = 0xff`: a LONG256 literal that fits a LONG. */
function isWholeLiteral(literal: Expression): boolean {
  return (
    isConstant(literal) &&
    literal.type.name === 'LONG256' &&
    typeof literal.value === 'bigint' &&
    literal.value <= longMax
  )
}

function asLong(expression: Expression): Expression {
  return castTo(expression, dataType('LONG'))
}

function isWhole({ name }: DataType): boolean {
  return name === 'BYTE' || name === 'SHORT' || name === 'INT' || name === 'LONG'
}

/** `symbol > 5` compares symbols as numbers; `symbol = price` is refused as a likely mistake. */
function orderedSymbol(operator: string, left: DataType, right: DataType): DataType | null {
  if (operator === '=' || operator === '<>' || operator === 'in') return null
  const mixed = (left.name === 'SYMBOL' && isNumber(right)) || (right.name === 'SYMBOL' && isNumber(left))
  return mixed ? dataType('DOUBLE') : null
}

/** `geo = 'u33d'`: a string literal as a geohash, with five bits per character. */
function geohashLiteral(text: Expression, type: DataType, position: number): Expression {
  if (!isConstant(text) || typeof text.value !== 'string') return text
  if (text.value === '') return typedNull(text, type)
  const bits = text.value.length * 5
  if (bits < type.a) {
    const place = `[len=${text.value.length}, precision=${type.a}]`
    throw new SqlError(`string is too short to cast to chosen GEOHASH precision ${place}`, position)
  }
  const value = bits > 60 ? null : parseGeohash(text.value, bits)
  if (value === null) throw new SqlError('invalid GEOHASH', position)
  return constantOf(value, dataType('GEOHASH', bits), text.position)
}

/** The type to which a string literal is converted beside a value of the type. */
function literalTarget(value: Value, type: DataType): DataType | null {
  if (type.name === 'GEOHASH' || type.name === 'INTERVAL') return null
  if (type.name === 'BINARY') return isBytesText(value) ? type : null
  return type.name === 'SHORT' || type.name === 'BYTE' ? dataType('INT') : type
}

/** A string literal or column as a timestamp. */
function timeLiteral(text: Expression, other: Expression, operator: string): Expression {
  const { type } = other
  const read = (written: string): Value => {
    const value = type.name === 'DATE' ? parseDate(written) : parseTimestamp(written, type.name as TimestampUnit)
    if (value === null) throw new SqlError(timeProblem(written, other, operator), text.position)
    return value
  }
  if (isConstant(text) && isDeferredParameter(text))
    return deferredOf(() => read(text.value as string), type, text.position, text)
  if (!isConstant(text) || typeof text.value !== 'string')
    return { ...castTo(text, type), name: 'convert' } as Expression
  return constantOf(read(text.value), type, text.position)
}

/** Messages about invalid timestamps differ for columns, whose conditions become time ranges. */
function timeProblem(text: string, { kind, type: { name } }: Expression, operator: string): string {
  if (operator === 'between' && kind === 'column') return 'Invalid date'
  if (name === 'DATE' || kind !== 'column') return `Invalid date [str=${text}]`
  if (operator === '=') return 'invalid timestamp'
  return operator === '<>' ? `Invalid date: ${text}` : `Invalid date [str='${text}']`
}

// BETWEEN, ANY, ALL -------------------------------------------------------------------------------------------------

export function bindBetween(expression: ast.BetweenExpression, scope: ExpressionScope): Expression {
  const { context } = scope
  const parts = besideDecimals(
    [expression.operand, expression.low, expression.high].map((part) => bindExpression(part, scope)),
    context.dialect,
  )
  const [written, ...bounds] = stringsAsTimesOfDay(parts) as readonly [Expression, Expression, Expression]
  const value = timeBetween(written, bounds)
  // Characters are not timestamps. For a time column the error comes from range extraction.
  if (value.kind !== 'column' && !isText(value.type) && bounds.some(({ type }) => type.name === 'CHAR'))
    throw noBetween([value, ...bounds])
  // `micros between '2024-01-01' and '2024-01-02'`: the number counts from the epoch.
  const isOfTimestamps = isIntOrLong(value.type) && bounds.every((bound) => isForeignText(bound, value.type))
  const type = bounds.reduce<DataType>(
    (sum, bound) => boundType(sum, bound, [value, ...bounds]),
    isOfTimestamps ? dataType('TIMESTAMP') : typeBetween(value, bounds),
  )
  const isOfTime = isTime(type) || type.name === 'DATE'
  if (!isOfTime && bounds.some((bound) => isNoBound(bound, type))) throw noBetween([value, ...bounds])
  const aligned = bounds.map((bound) => boundOf(bound, type, value))
  const compared = sameType(value.type, type) || isText(type) ? value : convertCompared(value, type)
  const between = (...range: Expression[]): Expression =>
    scalarCall('between', [compared, ...range], expression.position, context)
  // Timestamp bounds are accepted in either order, even without SYMMETRIC.
  const result =
    expression.symmetric && !isOfTime
      ? scalarCall('or', [between(...aligned), between(...aligned.toReversed())], expression.position, context)
      : between(...aligned)
  return expression.negated ? scalarCall('not', [result], expression.position, context) : result
}

/** `'2024-01-01' between a and b`: the string is parsed as a timestamp if a bound is one. */
function timeBetween(value: Expression, bounds: readonly Expression[]): Expression {
  const bound = bounds.find(({ type }) => isTime(type) || type.name === 'DATE')
  if (bound === undefined || !isConstant(value) || !isText(value.type) || isUntypedNull(value)) return value
  return timeLiteral(value, { ...value, type: bound.type }, 'between')
}

/** An untyped NULL gets the type of numeric bounds. */
function typeBetween(value: Expression, [low]: readonly Expression[]): DataType {
  return low !== undefined && isNullText(value) && isNumber(low.type) ? low.type : value.type
}

function boundType(type: DataType, bound: Expression, all: readonly Expression[]): DataType {
  if (isUntypedNull(bound) || comparableAsIs(type, bound.type)) return type
  if (isText(bound.type) && isConstant(bound) && !isText(type)) return type
  const common = commonType(type, bound.type)
  if (common === null && isTime(type) && isConstant(bound)) throw new SqlError('Invalid date', bound.position)
  if (common === null) throw noBetween(all)
  return common
}

/** A string literal that does not parse as the type of the value. */
function isNoBound(bound: Expression, type: DataType): boolean {
  return isText(bound.type) && isForeignText(bound, type)
}

/** The error if no overload matches, in terms of the last one tried, that of timestamps. */
function noBetween(all: readonly Expression[]): SqlError {
  const wrong = all.filter(({ type }) => !isTime(type))
  const places = wrong.map((part) => `at #${all.indexOf(part) + 1} expected: TIMESTAMP, actual: ${typeName(part.type)}`)
  return new SqlError(
    `argument type mismatch for function \`between\` ${places.join(' ')}`,
    wrong.at(-1)?.position ?? 0,
  )
}

function boundOf(bound: Expression, type: DataType, value: Expression): Expression {
  if (isUntypedNull(bound)) return nullAs(bound, type)
  if ((isTime(type) || type.name === 'DATE') && isText(bound.type))
    return timeLiteral(bound, { ...value, type }, 'between')
  return isText(type) && isText(bound.type) ? bound : convertCompared(bound, type)
}
