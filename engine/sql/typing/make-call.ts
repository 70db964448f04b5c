// Making bound calls: the overload is chosen, arguments are converted to what it takes, and calls that need no row are
// computed at once.

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
import { isLate, laterOf } from './late-values.js'
import { noMatch } from './mismatch.js'
import { constantOf, convertTo, isUntypedNull } from './types.js'

export type Constant = Extract<Expression, { kind: 'constant' }>

export function isConstant(expression: Expression): expression is Constant {
  return expression.kind === 'constant'
}

/** The value of a constant if it is a text. Numbers and times are not looked at: theirs may come late. */
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
    // Looked at by few, and its value may come late.
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

/** What computes with several times, which have to count one unit. */
const ofOneUnit: ReadonlySet<string> = new Set(['+', '-'])

/** Times in the finest unit of them. */
function inOneUnit(args: readonly Expression[]): readonly Expression[] {
  const finest = args.find(({ type }) => type.name === 'TIMESTAMP_NS')
  const isCoarse = ({ type }: Expression): boolean => type.name === 'TIMESTAMP' || type.name === 'DATE'
  if (finest === undefined || !args.some(isCoarse)) return args
  return args.map((argument) => (isCoarse(argument) ? convertTo(argument, dataType('TIMESTAMP_NS')) : argument))
}

/** Of a quotient for clients of PostgreSQL, at least: 1m / 3m is no 0. */
const quotientPlaces = 18

/**
 * Quotients of DECIMALs and whole numbers as PostgreSQL has them. In this dialect they have the places of both sides, and
 * beside a whole number they are DOUBLE.
 */
function asDividends(args: readonly Expression[], { dialect }: BindContext): readonly Expression[] {
  if (!dialect.unboundedNumeric || !args.some(({ type }) => type.name === 'DECIMAL')) return args
  if (!args.every(({ type }) => type.name === 'DECIMAL' || integerNames.has(type.name))) return args
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

/** Arguments as the row takes them. */
export function convertArguments(row: Takes, args: readonly Expression[]): Expression[] {
  const signature = row.more === undefined ? { takes: row.takes } : { takes: row.takes, more: row.more }
  return args.map((argument, index) => {
    const pattern = patternAt(signature, index)
    // A character has no NULL of its own: as a text it has.
    if (pattern === 'TEXT' && argument.type.name === 'CHAR') {
      if (!isConstant(argument)) return convertTo(argument, dataType('STRING'))
      if (argument.value === '') return constantOf(null, dataType('STRING'), argument.position)
    }
    const target = targetType(resolvedArgument(argument), pattern)
    if (target !== null && isTime(target)) demandTime(argument, target)
    return target === null ? argument : convertTo(argument, ownDigits(argument, target) ?? target)
  })
}

const integerNames: ReadonlySet<ColumnType> = new Set(['BYTE', 'SHORT', 'INT', 'LONG'])

/** A whole number that is written has the digits that are written. */
function ownDigits(argument: Expression, target: DataType): DataType | null {
  if (target.name !== 'DECIMAL' || !isConstant(argument) || isLate(argument)) return null
  const { value } = argument
  const isWhole = typeof value === 'bigint' || Number.isInteger(value)
  return isWhole && integerNames.has(argument.type.name)
    ? dataType('DECIMAL', String(value).replace('-', '').length)
    : null
}

/** A literal text in place of a time is reported as a date. */
function demandTime(argument: Expression, type: DataType): void {
  if (!isConstant(argument) || argument.parameter !== undefined || argument.type.name !== 'STRING') return
  const text = textOf(argument)
  if (text === undefined || convertValue(text, argument.type, type) !== undefined) return
  throw new SqlError(`Invalid date [str=${text}]`, argument.position)
}

export function resultType(gives: ScalarFunction['gives'], args: readonly Expression[]): DataType {
  if (typeof gives === 'function') return gives(args.map(boundArgument))
  return gives === 'FIRST' ? (args[0]?.type ?? dataType('STRING')) : dataType(gives)
}

/** Binds a call of the scalar tables. `shown` is the name in messages. */
export function scalarCall(
  name: string,
  given: readonly Expression[],
  position: number,
  context: BindContext,
  shown = name,
): Expression {
  if (name === 'exists') return { kind: 'call', name, args: given, type: dataType('BOOLEAN'), position }
  const args = ofOneUnit.has(name) ? inOneUnit(given) : name === '/' ? asDividends(given, context) : given
  const row = bestOverload(scalarsNamed(name), args.map(resolvedArgument))
  if (row === undefined) throw noMatch(shown, args, position)
  // The unit of dateadd chooses among its forms, and a word is none.
  if (name === 'dateadd' && isWord(args[0])) throw noMatch(shown, args, position)
  const converted = convertArguments(row, args)
  row.check?.(converted.map(boundArgument), position)
  const call: Expression = {
    kind: 'call',
    name: row.name,
    args: converted,
    type: kindKept(resultType(row.gives, converted), row.name, converted),
    position,
  }
  return fold(call, row, context)
}

/** Functions whose results are their arguments: of days it is a day. */
const choosing: ReadonlySet<string> = new Set(['coalesce', 'nullif', 'case', 'greatest', 'least', 'date'])

/** Functions whose results have the elements of their arguments. */
const keepsElements: ReadonlySet<string> = new Set(['coalesce', 'nullif', 'case', 'array', 'array_slice'])

/**
 * What is made of a time with its zone has it too, but what moves it to another zone. What is made of a day has a time of
 * day; what is made of spans may be one. What is made of an array of whole numbers may have other ones.
 */
function kindKept(type: DataType, name: string, args: readonly Expression[]): DataType {
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

/** The product of a span and a number is one, and the quotient. */
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
    if (call.args.some(isLate))
      return laterOf(() => evaluateConstant(call, context.evaluation), call.type, call.position)
    const value = evaluateConstant(call, context.evaluation)
    if (typeof value === 'string') context.work.foldedCharacters += value.length
    // What is made of a parameter without a value has none either while the statement is described.
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

/** Texts of one statement that are computed when it is planned: about 20 ms of work. */
const foldedCharactersInAll = valueBytesMax

/** What a long text takes belongs on a query thread: planning keeps all others waiting. */
function isLong(argument: Expression): boolean {
  return (textOf(argument)?.length ?? 0) > foldedCharactersMax
}

/** `x and true`, `x or false`: what a condition keeps when one side is known. */
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
