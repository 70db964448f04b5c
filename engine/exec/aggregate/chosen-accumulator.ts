// Accumulator of arg_min, arg_max and most_frequent: returns the value of one column from the row in which a second
// column has its smallest or largest number. The value is read only when a row becomes the best so far. most_frequent
// is arg_max over the counts of each value, which the planner computes by a nested aggregation
// (sql/plan/separate-aggregates.ts).

import type { Extreme } from '../../sql/functions/function-types.js'
import type { AggregateCall } from '../../sql/plan/plan.js'
import { castValue } from '../../types/convert.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

export class ChosenAccumulator implements Accumulator {
  readonly #context: ExecContext
  readonly #call: AggregateCall
  readonly #sign: 1 | -1
  /** Whether rows with a NULL value are skipped; otherwise the result may be NULL. */
  readonly #present: boolean
  #values: (Value | undefined)[] = []
  /** The best number of each group: a double in #high, or the upper and the lower half of an integer. */
  #high: number[] = []
  #low: number[] = []

  constructor(
    context: ExecContext,
    call: AggregateCall,
    { best, present = false }: { readonly best: Extreme; readonly present?: boolean },
  ) {
    this.#context = context
    this.#call = call
    this.#sign = best === 'min' ? -1 : 1
    this.#present = present
  }

  /** The second column has numbers of 32 or 64 bits. */
  add([values, by]: readonly [Vector, Vector], rows: number, ids: number, groups: number): void {
    const { memory, strings } = this.#context
    const value = valueReader(memory, strings, values)
    for (let group = this.#values.length; group < (ids === 0 ? 1 : groups); group++) {
      this.#values.push(undefined)
      this.#high.push(0)
      this.#low.push(0)
    }
    const { type, address } = by
    if (type.name === 'DOUBLE') this.#addDoubles(address >>> 3, ids >>> 2, rows, value)
    else this.#addIntegers(address >>> 2, type.name === 'INT' ? 1 : 2, ids >>> 2, rows, value)
  }

  result(group: number): Value {
    const value = this.#values[group] ?? null
    const { args, type } = this.#call
    return this.#present ? castValue(value, args[0]?.type ?? type, type) : value
  }

  reset(): void {
    this.#values = []
    this.#high = []
    this.#low = []
  }

  #addDoubles(first: number, ids: number, rows: number, value: ValueReader): void {
    const { f64, u32 } = this.#context.memory
    const high = this.#high
    for (let row = 0; row < rows; row++) {
      const group = ids === 0 ? 0 : u32[ids + row]!
      const number = f64[first + row]!
      if (Number.isNaN(number)) continue
      if (this.#values[group] === undefined || (number - (high[group] as number)) * this.#sign > 0)
        this.#choose(group, value(row), number, 0)
    }
  }

  #addIntegers(first: number, words: 1 | 2, ids: number, rows: number, value: ValueReader): void {
    const { i32, u32 } = this.#context.memory
    for (let row = 0; row < rows; row++) {
      const group = ids === 0 ? 0 : u32[ids + row]!
      const high = i32[first + row * words + words - 1]!
      const low = words === 1 ? 0 : u32[first + row * 2]!
      if (high === intMin && low === 0) continue
      const better = high - (this.#high[group] as number) || low - (this.#low[group] as number)
      if (this.#values[group] === undefined || better * this.#sign > 0) this.#choose(group, value(row), high, low)
    }
  }

  #choose(group: number, value: Value, high: number, low: number): void {
    if (value === null && this.#present) return
    this.#values[group] = value
    this.#high[group] = high
    this.#low[group] = low
  }
}
