// The class Accumulators computes all aggregate calls of one operator. For each batch, it evaluates the arguments of
// the calls (once where several calls share an argument) and adds the values to the accumulator of each call. The class
// PartialAccumulators saves and merges the states of the accumulators.

import { nonNull } from '../../base/assert.js'
import type { AggregateCall } from '../../sql/plan/plan.js'
import { expressionKey } from '../../sql/typing/types.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { eachSlice, smallContext } from '../batch/small-batches.js'
import type { WriteTarget } from '../batch/values.js'
import type { Batch, Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { isPure } from '../expression/expression-shape.js'
import type { Accumulator, AccumulatorStates } from './accumulator.js'
import { createAccumulator } from './accumulator-table.js'

/** An accumulator, and the slots of its arguments among all arguments. */
interface Feeding {
  readonly accumulator: Accumulator
  readonly slots: readonly number[]
  /** The arguments' vectors for the current batch. */
  readonly columns: Vector[]
}

export class Accumulators {
  /** null when not all accumulators can be merged. */
  readonly partial: PartialAccumulators | null
  readonly #inputs: readonly Feeding[]
  readonly #evaluators: VectorEvaluator[] = []

  constructor(context: ExecContext, calls: readonly AggregateCall[]) {
    const own = smallContext(context, calls.length)
    const slots = new Map<string, number>()
    const slotOf = (argument: AggregateCall['args'][number]): number => {
      const key = isPure(argument) ? expressionKey(argument) : `#${this.#evaluators.length}`
      const slot = slots.get(key) ?? this.#evaluators.push(compileVector(argument, own)) - 1
      slots.set(key, slot)
      return slot
    }
    this.#inputs = calls.map((call) => {
      const { accumulator, args } = createAccumulator(own, call)
      return { accumulator, slots: args.map(slotOf), columns: [] }
    })
    this.partial = PartialAccumulators.of(this.#inputs.map(({ accumulator }) => accumulator))
  }

  get count(): number {
    return this.#inputs.length
  }

  /** Adds the rows of a batch; `ids` and `groups` as in Accumulator.add. */
  add(batch: Batch, ids: number, groups: number): void {
    eachSlice(batch, this.count, (slice, from) => this.#add(slice, ids === 0 ? 0 : ids + from * 4, groups))
  }

  #add(batch: Batch, ids: number, groups: number): void {
    const vectors = this.#evaluators.map((evaluate) => evaluate(batch))
    for (const { accumulator, slots, columns } of this.#inputs) {
      for (let index = 0; index < slots.length; index++) columns[index] = vectors[slots[index]!] as Vector
      accumulator.add(columns, batch.rows, ids, groups)
    }
  }

  /** The result of one call for a group. */
  result(index: number, group: number): Value {
    return nonNull(this.#inputs[index]).accumulator.result(group)
  }

  /** The results of all calls for a group. */
  results(group: number): Value[] {
    return this.#inputs.map(({ accumulator }) => accumulator.result(group))
  }

  reset(): void {
    for (const { accumulator } of this.#inputs) accumulator.reset()
  }
}

/** Saved states of `count` groups: those of the first call for all groups, then those of the second call, and so on. */
export interface SavedAccumulators {
  readonly address: number
  readonly count: number
}

/** Accumulators whose states can be merged. */
export class PartialAccumulators {
  /** Bytes of a group, for all calls. */
  readonly bytes: number
  readonly #states: readonly AccumulatorStates[]
  /** For each call, the bytes of a group for all earlier calls. */
  readonly #before: readonly number[]

  private constructor(states: readonly AccumulatorStates[]) {
    this.#states = states
    let bytes = 0
    this.#before = states.map((own) => {
      bytes += own.bytes
      return bytes - own.bytes
    })
    this.bytes = bytes
  }

  /** null when not all accumulators can be merged. */
  static of(accumulators: readonly Accumulator[]): PartialAccumulators | null {
    const states = accumulators.flatMap(({ partial }) => partial ?? [])
    return states.length === accumulators.length ? new PartialAccumulators(states) : null
  }

  /** For calls whose rows other threads have added. */
  static ofCalls(context: ExecContext, calls: readonly AggregateCall[]): PartialAccumulators | null {
    return PartialAccumulators.of(calls.map((call) => createAccumulator(context, call).accumulator))
  }

  /** Bytes of a group for one call. */
  bytesOf(call: number): number {
    return this.#states[call]?.bytes ?? 0
  }

  /** Address of the saved states of one call. */
  addressOf(call: number, { address, count }: SavedAccumulators): number {
    return address + (this.#before[call] ?? 0) * count
  }

  save(groups: readonly number[] | number, address: number): void {
    const saved = { address, count: typeof groups === 'number' ? groups : groups.length }
    this.#states.forEach((states, call) => states.save(groups, this.addressOf(call, saved)))
  }

  /** Merges the saved states, of later rows, of `count` groups from `from` on. */
  merge(saved: SavedAccumulators, from: number, count: number, ids: number, groups: number): void {
    this.#states.forEach((states, call) =>
      states.merge(this.addressOf(call, saved) + from * states.bytes, count, ids, groups),
    )
  }

  /** Takes saved states over as those of new groups with the same ids. */
  restore(saved: SavedAccumulators, from: number, count: number): void {
    this.#states.forEach((states, call) =>
      states.restore(this.addressOf(call, saved) + from * states.bytes, count, from),
    )
  }

  /** Writes the results of one call's saved states as a column. */
  finish(call: number, from: number, count: number, type: DataType, target: WriteTarget, out: number): void {
    this.#states[call]?.finish(from, count, type, target, out)
  }
}
