// Binds `a in (..)` with lists, sub-queries and time intervals (`ts in '2024-01;1d'`), and the quantified comparisons
// `a = any(..)`, `a < all(..)`.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import { convertValue, isNumber, isText, isTime } from '../../types/convert.js'
import { parseIntervals } from '../../types/interval.js'
import { parseGeohash } from '../../types/text.js'
import { textElements } from '../../types/text-lists.js'
import { dependsOnNow } from '../../types/tick.js'
import { parseTimestamp } from '../../types/timestamp.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { comparableAsIs } from '../functions/comparisons.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { deferredOf, isDeferredParameter, OtherPlanError } from '../typing/deferred-values.js'
import { besideDecimals } from '../typing/exact-numbers.js'
import { isConstant, scalarCall, textOf } from '../typing/make-call.js'
import { stringsAsTimesOfDay } from '../typing/times-of-day.js'
import { compareWithTolerance } from '../typing/tolerance.js'
import { castTo, commonType, constantOf, convertCompared, convertTo, isUntypedNull } from '../typing/types.js'
import { namedKind } from './catalog-calls.js'
import {
  alignSides,
  bindComparison,
  isForeignText,
  isNoLiteral,
  isTimestamp,
  memberName,
  noMember,
  typedNull,
} from './comparison.js'
import { comparedWithRows, matchingRow } from './correlated-members.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { bindSubquery } from './subquery.js'

export function bindIn(expression: ast.InExpression, scope: ExpressionScope): Expression {
  const matching = matchingRow(expression, scope)
  const result = matching === null ? bindSet(expression, scope) : bindExpression(matching, scope)
  return expression.negated ? scalarCall('not', [result], expression.position, scope.context) : result
}

function bindSet(expression: ast.InExpression, scope: ExpressionScope): Expression {
  const operand = bindExpression(expression.operand, scope)
  return 'kind' in expression.set
    ? bindInQuery(operand, expression.set, expression, scope)
    : bindInList(operand, expression.set, expression, scope)
}

function bindInQuery(
  operand: Expression,
  query: ast.Query,
  { position }: ast.InExpression,
  scope: ExpressionScope,
): Expression {
  const list = bindSubquery(query, 'list', scope.context)
  if (operand.type.name === 'SYMBOL' && !isText(list.type) && !isUntypedNull(list))
    throw new SqlError(`supported column types are VARCHAR, SYMBOL and STRING, found: ${typeName(list.type)}`, position)
  const aligned = comparableAsIs(operand.type, list.type) ? operand : convertCompared(operand, list.type)
  return { kind: 'call', name: 'in_list', args: [aligned, list], type: dataType('BOOLEAN'), position }
}

function bindInList(
  given: Expression,
  set: readonly ast.Expression[],
  expression: ast.InExpression,
  scope: ExpressionScope,
): Expression {
  const bound = [given, ...set.map((member) => bindExpression(member, scope))]
  const [, ...all] = stringsAsTimesOfDay(besideDecimals(bound, scope.context.dialect))
  const operand = typedOperand(given, all)
  // A string that is no address equals none.
  const members = operand.type.name === 'IPv4' ? all.filter((member) => !isForeignText(member, operand.type)) : all
  const { position } = expression
  if (members.length === 0) return constantOf(false, dataType('BOOLEAN'), position)
  const [only] = members
  if (isTime(operand.type) && members.length === 1 && only !== undefined) {
    if (only.type.name === 'INTERVAL') return scalarCall('in_interval', [operand, only], position, scope.context)
    const later = laterRanges(operand, only, scope.context, position)
    if (later !== undefined) return later
    const text = textOf(only)
    if (isCharacterBeside(operand, only)) throw noMember(operand, only, only.position)
    if (text !== undefined) return inRanges(operand, text, only.position, scope.context, position)
  }
  if (operand.type.name === 'DATE' && members.length === 1 && only !== undefined) {
    const text = textOf(only)
    if (text !== undefined)
      return inRanges(convertTo(operand, dataType('TIMESTAMP')), text, only.position, scope.context, position)
  }
  const aligned = alignedMembers(operand, members, position)
  const others = aligned.filter((member) => !comparableAsIs(member.type, operand.type) && !isUntypedNull(member))
  const type = others.reduce<DataType | undefined>(
    (sum, { type: other }) => (sum && commonType(sum, other)) ?? sum ?? other,
    undefined,
  )
  const subject = type === undefined ? operand : convertCompared(operand, type)
  const same = type === undefined ? aligned : aligned.map((member) => convertCompared(member, type))
  const near = nearMembers(subject, same, position, scope.context)
  if (near !== undefined) return near
  const list = listOf(subject, same)
  if (list !== undefined)
    return { kind: 'call', name: 'in_list', args: [subject, list], type: dataType('BOOLEAN'), position }
  return scalarCall(same.every(isConstant) ? 'in' : 'in_values', [subject, ...same], position, scope.context)
}

