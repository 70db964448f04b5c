// The expression interpreter: compiles a bound expression to a closure that evaluates one row, exactly. It is the
// reference for the vectorised and generated implementations, and their fallback.
//
// Call names that are not in the function tables:
//   cast     explicit cast of the argument to the call's type; a value that cannot be converted is NULL
//   convert  the same, but a value that cannot be converted is an error
//   nearest  conversion of a timestamp to a finer unit for a comparison; beyond its range, the end of the range
//   narrow   explicit cast to BYTE or SHORT; a number out of range is an error
//   divide, remainder  `/` and `%` of DECIMALs; a divisor of zero is an error
//   in_list  [value, constants or a sub-query with the mode 'list']: whether they contain the value
//   exists   [sub-query with the mode 'exists']: whether it returned a row
// `and`, `or`, `case` and `coalesce` evaluate only the arguments that they need.

import { assert } from '../../../base/assert.js'
import { SqlError } from '../../../base/errors.js'
import { foldedCharactersMax } from '../../../base/limits.js'
import type { DataType } from '../../../types/column-types.js'
import { keyText } from '../../../types/compare.js'
import { castValue, convertValue, inconvertibleText, narrowValue, nearestTime, nullOf } from '../../../types/convert.js'
import { intMin, longMin, longOrNull } from '../../../types/number.js'
import type { Value } from '../../../types/value.js'
import type { Expression } from '../../plan/plan.js'
import { castColumn } from '../column/casts.js'
import { inListColumn } from '../column/members.js'
import { hasValue, type WholeNumbers } from '../column/whole-numbers.js'
import {
  type Accumulator,
  type AggregateFunction,
  type CallSite,
  divisionByZero,
  type EvaluationContext,
  type ScalarFunction,
} from '../function-types.js'
import { severalRowsText } from '../single-row.js'
import { aggregatesNamed, scalarsNamed } from './all.js'
import { bestOverload } from './resolve.js'

export type Row = readonly Value[]
export type Evaluator = (row: Row) => Value

/**
 * Results of Query.subqueries: a value, the set of keys of a list, or whether there was a row. A list of integers has
 * `numbers` instead of keys.
 */
export type SubqueryResult =
  | { readonly mode: 'scalar'; readonly value: Value }
  | { readonly mode: 'list'; readonly keys: ReadonlySet<string>; readonly numbers?: WholeNumbers }
  | { readonly mode: 'exists'; readonly exists: boolean }

export interface Evaluation extends EvaluationContext {
  readonly subqueries: readonly SubqueryResult[]
}

/** Throws SqlError if a scalar sub-query has returned more than one row. */
export function requireOneRow(rows: number, position: number): void {
  if (rows > 1) throw new SqlError(severalRowsText, position)
}

/** The keys of a sub-query's values. */
export function listKeys(values: Iterable<Value>): ReadonlySet<string> {
  return new Set(Array.from(values, keyText))
}

type Call = Extract<Expression, { kind: 'call' }>

/** The table entry of a bound call; undefined for the names listed in this file's header. */
export function scalarOf(call: Call): ScalarFunction | undefined {
  return bestOverload(scalarsNamed(call.name), call.args.map(resolvedType))
}

/** The table entry of a bound aggregate call. */
export function aggregateOf(name: string, args: readonly Expression[]): AggregateFunction | undefined {
  const row = bestOverload(aggregatesNamed(name), args.map(resolvedType))
  const ofChar = args.map(({ type }) => type.name === 'CHAR')
  return row !== undefined && ofChar.includes(true) ? { ...row, accumulator: withCharNulls(row, ofChar) } : row
}

/** Makes an aggregate treat the empty CHAR as NULL. */
function withCharNulls({ accumulator }: AggregateFunction, ofChar: readonly boolean[]): Accumulator<unknown> {
  const { add, result } = accumulator
  const present = (value: Value, index: number): Value => (value === '' && ofChar[index] ? null : value)
  return {
    ...accumulator,
    add: (state, args, site) => add(state, args.map(present), site),
    result: (state, site) => result(state, site) ?? nullOf(site.type),
  }
}

/** Properties of a call for the executor: from its table entry, or from `specialForms`. */
export function formOf(call: Call): Form | undefined {
  return specialForms[call.name] ?? scalarOf(call)
}

type Form = Pick<ScalarFunction, 'column' | 'total' | 'lazy' | 'volatility'>

/** The names listed in this file's header. */
const specialForms: Readonly<Record<string, Form>> = {
  cast: { total: true, column: castColumn },
  convert: {},
  nearest: { total: true },
  narrow: {},
  divide: {},
  remainder: {},
  in_list: { total: true, column: inListColumn },
  exists: {},
}

