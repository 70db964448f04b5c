// Compiles bound expressions to evaluators: closures that map a batch to a vector of results. A call is compiled to the
// first of these forms that applies; to evaluate its arguments or to handle special rows, a form may use forms further
// down the list. `constantWithin`, `column` and `eval` are members of the function's definition in
// engine/sql/functions.
//
//   1. no column            a constant, computed once
//   2. one symbol column    a condition: once for each symbol, then a lookup by id (symbol-predicate.ts)
//   3. one string column    once for each distinct string if the column is dictionary-encoded (lookup-table.ts)
//   4. `constantWithin`     a function of a timestamp: once for each hour, day, .. (piecewise-constant.ts)
//   5. generated kernel     WebAssembly code for the whole tree, or for the call over the vectors of its arguments
//   6. `column`             a loop over the vectors of its arguments (column-call.ts)
//   7. interpreter          `eval` row by row: correct for everything

import { fragmentPartsMax } from '../../kernels/jit/lower.js'
import { compileExpression, formOf } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { visitExpression } from '../../sql/typing/walk-expression.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { oncePerDictionaryEntry } from '../batch/lookup-table.js'
import { StringHeap } from '../batch/string-heap.js'
import { type ValueReader, valueReader, type WriteTarget, writeValue } from '../batch/values.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { compileColumnCall } from './column-call.js'
import { callsOf, columnsOf, isPure, isText, isTotal, partsOf, readsColumns } from './expression-shape.js'
import { FragmentInputs } from './fragments.js'
import { compilePiecewiseConstant } from './piecewise-constant.js'
import { compileSymbolPredicate } from './symbol-predicate.js'

/** The result is valid until the evaluator is called again. */
export type VectorEvaluator = (batch: Batch) => Vector

type Call = Extract<Expression, { kind: 'call' }>

export function compileVector(expression: Expression, context: ExecContext): VectorEvaluator {
  switch (expression.kind) {
    case 'column':
      return ({ vectors }) => vectors[expression.index] as Vector
    case 'constant':
      return constantVector(() => expression.value, expression.type, context)
    case 'constants':
      throw new Error('a list is the argument of in_list alone')
    case 'subquery':
      return onceVector(expression, context)
    case 'call':
      return compileCall(expression, context)
  }
}

function compileCall(call: Call, context: ExecContext): VectorEvaluator {
  if (!readsColumns(call) && isPure(call)) return onceVector(call, context)
  const predicate = compileSymbolPredicate(call, context)
  if (predicate !== undefined) return predicate
  // Statements with thousands of expressions run over short batches; a lookup table for each would take too much
  // memory.
  const column = context.rowsMax === undefined ? textColumnOf(call) : -1
  const evaluate = compilePiecewiseConstant(call, context) ?? compileRows(call, context)
  return column < 0 ? evaluate : oncePerDictionaryEntry(context, call.type, column, evaluate)
}

/** Evaluates a call for each row, in the fastest form that the function, its arguments and the query allow. */
function compileRows(call: Call, context: ExecContext): VectorEvaluator {
  const whole = compileGenerated(call, context)
  if (whole !== undefined) return whole
  const separate = separateArguments(call, context)
  const kernel = separate === undefined ? undefined : compileGenerated(separate.call, context)
  if (separate !== undefined && kernel !== undefined) return overArguments(separate, context, kernel)
  const column = compileColumn(call, context)
  if (column !== undefined) return column
  return separate === undefined
    ? interpret(call, context)
    : overArguments(separate, context, interpret(separate.call, context))
}

/** undefined when the function has no `column`, or leaves this call to `eval`. */
function compileColumn(call: Call, context: ExecContext): VectorEvaluator | undefined {
  const { column } = formOf(call) ?? {}
  if (column === undefined || callsOf(call, callsMax) > callsMax) return undefined
  return compileColumnCall(call, column, context, (argument) => isAllowed(argument, call, context))
}

/** The only column of an expression that can be evaluated once per dictionary entry; -1 when it cannot. */
function textColumnOf(expression: Expression): number {
  if (isVariable(expression.type) && !isText(expression.type)) return -1
  let column = -1
  let strings = true
  // BOOLEAN conditions over symbols use symbol-predicate.ts.
  const ofSymbols = expression.type.name !== 'BOOLEAN'
  visitExpression(expression, (part) => {
    if (part.kind !== 'column') return
    const isRequired = isText(part.type) || (ofSymbols && part.type.name === 'SYMBOL')
    strings &&= isRequired && (column < 0 || column === part.index)
    column = part.index
  })
  return strings && column >= 0 && isPure(expression) ? column : -1
}

// Generated kernels -------------------------------------------------------------------------------------------------

/** undefined when the expression cannot be compiled to a kernel, or the query must not use one. */
function compileGenerated(expression: Expression, context: ExecContext): VectorEvaluator | undefined {
  const { jit, arena } = context
  if (jit === null || expression.type.name === 'SYMBOL') return undefined
  if (partsOf(expression, fragmentPartsMax) > fragmentPartsMax) return undefined
  const inputs = new FragmentInputs(context, () => 0)
  const root = inputs.expression(expression)
  if (root === null || inputs.columns.length === 0) return undefined
  const fragment = jit.project({ columns: inputs.types, expressions: [root] })
  if (fragment === null) return undefined
  const block = arena.keep(fragment.blockBytes)
  const { type } = expression
  const address = arena.take((context.rowsMax ?? batchRowsMax) * widthOf(type))
  fragment.writeConstants(block)
  fragment.setOutput(block, 0, address)
  return ({ rows, vectors }) => {
    inputs.bind(fragment, block, vectors)
    fragment.run(block, rows)
    return { type, address, dictionary: 0 }
  }
}

