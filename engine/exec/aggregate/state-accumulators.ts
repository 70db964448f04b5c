// Accumulators of the states that materialized views keep (types/value-states.ts): sets of distinct values, and merged
// sets and merged numbers. Those that merge copy the values of states to vectors and pass them to the accumulators of
// count_distinct() and of percentiles, so these find equal values and limit the memory.

import { viewStatesBytesMax } from '../../base/limits.js'
import { checkForm } from '../../sql/functions/aggregates/value-states.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import {
  encodeNumbers,
  formOf,
  readNumbers,
  readValues,
  setValueOf,
  type ValueForm,
  ValueSet,
  type ValuesState,
} from '../../types/value-states.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { type ValueReader, valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'
import { NumberCollector } from './collecting-accumulators.js'
import { DistinctAccumulator } from './distinct-accumulator.js'

/** distinct_values() */
export class DistinctValuesAccumulator implements Accumulator {
  readonly reads = 1
  readonly #context: ExecContext
  readonly #inner: DistinctAccumulator
  readonly #type: DataType
  readonly #bytesMax: number
  #sets: (ValueSet | undefined)[] = []
  /** Of all states. */
  #bytes = 0
  #valueAt: ValueReader = () => null

  constructor(context: ExecContext, type: DataType, bytesMax: number) {
    this.#context = context
    this.#type = type
    this.#bytesMax = bytesMax
    this.#inner = new DistinctAccumulator(context, (group, row) => {
      const [set, value] = [this.#setOf(group), this.#valueAt(row)]
      if (value === null || set === undefined) return
      const isFull = this.#bytes > viewStatesBytesMax && Number.isFinite(this.#bytesMax)
      this.#bytes += isFull ? set.drop() : set.add(setValueOf(value, this.#type))
    })
  }

  add(columns: readonly [Vector], rows: number, ids: number): void {
    const [vector] = columns
    this.#valueAt = valueReader(this.#context.memory, this.#context.strings, vector)
    this.#inner.add(columns, rows, ids)
  }

  result(group: number): Value {
    return this.#setOf(group)?.state() ?? null
  }

  reset(): void {
    this.#inner.reset()
    this.#sets = []
    this.#bytes = 0
  }

  #setOf(group: number): ValueSet | undefined {
    const known = this.#sets[group]
    const form = formOf(this.#type)
    if (known !== undefined || form === undefined) return known
    const set = new ValueSet(form, this.#bytesMax)
    this.#sets[group] = set
    return set
  }
}

/** sorted_numbers() */
export class SortedNumbersAccumulator implements Accumulator {
  readonly reads = 1
  readonly #inner: NumberCollector
  /** Of the results. */
  #bytes = 0

  constructor(context: ExecContext, bytesMax: number) {
    this.#inner = new NumberCollector(context, 1, (numbers) => {
      if (this.#bytes > viewStatesBytesMax && Number.isFinite(bytesMax)) return null
      const state = encodeNumbers(numbers, bytesMax)
      this.#bytes += state?.length ?? 0
      return state
    })
  }

  add(columns: readonly [Vector], rows: number, ids: number): void {
    this.#inner.add(columns, rows, ids)
  }

  result(group: number): Value {
    return this.#inner.result(group)
  }

  reset(): void {
    this.#inner.reset()
    this.#bytes = 0
  }
}

/** Values that are passed to another accumulator at once. */
const chunkRows = 4096
const widest = 32

/** A vector of values and their groups, which is filled and passed on. */
class Chunk {
  /** Address of the values. */
  readonly values: number
  rows = 0
  readonly #context: ExecContext
  readonly #groups: number
  readonly #inner: Accumulator

  constructor(context: ExecContext, arena: QueryArena, inner: Accumulator) {
    this.#context = context
    this.#inner = inner
    this.values = arena.take(chunkRows * (widest + 4))
    this.#groups = this.values + chunkRows * widest
  }

  get room(): number {
    return chunkRows - this.rows
  }

  /** Notes that this many values were written. */
  added(count: number, group: number): void {
    const first = (this.#groups >>> 2) + this.rows
    this.#context.memory.u32.fill(group, first, first + count)
    this.rows += count
  }

  /** `isGrouped`: not all rows are in group 0. */
  pass(type: DataType, isGrouped: boolean, groups: number): void {
    if (this.rows === 0) return
    const vector: Vector = { type, address: this.values, dictionary: 0 }
    this.#inner.add([vector], this.rows, isGrouped ? this.#groups : 0, groups)
    this.rows = 0
  }
}

/** Calls `each` for the states of a column, with the address and length of their bytes; -1 for NULL. */
function eachState(
  { u32, i32 }: ExecContext['memory'],
  { address }: Vector,
  rows: number,
  ids: number,
  each: (group: number, address: number, bytes: number) => void,
): void {
  for (let row = 0; row < rows; row++) {
    const entry = (address >>> 2) + row * 2
    each(ids === 0 ? 0 : u32[(ids >>> 2) + row]!, u32[entry]!, i32[entry + 1]!)
  }
}

/** merged_count_distinct() and merged_distinct_values() */
export class MergedValuesAccumulator implements Accumulator {
  readonly reads = 1
  readonly #context: ExecContext
  readonly #position: number
  /** Of the state that is the result; null: the result is the number of values. */
  readonly #bytesMax: number | null
  readonly #inner: DistinctAccumulator
  #chunk: Chunk | undefined
  #form: ValueForm | undefined
  #sets: (ValueSet | undefined)[] = []
  /** Groups of which a state is missing. */
  readonly #missing = new Set<number>()
  #valueAt: ValueReader = () => null

