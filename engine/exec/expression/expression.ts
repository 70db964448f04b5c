// Bound expressions over batches: each becomes a closure that fills a vector. The fastest way that applies is taken:
//
//   columns and constants   no work per row
//   one symbol column       evaluated once per dictionary entry, then looked up by id
//   one column of texts     the same where the texts are coded (text-answers.ts)
//   texts                   kernels over the bytes (expression-texts.ts, expression-characters.ts, expression-joins.ts)
//   CASE of constant texts  numbers of the texts (expression-choices.ts)
//   lists of sub-queries    a table of whole numbers (expression-members.ts)
//   long lists              the same, or a table of hashes (expression-list.ts)
//   typed loops             arithmetic, comparison and logic of small numbers (expression-loops.ts)
//   functions of numbers    the same, over vectors of their arguments (expression-functions.ts)
//   parts                   arguments each in their fastest way, then the call over them (expression-parts.ts)
//   rows                    the interpreter of sql/functions, value by value: right for everything
//
// Generated kernels take over whole trees where they can (compiled-expression.ts).

import { notesAbout } from '../../base/notes.js'
import { fragmentPartsMax } from '../../kernels/jit/lower.js'
import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { visitExpression } from '../../sql/typing/walk-expression.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { QuerySpace } from '../batch/query-space.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import { oncePerText } from '../batch/text-answers.js'
import { TextHeap } from '../batch/text-heap.js'
import { type ValueReader, valueReader, type WriteTarget, writeValue } from '../batch/values.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { compileGenerated } from './compiled-expression.js'
import { compileTextCast } from './expression-casts.js'
import { compileCharacters } from './expression-characters.js'
import { compileChoice } from './expression-choices.js'
import { compileFloor } from './expression-floor.js'
import { compileFunction } from './expression-functions.js'
import { compileJoinedTexts } from './expression-joins.js'
import { compileList } from './expression-list.js'
import { compileLoop } from './expression-loops.js'
import { compileMembers } from './expression-members.js'
import { compileParts } from './expression-parts.js'
import { columnsOf, isPure, isText, partsOf } from './expression-shape.js'
import { compileTextTest } from './expression-texts.js'
import { compileTimePart, compileTimeText } from './expression-times.js'
import { compileWide } from './expression-wide.js'

/** The result stays valid until the evaluator is called again. */
export type VectorEvaluator = (batch: Batch) => Vector

export function compileVector(expression: Expression, context: ExecContext): VectorEvaluator {
  switch (expression.kind) {
    case 'column':
      return ({ vectors }) => vectors[expression.index] as Vector
    case 'constant':
      return constantVector(expression.value, expression.type, context)
    case 'constants':
      throw new Error('a list is the argument of in_list alone')
    case 'subquery': {
      const value = compileExpression(expression, context.evaluation)([])
      return constantVector(value, expression.type, context)
    }
    case 'call': {
      const evaluate = compileCall(expression, context)
      // Short batches are those of statements of thousands of expressions: a table for each would be too much.
      const column = context.rowsMax === undefined ? textColumnOf(expression) : -1
      return column < 0 ? evaluate : oncePerText(context, expression.type, column, evaluate)
    }
  }
}

function compileCall(expression: Extract<Expression, { kind: 'call' }>, context: ExecContext): VectorEvaluator {
  const compile = (part: Expression): VectorEvaluator => compileVector(part, context)
  return (
    compileSymbolPredicate(expression, context) ??
    compileChoice(expression, context, compile) ??
    compileFloor(expression, context, compile) ??
    compileTimePart(expression, context, compile) ??
    compileTimeText(expression, context, compile) ??
    compileTextTest(expression, context, compile) ??
    compileCharacters(expression, context, compile) ??
    compileJoinedTexts(expression, context, compile, (call) => compileRows(call, context)) ??
    compileWide(expression, context, compile) ??
    compileTextCast(expression, context, compile) ??
    compileMembers(expression, context, compile) ??
    compileList(expression, context, compile) ??
    compileHalves(expression, context) ??
    compileGenerated(expression, context) ??
    compileFunction(expression, context, compile) ??
    compileLoop(expression, context) ??
    compileParts(expression, context, compile, (rest) => compileCall(rest, context)) ??
    compileRows(expression, context)
  )
}

