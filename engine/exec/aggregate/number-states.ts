// States of aggregates of one or two numbers (AggregateFunction.numbers): doubles in shared memory, one cell a group.

import type { NumberRows, NumberState } from '../../sql/functions/function-types.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import { CellMemory } from '../batch/cell-memory.js'
import type { ExecContext } from '../batch/context.js'
import type { Batch } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { partialCells } from './accumulate-partials.js'
import type { GroupStates, PartialStates } from './group-states.js'

export class NumberStates implements GroupStates {
  readonly partial: PartialStates
  readonly #memory: ExecContext['memory']
  readonly #state: NumberState
  readonly #cells: CellMemory
  readonly #arguments: readonly VectorEvaluator[]

  /** The arguments are DOUBLE. */
  constructor(context: ExecContext, args: readonly Expression[], state: NumberState) {
    const { memory } = context
    this.#memory = memory
    this.#state = state
    this.#arguments = args.map((argument) => compileVector(argument, context))
    const { words } = state
    this.#cells = new CellMemory(context, words * 8, (from, to) => {
      const first = this.#cells.address >>> 3
      memory.f64.fill(0, first + from * words, first + to * words)
    })
    this.partial = partialCells(context, this.#cells, words * 8, {
      combine: (into, source) => state.merge(memory.f64, into, memory.f64, source),
      valueAt: (place) => this.#valueAt(place),
    })
  }

  add(batch: Batch, ids: number, groups: number): void {
    this.#cells.grow(ids === 0 ? 1 : groups)
    const { f64, u32 } = this.#memory
    const [x, y = x] = this.#arguments.map((evaluate) => evaluate(batch).address >>> 3) as [number, number?]
    const rows = { count: batch.rows, numbers: f64, x, y, groups: u32, ids: ids >>> 2 }
    const first = this.#cells.address >>> 3
    if (this.#state.addRows === undefined) this.#addEach(first, rows)
    else this.#state.addRows(f64, first, rows)
  }

  result(group: number): Value {
    return group < this.#cells.groups ? this.#valueAt(this.#place(group)) : this.empty()
  }

  empty(): Value {
    return this.#state.result(new Float64Array(this.#state.words), 0)
  }

  reset(): void {
    this.#cells.reset()
  }

  #addEach(first: number, { count, numbers, x, y, groups, ids }: NumberRows): void {
    const { words, add } = this.#state
    for (let row = 0; row < count; row++) {
      const left = numbers[x + row]!
      const right = numbers[y + row]!
      if (Number.isNaN(left) || Number.isNaN(right)) continue
      add(numbers, ids === 0 ? first : first + groups[ids + row]! * words, left, right)
    }
  }

  #place(group: number): number {
    return (this.#cells.address >>> 3) + group * this.#state.words
  }

  #valueAt(place: number): number | null {
    const value = this.#state.result(this.#memory.f64, place)
    return typeof value === 'number' && Number.isFinite(value) ? value : null
  }
}
