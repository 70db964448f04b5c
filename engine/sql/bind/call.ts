// Binds function calls: turns a call of the syntax tree into a typed expression of the plan. A scalar function becomes
// a call expression. Aggregate and window functions are computed by plan nodes of their own, so their calls are
// collected in the scope of the query, and a reference to the collected call takes their place in the expression. Some
// calls in PostgreSQL's style, such as extract() of age(), are first rewritten to others.

import { SqlError } from '../../base/errors.js'
import { decimalDigitsMax } from '../../base/limits.js'
import { suggestion } from '../../base/nearest.js'
import {
  arrayTypeOf,
  type ColumnType,
  type DataType,
  dataType,
  isJson,
  isSpan,
  textKinds,
} from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import { integerDigits, isNumber, isText } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import {
  aggregateFunctions,
  aggregatesNamed,
  conditionalVariant,
  scalarFunctions,
  scalarsNamed,
  windowFunctionNames,
} from '../functions/registry/all.js'
import { aggregateOf } from '../functions/registry/evaluate.js'
import { bestOverload } from '../functions/registry/resolve.js'
import { isExactPart } from '../functions/times-exact.js'
import type { AggregateCall, Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { withoutSpans } from '../scope/interval-shift.js'
import { charactersAsStrings } from '../typing/characters.js'
import { besideDecimals } from '../typing/exact-numbers.js'
import { argumentsAsLists } from '../typing/lists.js'
import {
  boundArgument,
  convertArguments,
  quotientPlaces,
  resolvedArgument,
  resultType,
  scalarCall,
  textOf,
} from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { spanCall, spanOfParts, sumType, totalOfSpans } from '../typing/span.js'
import { timestampOfTimeOfDay } from '../typing/times-of-day.js'
import {
  castAlternative,
  castTo,
  commonType,
  constantOf,
  convertTo,
  isNullText,
  isUntypedNull,
  unify,
} from '../typing/types.js'
import { hasCall } from '../typing/walk-expression.js'
import { aggregateName, bindAggregateOrder } from './aggregate-order.js'
import { collected } from './array-query.js'
import { bindCase, switched } from './case.js'
import { bindCatalogCall, shownArguments } from './catalog-calls.js'
import { isTimestamp } from './comparison.js'
import { aggregateMark, bindExpression, type ExpressionScope, windowMark } from './expression.js'
import { groupingCall, groupingName } from './grouping-sets.js'
import { isSetReturning, replicationOf } from './set-returning-call.js'
import { rewriteWholeRow } from './whole-row.js'
import { bindWindowCall } from './window.js'
import { isMovingAverage } from './window-moving.js'

const rowFunctions: ReadonlySet<string> = new Set([
  'tables',
  'all_tables',
  'wal_tables',
  'functions',
  'keywords',
  'pg_get_keywords',
  'query_activity',
  'query_progress',
  'views',
])

/** Functions that format their arguments as text. */
const takesStrings: ReadonlySet<string> = new Set(['concat', 'concat_ws', 'format', 'quote_ident', 'quote_literal'])

/** Functions whose arguments all have one type. */
const unifying = new Set(['coalesce', 'greatest', 'least', 'nullif'])

export function bindCall(written: ast.Call, scope: ExpressionScope): Expression {
  const call = ofDigest(ofAge(rewriteWholeRow(withoutVoid(written, scope.context), scope)))
  const name = call.name.toLowerCase()
  if (call.over !== null) return bindOver(call, scope)
  if (windowFunctionNames.has(name) || isMovingAverage(call)) {
    throw new SqlError('window function called in non-window context, make sure to add OVER clause', call.position)
  }
  if (name === groupingName) return bindGrouping(call, scope)
  const shares = ofShares(call, name)
  if (shares !== null) return bindExpression(shares, scope)
  if (name === 'switch' && call.args.length > 2) return bindCase(switched(call), scope)
  // Some names are aggregates with one argument and scalar functions with several.
  const combines = call.args.length > 1 && scalarsNamed(name).length > 0
  if (aggregatesNamed(name).length > 0 && !combines) return bindAggregate(call, scope)
  const [only] = call.args
  if (name === 'array' && only?.kind === 'subquery' && call.args.length === 1)
    return bindExpression(collected(only, call.position), scope)
  if (isSetReturning(name) && scope.ordinal !== undefined) return expandedValue(call, scope.ordinal, scope)
  const ofCatalog = bindCatalogCall(call, scope)
  if (ofCatalog !== undefined) return ofCatalog
  if (call.distinct || call.filter !== null || call.orderBy.length > 0)
    throw new SqlError('an aggregate function is expected', call.position)
  const plain = withoutSpans(call, scope.context.parameters)
  const known = plain.name === call.name ? name : plain.name
  const args = plain.args.map((argument) => bindExpression(argument, scope))
  return bindScalar(plain, known, timestampOfTimeOfDay(known, args, scope.context), scope)
}

function bindOver(call: ast.Call, scope: ExpressionScope): Expression {
  const place = bindWindowCall(call, scope)
  const { name = '', args = [] } = scope.windows?.[place.index] ?? {}
  return totalOfSpans(name, args, marked(windowMark, place))
}

function bindScalar(call: ast.Call, name: string, args: readonly Expression[], scope: ExpressionScope): Expression {
  if (unifying.has(name) && args.length > 0)
    return bindUnifying(call, name, charactersAsStrings(call.args, args), scope)
  if (name === 'make_interval') return spanOfParts(args, call.position, scope.context)
  if (scalarsNamed(name).length === 0) throw unknownFunction(call, args)
  if (name === 'typeof' && args.length === 1 && args.every(isUntypedNull))
    return constantOf('NULL', dataType('STRING'), call.position)
  const ofTime = partOfTime(call, args, scope)
  if (ofTime !== null) return ofTime
  if (isSeconds(call, args, scope.context)) return scalarCall('to_timestamp_of', args, call.position, scope.context)
  const ofSpan = spanCall(name, args, call.position, scope.context)
  if (ofSpan !== null) return ofSpan
  const taken = takesStrings.has(name)
    ? shownArguments(args, scope.context)
    : argumentsAsLists(name, args, scope.context)
  if (lengths.has(name) && scope.context.dialect.countsCharacters) return lengthOf(name, taken, call, scope.context)
  return scalarCall(name, taken, call.position, scope.context, call.name)
}

const lengths: ReadonlySet<string> = new Set(['length', 'char_length', 'character_length'])

/** PostgreSQL's length() of a string counts characters, and has no value for NULL. */
function lengthOf(name: string, args: readonly Expression[], call: ast.Call, context: BindContext): Expression {
  const [first] = args
  const counting = first !== undefined && isText(first.type) ? 'char_length' : name
  const length = scalarCall(counting, args, call.position, context, call.name)
  const none = constantOf(length.type.name === 'LONG' ? -1n : -1, length.type, call.position)
  return scalarCall('nullif', [length, none], call.position, context)
}

/** `extract(year from age(a, b))`: age() returns a string, so its fields are computed from its arguments. */
function ofAge(call: ast.Call): ast.Call {
  const [field, age, ...more] = call.args
  const takesPart = /^(extract|date_part)$/i.test(call.name) && field !== undefined && more.length === 0
  if (!takesPart || age?.kind !== 'call' || age.name.toLowerCase() !== 'age' || age.args.length !== 2) return call
  return { ...call, name: 'age_part', args: [field, ...age.args] }
}

/** `percentile_cont(array[0.5, 0.9]) within group (order by x)` becomes an array of calls; null for any other call. */
function ofShares(call: ast.Call, name: string): ast.ArrayLiteral | null {
  const [value, shares] = call.args
  if ((name !== 'percentile_cont' && name !== 'percentile_disc') || shares?.kind !== 'array' || value === undefined)
    return null
  return { ...shares, elements: shares.elements.map((share) => ({ ...call, args: [value, share] })) }
}

/** `encode(sha256(x), 'hex')`: PostgreSQL's sha256() returns bytes, ours the hexadecimal digits. */
function ofDigest(call: ast.Call): ast.Call {
  const [digest, format, ...more] = call.args
  if (call.name.toLowerCase() !== 'encode' || format === undefined || more.length > 0) return call
  if (digest?.kind !== 'call' || digest.name.toLowerCase() !== 'sha256') return call
  const hex: ast.Expression = { kind: 'string', position: digest.position, value: 'hex' }
  return { ...call, args: [{ ...call, name: 'decode', args: [digest, hex] }, format] }
}

/**
 * Whether this is `to_timestamp($1)` with a parameter without declared type, which is a number of seconds in
 * PostgreSQL.
 */
function isSeconds(call: ast.Call, [only]: readonly Expression[], { dialect }: BindContext): boolean {
  if (!dialect.exactTimeParts || call.name.toLowerCase() !== 'to_timestamp' || call.args.length !== 1) return false
  return call.args[0]?.kind === 'parameter' && only !== undefined && (isText(only.type) || isUntypedNull(only))
}

/** Removes the parameter that JDBC passes for the result of `{? = call f(..)}`. */
export function withoutVoid(call: ast.Call, { parameters }: BindContext): ast.Call {
  const isVoid = (argument: ast.Expression): boolean => {
    if (argument.kind !== 'parameter') return false
    const { type } = parameters[argument.index - 1] ?? {}
    return type?.name === 'STRING' && type.a === textKinds.void
  }
  return call.args.some(isVoid) ? { ...call, args: call.args.filter((argument) => !isVoid(argument)) } : call
}

/** The error about an unknown function, or a table function used as a value. */
export function unknownFunction(call: ast.Call, args: readonly Expression[]): SqlError {
  if (call.args.length === 0 && rowFunctions.has(call.name.toLowerCase()))
    return new SqlError(`cursor function cannot be used as a column [column=${call.name}()]`, call.position)
  if (/^(locf|interpolate|time_bucket_gapfill)$/i.test(call.name))
    return new SqlError(
      `${call.name}() is allowed only as an item of the select list, beside time_bucket_gapfill()`,
      call.position,
    )
  if (/^(lo_[a-z0-9_]+|loread|lowrite)$/i.test(call.name))
    return new SqlError(
      `large objects are not supported: store bytes in a BINARY column [function=${call.name}]`,
      call.position,
    )
  const types = args.map((argument) => (isUntypedNull(argument) ? 'NULL' : typeName(argument.type)))
  return new SqlError(`unknown function name: ${call.name}(${types.join(',')})`, call.position, functionLike(call.name))
}

/** Empty for the name of a function, whose arguments are wrong then. */
function functionLike(name: string): string {
  const known = [...[...aggregateFunctions, ...scalarFunctions].map((row) => row.name), ...windowFunctionNames]
  return known.includes(name.toLowerCase()) ? '' : suggestion(name, known)
}

function bindUnifying(call: ast.Call, name: string, given: readonly Expression[], scope: ExpressionScope): Expression {
  const args = besideDecimals(given, scope.context.dialect)
  checkUnifying(name, args, call)
  const type = unifiedType(name, args)
  // A type without NULL has a value in its place, which could be the least or greatest.
  const known = name === 'greatest' || name === 'least' ? args.filter((argument) => !isNullText(argument)) : args
  const result = scalarCall(
    name,
    (known.length === 0 ? args : known).map((argument) => castAlternative(argument, type)),
    call.position,
    scope.context,
  )
  return name === 'nullif' && type.name === 'DECIMAL' ? convertTo(result, decimalOf(args[0])) : result
}

/** The result of nullif() has the digits of the first argument. */
function decimalOf(first: Expression | undefined): DataType {
  return first?.type.name === 'DECIMAL' ? first.type : dataType('DECIMAL', integerDigits(first?.type))
}

/**
 * The type of the result: symbols become strings, and a type without NULL becomes one that has it, where the result may
 * be NULL.
 */
function unifiedType(name: string, args: readonly Expression[]): DataType {
  const common = unify(args, '', name === 'coalesce' ? isUntypedNull : isNullText)
  const choosesRow = name === 'coalesce' || name === 'nullif'
  if (name === 'coalesce' && args.every(isJsonOrNull)) return dataType('STRING', textKinds.json)
  if (name === 'coalesce' && isText(common) && args.some(({ type }) => type.name === 'VARCHAR'))
    return dataType('VARCHAR')
  if (choosesRow && common.name === 'SYMBOL') return dataType('STRING')
  if (name === 'nullif' && isText(common) && nullMakesText(common, args)) return dataType('STRING')
  if (name === 'nullif' && (common.name === 'BYTE' || common.name === 'SHORT')) return dataType('INT')
  return name === 'nullif' && common.name === 'FLOAT' ? dataType('DOUBLE') : common
}

const strangers: ReadonlySet<ColumnType> = new Set(['BOOLEAN', 'GEOHASH', 'ARRAY'])

/** Whether nullif() must refuse the types: they have no common type, and neither parses as the other. */
function areIncompatible([first, second]: readonly Expression[]): boolean {
  if (first === undefined || second === undefined || [first, second].some(isNullText)) return false
  const isReadable =
    (isText(first.type) || isText(second.type)) && ![first, second].some(({ type }) => strangers.has(type.name))
  return !isReadable && commonType(first.type, second.type) === null
}

/** Whether the result is a string because of a NULL: beside character literals, or as the first argument. */
function nullMakesText(common: DataType, args: readonly Expression[]): boolean {
  const isCharacter = common.name === 'CHAR' && args.every(({ kind }) => kind === 'constant')
  return args.some(isNullText) && (isCharacter || isNullText(args[0] as Expression))
}

/** `coalesce(json_agg(t), '[]')` */
function isJsonOrNull(argument: Expression, index: number): boolean {
  if (isJson(argument.type)) return true
  if (index === 0 || argument.kind !== 'constant' || !isText(argument.type)) return false
  return argument.value === null || argument.value === '[]' || argument.value === '{}'
}

function checkUnifying(name: string, args: readonly Expression[], call: ast.Call): void {
  if (name === 'nullif' && (args.length !== 2 || areIncompatible(args))) throw noMatch(call.name, args, call.position)
  if (name === 'coalesce' && args.length < 2)
    throw new SqlError('coalesce can be used with 2 or more arguments', call.position)
  if (name === 'coalesce' && args.every(isUntypedNull))
    throw new SqlError('coalesce cannot be used with NULL data type', call.position)
  if (name === 'greatest' || name === 'least') checkOrdered(args.filter((argument) => !isNullText(argument)))
}

/** Throws if types that are neither numbers nor timestamps are mixed with others. */
function checkOrdered(args: readonly Expression[]): void {
  const odd = args.find(({ type }) => !isNumber(type) && !isTimestamp(type))
  if (odd === undefined) return
  const isMixed = args.some(({ type }) => isNumber(type) || (isTimestamp(type) && !isText(odd.type)))
  if (isMixed) throw new SqlError(`unsupported type: ${typeName(odd.type)}`, odd.position)
}

/** `select unnest(list)`: the element for the current copy of the row. */
function expandedValue(call: ast.Call, ordinal: Expression, scope: ExpressionScope): Expression {
  if (call.jsonColumns !== undefined) throw new SqlError('COLUMNS is allowed in FROM alone', call.position)
  const [column] = replicationOf(call, scope).columns
  if (column === undefined) throw noMatch(call.name, [], call.position)
  return column.value(ordinal)
}

function marked(
  name: string,
  { index, type, position }: { index: number; type: Expression['type']; position: number },
): Expression {
  return { kind: 'call', name, args: [constantOf(index, dataType('INT'), position)], type, position }
}

// Aggregates --------------------------------------------------------------------------------------------------------

function bindAggregate(call: ast.Call, scope: ExpressionScope): Expression {
  if (scope.aggregates === null) throw new SqlError('Aggregate function cannot be passed as an argument', call.position)
  const aggregate = aggregateCall(call, { ...scope, aggregates: null, windows: null })
  if (aggregate.args.some((argument) => hasCall(argument, aggregateMark))) throw aggregateWithin(call)
  const index = scope.aggregates.place(aggregate)
  const value = marked(aggregateMark, { index, type: aggregate.type, position: call.position })
  return totalOfSpans(aggregate.name, aggregate.args, value)
}

function bindGrouping({ args, position }: ast.Call, scope: ExpressionScope): Expression {
  if (scope.aggregates === null) throw new SqlError('grouping() is not allowed here', position)
  const inner = { ...scope, aggregates: null, windows: null }
  const call = groupingCall(
    args.map((argument) => bindExpression(argument, inner)),
    position,
  )
  return marked(aggregateMark, { index: scope.aggregates.place(call), type: call.type, position })
}

/**
 * The error about an aggregate inside an aggregate. If the argument is the alias of an aggregate, it is an unknown
 * column.
 */
function aggregateWithin({ args, position }: ast.Call): SqlError {
  const [first] = args
  return first?.kind === 'column' && args.length === 1
    ? SqlError.columnMissing(first.path.join('.'), first.position)
    : new SqlError('Aggregate function cannot be passed as an argument', position)
}

/** Binds the arguments, in a scope without aggregates, and resolves the overload. */
export function aggregateCall(call: ast.Call, scope: ExpressionScope): AggregateCall {
  const written = aggregateName(call)
  const isStar = call.args.length === 1 && call.args[0]?.kind === 'star'
  const values = isStar ? [] : call.args.map((argument) => bindExpression(argument, scope))
  const plain = written.toLowerCase().startsWith('array_') ? values.map((value) => listedNumber(value)) : values
  const { name, args } = withPlaces(withFilter(written, plain, call, scope), scope.context)
  const row = bestOverload(aggregatesNamed(name), args.map(resolvedArgument))
  if (row === undefined) throw noMatch(call.name, args, call.position)
  const converted = convertArguments(row, args)
  if (aggregateOf(row.name, converted) === undefined) throw noMatch(call.name, args, call.position)
  row.check?.(converted.map(boundArgument), call.position)
  const type = sumType(row.name, converted, resultType(row.gives, converted))
  const bound = {
    name: row.name,
    args: converted,
    type: collectedType(type, args[0], scope.context),
    position: call.position,
    ...(call.fill === undefined ? {} : { fill: call.fill }),
  }
  return call.orderBy.length === 0 ? bound : { ...bound, orderBy: bindAggregateOrder(call, scope) }
}

/** array_agg() over integers has an integer element type for clients of PostgreSQL. */
function collectedType(type: DataType, value: Expression | undefined, { dialect }: BindContext): DataType {
  const isWhole = dialect.typedArrays && type.name === 'ARRAY' && value !== undefined && value.type.name !== 'ARRAY'
  return isWhole ? arrayTypeOf(value.type, type.a) : type
}

/** Oids are collected as a list of numbers rather than as an array of doubles. */
function listedNumber(value: Expression): Expression {
  const isNumber = value.type.name === 'INT' && value.type.a > 0
  return isNumber ? castTo({ ...value, type: dataType('INT') }, dataType('STRING')) : value
}

/** Clients of PostgreSQL expect that a mean of DECIMALs has more places than its values, like other quotients. */
function withPlaces(
  { name, args }: { readonly name: string; readonly args: readonly Expression[] },
  { dialect }: BindContext,
): { readonly name: string; readonly args: readonly Expression[] } {
  const [value] = args
  const isMean = /^avg(_distinct)?$/i.test(name) && args.length === 1
  if (!dialect.unboundedNumeric || !isMean || value?.type.name !== 'DECIMAL') return { name, args }
  const whole = value.type.a - value.type.b
  const places = Math.min(quotientPlaces, decimalDigitsMax - whole)
  if (places <= value.type.b) return { name, args }
  const isPlain = name.toLowerCase() === 'avg'
  return isPlain
    ? { name, args: [value, constantOf(places, dataType('INT'), value.position)] }
    : { name, args: [convertTo(value, dataType('DECIMAL', whole + places, places))] }
}

/**
 * `sum(a) filter (where c)`: the argument becomes NULL for rows that fail the condition. Aggregates that do not ignore
 * NULL have variants that take the condition.
 */
function withFilter(
  name: string,
  args: readonly Expression[],
  call: ast.Call,
  scope: ExpressionScope,
): { readonly name: string; readonly args: readonly Expression[] } {
  if (call.filter === null) return { name, args }
  const condition = bindExpression(call.filter, scope)
  const variant = conditionalVariant(name)
  if (variant !== null) return { name: variant, args: [...args, condition] }
  const [first, ...rest] = args
  const value = first ?? constantOf(1, dataType('INT'), call.position)
  const retained = [condition, value, constantOf(null, value.type, call.position)]
  return { name, args: [scalarCall('case', retained, call.position, scope.context), ...rest] }
}

/**
 * Binds extract() and date_part() where the scalar functions do not suffice; null if they do, or for any other call. In
 * the PostgreSQL dialect seconds and epoch keep their fraction, so functions with that result are called instead. In the
 * native dialect (that of HTTP clients) a difference of two timestamps is a plain number, whose unit (micro- or
 * nanoseconds) is taken from the two operands.
 */
function partOfTime(
  { name: written, args: [, operand], position }: ast.Call,
  [part, time, ...more]: readonly Expression[],
  scope: ExpressionScope,
): Expression | null {
  const name = written.toLowerCase()
  if (name !== 'extract' && name !== 'date_part') return null
  if (operand === undefined || part === undefined || time === undefined || more.length > 0) return null
  const { context } = scope
  const call = (called: string, of: Expression): Expression =>
    scalarCall(called, [part, of], position, context, written)
  const isExact = isExactPart(textOf(part) ?? '')
  const isDouble = isExact && name === 'date_part'
  if (context.dialect.exactTimeParts && isSpan(time.type))
    return call(isDouble ? 'span_date_part' : 'span_part', castTo(time, dataType('LONG')))
  if (context.dialect.exactTimeParts && isExact) return call(isDouble ? 'exact_date_part' : 'exact_part', time)
  const unit = isSpan(time.type) ? null : unitOfDistance(operand, scope)
  return unit === null ? null : call(name, castTo(time, unit))
}

/**
 * The unit of a difference of two timestamps: a number in the finer unit, whose fields are those of a timestamp that
 * long after the epoch. Null for other operands.
 */
function unitOfDistance(operand: ast.Expression, scope: ExpressionScope): DataType | null {
  if (operand.kind !== 'binary' || operand.operator !== '-') return null
  const [left, right] = [operand.left, operand.right].map((side) => bindExpression(side, scope).type)
  if (left === undefined || right === undefined || !isTimestamp(left) || !isTimestamp(right)) return null
  return commonType(left, right)
}
