// Operator: hash aggregate. Reads all its input, then returns a row for each group, in order of first appearance: the
// keys, then the aggregates. Without keys there is exactly one row.

import type { AggregateCall, Expression, PlanColumn } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { createGrouping } from '../batch/group-keys.js'
import { rowsFor } from '../batch/small-batches.js'
import { StringHeap } from '../batch/string-heap.js'
import { writeValue } from '../batch/values.js'
import { type Batch, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'
import { Accumulators } from './accumulators.js'

export interface AggregateShape {
  readonly columns: readonly PlanColumn[]
  readonly keys: readonly Expression[]
  readonly aggregates: readonly AggregateCall[]
}

/** `dense`: the keys are columns of one table, so each symbol column has one dictionary. */
export function aggregateOperator(
  context: ExecContext,
  input: Operator,
  shape: AggregateShape,
  dense: boolean,
): Operator {
  const keys = shape.keys.map((key) => compileVector(key, context))
  const types = shape.keys.map(({ type }) => type)
  const groups = keys.length > 0 ? createGrouping(context, types, dense) : null
  const accumulators = new Accumulators(context, shape.aggregates)
  const output = new ResultColumns(context, shape, accumulators)
  let done = false
  let next = 0
  const pull = (): Pull => {
    if (!done) {
      const batch = input.pull()
      if (batch === null) {
        done = true
        return 'working'
      }
      if (!isBatch(batch)) return batch
      groups?.assign(
        keys.map((evaluate) => evaluate(batch)),
        batch.rows,
        0,
      )
      accumulators.add(batch, groups?.ids ?? 0, groups?.size ?? 1)
      return 'working'
    }
    const total = groups === null ? 1 : groups.count
    const rows = Math.min(output.rowsMax, total - next)
    if (rows <= 0) return null
    const from = next
    next += rows
    const keyBatch = groups?.keys.batchAt(from, from + rows) ?? null
    return output.batch(keyBatch?.vectors ?? [], rows, (row) => groups?.idAt(from + row) ?? 0)
  }
  return { pull }
}

/** Turns the results of groups into vectors, which follow the vectors of the keys. */
export class ResultColumns {
  /** Maximal rows of a batch. */
  readonly rowsMax: number
  readonly #context: ExecContext
  readonly #columns: readonly PlanColumn[]
  readonly #accumulators: Accumulators
  readonly #addresses: readonly number[]
  readonly #heap: StringHeap

  constructor(context: ExecContext, shape: AggregateShape, accumulators: Accumulators) {
    this.#context = context
    this.#columns = shape.columns.slice(shape.columns.length - accumulators.count)
    this.#accumulators = accumulators
    this.rowsMax = rowsFor(shape.columns.length)
    this.#addresses = this.#columns.map(({ type }) => context.arena.take(this.rowsMax * widthOf(type)))
    this.#heap = new StringHeap(context.arena)
  }

  batch(keys: readonly Vector[], rows: number, groupOf: (row: number) => number): Batch {
    const { memory, symbols } = this.#context
    const target = { memory, symbols, heap: this.#heap }
    this.#heap.reset()
    const vectors = this.#columns.map(({ type }, index) => {
      const address = this.#addresses[index] as number
      for (let row = 0; row < rows; row++)
        writeValue(target, type, address, row, this.#accumulators.result(index, groupOf(row)))
      return { type, address, dictionary: type.name === 'SYMBOL' ? symbols.dictionary : 0 }
    })
    return { rows, vectors: [...keys, ...vectors] }
  }
}
