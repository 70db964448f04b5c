// Evaluates calls of SQL functions that have a vectorised implementation: a loop over whole columns, named `column` in
// the function's definition (engine/sql/functions). This file does what all of these loops need: it evaluates the
// arguments to vectors, decodes symbols (dictionary-encoded strings), allocates the result vector, and calls the
// function's row-by-row implementation (`eval`) for rows that the loop does not handle.

import { assert } from '../../base/assert.js'
import { dictionaryCount, dictionaryEntry } from '../../memory/column-layout.js'
import type {
  ColumnContext,
  ColumnFunction,
  ColumnPlan,
  DictionaryPlan,
} from '../../sql/functions/column/column-function.js'
import { numberBits } from '../../sql/functions/column/whole-numbers.js'
import { compileExpression } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import { type DataType, dataType, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { dictionaryVector } from '../batch/dictionary-strings.js'
import { computeIfAbsent } from '../batch/query-state.js'
import { StringHeap } from '../batch/string-heap.js'
import { valueReader, writeValue } from '../batch/values.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from './expression.js'

type Call = Extract<Expression, { kind: 'call' }>

/**
 * `isAllowed` tells whether an argument may be evaluated for all rows. Returns undefined when the function leaves the
 * call to `eval`.
 */
export function compileColumnCall(
  call: Call,
  column: ColumnFunction,
  context: ExecContext,
  isAllowed: (argument: Expression) => boolean,
): VectorEvaluator | undefined {
  const heap = new StringHeap(context.arena)
  const known = { ...call, args: call.args.map((argument) => withoutSubquery(argument, context)) }
  const plan = column(known, columnContext(context, heap))
  if (plan === undefined) return undefined
  if ('codes' in plan) return dictionaryResult(call.type, plan, context)
  if (!plan.args.every(isAllowed)) return undefined
  // With thousands of expressions, a decoded dictionary for each would take too much memory.
  if (context.rowsMax !== undefined && plan.args.some(({ type }) => type.name === 'SYMBOL')) return undefined
  return loopResult(known, plan, context, heap)
}

/** Scalar sub-queries have run before: replaces one by its result. */
function withoutSubquery(argument: Expression, { evaluation }: ExecContext): Expression {
  const result = argument.kind === 'subquery' ? evaluation.subqueries[argument.index] : undefined
  if (result?.mode !== 'scalar') return argument
  return { kind: 'constant', value: result.value, type: argument.type, position: argument.position }
}

function columnContext(
  { memory, kernels, arena, state, symbols, evaluation, rowsMax }: ExecContext,
  heap: StringHeap,
): ColumnContext {
  return {
    memory,
    kernels,
    rowsMax: rowsMax ?? batchRowsMax,
    allocate: (bytes) => arena.keep(bytes),
    vector: (type, values) => {
      const address = arena.keep(values.length * widthOf(type))
      const target = { memory, heap: new StringHeap(arena), symbols }
      values.forEach((value, row) => {
        writeValue(target, type, address, row, value)
      })
      return address
    },
    reserve: (bytes) => heap.reserve(bytes),
    listOf: (subquery) => {
      const result = evaluation.subqueries[subquery]
      assert(
        result?.mode === 'list' && result.numbers !== undefined,
        'Q1: a list of whole numbers was collected as such',
      )
      return result.numbers
    },
    bitsOf: (numbers) => computeIfAbsent(state.numberBits, numbers, () => numberBits(numbers)),
  }
}

function loopResult(
  call: Call,
  { args, run, isLeft }: ColumnPlan,
  context: ExecContext,
  heap: StringHeap,
): VectorEvaluator {
  const { type } = call
  const sources = args.map((argument) => compileVector(argument, context))
  const entriesOf = args.map((argument) => (argument.type.name === 'SYMBOL' ? symbolEntries(context) : addressOf))
  const finish = isLeft === undefined ? undefined : evaluateLeft(call, args, isLeft, context, heap)
  const out = context.arena.take((context.rowsMax ?? batchRowsMax) * widthOf(type))
  const vectors: Vector[] = []
  const addresses: number[] = []
  return (batch) => {
    heap.reset()
    for (let index = 0; index < sources.length; index++) {
      const vector = (sources[index] as VectorEvaluator)(batch)
      vectors[index] = vector
      addresses[index] = (entriesOf[index] as EntriesOf)(vector, batch.rows)
    }
    if (run(batch.rows, addresses, out) > 0) finish?.(vectors, batch.rows, out)
    return { type, address: out, dictionary: 0 }
  }
}

/** Evaluates the rows that the loop left out with `eval`, and writes their results. */
function evaluateLeft(
  call: Call,
  args: readonly Expression[],
  isLeft: (out: number, row: number) => boolean,
  context: ExecContext,
  heap: StringHeap,
): (vectors: readonly Vector[], rows: number, out: number) => void {
  const { memory, strings, symbols, evaluation, alive } = context
  const overVectors = call.args.map((argument): Expression => {
    const index = args.indexOf(argument)
    return index < 0 ? argument : { kind: 'column', index, type: argument.type, position: argument.position }
  })
  const evaluate = compileExpression({ ...call, args: overVectors }, evaluation)
  const target = { memory, heap, symbols }
  return (vectors, rows, out) => {
    const readers = vectors.map((vector) => valueReader(memory, strings, vector))
    for (let row = 0; row < rows; row++) {
      if (!isLeft(out, row)) continue
      alive()
      const values: Value[] = readers.map((read) => read(row))
      writeValue(target, call.type, out, row, evaluate(values))
    }
  }
}

type EntriesOf = (vector: Vector, rows: number) => number

const addressOf: EntriesOf = ({ address }) => address

/** Decodes a symbol vector to string entries; returns the address of the rows' entries. */
function symbolEntries({ memory, arena, kernels }: ExecContext): EntriesOf {
  const out = arena.take(batchRowsMax * 8)
  const nothing = arena.nulls(dataType('VARCHAR'))
  let known = { dictionary: -1, count: 0, address: 0 }
  return ({ dictionary, address }, rows) => {
    const count = dictionary === 0 ? 0 : dictionaryCount(memory, dictionary)
    if (known.dictionary !== dictionary || known.count < count) {
      if (known.address !== 0) arena.give(known.address)
      known = { dictionary, count, address: arena.take(count * 8 + 8) }
      for (let id = 0; id < count; id++) {
        const entry = dictionaryEntry(memory, dictionary, id)
        memory.u8.copyWithin(known.address + id * 8, entry, entry + 8)
      }
    }
    kernels.sort.gatherOr(8, known.address, address, rows, nothing, out)
    return out
  }
}

/** For results that are dictionary-encoded strings: their entries are materialised only when they are read. */
function dictionaryResult(
  type: DataType,
  { codes, dictionary }: DictionaryPlan,
  context: ExecContext,
): VectorEvaluator {
  const { memory, arena, kernels, symbols } = context
  const source = compileVector(codes, context)
  const entries = arena.keep(dictionary.length * 8)
  const target = { memory, heap: new StringHeap(arena), symbols }
  dictionary.forEach((value, code) => {
    writeValue(target, type, entries, code, value)
  })
  const owner = {}
  let out = 0
  return (batch) => {
    const { address } = source(batch)
    return dictionaryVector(type, { codes: address, entries, count: dictionary.length, owner, columnId: 0 }, () => {
      if (out === 0) out = arena.take((context.rowsMax ?? batchRowsMax) * 8)
      kernels.sort.gather(8, entries, address, batch.rows, out)
      return out
    })
  }
}
