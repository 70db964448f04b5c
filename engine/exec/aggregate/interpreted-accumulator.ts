// Accumulator for any aggregate that has no vectorised one: calls the interpreter in the aggregate function's
// definition (engine/sql/functions) for each value. It is slow, but works for all types.

import type { AggregateFunction, CallSite } from '../../sql/functions/function-types.js'
import { callSite } from '../../sql/functions/registry/evaluate.js'
import type { AggregateCall } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

export class InterpretedAccumulator implements Accumulator {
  readonly #context: ExecContext
  readonly #interpreter: AggregateFunction['accumulator']
  readonly #site: CallSite
  /** Only the first or last row of a group matters; null: all rows do. */
  readonly #end: 'first' | 'last' | null
  #states: unknown[] = []

  constructor(context: ExecContext, call: AggregateCall, { accumulator, column }: AggregateFunction) {
    this.#context = context
    this.#interpreter = accumulator
    this.#site = callSite(call.type, call.args, call.position, context.evaluation)
    this.#end = column?.kind === 'end' ? column.end : null
  }

  add(columns: readonly Vector[], rows: number, ids: number): void {
    const { memory, strings } = this.#context
    const { init, add } = this.#interpreter
    const states = this.#states
    const readers = columns.map((column) => valueReader(memory, strings, column))
    const values: Value[] = []
    for (let row = this.#end === 'last' && ids === 0 ? rows - 1 : 0; row < rows; row++) {
      const group = ids === 0 ? 0 : memory.u32[(ids >>> 2) + row]!
      if (this.#end === 'first' && states[group] !== undefined) {
        if (ids === 0) return
        continue
      }
      states[group] ??= init()
      for (let at = 0; at < readers.length; at++) values[at] = (readers[at] as ValueReader)(row)
      add(states[group], values, this.#site)
    }
  }

  result(group: number): Value {
    const { init, result } = this.#interpreter
    return result(this.#states[group] ?? init(), this.#site)
  }

  reset(): void {
    this.#states = []
  }
}
