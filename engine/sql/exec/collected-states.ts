// States of aggregates over all numbers of a group at once (AggregateFunction.collected): numbers and their groups are kept in
// columns as they come, and put together by group when the first result is asked for.

import { storageOf } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type { CollectedNumbers } from '../functions/function-types.js'
import type { AggregateCall } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { compileVector, type VectorEvaluator } from './expression.js'
import type { GroupStates } from './group-states.js'
import type { Batch } from './vector.js'

const firstCapacity = 1024
const storages: ReadonlySet<string> = new Set(['i32', 'i64', 'f32', 'f64'])

/** undefined: numbers of another form, or a share that is known later. */
export function collectedStates(
  context: ExecContext,
  call: AggregateCall,
  collected: CollectedNumbers,
): GroupStates | undefined {
  const [argument, share] = call.args
  if (argument === undefined || !storages.has(storageOf(argument.type))) return undefined
  if (share === undefined) return new CollectedStates(context, compileVector(argument, context), collected, 0)
  if (share.kind !== 'constant' || typeof share.value !== 'number') return undefined
  return new CollectedStates(context, compileVector(argument, context), collected, share.value)
}

class CollectedStates implements GroupStates {
  readonly #memory: ExecContext['memory']
  readonly #evaluate: VectorEvaluator
  readonly #collected: CollectedNumbers
  readonly #share: number
  #numbers = new Float64Array(0)
  /** Of each number; shorter where all are of group 0. */
  #groups = new Uint32Array(0)
  #count = 0
  /** The numbers by group, and where each group ends; null: not put together since the last row. */
  #placed: { readonly numbers: Float64Array; readonly ends: Uint32Array } | null = null

  constructor(context: ExecContext, evaluate: VectorEvaluator, collected: CollectedNumbers, share: number) {
    this.#memory = context.memory
    this.#evaluate = evaluate
    this.#collected = collected
    this.#share = share
  }

  add(batch: Batch, ids: number, _groups: number): void {
    const { type, address } = this.#evaluate(batch)
    const before = this.#count
    const grouped = ids !== 0 || this.#groups.length > 0
    this.#grow(before + batch.rows, grouped)
    if (grouped && ids === 0) this.#groups.fill(0, before, before + batch.rows)
    const { f64, f32, i32, u32 } = this.#memory
    const into = this.#numbers
    const groups = this.#groups
    const id = ids >>> 2
    let count = before
    const storage = storageOf(type)
    if (storage === 'i32' || storage === 'i64') {
      const words = storage === 'i32' ? 1 : 2
      const first = address >>> 2
      for (let row = 0; row < batch.rows; row++) {
        const high = i32[first + row * words + words - 1] as number
        const low = words === 1 ? 0 : (u32[first + row * 2] as number)
        if (high === intMin && low === 0) continue
        if (ids !== 0) groups[count] = u32[id + row] as number
        into[count++] = words === 1 ? high : high * 4_294_967_296 + low
      }
    } else {
      const source: Float32Array | Float64Array = storage === 'f64' ? f64 : f32
      const first = storage === 'f64' ? address >>> 3 : address >>> 2
      for (let row = 0; row < batch.rows; row++) {
        const number = source[first + row] as number
        if (Number.isNaN(number)) continue
        if (ids !== 0) groups[count] = u32[id + row] as number
        into[count++] = number
      }
    }
    this.#count = count
    this.#placed = null
  }

  result(group: number): Value {
    this.#placed ??= this.#place()
    const { numbers, ends } = this.#placed
    if (group >= ends.length) return this.empty()
    const from = group === 0 ? 0 : (ends[group - 1] as number)
    return this.#collected(numbers.subarray(from, ends[group]), this.#share)
  }

  empty(): Value {
    return this.#collected(new Float64Array(0), this.#share)
  }

  reset(): void {
    this.#count = 0
    this.#placed = null
  }

  #grow(rows: number, grouped: boolean): void {
    if (rows > this.#numbers.length) {
      const larger = new Float64Array(Math.max(firstCapacity, rows, this.#numbers.length * 2))
      larger.set(this.#numbers.subarray(0, this.#count))
      this.#numbers = larger
    }
    if (grouped && this.#groups.length < this.#numbers.length) {
      const larger = new Uint32Array(this.#numbers.length)
      larger.set(this.#groups.subarray(0, this.#count))
      this.#groups = larger
    }
  }

  #place(): { readonly numbers: Float64Array; readonly ends: Uint32Array } {
    const count = this.#count
    const groups = this.#groups
    let last = 0
    if (groups.length > 0) for (let at = 0; at < count; at++) last = Math.max(last, groups[at] as number)
    if (last === 0) return { numbers: this.#numbers.subarray(0, count), ends: Uint32Array.of(count) }
    const ends = new Uint32Array(last + 1)
    for (let at = 0; at < count; at++) ends[groups[at] as number] = (ends[groups[at] as number] as number) + 1
    for (let group = 0, start = 0; group <= last; group++) {
      const size = ends[group] as number
      ends[group] = start
      start += size
    }
    // Each group's next place, which is its end once all are there.
    const numbers = new Float64Array(count)
    for (let at = 0; at < count; at++) {
      const group = groups[at] as number
      const place = ends[group] as number
      numbers[place] = this.#numbers[at] as number
      ends[group] = place + 1
    }
    return { numbers, ends }
  }
}
