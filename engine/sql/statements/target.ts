// Converts values to the types of the columns that they are stored in, with the checks and errors of INSERT: constants
// of VALUES at once, and output columns of a query by casts. UPDATE and DEFAULT use it as well.

import { SqlError } from '../../base/errors.js'
import {
  type ColumnSchema,
  type Enumeration,
  liveColumns,
  requireColumn,
  resultTypeOf,
  type TableVersion,
} from '../../storage/schema/schema.js'
import {
  type DataType,
  dataType,
  elementType,
  isDay,
  isList,
  isListOfValues,
  isTimeOfDay,
  sameType,
  typeText,
} from '../../types/column-types.js'
import {
  convertValue,
  inconvertibleText,
  isAssignable,
  isNumber,
  isText,
  isTime,
  noLabel,
  nullOf,
} from '../../types/convert.js'
import { byteaOf, isBytesText } from '../../types/pg-bytea.js'
import { textArray, textElements } from '../../types/text-lists.js'
import type { ArrayValue, Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { bindExpression, type ExpressionScope } from '../bind/expression.js'
import type { Dialect } from '../dialect.js'
import { isAssignedAsText, isInsertable } from '../functions/registry/assign.js'
import { evaluateConstant } from '../functions/registry/evaluate.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import type { Relation } from '../scope/scope.js'
import { storedDay, truncateToDay } from '../typing/days.js'
import { exactNumber } from '../typing/exact-numbers.js'
import { isConstant } from '../typing/make-call.js'
import { isNumeral, roundedExpression, roundedValue } from '../typing/rounded.js'
import { timeOfDayOfTimestamp, timeOfDayValue } from '../typing/times-of-day.js'
import { castTo, constantOf, isFiner, isUntypedNull, learnType } from '../typing/types.js'
import type { TargetColumn } from './planned.js'

/** The columns that an INSERT names, or all. */
export function targetColumns({ columns, source }: ast.Insert, { schema }: TableVersion): TargetColumn[] {
  if (source.kind === 'rows' && source.allDefault === true) return []
  if (columns.length === 0) return liveColumns(schema).map(targetOf)
  const taken = new Set<number>()
  return columns.map((named) => {
    const column = requireColumn(schema, named)
    if (taken.has(column.id)) throw new SqlError(`Duplicate column [name=${named.name}]`, named.position)
    taken.add(column.id)
    return targetOf(column)
  })
}

export function targetOf(column: Omit<ColumnSchema, 'dropped'>): TargetColumn {
  const { id: columnId, name, type, declared } = column
  if (declared?.enumeration !== undefined) return { columnId, name, type, enumeration: declared.enumeration }
  return declared?.type === undefined
    ? { columnId, name, type }
    : { columnId, name, type, wanted: resultTypeOf(column) }
}

/** Throws SqlError if the string is no label of the enumeration. */
export function requireLabel(text: string, { name, labels }: Enumeration, position: number): void {
  if (!labels.includes(text)) throw new SqlError(noLabel(text, name), position)
}

/** Checks at execution that the value is a label of the enumeration. */
function labelOf(value: Expression, { name, labels }: Enumeration): Expression {
  const known = [name, textArray(labels)].map((text) => constantOf(text, dataType('STRING'), value.position))
  const { position, type } = value
  return { kind: 'call', name: 'enum_in', args: [castTo(value, dataType('STRING')), ...known], type, position }
}

/**
 * Converts a query's columns, in order, to the target columns. `positions` are those of errors, one per column or one
 * for all. `numerals` tells which columns are written as numerals.
 */
export function targetProjection(
  { plan }: Relation,
  targets: readonly TargetColumn[],
  positions: readonly number[],
  dialect: Dialect,
  numerals: readonly boolean[] = [],
): Plan {
  const columns: PlanColumn[] = targets.map(({ name, type }) => ({ name, type }))
  if (plan.columns.every(({ type }, index) => isStoredAsIs(type, targets[index]))) return plan
  const expressions = plan.columns.map(({ type, name }, index): Expression => {
    const target = targets[index]
    const position = positions[index] ?? positions[0] ?? 0
    const column: Expression = { kind: 'column', index, type, position }
    if (target === undefined || isStoredAsIs(type, target)) return column
    if (isNullConstant(plan, index, target.wanted ?? target.type))
      return constantOf(nullOf(target.type), target.type, position)
    const bytes = bytesWritten(plan, index, target)
    if (bytes !== null) return bytes
    if (!isTaken(type, target, dialect)) throw inconvertibleTypes(type, target.type, name, target.name, position)
    const value = (numerals[index] === true ? numeralWritten(plan, index, target, dialect) : null) ?? column
    return convertedTo(value, target, dialect)
  })
  return { kind: 'project', columns, input: plan, expressions }
}

/** Converts a value. Unlike a cast, a value that does not fit is an error. */
export function convertTo(value: Expression, type: DataType, dialect: Dialect): Expression {
  const from = value.type
  const isParsed = isText(from) && (!isText(type) || (type.name === 'CHAR' && from.name !== 'CHAR'))
  const isNarrowed = (isNumber(from) || isTimestamp(from)) && (isNumber(type) || type.name === 'CHAR')
  const cast = castTo(roundedExpression(value, type, dialect), type)
  return isParsed || isNarrowed || isFiner(type, from) ? ({ ...cast, name: 'convert' } as Expression) : cast
}

/** Whether the column stores values of the type unchanged. */
export function isStoredAsIs(from: DataType, target: TargetColumn | undefined): boolean {
  if (target === undefined) return true
  const { type, wanted, enumeration } = target
  const isTimed = wanted !== undefined && isTimeOfDay(wanted) && !isTimeOfDay(from)
  const isCut = wanted !== undefined && isDay(wanted)
  return enumeration === undefined && !isTimed && !isCut && sameType(from, type)
}

/**
 * Whether INSERT and UPDATE accept values of the type. A column of times of day, stored as strings, also accepts
 * timestamps.
 */
export function isTaken(from: DataType, target: TargetColumn, dialect: Dialect): boolean {
  const { type, wanted } = target
  if (isInsertable(from, type) || isTextOf(from, target, dialect)) return true
  return wanted !== undefined && isTimeOfDay(wanted) && isTimestamp(from)
}

/** The dialect of PostgreSQL stores numbers and the like as text; in the native dialect that is an error. */
function isTextOf(from: DataType, { type, wanted, enumeration }: TargetColumn, dialect: Dialect): boolean {
  const isPlain = enumeration === undefined && (wanted === undefined || (isText(wanted) && wanted.a === 0))
  return dialect.storesNumbersAsText && isPlain && isAssignedAsText(from, type)
}

function isTimestamp(type: DataType): boolean {
  return isTime(type) || type.name === 'DATE'
}

/** Converts a value of an accepted type to the column's type. */
export function convertedTo(
  value: Expression,
  { type, wanted, enumeration }: TargetColumn,
  dialect: Dialect,
): Expression {
  if (enumeration !== undefined) return castTo(labelOf(value, enumeration), type)
  if (wanted !== undefined && isTimeOfDay(wanted) && (isText(value.type) || isTimestamp(value.type)))
    return { kind: 'call', name: 'time', args: [value], type: wanted, position: value.position }
  if (wanted !== undefined && isDay(wanted))
    return storedDay(isTime(value.type) ? value : convertTo(value, type, dialect))
  return convertTo(value, wanted ?? type, dialect)
}

/** `select '\\x01'` for a BINARY column, parsed as PostgreSQL's bytea; null for anything else. */
function bytesWritten(plan: Plan, index: number, { type }: TargetColumn): Expression | null {
  const made = plan.kind === 'project' ? plan.expressions[index] : undefined
  if (type.name !== 'BINARY' || made === undefined || !isConstant(made) || !isBytesText(made.value)) return null
  return constantOf(byteaOf(made.value), type, made.position)
}

/** `select 2.5` for an integer column, rounded according to the dialect; null for anything else. */
function numeralWritten(plan: Plan, index: number, { type }: TargetColumn, dialect: Dialect): Expression | null {
  const made = plan.kind === 'project' ? plan.expressions[index] : undefined
  if (made === undefined || !isConstant(made)) return null
  if (type.name === 'DECIMAL') return exactNumber(made, dialect)
  const value = roundedValue(made.value, made.type, type, { dialect, isNumeral: true })
  return constantOf(value, made.type, made.position)
}

/** Whether the column is a NULL constant. A parameter in its place gets the type. */
function isNullConstant(plan: Plan, index: number, type: DataType): boolean {
  const made = plan.kind === 'project' ? plan.expressions[index] : undefined
  if (made === undefined || !isUntypedNull(made)) return false
  learnType(made, type)
  return true
}

/** Whether the column is an untyped NULL in the select list. */
export function isNullColumn(plan: Plan, index: number): boolean {
  const made = plan.kind === 'project' ? plan.expressions[index] : undefined
  return made !== undefined && isUntypedNull(made) && made.kind === 'constant' && made.parameter === undefined
}

export function inconvertibleTypes(
  from: DataType,
  to: DataType,
  shown: string,
  column: string,
  position: number,
): SqlError {
  return new SqlError(
    `inconvertible types: ${typeText(from)} -> ${typeText(to)} [from=${shown}, to=${column}]`,
    position,
  )
}

/** The token that represents an expression in messages. */
function shownOf(written: ast.Expression, sql: string): string {
  switch (written.kind) {
    case 'cast':
    case 'case':
      return written.kind
    case 'array':
      return 'ARRAY'
    case 'call':
      return written.name
    case 'unary':
    case 'binary':
      return written.operator
    default:
      return /^(?:'(?:[^']|'')*'|[\w.#]+)/.exec(sql.slice(written.position))?.[0] ?? ''
  }
}