  constructor(context: ExecContext, position: number, bytesMax: number | null) {
    this.#context = context
    this.#position = position
    this.#bytesMax = bytesMax
    const keep = (group: number, row: number): void => {
      const [value, form] = [this.#valueAt(row), this.#form]
      if (value !== null && form !== undefined) this.#sets[group]?.add(setValueOf(value, form.type))
    }
    this.#inner = new DistinctAccumulator(context, bytesMax === null ? undefined : keep)
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { memory, arena } = this.#context
    this.#chunk ??= new Chunk(this.#context, arena.child(), this.#inner)
    const chunk = this.#chunk
    const pass = (): void => this.#pass(chunk, ids !== 0, groups)
    eachState(memory, column, rows, ids, (group, address, bytes) => {
      if (bytes < 0) {
        this.#missing.add(group)
        return
      }
      const state = readValues(memory.u8.subarray(address, address + bytes))
      this.#form ??= state.form
      checkForm(this.#form, state.form, this.#position)
      if (this.#bytesMax !== null) this.#sets[group] ??= new ValueSet(state.form, this.#bytesMax)
      if (state.form.width === 0) this.#addTexts(chunk, state, address, group, pass)
      else this.#addIntegers(chunk, state, address, group, pass)
    })
    // The texts of the chunk are those of the batch.
    pass()
  }

  result(group: number): Value {
    if (this.#missing.has(group)) return null
    return this.#bytesMax === null ? this.#inner.result(group) : (this.#sets[group]?.state() ?? null)
  }

  reset(): void {
    this.#inner.reset()
    this.#sets = []
    this.#missing.clear()
  }

  #addIntegers(
    chunk: Chunk,
    { form: { width }, count, first }: ValuesState,
    address: number,
    group: number,
    pass: () => void,
  ): void {
    const { u8 } = this.#context.memory
    for (let done = 0; done < count; ) {
      if (chunk.room === 0) pass()
      const part = Math.min(count - done, chunk.room)
      const from = address + first + done * width
      u8.copyWithin(chunk.values + chunk.rows * width, from, from + part * width)
      chunk.added(part, group)
      done += part
    }
  }

  #addTexts(chunk: Chunk, { lengths, first }: ValuesState, address: number, group: number, pass: () => void): void {
    const { u32, i32 } = this.#context.memory
    let at = address + first
    for (const length of lengths) {
      if (chunk.room === 0) pass()
      const entry = (chunk.values >>> 2) + chunk.rows * 2
      u32[entry] = at
      i32[entry + 1] = length
      chunk.added(1, group)
      at += length
    }
  }

  #pass(chunk: Chunk, isGrouped: boolean, groups: number): void {
    const type = this.#form?.type
    if (type === undefined) return
    const vector: Vector = { type, address: chunk.values, dictionary: 0 }
    this.#valueAt = valueReader(this.#context.memory, this.#context.strings, vector)
    chunk.pass(type, isGrouped, groups)
  }
}

/** merged_sorted_numbers() and merged percentiles */
export class MergedNumbersAccumulator implements Accumulator {
  readonly reads = 1
  readonly #context: ExecContext
  readonly #inner: NumberCollector
  #chunk: Chunk | undefined
  /** Groups with states. */
  readonly #present = new Set<number>()
  /** Groups of which a state is missing. */
  readonly #missing = new Set<number>()

  constructor(context: ExecContext, value: (numbers: Float64Array) => Value) {
    this.#context = context
    this.#inner = new NumberCollector(context, 1, value)
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { memory, arena } = this.#context
    this.#chunk ??= new Chunk(this.#context, arena.child(), this.#inner)
    const chunk = this.#chunk
    const pass = (): void => chunk.pass(double, ids !== 0, groups)
    eachState(memory, column, rows, ids, (group, address, bytes) => {
      if (bytes < 0) {
        this.#missing.add(group)
        return
      }
      this.#present.add(group)
      const { numbers, frequencies } = readNumbers(memory.u8.subarray(address, address + bytes))
      for (let index = 0; index < numbers.length; index++) {
        for (let left = frequencies?.[index] ?? 1; left > 0; ) {
          if (chunk.room === 0) pass()
          const part = Math.min(left, chunk.room)
          const first = (chunk.values >>> 3) + chunk.rows
          memory.f64.fill(numbers[index]!, first, first + part)
          chunk.added(part, group)
          left -= part
        }
      }
    })
    pass()
  }

  result(group: number): Value {
    return this.#missing.has(group) || !this.#present.has(group) ? null : this.#inner.result(group)
  }

  reset(): void {
    this.#inner.reset()
    this.#present.clear()
    this.#missing.clear()
  }
}

const double = dataType('DOUBLE')
