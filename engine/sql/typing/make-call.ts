// Builds bound calls of scalar functions and operators: chooses the overload, converts the arguments to its types,
// determines the result type, and folds calls of constants.

import { SqlError } from '../../base/errors.js'
import { decimalDigitsMax, foldedCharactersMax, valueBytesMax } from '../../base/limits.js'
import {
  type ColumnType,
  type DataType,
  dataType,
  isDay,
  isSpan,
  isZoned,
  longKinds,
  storedKind,
  timeKinds,
} from '../../types/column-types.js'
import { convertValue, integerDigits, isNumber, isTime } from '../../types/convert.js'
import type { BoundArgument, ScalarFunction } from '../functions/function-types.js'
import { scalarsNamed } from '../functions/registry/all.js'
import { evaluateConstant } from '../functions/registry/evaluate.js'
import { bestOverload, patternAt, type ResolvedArgument, targetType } from '../functions/registry/resolve.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { deferredOf, isDeferred, isOfParameters } from './deferred-values.js'
import { besideDecimals } from './exact-numbers.js'
import { noMatch } from './mismatch.js'
import { constantOf, convertTo, isUntypedNull } from './types.js'

export type Constant = Extract<Expression, { kind: 'constant' }>

export function isConstant(expression: Expression): expression is Constant {
  return expression.kind === 'constant'
}

/** The value of a string constant. Numbers and timestamps are not read, because they may be deferred. */
export function textOf(expression: Expression): string | undefined {
  const { type } = expression
  if (!isConstant(expression) || isNumber(type) || isTime(type) || type.name === 'DATE') return undefined
  return typeof expression.value === 'string' ? expression.value : undefined
}

export function resolvedArgument(expression: Expression): ResolvedArgument {
  return { type: expression.type, isNull: isUntypedNull(expression), isConstant: isConstant(expression) }
}

export function boundArgument(expression: Expression): BoundArgument {
  return {
    type: expression.type,
    // Read lazily: few functions need the value, and it may be deferred.
    get constant() {
      return isConstant(expression) ? expression.value : undefined
    },
    described: isDescribed(expression),
    ofStatement: isOfStatement(expression),
    position: expression.position,
  }
}

interface Takes {
  readonly takes: ScalarFunction['takes']
  readonly more?: ScalarFunction['more']
}

/** Operators that combine two timestamps, which must have the same unit. */
const ofOneUnit: ReadonlySet<string> = new Set(['+', '-'])

const arithmetic: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', 'mod'])

/** Converts timestamps to nanoseconds if one of them has that unit. */
function inOneUnit(args: readonly Expression[]): readonly Expression[] {
  const finest = args.find(({ type }) => type.name === 'TIMESTAMP_NS')
  const isCoarse = ({ type }: Expression): boolean => type.name === 'TIMESTAMP' || type.name === 'DATE'
  if (finest === undefined || !args.some(isCoarse)) return args
  return args.map((argument) => (isCoarse(argument) ? convertTo(argument, dataType('TIMESTAMP_NS')) : argument))
}

/** The forms of operators that report a divisor of zero: PostgreSQL's clients expect it of NUMERIC. */
const zeroRefusing: Readonly<Record<string, string>> = { '/': 'divide', '%': 'remainder' }

/** Minimum scale of a quotient or a mean for clients of PostgreSQL, so that 1m / 3m is not 0. */
export const quotientPlaces = 18

/**
 * Gives quotients of DECIMALs and integers the scale of PostgreSQL. In the native dialect a quotient has the digits of
 * both sides, and DECIMAL / integer is DOUBLE.
 */
function asDividends(args: readonly Expression[], { dialect }: BindContext): readonly Expression[] {
  if (!dialect.unboundedNumeric || !args.some(isDecimal) || !args.every(isExact)) return args
  const [dividend, divisor] = args.map((argument) => {
    const type = dataType('DECIMAL', integerDigits(argument.type))
    return argument.type.name === 'DECIMAL' ? argument : convertTo(argument, ownDigits(argument, type) ?? type)
  })
  if (dividend === undefined || divisor === undefined) return args
  const more = quotientPlaces - dividend.type.b - divisor.type.b
  if (more <= 0) return [dividend, divisor]
  const { a, b } = dividend.type
  return [convertTo(dividend, dataType('DECIMAL', Math.min(decimalDigitsMax, a + more), b + more)), divisor]
}

