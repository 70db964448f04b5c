// Compiles a predicate to a filter that writes the numbers of the rows that satisfy it (a selection vector). If the
// predicate is a conjunction, the conditions that can be compiled to generated code run first, over all rows. The other
// conditions, which are slower, are evaluated only for the rows that satisfied these.

import type { Expression } from '../../sql/plan/plan.js'
import { allOf, conjuncts } from '../../sql/typing/walk-expression.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { GatheredBatch, selectRows } from '../batch/selection.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import { compileVector } from './expression.js'
import { columnsOf } from './expression-shape.js'
import { FragmentInputs } from './fragments.js'

export interface RowFilter {
  /** Indexes of the columns that the predicate reads. */
  readonly columns: readonly number[]
  /** Writes the ascending numbers (u32) of the rows that pass to `out`; returns how many. */
  select(vectors: readonly Vector[], rows: number, out: number): number
}

export interface FilterInput {
  readonly types: readonly DataType[]
  /** The dictionary of a symbol column, if all batches have the same one; else 0. */
  readonly dictionaryOf: (column: number) => number
}

/** Limit of conditions that are compiled separately, to find out whether generated code supports them. */
const quickMax = 200

export function compileFilter(context: ExecContext, predicate: Expression, input: FilterInput): RowFilter {
  const columns = columnsOf(predicate)
  const quick: Expression[] = []
  const slow: Expression[] = []
  for (const part of conjuncts(predicate)) {
    if (context.jit !== null && quick.length < quickMax && generated(context, part, input) !== null) quick.push(part)
    else slow.push(part)
  }
  // AND is true only if all conditions are, so their order matters for errors only, and generated code raises none.
  const all = allOf(quick)
  const rest = allOf(slow)
  const first = all === null ? null : generated(context, all, input)
  if (first === null) return { columns, select: plainSelect(context, predicate) }
  return { columns, select: rest === null ? first : twoSteps(context, first, rest, input) }
}

type Select = RowFilter['select']

function generated(context: ExecContext, predicate: Expression, { dictionaryOf }: FilterInput): Select | null {
  const { jit, arena } = context
  const inputs = new FragmentInputs(context, dictionaryOf)
  const root = inputs.expression(predicate)
  if (jit === null || root === null || inputs.columns.length === 0) return null
  const fragment = jit.select({ columns: inputs.types, predicate: root, output: 'rows' })
  if (fragment === null) return null
  const block = arena.keep(fragment.blockBytes)
  fragment.writeConstants(block)
  inputs.bindLookups(fragment, block)
  return (vectors, rows, out) => {
    inputs.bind(fragment, block, vectors)
    return fragment.run(block, rows, out, 0)
  }
}

function plainSelect(context: ExecContext, predicate: Expression): Select {
  const evaluate = compileVector(predicate, context)
  return (vectors, rows, out) => selectRows(context.memory, evaluate({ rows, vectors }).address, rows, out)
}

function twoSteps(context: ExecContext, first: Select, rest: Expression, { types }: FilterInput): Select {
  const { arena, kernels } = context
  const columns = columnsOf(rest)
  const second = plainSelect(context, rest)
  const gathered = new GatheredBatch(
    context,
    columns.map((column) => types[column] as DataType),
  )
  const retained = arena.take(batchRowsMax * 4)
  const passed = arena.take(batchRowsMax * 4)
  return (vectors, rows, out) => {
    const count = first(vectors, rows, retained)
    if (count === 0) return 0
    const dense = gathered.gather(
      columns.map((column) => vectors[column] as Vector),
      retained,
      count,
    )
    const sparse: Vector[] = []
    columns.forEach((column, index) => {
      sparse[column] = dense.vectors[index] as Vector
    })
    const left = second(sparse, count, passed)
    kernels.sort.gather(4, retained, passed, left, out)
    return left
  }
}