function resolvedType(expression: Expression): { type: DataType; isNull: boolean; isConstant: boolean } {
  return { type: expression.type, isNull: false, isConstant: expression.kind === 'constant' }
}

/** Compiles an expression over rows of its input. */
export function compileExpression(expression: Expression, evaluation: Evaluation): Evaluator {
  switch (expression.kind) {
    case 'column': {
      const { index } = expression
      return (row) => row[index] ?? null
    }
    case 'constant': {
      const { value } = expression
      return () => value
    }
    case 'subquery':
      return subqueryEvaluator(expression.index, evaluation)
    case 'constants':
      throw new Error('a list is the argument of in_list alone')
    case 'call':
      return compileCall(expression, evaluation)
  }
}

function subqueryEvaluator(index: number, { subqueries }: Evaluation): Evaluator {
  return () => {
    const result = subqueries[index]
    assert(result !== undefined, 'Q1: a sub-query has run')
    return result.mode === 'scalar' ? result.value : result.mode === 'exists' ? result.exists : null
  }
}

function compileCall(call: Call, evaluation: Evaluation): Evaluator {
  switch (call.name) {
    case 'cast':
    case 'convert':
    case 'nearest':
    case 'narrow':
      return compileCast(call, evaluation)
    case 'divide':
      return compileDivision({ ...call, name: '/' }, evaluation)
    case 'remainder':
      return compileDivision({ ...call, name: '%' }, evaluation)
    case 'in_list':
      return compileInList(call, evaluation)
    case 'in':
      return compileMembers(compileFirst(call, evaluation), () =>
        call.args.slice(1).map((member) => compileExpression(member, evaluation)([])),
      )
    case 'exists':
      return compileFirst(call, evaluation)
    case 'and':
    case 'or':
      return compileLogic(call, evaluation)
    case 'case':
      return compileCase(call, evaluation)
    case 'coalesce':
      return compileCoalesce(call, evaluation)
    default:
      return compileScalar(call, evaluation)
  }
}

function compileFirst(call: Call, evaluation: Evaluation): Evaluator {
  const [argument] = call.args
  assert(argument !== undefined, 'B1: a call has its argument')
  return compileExpression(argument, evaluation)
}

function compileCast(call: Call, evaluation: Evaluation): Evaluator {
  const source = compileFirst(call, evaluation)
  const from = call.args[0]?.type ?? call.type
  const { type, position } = call
  if (call.name === 'cast') return (row) => castValue(source(row), from, type)
  if (call.name === 'nearest') return (row) => nearestTime(source(row), from, type)
  const convert = call.name === 'narrow' ? narrowValue : convertValue
  return (row) => {
    const value = source(row)
    const converted = convert(value, from, type)
    if (converted === undefined) throw new SqlError(inconvertibleText(value, from, type), position)
    return converted
  }
}

/** `/` or `%` of DECIMALs, for which a divisor of zero is an error. */
function compileDivision(call: Call, evaluation: Evaluation): Evaluator {
  const parts = call.args.map((argument) => compileExpression(argument, evaluation))
  const ofColumns = call.args.map((argument, index): Expression => ({ ...argument, kind: 'column', index }))
  const divide = compileScalar({ ...call, args: ofColumns }, evaluation)
  return (row) => {
    const args = parts.map((part) => part(row))
    const [dividend, divisor] = args
    if (Number(divisor) === 0 && divisor !== null && dividend !== null) throw divisionByZero(call.name, call.position)
    return divide(args)
  }
}

function compileInList(call: Call, evaluation: Evaluation): Evaluator {
  const source = compileFirst(call, evaluation)
  const list = call.args[1]
  if (list?.kind === 'constants') return compileMembers(source, () => list.values)
  assert(list?.kind === 'subquery', 'B1: in_list takes a list')
  return (row) => {
    const result = evaluation.subqueries[list.index]
    assert(result?.mode === 'list', 'Q1: a sub-query has run and made a list')
    const value = source(row)
    return result.numbers === undefined ? result.keys.has(keyText(value)) : hasValue(result.numbers, value)
  }
}

/** Constant members as a set, which is built at the first row. */
function compileMembers(source: Evaluator, values: () => readonly Value[]): Evaluator {
  let members: ReadonlySet<unknown> | null = null
  return (row) => {
    members ??= new Set(values().map(memberKey))
    return members.has(memberKey(source(row)))
  }
}

/** A key for values of one type: sets compare numbers and strings as `=` does. */
function memberKey(value: Value): unknown {
  return typeof value === 'object' && value !== null ? keyText(value) : value
}

