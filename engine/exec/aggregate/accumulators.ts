// The accumulators of all aggregate calls of an operator. Arguments are evaluated here, each once for a batch however many
// calls share it.

import { assert } from '../../base/assert.js'
import type { AggregateCall } from '../../sql/plan/plan.js'
import { expressionKey } from '../../sql/typing/types.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { eachPiece, shortContext } from '../batch/short-batches.js'
import type { WriteTarget } from '../batch/values.js'
import type { Batch, Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { isPure } from '../expression/expression-shape.js'
import type { Accumulator, PartialStates } from './accumulator.js'
import { createAccumulator } from './accumulator-table.js'

/** An accumulator, and where its columns are among the arguments of all. */
interface Feeding {
  readonly accumulator: Accumulator
  readonly slots: readonly number[]
  /** Of the batch that is added. */
  readonly columns: Vector[]
}

export class Accumulators {
  /** null: not all of them can be merged. */
  readonly partial: PartialAccumulators | null
  readonly #feedings: readonly Feeding[]
  readonly #evaluators: VectorEvaluator[] = []

  constructor(context: ExecContext, calls: readonly AggregateCall[]) {
    const own = shortContext(context, calls.length)
    const slots = new Map<string, number>()
    const slotOf = (argument: AggregateCall['args'][number]): number => {
      const key = isPure(argument) ? expressionKey(argument) : `#${this.#evaluators.length}`
      const slot = slots.get(key) ?? this.#evaluators.push(compileVector(argument, own)) - 1
      slots.set(key, slot)
      return slot
    }
    this.#feedings = calls.map((call) => {
      const { accumulator, args } = createAccumulator(own, call)
      return { accumulator, slots: args.map(slotOf), columns: [] }
    })
    this.partial = PartialAccumulators.of(this.#feedings.map(({ accumulator }) => accumulator))
  }

  get count(): number {
    return this.#feedings.length
  }

  /** Adds the rows of a batch; ids and groups as of an accumulator. */
  add(batch: Batch, ids: number, groups: number): void {
    eachPiece(batch, this.count, (piece, from) => this.#add(piece, ids === 0 ? 0 : ids + from * 4, groups))
  }

  #add(batch: Batch, ids: number, groups: number): void {
    const vectors = this.#evaluators.map((evaluate) => evaluate(batch))
    for (const { accumulator, slots, columns } of this.#feedings) {
      for (let index = 0; index < slots.length; index++) columns[index] = vectors[slots[index]!] as Vector
      accumulator.add(columns, batch.rows, ids, groups)
    }
  }

  /** The value of one call for a group. */
  result(index: number, group: number): Value {
    const feeding = this.#feedings[index]
    assert(feeding !== undefined, 'no such aggregate call')
    return feeding.accumulator.result(group)
  }

  /** The values of all calls for a group. */
  results(group: number): Value[] {
    return this.#feedings.map(({ accumulator }) => accumulator.result(group))
  }

  reset(): void {
    for (const { accumulator } of this.#feedings) accumulator.reset()
  }
}

/** Where saved states of `count` groups are: those of the first call for all groups, then those of the next one. */
export interface SavedStates {
  readonly address: number
  readonly count: number
}

/** Accumulators whose states threads hand to each other. */
export class PartialAccumulators {
  /** Bytes of a group. */
  readonly bytes: number
  readonly #states: readonly PartialStates[]
  /** Bytes of a group before those of each call. */
  readonly #before: readonly number[]

  private constructor(states: readonly PartialStates[]) {
    this.#states = states
    let bytes = 0
    this.#before = states.map((own) => {
      bytes += own.bytes
      return bytes - own.bytes
    })
    this.bytes = bytes
  }

  /** null: not all of them can be merged. */
  static of(accumulators: readonly Accumulator[]): PartialAccumulators | null {
    const states = accumulators.flatMap(({ partial }) => partial ?? [])
    return states.length === accumulators.length ? new PartialAccumulators(states) : null
  }

  /** Of calls whose rows others have added. */
  static ofCalls(context: ExecContext, calls: readonly AggregateCall[]): PartialAccumulators | null {
    return PartialAccumulators.of(calls.map((call) => createAccumulator(context, call).accumulator))
  }

  /** Bytes of a group for one call. */
  bytesOf(call: number): number {
    return this.#states[call]?.bytes ?? 0
  }

  /** Where the saved states of one call begin. */
  addressOf(call: number, { address, count }: SavedStates): number {
    return address + (this.#before[call] ?? 0) * count
  }

  save(groups: readonly number[] | number, address: number): void {
    const saved = { address, count: typeof groups === 'number' ? groups : groups.length }
    this.#states.forEach((states, call) => states.save(groups, this.addressOf(call, saved)))
  }

  /** Merges the saved states of the groups from one on, which are those of later rows. */
  merge(saved: SavedStates, from: number, count: number, ids: number, groups: number): void {
    this.#states.forEach((states, call) =>
      states.merge(this.addressOf(call, saved) + from * states.bytes, count, ids, groups),
    )
  }

  /** Takes saved states over as those of new groups with the same numbers. */
  restore(saved: SavedStates, from: number, count: number): void {
    this.#states.forEach((states, call) =>
      states.restore(this.addressOf(call, saved) + from * states.bytes, count, from),
    )
  }

  /** Writes the values of one call's saved states as a column. */
  finish(call: number, from: number, count: number, type: DataType, target: WriteTarget, out: number): void {
    this.#states[call]?.finish(from, count, type, target, out)
  }
}
