// Whether a list has a whole number: by a set of numbers (functions/whole-numbers.ts) instead of one of texts, by bits
// where the numbers are near each other. Lists of sub-queries come here, and long ones of constants (expression-list.ts).

import { assert } from '../../base/assert.js'
import { notesAbout } from '../../base/notes.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import {
  hasNumber,
  isNullOf,
  type NumberBits,
  noNumbers,
  numberBits,
  type WholeNumbers,
  withColumn,
} from '../../sql/functions/whole-numbers.js'
import type { Expression, Query } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { VectorEvaluator } from './expression.js'

type Call = Extract<Expression, { kind: 'call' }>

/** Types whose values are whole numbers of 4 or 8 bytes, and NULL the smallest one. */
export const wholeTypes: ReadonlySet<string> = new Set(['INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

/** What a sub-query's rows are collected in; undefined where its values are no whole numbers. */
export function numbersOf(
  { memory }: ExecContext,
  { mode, plan }: Query['subqueries'][number],
): NumberList | undefined {
  const type = plan.columns[0]?.type.name ?? ''
  if (mode !== 'list' || !wholeTypes.has(type)) return undefined
  let numbers = noNumbers()
  const add = ({ type, address }: Vector, rows: number): void => {
    const wide = widthOf(type) === 8
    const words = memory.i32.subarray(address >>> 2, (address >>> 2) + (wide ? rows * 2 : rows))
    numbers = withColumn(numbers, words, wide)
  }
  return { add, result: () => ({ mode: 'list', keys: new Set(), numbers }) }
}

export interface NumberList {
  add(vector: Vector, rows: number): void
  result(): SubqueryResult
}

/** undefined: it is no such call. */
export function compileMembers(
  { name, args, type }: Call,
  context: ExecContext,
  compile: (part: Expression) => VectorEvaluator,
): VectorEvaluator | undefined {
  const [subject, list] = args
  if (name !== 'in_list' || subject === undefined || list?.kind !== 'subquery') return undefined
  if (!wholeTypes.has(subject.type.name) || !wholeTypes.has(list.type.name)) return undefined
  const { memory, space, evaluation } = context
  const evaluate = compile(subject)
  const address = space.take(context.rowsMax ?? batchRowsMax)
  const wide = widthOf(subject.type) === 8
  return (batch) => {
    const result = evaluation.subqueries[list.index]
    assert(result?.mode === 'list' && result.numbers !== undefined, 'a list of whole numbers was collected as such')
    markNumbers(memory, { values: evaluate(batch).address, rows: batch.rows, wide }, result.numbers, address)
    return { type, address, dictionary: 0 }
  }
}

/** Writes for each of the rows whether the set has its number, or its NULL. */
export function markNumbers(
  memory: SharedMemory,
  { values, rows, wide }: { readonly values: number; readonly rows: number; readonly wide: boolean },
  numbers: WholeNumbers,
  out: number,
): void {
  const bits = bitsOf(numbers)
  if (bits !== undefined && wide) markWideBits(memory, values, rows, bits, numbers.hasNull, out)
  else if (bits !== undefined) markNarrowBits(memory, values, rows, bits, numbers.hasNull, out)
  else if (wide) markWide(memory, values, rows, numbers, out)
  else markNarrow(memory, values, rows, numbers, out)
}

/** Of the lists of queries, made once in a thread. */
const bitsOfLists = notesAbout<WholeNumbers, { readonly bits: NumberBits | undefined }>()

function bitsOf(numbers: WholeNumbers): NumberBits | undefined {
  const known = bitsOfLists.get(numbers) ?? { bits: numberBits(numbers) }
  bitsOfLists.set(numbers, known)
  return known.bits
}

function markWideBits(
  { i32, u8 }: SharedMemory,
  values: number,
  rows: number,
  { min, last, words }: NumberBits,
  hasNull: boolean,
  out: number,
): void {
  const first = values >>> 2
  const nullMark = hasNull ? 1 : 0
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row * 2]!
    const high = i32[first + row * 2 + 1]!
    const bit = low - min
    if (high !== low >> 31 || bit < 0 || bit > last) u8[out + row] = isNullOf(low, high, true) ? nullMark : 0
    else u8[out + row] = (words[bit >>> 5]! >>> (bit & 31)) & 1
  }
}

function markNarrowBits(
  { i32, u8 }: SharedMemory,
  values: number,
  rows: number,
  { min, last, words }: NumberBits,
  hasNull: boolean,
  out: number,
): void {
  const first = values >>> 2
  const nullMark = hasNull ? 1 : 0
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row]!
    const bit = low - min
    if (isNullOf(low, 0, false)) u8[out + row] = nullMark
    else if (bit < 0 || bit > last) u8[out + row] = 0
    else u8[out + row] = (words[bit >>> 5]! >>> (bit & 31)) & 1
  }
}

function markWide({ i32, u8 }: SharedMemory, values: number, rows: number, set: WholeNumbers, out: number): void {
  const first = values >>> 2
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row * 2]!
    const high = i32[first + row * 2 + 1]!
    u8[out + row] = (isNullOf(low, high, true) ? set.hasNull : hasNumber(set, low, high)) ? 1 : 0
  }
}

function markNarrow({ i32, u8 }: SharedMemory, values: number, rows: number, set: WholeNumbers, out: number): void {
  const first = values >>> 2
  for (let row = 0; row < rows; row++) {
    const low = i32[first + row]!
    u8[out + row] = (isNullOf(low, 0, false) ? set.hasNull : hasNumber(set, low, low >> 31)) ? 1 : 0
  }
}