/** An untyped NULL gets the type of the members. */
function typedOperand(operand: Expression, members: readonly Expression[]): Expression {
  const known = members.find((member) => !isUntypedNull(member))
  if (known === undefined || !isUntypedNull(operand) || isText(known.type)) return operand
  const isSmall = known.type.name === 'BYTE' || known.type.name === 'SHORT'
  return typedNull(operand, isSmall ? dataType('INT') : known.type)
}

/** Longer lists of doubles are compared exactly. */
const nearMax = 32

function nearMembers(
  subject: Expression,
  members: readonly Expression[],
  position: number,
  context: BindContext,
): Expression | undefined {
  if (subject.type.name !== 'DOUBLE' || members.length > nearMax) return undefined
  const each = members.map((member) => compareWithTolerance('=', subject, member, position, context))
  if (each.every((found) => found === undefined)) return undefined
  return members
    .map((member, index) => each[index] ?? scalarCall('=', [subject, member], position, context))
    .reduce((sum, found) => scalarCall('or', [sum, found], position, context))
}

/** Longer lists become one node of the plan. */
const apartMax = 256

/**
 * The list as one node; undefined if members stay arguments: they are few, not constant, or timestamps, which become
 * ranges.
 */
function listOf(subject: Expression, members: readonly Expression[]): Expression | undefined {
  const { type, position } = subject
  if (members.length <= apartMax || subject.kind === 'constant' || isTime(type)) return undefined
  const values: Value[] = []
  for (const member of members) {
    if (member.kind !== 'constant' || member.parameter !== undefined || member.deferred !== undefined) return undefined
    values.push(member.value)
  }
  return { kind: 'constants', values, type, position }
}

const withoutMembers: ReadonlySet<string> = new Set(['BOOLEAN', 'GEOHASH', 'BINARY', 'ARRAY', 'DECIMAL'])

/**
 * Converts the members. Timestamps are converted from the last one, because existing clients expect the error at the
 * last invalid one.
 */
function alignedMembers(operand: Expression, members: readonly Expression[], position: number): Expression[] {
  if (withoutMembers.has(operand.type.name)) {
    const stranger = members.find((member) => !isUntypedNull(member) && !fitsAsMember(operand.type, member))
    if (stranger !== undefined) throw strangeMember(operand, members, stranger, position)
  }
  if (!isTime(operand.type)) return members.map((member) => memberOf(operand, member))
  return members
    .toReversed()
    .map((member) => memberOf(operand, member))
    .reverse()
}

function fitsAsMember(type: DataType, member: Expression): boolean {
  if (member.type.name === type.name) return type.name !== 'GEOHASH' || member.type.a <= type.a
  if (isText(member.type)) return member.type.name !== 'CHAR' && !isNoLiteral(member, type) && !isNoPlace(member, type)
  return type.name === 'DECIMAL' && isNumber(member.type)
}

/** A string that is no geohash of sufficient precision. */
function isNoPlace(member: Expression, type: DataType): boolean {
  const text = type.name === 'GEOHASH' ? textOf(member) : undefined
  return text !== undefined && parseGeohash(text, type.a) === null
}

function strangeMember(
  { type }: Expression,
  members: readonly Expression[],
  stranger: Expression,
  position: number,
): SqlError {
  const operands =
    members.length === 1 ? `types: ${typeName(type)} in ${typeName(stranger.type)}` : `type: ${typeName(type)}`
  return new SqlError(`there is no matching operator \`in\` with the argument ${operands}`, position)
}

/** `ts in '2024-01-01;1d;7d;5'` */
function inRanges(
  operand: Expression,
  text: string,
  textPosition: number,
  context: BindContext,
  position: number,
): Expression {
  if (dependsOnNow(text)) context.cacheable = false
  const result = parseIntervals(text, operand.type.name as TimestampUnit, context.evaluation.nowMicros)
  if ('error' in result) throw new SqlError(result.error, textPosition)
  const bounds = result.ranges.flatMap(({ lo, hi }) =>
    [lo, hi].map((bound) => constantOf(bound, operand.type, textPosition)),
  )
  if (bounds.length === 0) return constantOf(false, dataType('BOOLEAN'), position)
  return scalarCall('in_ranges', [operand, ...bounds], position, context)
}