/** A constant for a column. `shown` and `position` are for messages. */
export interface WrittenValue {
  readonly value: Value
  readonly type: DataType
  readonly shown: string
  readonly position: number
  /** A parameter has the type that the client gave it, so any possible conversion is allowed. */
  readonly isParameter: boolean
  /** Written as a numeral. */
  readonly isNumeral: boolean
  readonly dialect: Dialect
}

/** The constant as a value of the column. `tuple` is the row's number in messages. */
export function columnValue(written: WrittenValue, target: TargetColumn, tuple: number): Value {
  const { value, type: from, position } = written
  const wanted = target.wanted ?? target.type
  if (value === null) return nullOf(target.type)
  const list = target.wanted === undefined ? null : listValue(value, from, target.wanted, position)
  if (list !== null) return list
  if (target.enumeration !== undefined && isText(from)) requireLabel(String(value), target.enumeration, position)
  if (sameType(from, target.type)) return isDay(wanted) ? truncateToDay(value) : value
  const empty = emptyArray(value, target.type)
  if (empty !== null) return empty
  const fits = written.isParameter ? isAssignable : isInsertable
  const asText = isTextOf(from, target, written.dialect)
  const isAssigned = asText || (fits(from, target.type) && !hasForm(target.wanted))
  if (!isAssigned && !(target.type.name === 'BINARY' && isBytesText(value)))
    throw inconvertibleTypes(from, target.type, written.shown, target.name, position)
  const type = wanted
  const converted = convertValue(roundedValue(value, from, type, written), from, type)
  if (converted !== undefined) return converted
  const suffix = type.name === 'TIMESTAMP' || type.name === 'TIMESTAMP_NS' ? ` tuple: ${tuple}` : ''
  throw new SqlError(inconvertibleText(value, from, type) + suffix, position)
}

