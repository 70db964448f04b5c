// States of arg_min and arg_max by a number, and of most_frequent (sql/plan/mode.ts): the value of the row where the number is
// best so far, which is read there only.

import type { AggregateCall, Expression } from '../../sql/plan/plan.js'
import { castValue } from '../../types/convert.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import type { Batch, Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import type { GroupStates } from './group-states.js'

const signs: Readonly<Record<string, 1 | -1>> = { arg_min: -1, min_by: -1, arg_max: 1, max_by: 1, most_frequent: 1 }
/** Numbers of 32 and 64 bits. */
const integers: Readonly<Record<string, 1 | 2>> = { INT: 1, LONG: 2, DATE: 2, TIMESTAMP: 2, TIMESTAMP_NS: 2 }

/** undefined: not one of them. */
export function chosenStates(context: ExecContext, call: AggregateCall): GroupStates | undefined {
  const [value, by] = call.args
  const sign = signs[call.name]
  if (value === undefined || by === undefined || sign === undefined) return undefined
  // The empty one stands for NULL there.
  if (value.type.name === 'CHAR') return undefined
  if (by.type.name !== 'DOUBLE' && integers[by.type.name] === undefined) return undefined
  return new ChosenValues(context, call, { value, by, sign })
}

interface Choice {
  readonly value: Expression
  readonly by: Expression
  readonly sign: 1 | -1
}

class ChosenValues implements GroupStates {
  readonly #context: ExecContext
  readonly #call: AggregateCall
  readonly #value: VectorEvaluator
  readonly #by: VectorEvaluator
  readonly #sign: 1 | -1
  /** most_frequent leaves NULL out; the value of a row may be NULL, whose state has one none the less. */
  readonly #skipsNull: boolean
  #values: (Value | undefined)[] = []
  /** By group: the best number, or its upper half and its lower one. */
  #high: number[] = []
  #low: number[] = []

  constructor(context: ExecContext, call: AggregateCall, { value, by, sign }: Choice) {
    this.#context = context
    this.#call = call
    this.#value = compileVector(value, context)
    this.#by = compileVector(by, context)
    this.#sign = sign
    this.#skipsNull = call.name === 'most_frequent'
  }

  add(batch: Batch, ids: number, groups: number): void {
    const { memory, texts } = this.#context
    const value = valueReader(memory, texts, this.#value(batch))
    const by = this.#by(batch)
    for (let group = this.#values.length; group < (ids === 0 ? 1 : groups); group++) {
      this.#values.push(undefined)
      this.#high.push(0)
      this.#low.push(0)
    }
    const words = integers[by.type.name]
    if (words === undefined) this.#addDoubles(by, ids >>> 2, batch.rows, value)
    else this.#addIntegers(by, words, ids >>> 2, batch.rows, value)
  }

  result(group: number): Value {
    const value = this.#values[group] ?? null
    const { args, type } = this.#call
    return this.#skipsNull ? castValue(value, args[0]?.type ?? type, type) : value
  }

  empty(): Value {
    return null
  }

  reset(): void {
    this.#values = []
    this.#high = []
    this.#low = []
  }

  #addDoubles({ address }: Vector, ids: number, rows: number, value: ValueReader): void {
    const { f64, u32 } = this.#context.memory
    const first = address >>> 3
    const high = this.#high
    for (let row = 0; row < rows; row++) {
      const group = ids === 0 ? 0 : u32[ids + row]!
      const number = f64[first + row]!
      if (Number.isNaN(number)) continue
      if (this.#values[group] === undefined || (number - (high[group] as number)) * this.#sign > 0)
        this.#choose(group, value(row), number, 0)
    }
  }

  #addIntegers({ address }: Vector, words: 1 | 2, ids: number, rows: number, value: ValueReader): void {
    const { i32, u32 } = this.#context.memory
    const first = address >>> 2
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
    if (value === null && this.#skipsNull) return
    this.#values[group] = value
    this.#high[group] = high
    this.#low[group] = low
  }
}