/** The one column of an expression that may be asked once for each different text or symbol; -1: it is none. */
function textColumnOf(expression: Expression): number {
  if (isVariable(expression.type) && !isText(expression.type)) return -1
  let column = -1
  let texts = true
  // Conditions over symbols have tables of their own (symbols.ts, symbol-matches.ts).
  const ofSymbols = expression.type.name !== 'BOOLEAN'
  visitExpression(expression, (part) => {
    if (part.kind !== 'column') return
    const isAsked = isText(part.type) || (ofSymbols && part.type.name === 'SYMBOL')
    texts &&= isAsked && (column < 0 || column === part.index)
    column = part.index
  })
  return texts && column >= 0 && isPure(expression) ? column : -1
}

/** AND and OR of more than a kernel holds: both sides on their own, as often as it takes. */
function compileHalves(call: Extract<Expression, { kind: 'call' }>, context: ExecContext): VectorEvaluator | undefined {
  const [left, right] = call.args
  const isLogic = call.name === 'and' || call.name === 'or'
  if (context.jit === null || !isLogic || left === undefined || right === undefined) return undefined
  if (partsOf(call, fragmentPartsMax) <= fragmentPartsMax) return undefined
  const [first, second] = [compileVector(left, context), compileVector(right, context)]
  const { memory, space } = context
  const address = space.take(context.rowsMax ?? batchRowsMax)
  return (batch) => {
    const [a, b] = [first(batch).address, second(batch).address]
    const { u8 } = memory
    if (call.name === 'and') for (let row = 0; row < batch.rows; row++) u8[address + row] = u8[a + row]! & u8[b + row]!
    else for (let row = 0; row < batch.rows; row++) u8[address + row] = u8[a + row]! | u8[b + row]!
    return { type: call.type, address, dictionary: 0 }
  }
}

function constantVector(value: Value, type: DataType, context: ExecContext): VectorEvaluator {
  const rowsMax = context.rowsMax ?? batchRowsMax
  const width = widthOf(type)
  let made: Vector | null = null
  /** Rows that have the value: a statement without tables needs one. */
  let filled = 0
  return ({ rows }) => {
    if (made === null) {
      made = firstValue(value, type, context, rowsMax)
      filled = value === null ? rowsMax : 1
    }
    const { address } = made
    while (filled < Math.min(rows, rowsMax)) {
      const more = Math.min(filled, rowsMax - filled)
      context.memory.u8.copyWithin(address + filled * width, address, address + more * width)
      filled += more
    }
    return made
  }
}

/** Room for `rowsMax` of the value, and the value in its first row; NULL in all. */
function firstValue(value: Value, type: DataType, context: ExecContext, rowsMax: number): Vector {
  const { memory, space, symbols } = context
  const dictionary = type.name === 'SYMBOL' ? symbols.dictionary : 0
  if (value === null) return { type, address: space.nulls(type), dictionary }
  const address = space.take(rowsMax * widthOf(type))
  writeValue({ memory, heap: new TextHeap(space), symbols }, type, address, 0, value)
  return { type, address, dictionary }
}

/** The interpreter over a batch: values of the columns that are read, row by row. */
function compileRows(expression: Expression, context: ExecContext): VectorEvaluator {
  const { memory, space, symbols, texts, evaluation } = context
  const { type } = expression
  const evaluate = compileExpression(expression, evaluation)
  const columns = columnsOf(expression)
  const address = space.take((context.rowsMax ?? batchRowsMax) * widthOf(type))
  const heap = new TextHeap(space)
  const target: WriteTarget = { memory, heap, symbols }
  const variable = isVariable(type)
  const dictionary = type.name === 'SYMBOL' ? symbols.dictionary : 0
  const row: Value[] = []
  return ({ rows, vectors }) => {
    if (variable) heap.reset()
    const read: ValueReader[] = columns.map((index) => valueReader(memory, texts, vectors[index] as Vector))
    for (let index = 0; index < rows; index++) {
      context.alive()
      for (let at = 0; at < columns.length; at++) row[columns[at] as number] = (read[at] as ValueReader)(index)
      writeValue(target, type, address, index, evaluate(row))
    }
    return { type, address, dictionary }
  }
}