/** Converts arguments to the parameter types of the overload. */
export function convertArguments(row: Takes, args: readonly Expression[]): Expression[] {
  const signature = row.more === undefined ? { takes: row.takes } : { takes: row.takes, more: row.more }
  return args.map((argument, index) => {
    const pattern = patternAt(signature, index)
    // The NULL of CHAR is the empty character, which becomes NULL as a string.
    if (pattern === 'TEXT' && argument.type.name === 'CHAR') {
      if (!isConstant(argument)) return convertTo(argument, dataType('STRING'))
      if (argument.value === '') return constantOf(null, dataType('STRING'), argument.position)
    }
    const target = targetType(resolvedArgument(argument), pattern)
    if (target !== null && isTime(target)) requireTime(argument, target)
    return target === null ? argument : convertTo(argument, ownDigits(argument, target) ?? target)
  })
}

const integerNames: ReadonlySet<ColumnType> = new Set(['BYTE', 'SHORT', 'INT', 'LONG'])

function isDecimal({ type }: Expression): boolean {
  return type.name === 'DECIMAL'
}

/** DECIMALs and the integers that may stand beside them. */
function isExact({ type }: Expression): boolean {
  return type.name === 'DECIMAL' || integerNames.has(type.name)
}

/** An integer literal that becomes a DECIMAL has as many digits as are written. */
function ownDigits(argument: Expression, target: DataType): DataType | null {
  if (target.name !== 'DECIMAL' || !isConstant(argument) || isOfParameters(argument)) return null
  const { value } = argument
  const isWhole = typeof value === 'bigint' || Number.isInteger(value)
  return isWhole && integerNames.has(argument.type.name)
    ? dataType('DECIMAL', String(value).replace('-', '').length)
    : null
}

/** Reports a string literal that is not a timestamp as an invalid date. */
function requireTime(argument: Expression, type: DataType): void {
  if (!isConstant(argument) || argument.parameter !== undefined || argument.type.name !== 'STRING') return
  const text = textOf(argument)
  if (text === undefined || convertValue(text, argument.type, type) !== undefined) return
  throw new SqlError(`Invalid date [str=${text}]`, argument.position)
}

export function resultType(gives: ScalarFunction['gives'], args: readonly Expression[]): DataType {
  if (typeof gives === 'function') return gives(args.map(boundArgument))
  return gives === 'FIRST' ? (args[0]?.type ?? dataType('STRING')) : dataType(gives)
}

/** Binds a call of a scalar function. `shown` is the function's name in error messages. */
export function scalarCall(
  name: string,
  given: readonly Expression[],
  position: number,
  context: BindContext,
  shown = name,
): Expression {
  if (name === 'exists') return { kind: 'call', name, args: given, type: dataType('BOOLEAN'), position }
  const exact = arithmetic.has(name) ? besideDecimals(given, context.dialect) : given
  const args = ofOneUnit.has(name) ? inOneUnit(exact) : name === '/' ? asDividends(exact, context) : exact
  const isNumeric = context.dialect.unboundedNumeric && args.every(isExact)
  // mod() has no overload for DECIMALs.
  const row = bestOverload(scalarsNamed(isNumeric && name === 'mod' ? '%' : name), args.map(resolvedArgument))
  if (row === undefined) throw noMatch(shown, args, position)
  // The first argument of dateadd() selects an overload, so a longer string is an error.
  if (name === 'dateadd' && isWord(args[0])) throw noMatch(shown, args, position)
  const converted = convertArguments(row, args)
  row.check?.(converted.map(boundArgument), position)
  const call: Expression = {
    kind: 'call',
    name: (isNumeric && converted.some(isDecimal) && zeroRefusing[row.name]) || row.name,
    args: converted,
    type: kindRetained(resultType(row.gives, converted), row.name, converted),
    position,
  }
  return fold(call, row, context)
}

/** Functions that return one of their arguments: of whole days the result is a whole day. */
const choosing: ReadonlySet<string> = new Set(['coalesce', 'nullif', 'case', 'greatest', 'least', 'date'])