function unitOf({ type }: Expression): TimestampUnit {
  return type.name as TimestampUnit
}

const laterRangesMax = 16

/** Ranges that other statements of the same form replace by as many others; undefined if they depend on the text. */
function laterRanges(
  operand: Expression,
  text: Expression,
  context: BindContext,
  position: number,
): Expression | undefined {
  const { deferred, evaluation } = context
  if (deferred?.isWritten !== true || text.type.name !== 'STRING' || !isDeferredParameter(text)) return undefined
  const unit = unitOf(operand)
  let known: { readonly text: string; readonly bounds: readonly bigint[] } | null = null
  const boundsNow = (): readonly bigint[] => {
    const written = textOf(text) ?? ''
    if (known?.text === written) return known.bounds
    const result = dependsOnNow(written) ? { ranges: [] } : parseIntervals(written, unit, evaluation.nowMicros)
    if ('error' in result) throw new SqlError(result.error, text.position)
    known = { text: written, bounds: result.ranges.flatMap(({ lo, hi }) => [lo, hi]) }
    return known.bounds
  }
  const count = deferred.unrecorded(() => boundsNow().length)
  if (count === 0 || count > 2 * laterRangesMax) return undefined
  const bounds = Array.from({ length: count }, (_, index) => {
    const bound = (): Value => {
      const all = boundsNow()
      if (all.length !== count) throw new OtherPlanError()
      return all[index] ?? null
    }
    return deferredOf(bound, operand.type, text.position, text)
  })
  return scalarCall('in_ranges', [operand, ...bounds], position, context)
}

function memberOf(operand: Expression, member: Expression): Expression {
  if (isUntypedNull(member)) return typedNull(member, operand.type)
  if (comparableAsIs(operand.type, member.type)) return member
  const text = textOf(member)
  if (isCharacterBeside(operand, member)) throw noMember(operand, member, member.position)
  if (isTime(operand.type) && text !== undefined) {
    const value = parseTimestamp(text, unitOf(operand))
    const problem = operand.kind === 'column' ? 'Invalid date' : `Invalid date [str=${text}]`
    if (value === null) throw new SqlError(problem, member.position)
    return constantOf(value, operand.type, member.position)
  }
  if (isText(member.type) && text !== undefined) {
    const value = convertValue(text, member.type, operand.type)
    if (value === undefined) throw memberError(operand, member, text)
    return constantOf(value, operand.type, member.position)
  }
  if (isStrange(operand, member)) throw noMember(operand, member, member.position)
  const [, aligned] = alignSides('in', operand, member, member.position)
  return aligned
}

/** Whether a character constant is compared with a computed timestamp. Beside a time column it is parsed as a date. */
function isCharacterBeside(operand: Expression, member: Expression): boolean {
  return isTime(operand.type) && operand.kind !== 'column' && isConstant(member) && member.type.name === 'CHAR'
}

/**
 * Whether the types cannot be compared: a geohash matches only geohashes, and a string column no numbers or timestamps.
 */
function isStrange(operand: Expression, member: Expression): boolean {
  if (member.type.name === 'GEOHASH') return operand.type.name !== 'GEOHASH'
  return isText(operand.type) && isNoText(member)
}

/** Values that are never compared with strings. */
function isNoText({ kind, type }: Expression): boolean {
  return (kind === 'constant' && isNumber(type)) || isTimestamp(type)
}

function memberError(operand: Expression, member: Expression, text: string): SqlError {
  if (operand.type.name === 'DATE') return new SqlError(`Invalid date: ${text}`, member.position)
  return member.type.name === 'CHAR'
    ? noMember(operand, member, member.position)
    : new SqlError(`invalid ${memberName(operand.type)} value [${text}]`, member.position)
}

// ANY and ALL ------------------------------------------------------------------------------------------------------

