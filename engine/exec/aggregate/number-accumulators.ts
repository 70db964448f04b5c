// Accumulators of count(), sum(), avg(), min() and max() over numbers, computed by WebAssembly code
// (kernels/aggregate.ts).
//
// With GROUP BY, each group has a state of 16 bytes, {sum, count} or {min, max}; the state of a LONG sum has 24 bytes,
// that of a row count 8. Without GROUP BY, one record holds count, sum, minimum and maximum together, which is faster.
// LONG sums are exact: see types/wide-sum.ts.

import { aggregateKinds, initStats, type NumberStorage, statsBytes } from '../../kernels/aggregate.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Extreme } from '../../sql/functions/function-types.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import { longMax, longMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import { longSum, wideSum } from '../../types/wide-sum.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'
import { addFloats, addIntegers, GroupCells, widenFloats, widenIntegers } from './group-cells.js'

export class RowCountAccumulator implements Accumulator {
  readonly reads = 0
  readonly partial: GroupCells
  readonly #context: ExecContext
  /** Count of a single group. */
  #rows = 0

  constructor(context: ExecContext) {
    const { memory } = context
    this.#context = context
    this.partial = new GroupCells(context, {
      bytes: 8,
      merge: (into, source) => addIntegers(memory, into, source, 1),
      valueAt: (place) => memory.i64[place]!,
      empty: 0n,
      firstIsValue: true,
    })
  }

  add(_columns: readonly Vector[], rows: number, ids: number, groups: number): void {
    if (ids === 0) {
      this.#rows += rows
      return
    }
    this.partial.grow(groups)
    this.#context.kernels.aggregate.groupCounts(ids, 0, rows, groups, this.partial.address)
  }

  result(group: number): Value {
    return this.partial.groups === 0 ? BigInt(this.#rows) : this.partial.value(group)
  }

  reset(): void {
    this.#rows = 0
    this.partial.reset()
  }
}

/** The STATS record of a single group, allocated with its first rows. */
class Stats {
  readonly #context: ExecContext
  readonly #storage: NumberStorage
  #address = 0

  constructor(context: ExecContext, storage: NumberStorage) {
    this.#context = context
    this.#storage = storage
  }

  /** 0 while there are no rows. */
  get word(): number {
    return this.#address >>> 3
  }

  address(): number {
    if (this.#address === 0) {
      this.#address = this.#context.arena.keep(statsBytes)
      this.reset()
    }
    return this.#address
  }

  reset(): void {
    if (this.#address !== 0) initStats(this.#context.memory, this.#address, this.#storage)
  }
}

type SumResult = 'count' | 'sum' | 'mean'

export class SumAccumulator implements Accumulator {
  readonly partial: GroupCells
  readonly #context: ExecContext
  readonly #storage: NumberStorage
  readonly #floating: boolean
  readonly #result: SumResult
  readonly #stats: Stats

  constructor(context: ExecContext, type: DataType, result: SumResult) {
    const { memory } = context
    this.#context = context
    this.#storage = storageOf(type) as NumberStorage
    this.#floating = isFloating(this.#storage)
    this.#result = result
    this.#stats = new Stats(context, this.#storage)
    const words = this.#storage === 'i64' ? 3 : 2
    const valueAt = (place: number): Value => this.#valueAt(place, this.#countAt(place), place + 2)
    this.partial = new GroupCells(context, {
      bytes: words * 8,
      merge: this.#floating
        ? (into, source) => addFloats(memory, into, source)
        : (into, source) => addIntegers(memory, into, source, words),
      valueAt,
      empty: result === 'count' ? 0n : null,
      ...(this.#storage === 'f64' && result !== 'count'
        ? { doubleAt: (place: number) => (valueAt(place) as number | null) ?? Number.NaN }
        : {}),
    })
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { aggregate } = this.#context.kernels
    const { address } = column
    const kind = aggregateKinds[this.#storage]
    if (ids === 0) {
      aggregate.sum(kind, address, 0, rows, this.#stats.address())
      return
    }
    this.partial.grow(groups)
    aggregate.groupSums(kind, address, ids, 0, rows, groups, this.partial.address)
  }

  result(group: number): Value {
    const { word } = this.#stats
    if (this.partial.groups > 0 || word === 0) return this.partial.value(group)
    // The count in STATS is an integer, whatever the sum is.
    return this.#valueAt(word, Number(this.#context.memory.i64[word + 1]!), word + 4)
  }

  reset(): void {
    this.partial.reset()
    this.#stats.reset()
  }

  #countAt(place: number): number {
    const { f64, i64 } = this.#context.memory
    return this.#floating ? f64[place + 1]! : Number(i64[place + 1]!)
  }

  /** `high`: index of the sum of the upper halves of LONG values. */
  #valueAt(place: number, count: number, high: number): Value {
    const { memory } = this.#context
    if (this.#result === 'count') return BigInt(count)
    if (count === 0) return null
    if (this.#floating) {
      const sum = memory.f64[place]!
      return finiteOrNull(this.#result === 'mean' ? sum / count : this.#storage === 'f32' ? Math.fround(sum) : sum)
    }
    const exact = this.#storage === 'i64' ? wideSum(memory, place, high) : memory.i64[place]!
    if (this.#result === 'mean') return finiteOrNull(Number(exact) / count)
    return this.#storage === 'i64' ? longSum(exact) : exact
  }
}

export class ExtremeAccumulator implements Accumulator {
  readonly partial: GroupCells
  readonly #context: ExecContext
  readonly #storage: NumberStorage
  readonly #offset: 0 | 1
  readonly #stats: Stats

  constructor(context: ExecContext, type: DataType, best: Extreme) {
    const { memory } = context
    this.#context = context
    this.#storage = storageOf(type) as NumberStorage
    this.#offset = best === 'min' ? 0 : 1
    this.#stats = new Stats(context, this.#storage)
    const floating = isFloating(this.#storage)
    const widen = floating ? widenFloats : widenIntegers
    this.partial = new GroupCells(context, {
      bytes: 16,
      clear: (from, to) => (floating ? clearFloats : clearIntegers)(memory, from >>> 3, to >>> 3),
      merge: (into, source) => widen(memory, into, source),
      valueAt: (place) => this.#valueAt(place),
      empty: null,
    })
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { aggregate } = this.#context.kernels
    const { address } = column
    const kind = aggregateKinds[this.#storage]
    if (ids === 0) {
      aggregate.stats(kind, address, 0, rows, this.#stats.address())
      return
    }
    this.partial.grow(groups)
    aggregate.groupExtremes(kind, address, ids, 0, rows, groups, this.partial.address)
  }

  result(group: number): Value {
    const { word } = this.#stats
    return this.partial.groups > 0 || word === 0 ? this.partial.value(group) : this.#valueAt(word + 2)
  }

  reset(): void {
    this.partial.reset()
    this.#stats.reset()
  }

  /** Without rows, the minimum is above the maximum. */
  #valueAt(place: number): Value {
    const { f64, i64 } = this.#context.memory
    if (isFloating(this.#storage))
      return f64[place]! > f64[place + 1]! ? null : finiteOrNull(f64[place + this.#offset]!)
    if (i64[place]! > i64[place + 1]!) return null
    const value = i64[place + this.#offset]!
    return this.#storage === 'i64' ? value : Number(value)
  }
}

function isFloating(storage: NumberStorage): boolean {
  return storage === 'f64' || storage === 'f32'
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

function clearFloats({ f64 }: SharedMemory, from: number, to: number): void {
  for (let place = from; place < to; place += 2) {
    f64[place] = Number.POSITIVE_INFINITY
    f64[place + 1] = Number.NEGATIVE_INFINITY
  }
}

function clearIntegers({ i64 }: SharedMemory, from: number, to: number): void {
  for (let place = from; place < to; place += 2) {
    i64[place] = longMax
    i64[place + 1] = longMin
  }
}