/** Functions whose result has the element type of their array arguments. */
const keepsElements: ReadonlySet<string> = new Set(['coalesce', 'nullif', 'case', 'array', 'array_slice'])

/**
 * Derives the kind of a result, a refinement of its type, from the arguments. A timestamp with time zone stays one
 * unless it is moved to another zone. A computed day becomes a DATE with a time of day. Arithmetic with intervals may
 * yield an interval. A computed array loses its integer element type.
 */
function kindRetained(type: DataType, name: string, args: readonly Expression[]): DataType {
  if (type.name === 'ARRAY') return keepsElements.has(name) ? type : storedKind(type)
  if (type.name === 'LONG') return args.some(({ type }) => isSpan(type)) ? ofSpans(name, args) : type
  if (type.name === 'DATE')
    return choosing.has(name) || !args.some((argument) => isDay(argument.type)) ? type : storedKind(type)
  if (type.name !== 'TIMESTAMP') return type
  if (name === 'to_timezone' || name === 'to_utc') return storedKind(type)
  return args.some((argument) => isZoned(argument.type)) ? dataType(type.name, timeKinds.zoned) : type
}

const keepsSpan: ReadonlySet<string> = new Set(
  '+ - % negate abs case coalesce nullif greatest least justify_hours'.split(' '),
)

/** An interval times a number, or divided by one, is an interval. */
function ofSpans(name: string, [left, right]: readonly Expression[]): DataType {
  const isScaled = name === '*' || (name === '/' && left !== undefined && isSpan(left.type))
  const isBoth = left !== undefined && right !== undefined && isSpan(left.type) && isSpan(right.type)
  return keepsSpan.has(name) || (isScaled && !isBoth) ? dataType('LONG', longKinds.span) : dataType('LONG')
}

function isWord(unit: Expression | undefined): boolean {
  if (unit?.kind !== 'constant' || unit.type.name !== 'STRING') return false
  return typeof unit.value === 'string' && unit.value.length > 1
}

function fold(call: Extract<Expression, { kind: 'call' }>, row: ScalarFunction, context: BindContext): Expression {
  const volatility = row.volatility ?? 'pure'
  if (volatility !== 'pure') context.cacheable = false
  if (volatility === 'row') return call
  if (call.args.every(isConstant)) {
    if (call.args.some(isLong) || context.work.foldedCharacters > foldedCharactersInAll) return call
    const deferred = call.args.find(isDeferred)
    if (deferred !== undefined)
      return deferredOf(() => evaluateConstant(call, context.evaluation), call.type, call.position, deferred)
    const value = evaluateConstant(call, context.evaluation)
    if (typeof value === 'string') context.work.foldedCharacters += value.length
    // While a statement is described, a result computed from an unknown parameter is unknown, too.
    if (value === null && call.args.some(isDescribed))
      return { kind: 'constant', value, type: call.type, position: call.position, parameter: { type: call.type } }
    const constant = constantOf(value, call.type, call.position)
    return volatility === 'statement' || call.args.some(isOfStatement)
      ? ({ ...constant, ofStatement: true } as Constant)
      : constant
  }
  return simplify(call)
}

function isDescribed(expression: Expression): boolean {
  return isConstant(expression) && expression.parameter !== undefined
}

function isOfStatement(expression: Expression): boolean {
  return expression.kind === 'constant' && expression.ofStatement === true
}

/** Total length of strings that constant folding may produce in one statement. Takes about 20 ms. */
const foldedCharactersInAll = valueBytesMax

/** Calls on long strings are not folded: they run on a query thread, because planning blocks the main thread. */
function isLong(argument: Expression): boolean {
  return (textOf(argument)?.length ?? 0) > foldedCharactersMax
}

/** Simplifies `x and true` and `x or false` to x. */
function simplify(call: Extract<Expression, { kind: 'call' }>): Expression {
  if (call.name !== 'and' && call.name !== 'or') return call
  const neutral = call.name === 'and'
  const [left, right] = call.args
  if (left === undefined || right === undefined) return call
  for (const [side, other] of [
    [left, right],
    [right, left],
  ] as const) {
    if (isConstant(side)) return side.value === neutral ? other : side
  }
  return call
}