const unknown = 0
const holds = 2

/** A BOOLEAN over one symbol column and constants: a table of answers by id + 1. */
export interface SymbolPredicate {
  readonly column: number
  /** Bytes by id + 1: 0 or 1. The address may change when the dictionary has grown: ask again for every batch. */
  tableFor(dictionary: number, count: number): number
}

/** Of a query: several kernels ask for the same one. */
const predicates = notesAbout<QuerySpace, Map<Expression, SymbolPredicate | undefined>>()

/** undefined: the expression is not of that kind. */
export function symbolPredicate(expression: Expression, context: ExecContext): SymbolPredicate | undefined {
  const known = predicates.get(context.space) ?? new Map<Expression, SymbolPredicate | undefined>()
  predicates.set(context.space, known)
  if (!known.has(expression)) known.set(expression, newPredicate(expression, context))
  return known.get(expression)
}

function newPredicate(expression: Expression, context: ExecContext): SymbolPredicate | undefined {
  if (expression.kind !== 'call' || expression.type.name !== 'BOOLEAN') return undefined
  const [column, ...others] = columnsOf(expression)
  if (column === undefined || others.length > 0 || !isSymbolTree(expression) || !isPure(expression)) return undefined
  const evaluate = compileExpression(expression, context.evaluation)
  const wanted = wantedSymbols(expression, context)
  const row: Value[] = []
  const answer = (value: Value): number => {
    context.alive()
    row[column] = value
    return evaluate(row) === true ? 1 : 0
  }
  let known = { dictionary: -1, count: 0, address: 0 }
  const tableFor = (dictionary: number, count: number): number => {
    if (known.dictionary === dictionary && known.count >= count) return known.address
    const from = known.dictionary === dictionary ? known.count : 0
    const address = context.space.take(count + 1)
    if (from > 0) context.memory.u8.copyWithin(address, known.address, known.address + from + 1)
    else context.memory.u8[address] = answer(null)
    const textOf = context.texts.of(dictionary)
    if (wanted !== undefined) {
      context.memory.u8.fill(0, address + 1 + from, address + 1 + count)
      for (const id of wanted.idsIn(dictionary, count)) context.memory.u8[address + 1 + id] = 1
    } else for (let id = from; id < count; id++) context.memory.u8[address + 1 + id] = answer(textOf(id))
    known = { dictionary, count, address }
    return address
  }
  return { column, tableFor }
}

function isSymbolTree(expression: Expression): boolean {
  if (expression.kind === 'column') return expression.type.name === 'SYMBOL'
  return expression.kind !== 'call' || expression.args.every(isSymbolTree)
}

/** Looks answers up lazily: a query over few rows of a large dictionary evaluates few entries. */
function compileSymbolPredicate(expression: Expression, context: ExecContext): VectorEvaluator | undefined {
  if (symbolPredicate(expression, context) === undefined) return undefined
  const column = columnsOf(expression)[0] as number
  const { memory, space, texts, evaluation } = context
  const evaluate = compileExpression(expression, evaluation)
  const address = space.take(batchRowsMax)
  const answers = new Map<number, Uint8Array>()
  const row: Value[] = []
  return ({ rows, vectors }) => {
    const vector = vectors[column] as Vector
    const textOf = texts.of(vector.dictionary)
    let table = answers.get(vector.dictionary) ?? new Uint8Array(256)
    const ids = vector.address >>> 2
    for (let index = 0; index < rows; index++) {
      const at = memory.i32[ids + index]! + 1
      if (at >= table.length) table = grown(table, at + 1)
      let known = table[at]!
      if (known === unknown) {
        context.alive()
        row[column] = at === 0 ? null : textOf(at - 1)
        known = evaluate(row) === true ? holds : 1
        table[at] = known
      }
      memory.u8[address + index] = known - 1
    }
    answers.set(vector.dictionary, table)
    return { type: expression.type, address, dictionary: 0 }
  }
}

function grown(table: Uint8Array, length: number): Uint8Array {
  const larger = new Uint8Array(Math.max(length, table.length * 2))
  larger.set(table)
  return larger
}