/** `a = any(..)`, `a <> all(..)` over a sub-query, an array, or a list. */
export function bindQuantified(expression: ast.QuantifiedExpression, scope: ExpressionScope): Expression {
  const { operator, quantifier, right, position } = expression
  const isMember = operator === '=' && quantifier === 'any'
  const isNone = operator === '<>' && quantifier === 'all'
  if (right.kind === 'subquery') {
    const compared = isMember || isNone ? null : comparedWithRows(expression, right.query, scope)
    if (compared !== null) return bindExpression(compared, scope)
    if (!isMember && !isNone) throw unknownQuantifier(expression, scope)
    const set: ast.InExpression = {
      kind: 'in',
      position,
      negated: isNone,
      operand: expression.left,
      set: right.query,
      bare: false,
    }
    return bindIn(set, scope)
  }
  const elements = quantifiedElements(expression.left, right, scope)
  if (elements !== null) return bindEach(expression, elements, scope)
  if (!isMember && !isNone) throw unknownQuantifier(expression, scope)
  const found = memberOfValue(expression, scope)
  return isMember ? found : scalarCall('not', [found], position, scope.context)
}

/** The elements if they are written out, or listed in a constant string; null otherwise. */
function quantifiedElements(
  left: ast.Expression,
  right: ast.Expression,
  scope: ExpressionScope,
): readonly ast.Expression[] | null {
  if (right.kind === 'array' || right.kind === 'list') return right.elements
  const written = right.kind === 'cast' ? right.operand : right
  if (written.kind === 'array') return written.elements
  if (written.kind !== 'string' && written.kind !== 'parameter') return null
  const value = bindExpression(written, scope)
  if (isConstant(value) && value.parameter !== undefined) {
    value.parameter.type ??= bindExpression(left, scope).type
    value.parameter.isList = true
    return []
  }
  const strings = isConstant(value) && typeof value.value === 'string' ? textElements(value.value) : null
  if (strings === null) return null
  return strings.map((text) => {
    const { position } = right
    if (text === null) return { kind: 'null', position }
    const element: ast.Expression = { kind: 'string', position, value: text }
    // Names of catalog objects: `'{int,int8}'::regtype[]`.
    const isNamed = right.kind === 'cast' && namedKind(right.type.name) !== null
    return isNamed ? { kind: 'cast', position, operand: element, type: { ...right.type, dimensions: 0 } } : element
  })
}

/** Longer lists are bound like IN. */
const eachMax = 16

/** `a = any(b, c)` becomes `a = b or a = c`; `a < all(b, c)` becomes `a < b and a < c`. */
function bindEach(
  { operator, quantifier, left, position }: ast.QuantifiedExpression,
  elements: readonly ast.Expression[],
  scope: ExpressionScope,
): Expression {
  const negated = operator === '<>' && quantifier === 'all'
  if (elements.length > eachMax && (negated || (operator === '=' && quantifier === 'any')))
    return bindIn({ kind: 'in', position, negated, operand: left, set: elements, bare: false }, scope)
  const neutral: ast.Expression = { kind: 'boolean', position, value: quantifier === 'all' }
  const whole = elements
    .map((right): ast.Expression => ({ kind: 'binary', operator, left, right, position }))
    .reduce(
      (sum, next): ast.Expression => ({
        kind: 'binary',
        operator: quantifier === 'all' ? 'and' : 'or',
        left: sum,
        right: next,
        position,
      }),
      neutral,
    )
  return bindExpression(whole, scope)
}

function memberOfValue({ left, right, position }: ast.QuantifiedExpression, scope: ExpressionScope): Expression {
  const operand = bindExpression(left, scope)
  const list = bindExpression(right, scope)
  if (list.type.name === 'ARRAY') {
    const place = scalarCall('array_position', [list, operand], position, scope.context)
    return bindComparison('<>', place, constantOf(null, dataType('STRING'), position), position, scope.context)
  }
  // An unknown list: the statement is only described.
  if (isConstant(list) && list.parameter !== undefined) return constantOf(false, dataType('BOOLEAN'), position)
  if (!isText(list.type) || isUntypedNull(list) || isWord(list)) {
    throw new SqlError(
      `unknown function name: any(${isUntypedNull(list) ? 'NULL' : typeName(list.type)})`,
      quantifierPosition('any', right, scope),
    )
  }
  return scalarCall('list_has', [list, castTo(operand, dataType('STRING'))], position, scope.context)
}

/** A literal that is not a list. */
function isWord(list: Expression): boolean {
  return isConstant(list) && typeof list.value === 'string' && textElements(list.value) === null
}

function unknownQuantifier({ quantifier, right }: ast.QuantifiedExpression, scope: ExpressionScope): SqlError {
  return new SqlError(`unknown function name: ${quantifier}(STRING)`, quantifierPosition(quantifier, right, scope))
}

/** Position of the keyword, which precedes its operand. */
function quantifierPosition(word: string, { position }: ast.Expression, { context }: ExpressionScope): number {
  return Math.max(0, context.sql.toLowerCase().lastIndexOf(word, position))
}