// Arguments ---------------------------------------------------------------------------------------------------------

/**
 * Limit of nested calls for which arguments are evaluated to vectors: each result vector takes the memory of a batch.
 */
const callsMax = 64

/** A call whose arguments are evaluated first. They become columns of the batch, after those that it reads. */
interface CallOverArguments {
  readonly call: Call
  readonly args: readonly Expression[]
  /** Index of the first of these columns. */
  readonly first: number
}

/** undefined when no argument needs a vector of its own. */
function separateArguments(call: Call, context: ExecContext): CallOverArguments | undefined {
  if ((context.rowsMax !== undefined || callsOf(call, callsMax) > callsMax) && !isLargeLogic(call, context))
    return undefined
  if (!isPure(call)) return undefined
  const first = Math.max(-1, ...columnsOf(call)) + 1
  const separate: Expression[] = []
  const args = call.args.map((argument): Expression => {
    const { kind, type, position } = argument
    const isFixed = kind === 'call' && !isVariable(type) && type.name !== 'SYMBOL'
    if (!isFixed || !isAllowed(argument, call, context)) return argument
    return { kind: 'column', index: first + separate.push(argument) - 1, type, position }
  })
  return separate.length === 0 ? undefined : { call: { ...call, args }, args: separate, first }
}

/** Whether an argument may be evaluated also for rows that may not need it, as with AND, OR and CASE. */
function isAllowed(argument: Expression, call: Call, context: ExecContext): boolean {
  if (formOf(call)?.lazy !== true || !call.args.includes(argument)) return true
  return isTotal(argument) || isLargeLogic(call, context)
}

/** AND and OR that are too large for one kernel are split into several. */
function isLargeLogic(call: Call, { jit }: ExecContext): boolean {
  const isLogic = call.name === 'and' || call.name === 'or'
  return jit !== null && isLogic && partsOf(call, fragmentPartsMax) > fragmentPartsMax
}

/** Evaluates the arguments, and then the call over the batch extended by them. */
function overArguments(
  { args, first }: CallOverArguments,
  context: ExecContext,
  evaluate: VectorEvaluator,
): VectorEvaluator {
  const parts = args.map((argument) => compileVector(argument, context))
  const vectors: Vector[] = []
  return (batch) => {
    for (let index = 0; index < first; index++) vectors[index] = batch.vectors[index] as Vector
    for (let index = 0; index < parts.length; index++) vectors[first + index] = (parts[index] as VectorEvaluator)(batch)
    return evaluate({ rows: batch.rows, vectors })
  }
}

// Constants ---------------------------------------------------------------------------------------------------------

/** An expression without columns: evaluated with the first batch. */
function onceVector(expression: Expression, context: ExecContext): VectorEvaluator {
  const evaluate = compileExpression(expression, context.evaluation)
  return constantVector(() => evaluate([]), expression.type, context)
}

function constantVector(read: () => Value, type: DataType, context: ExecContext): VectorEvaluator {
  const rowsMax = context.rowsMax ?? batchRowsMax
  const width = widthOf(type)
  let made: Vector | null = null
  /** Number of rows filled with the value so far: a statement without tables needs one. */
  let filled = 0
  return ({ rows }) => {
    if (made === null) {
      const value = read()
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

/** A vector of `rowsMax` rows with the value in its first row; a NULL is in all rows. */
function firstValue(value: Value, type: DataType, context: ExecContext, rowsMax: number): Vector {
  const { memory, arena, symbols } = context
  const dictionary = type.name === 'SYMBOL' ? symbols.dictionary : 0
  if (value === null) return { type, address: arena.nulls(type), dictionary }
  const address = arena.take(rowsMax * widthOf(type))
  writeValue({ memory, heap: new StringHeap(arena), symbols }, type, address, 0, value)
  return { type, address, dictionary }
}

// Interpreter -------------------------------------------------------------------------------------------------------

/** Interprets an expression row by row, reading the values of its columns. */
function interpret(expression: Expression, context: ExecContext): VectorEvaluator {
  const { memory, arena, symbols, strings, evaluation } = context
  const { type } = expression
  const evaluate = compileExpression(expression, evaluation)
  const columns = columnsOf(expression)
  const address = arena.take((context.rowsMax ?? batchRowsMax) * widthOf(type))
  const heap = new StringHeap(arena)
  const target: WriteTarget = { memory, heap, symbols }
  const variable = isVariable(type)
  const dictionary = type.name === 'SYMBOL' ? symbols.dictionary : 0
  const row: Value[] = []
  return ({ rows, vectors }) => {
    if (variable) heap.reset()
    const read: ValueReader[] = columns.map((index) => valueReader(memory, strings, vectors[index] as Vector))
    for (let index = 0; index < rows; index++) {
      context.alive()
      for (let at = 0; at < columns.length; at++) row[columns[at] as number] = (read[at] as ValueReader)(index)
      writeValue(target, type, address, index, evaluate(row))
    }
    return { type, address, dictionary }
  }
}