/** Microseconds of a timestamp or DATE; null for any other value. */
function microsOfTimestamp(value: Exclude<Value, null>, { name }: DataType): bigint | null {
  if (typeof value !== 'bigint') return null
  if (name === 'DATE') return value * 1000n
  if (name === 'TIMESTAMP_NS') return value / 1000n
  return name === 'TIMESTAMP' ? value : null
}

/** An empty array with the wanted number of dimensions; null for any other value. */
function emptyArray(value: Exclude<Value, null>, wanted: DataType): ArrayValue | null {
  if (wanted.name !== 'ARRAY' || typeof value !== 'object' || !('shape' in value) || value.data.length > 0) return null
  return { shape: new Array<number>(wanted.a).fill(0), data: value.data }
}

/**
 * Columns of lists and times of day, which are stored as strings in a canonical form, accept only what `listValue`
 * converts.
 */
export function hasForm(wanted: DataType | undefined): boolean {
  return wanted !== undefined && (isList(wanted) || isTimeOfDay(wanted))
}

/**
 * Converts a string or array to a list, or a string or timestamp to a time of day; null if neither is wanted or the
 * value is none.
 */
export function listValue(
  value: Exclude<Value, null>,
  from: DataType,
  wanted: DataType,
  position: number,
): string | null {
  if (isTimeOfDay(wanted)) {
    if (typeof value === 'string') return timeOfDayValue(value, position)
    const timestamp = microsOfTimestamp(value, from)
    return timestamp === null ? null : timeOfDayOfTimestamp(timestamp)
  }
  if (!isList(wanted)) return null
  if (typeof value === 'object' && 'shape' in value && value.shape.length === 1)
    return textArray(Array.from(value.data, (number) => (Number.isNaN(number) ? null : String(number))))
  if (typeof value !== 'string') return null
  const elements = textElements(value.trim())
  if (elements === null) throw new SqlError(`malformed array literal: "${value.slice(0, 100)}"`, position)
  if (isListOfValues(wanted)) checkElements(elements, elementType(wanted), position)
  return value.startsWith('{{') ? value : textArray(elements)
}

/** Throws if an element does not parse as the element type; it would be read as NULL. */
function checkElements(elements: readonly (string | null)[], type: DataType, position: number): void {
  const text = dataType('STRING')
  const wrong = elements.find((element) => element !== null && convertValue(element, text, type) === undefined)
  if (wrong !== undefined) throw new SqlError(inconvertibleText(wrong, text, type), position)
}

/** A number literal for a DECIMAL column, with the digits that were written if the dialect keeps them. */
export function exactFor({ type }: TargetColumn, value: Expression, dialect: Dialect): Expression {
  return type.name === 'DECIMAL' ? exactNumber(value, dialect) : value
}

/** The value of a constant expression, in the type of its column. */
export function insertValue(
  written: ast.Expression,
  target: TargetColumn,
  tuple: number,
  scope: ExpressionScope,
): Value {
  const bound = exactFor(target, bindExpression(written, scope), scope.context.dialect)
  learnType(bound, target.wanted ?? target.type)
  if (bound.kind === 'subquery') throw new SqlError('query is not allowed here', bound.position)
  const { sql, evaluation, dialect } = scope.context
  const isParameter = isConstant(bound) && bound.parameter !== undefined
  const value = isConstant(bound) ? bound.value : evaluateConstant(bound, evaluation)
  const { position } = written
  const shown = shownOf(written, sql)
  const from = { type: bound.type, shown, position, isParameter, isNumeral: isNumeral(written) }
  return columnValue({ value, ...from, dialect }, target, tuple)
}