function compileLogic(call: Call, evaluation: Evaluation): Evaluator {
  const parts = call.args.map((argument) => compileExpression(argument, evaluation))
  if (call.name === 'and') return (row) => parts.every((part) => part(row) === true)
  return (row) => parts.some((part) => part(row) === true)
}

function compileCase(call: Call, evaluation: Evaluation): Evaluator {
  const parts = call.args.map((argument) => compileExpression(argument, evaluation))
  const otherwise = parts.length % 2 === 1 ? parts[parts.length - 1] : undefined
  const missing = nullOf(call.type)
  const jump = jumpOf(call)
  if (jump !== null) {
    return (row) => {
      const index = jump.results.get(memberKey(row[jump.column] ?? null))
      return (index === undefined ? otherwise : parts[index])?.(row) ?? missing
    }
  }
  return (row) => {
    for (let index = 0; index + 1 < parts.length; index += 2)
      if (parts[index]?.(row) === true) return parts[index + 1]?.(row) ?? missing
    return otherwise === undefined ? missing : otherwise(row)
  }
}

/** With fewer branches, comparing one by one is as fast. */
const jumpMin = 16

/**
 * For a CASE that compares one column with constants: argument index of the result by value. Null for any other CASE.
 */
function jumpOf({ args }: Call): { readonly column: number; readonly results: ReadonlyMap<unknown, number> } | null {
  if (args.length < jumpMin * 2) return null
  const results = new Map<unknown, number>()
  let column = -1
  for (let index = 0; index + 1 < args.length; index += 2) {
    const condition = args[index]
    if (condition?.kind !== 'call' || condition.name !== '=') return null
    const [left, right] = condition.args
    const [subject, value] = left?.kind === 'column' ? [left, right] : [right, left]
    if (subject?.kind !== 'column' || value?.kind !== 'constant') return null
    if (column >= 0 && subject.index !== column) return null
    column = subject.index
    const key = memberKey(value.value)
    if (!results.has(key)) results.set(key, index + 1)
  }
  return { column, results }
}

function compileCoalesce(call: Call, evaluation: Evaluation): Evaluator {
  const parts = call.args.map((argument) => compileExpression(argument, evaluation))
  return (row) => {
    for (const part of parts) {
      const value = part(row)
      if (value !== null) return value
    }
    return nullOf(call.type)
  }
}

function compileScalar(call: Call, evaluation: Evaluation): Evaluator {
  const scalar = scalarOf(call)
  assert(scalar !== undefined, `B1: no function of that signature [name=${call.name}]`)
  const parts = call.args.map((argument) => compileExpression(argument, evaluation))
  const site = callSite(call.type, call.args, call.position, evaluation)
  const missing = nullOf(call.type)
  const { eval: evaluate, seesNull = false } = scalar
  return (row) => {
    const args = parts.map((part) => part(row))
    if (!seesNull && args.includes(null)) return missing
    const value = placed(evaluate, args, site)
    if (typeof value === 'string' && value.length > foldedCharactersMax) evaluation.alive?.()
    return normalise(value, site) ?? missing
  }
}

/** Sets the position of errors that have none to that of the call. */
function placed(evaluate: ScalarFunction['eval'], args: readonly Value[], site: CallSite): Value {
  try {
    return evaluate(args, site)
  } catch (thrown) {
    throw thrown instanceof SqlError && thrown.position === 0 ? new SqlError(thrown.message, site.position) : thrown
  }
}

export function callSite(
  type: DataType,
  args: readonly Expression[],
  position: number,
  context: EvaluationContext,
): CallSite {
  return { type, argTypes: args.map((argument) => argument.type), position, context, memo: new Map() }
}

/**
 * Converts a value as storage does: non-finite numbers, the smallest integers and LONGs beyond 64 bits become NULL, and
 * FLOAT is rounded to 32 bits. A timestamp beyond 64 bits is an error.
 */
function normalise(value: Value, { type, position }: CallSite): Value {
  if (typeof value === 'number') {
    const retained = type.name === 'FLOAT' ? Math.fround(value) : value
    return Number.isFinite(retained) && (type.name !== 'INT' || retained !== intMin) ? retained : null
  }
  if (typeof value !== 'bigint' || !ofWord.has(type.name) || longOrNull(value) !== null) return value
  if (value === longMin || type.name === 'LONG') return null
  throw new SqlError(`timestamp out of range [type=${type.name}]`, position)
}

/** Evaluates an expression without columns. */
export function evaluateConstant(expression: Expression, context: EvaluationContext): Value {
  return compileExpression(expression, { ...context, subqueries: [] })([])
}

/** 64-bit types whose NULL is the smallest integer. */
const ofWord: ReadonlySet<string> = new Set(['LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])
