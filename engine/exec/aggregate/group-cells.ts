// GroupCells: an array of fixed-size accumulator states in shared memory, one for each group. It grows with the number
// of groups; states can be saved as bytes and merged by other threads.

import type { SharedMemory } from '../../memory/shared-memory.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { type WriteTarget, writeValue } from '../batch/values.js'
import type { AccumulatorStates } from './accumulator.js'

const capacityFirst = 64
/** Minimal size of a saved state. */
const savedBytesMin = 16

export interface CellRules {
  /** Size of a state: a multiple of 8. */
  readonly bytes: number
  /** Initialises the states between two addresses; zeroes them if absent. */
  readonly clear?: (from: number, to: number) => void
  /** Merges the state of later rows into another; both are given as 8-byte indexes. */
  readonly merge: (into: number, source: number) => void
  readonly valueAt: (place: number) => Value
  /** The result over no rows. */
  readonly empty: Value
  /** The result of a 16-byte state as a DOUBLE, NaN for NULL; avoids the objects that valueAt() allocates. */
  readonly doubleAt?: (place: number) => number
  /** The first 8 bytes of the state are the result, a LONG. */
  readonly firstIsValue?: true
}

export class GroupCells implements AccumulatorStates {
  readonly bytes: number
  address = 0
  groups = 0
  readonly #context: ExecContext
  readonly #rules: CellRules
  #capacity = 0

  constructor(context: ExecContext, rules: CellRules) {
    this.#context = context
    this.#rules = rules
    this.bytes = Math.max(savedBytesMin, rules.bytes)
  }

  grow(groups: number): void {
    const { bytes, clear } = this.#rules
    const { arena, memory } = this.#context
    if (groups > this.#capacity) {
      const capacity = Math.max(capacityFirst, groups, this.#capacity * 2)
      const fresh = arena.take(capacity * bytes)
      memory.u8.copyWithin(fresh, this.address, this.address + this.groups * bytes)
      if (this.address !== 0) arena.give(this.address)
      this.address = fresh
      this.#capacity = capacity
    }
    if (groups <= this.groups) return
    const [from, to] = [this.address + this.groups * bytes, this.address + groups * bytes]
    this.groups = groups
    if (clear === undefined) memory.u8.fill(0, from, to)
    else clear(from, to)
  }

  value(group: number): Value {
    const { bytes, valueAt, empty } = this.#rules
    return group < this.groups ? valueAt((this.address + group * bytes) >>> 3) : empty
  }

  reset(): void {
    this.groups = 0
  }

  save(groups: readonly number[] | number, out: number): void {
    const { u8 } = this.#context.memory
    const { bytes } = this.#rules
    if (typeof groups === 'number' && bytes === this.bytes) {
      u8.copyWithin(out, this.address, this.address + groups * bytes)
      return
    }
    const count = typeof groups === 'number' ? groups : groups.length
    for (let index = 0; index < count; index++) {
      const cell = this.address + (typeof groups === 'number' ? index : (groups[index] ?? 0)) * bytes
      u8.copyWithin(out + index * this.bytes, cell, cell + bytes)
    }
  }

  merge(from: number, count: number, ids: number, groups: number): void {
    this.grow(groups)
    const { bytes, merge } = this.#rules
    const { u32 } = this.#context.memory
    for (let row = 0; row < count; row++) {
      const cell = this.address + u32[(ids >>> 2) + row]! * bytes
      merge(cell >>> 3, (from + row * this.bytes) >>> 3)
    }
  }

  restore(from: number, count: number, first: number): void {
    this.grow(first + count)
    const { bytes } = this.#rules
    const { u8, u32 } = this.#context.memory
    const into = this.address + first * bytes
    if (bytes === this.bytes) {
      u8.copyWithin(into, from, from + count * bytes)
      return
    }
    for (let word = 0; word < count * 2; word++)
      u32[(into >>> 2) + word] = u32[(from >>> 2) + (word >>> 1) * 4 + (word & 1)]!
  }

  finish(from: number, count: number, type: DataType, target: WriteTarget, out: number): void {
    const { doubleAt, firstIsValue, valueAt } = this.#rules
    const { f64, i64 } = this.#context.memory
    const first = from >>> 3
    if (doubleAt !== undefined && type.name === 'DOUBLE') {
      for (let row = 0; row < count; row++) f64[(out >>> 3) + row] = doubleAt(first + row * 2)
    } else if (firstIsValue === true && type.name === 'LONG') {
      for (let row = 0; row < count; row++) i64[(out >>> 3) + row] = i64[first + row * 2]!
    } else {
      for (let row = 0; row < count; row++) writeValue(target, type, out, row, valueAt(first + (row * this.bytes) / 8))
    }
  }
}

/** Adds 64-bit integers with wrap-around, by halves of 32 bits, because a bigint would be allocated for each. */
export function addIntegers({ u32 }: SharedMemory, into: number, source: number, count: number): void {
  for (let word = 0; word < count * 2; word += 2) {
    const at = into * 2 + word
    const low = u32[at]! + u32[source * 2 + word]!
    u32[at] = low
    u32[at + 1] = u32[at + 1]! + u32[source * 2 + word + 1]! + (low > 0xffff_ffff ? 1 : 0)
  }
}

export function addFloats({ f64 }: SharedMemory, into: number, source: number): void {
  f64[into] = f64[into]! + f64[source]!
  f64[into + 1] = f64[into + 1]! + f64[source + 1]!
}

export function widenFloats({ f64 }: SharedMemory, into: number, source: number): void {
  f64[into] = Math.min(f64[into]!, f64[source]!)
  f64[into + 1] = Math.max(f64[into + 1]!, f64[source + 1]!)
}

export function widenIntegers({ i64 }: SharedMemory, into: number, source: number): void {
  if (i64[source]! < i64[into]!) i64[into] = i64[source]!
  if (i64[source + 1]! > i64[into + 1]!) i64[into + 1] = i64[source + 1]!
}
