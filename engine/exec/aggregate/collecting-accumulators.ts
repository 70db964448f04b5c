// Accumulator for aggregates that need all numbers of a group at once, such as percentiles and time-weighted averages.
// It stores each number with its group id and, if needed, its timestamp, in input order, and sorts them by group when
// the first result is requested.

import { ResourceError } from '../../base/errors.js'
import { collectedNumbersMax } from '../../base/limits.js'
import { storageOf } from '../../types/column-types.js'
import { intMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

const firstCapacity = 1024

interface Placed {
  readonly numbers: Float64Array
  /** Two words for each time. */
  readonly times: Int32Array
  /** The end of each group. */
  readonly ends: Uint32Array
}

type CollectedValue = (numbers: Float64Array, times: Int32Array) => Value

export class NumberCollector implements Accumulator {
  readonly reads: 1 | 2
  readonly #memory: ExecContext['memory']
  readonly #value: CollectedValue
  #numbers = new Float64Array(0)
  #times = new Int32Array(0)
  /** The group of each number; empty while all are in group 0. */
  #groups = new Uint32Array(0)
  #count = 0
  /** The numbers by group; null if rows were added since. */
  #placed: Placed | null = null

  /** `reads`: 1 for numbers of 32 or 64 bits; 2 for numbers with times of 64 bits. */
  constructor({ memory }: ExecContext, reads: 1 | 2, value: CollectedValue) {
    this.reads = reads
    this.#memory = memory
    this.#value = value
  }

  add([numbers, times]: readonly [Vector, ...Vector[]], rows: number, ids: number): void {
    const { type, address } = numbers
    const before = this.#count
    const grouped = ids !== 0 || this.#groups.length > 0
    this.#grow(before + rows, grouped)
    if (grouped && ids === 0) this.#groups.fill(0, before, before + rows)
    this.#placed = null
    const timeWords = this.reads === 2 && times !== undefined ? times.address >>> 2 : -1
    this.#addNumbers(storageOf(type), address, rows, { times: timeWords, ids: ids >>> 2 })
  }

  result(group: number): Value {
    this.#placed ??= this.#place()
    const { numbers, times, ends } = this.#placed
    if (group >= ends.length) return this.#value(new Float64Array(0), new Int32Array(0))
    const [from, to] = [group === 0 ? 0 : ends[group - 1]!, ends[group]!]
    return this.#value(numbers.subarray(from, to), times.subarray(from * 2, to * 2))
  }

  reset(): void {
    this.#count = 0
    this.#placed = null
  }

  /** `times` and `ids`: word addresses of the rows' times and group ids; -1 and 0 if there are none. */
  #addNumbers(
    storage: string,
    address: number,
    rows: number,
    other: { readonly times: number; readonly ids: number },
  ): void {
    const { f64, f32, i32, u32 } = this.#memory
    const { times, ids } = other
    const [into, words, groups] = [this.#numbers, this.#times, this.#groups]
    let count = this.#count
    const integers = storage === 'i32' || storage === 'i64'
    const width = storage === 'i64' ? 2 : 1
    const floats: Float32Array | Float64Array = storage === 'f64' ? f64 : f32
    const first = storage === 'f64' ? address >>> 3 : address >>> 2
    for (let row = 0; row < rows; row++) {
      let number: number
      if (integers) {
        const high = i32[first + row * width + width - 1]!
        const low = width === 1 ? 0 : u32[first + row * 2]!
        if (high === intMin && low === 0) continue
        number = width === 1 ? high : high * 4_294_967_296 + low
      } else {
        number = floats[first + row]!
        if (Number.isNaN(number)) continue
      }
      if (times >= 0) {
        const low = i32[times + row * 2]!
        const high = i32[times + row * 2 + 1]!
        if (high === intMin && low === 0) continue
        words[count * 2] = low
        words[count * 2 + 1] = high
      }
      if (ids !== 0) groups[count] = u32[ids + row]!
      into[count++] = number
    }
    this.#count = count
  }

  /** The columns are in the thread's heap, outside of the budget of queries, so their size has its own limit. */
  #grow(rows: number, grouped: boolean): void {
    if (rows > collectedNumbersMax)
      throw new ResourceError(
        `median() and similar aggregates take at most ${collectedNumbersMax} numbers: sample the rows`,
      )
    if (rows > this.#numbers.length) {
      const capacity = Math.min(collectedNumbersMax, Math.max(firstCapacity, rows, this.#numbers.length * 2))
      const larger = new Float64Array(capacity)
      larger.set(this.#numbers.subarray(0, this.#count))
      this.#numbers = larger
    }
    const capacity = this.#numbers.length
    if (grouped && this.#groups.length < capacity) {
      const larger = new Uint32Array(capacity)
      larger.set(this.#groups.subarray(0, this.#count))
      this.#groups = larger
    }
    if (this.reads === 2 && this.#times.length < capacity * 2) {
      const larger = new Int32Array(capacity * 2)
      larger.set(this.#times.subarray(0, this.#count * 2))
      this.#times = larger
    }
  }

  #place(): Placed {
    const count = this.#count
    const groups = this.#groups
    let last = 0
    if (groups.length > 0) for (let at = 0; at < count; at++) last = Math.max(last, groups[at]!)
    const [all, words] = [this.#numbers.subarray(0, count), this.#times.subarray(0, count * 2)]
    if (last === 0) return { numbers: all, times: words, ends: Uint32Array.of(count) }
    const ends = new Uint32Array(last + 1)
    for (let at = 0; at < count; at++) ends[groups[at]!] = ends[groups[at]!]! + 1
    for (let group = 0, start = 0; group <= last; group++) {
      const size = ends[group]!
      ends[group] = start
      start += size
    }
    // The next position of each group; its end when all numbers are placed.
    const [numbers, times] = [new Float64Array(count), new Int32Array(words.length)]
    for (let at = 0; at < count; at++) {
      const group = groups[at]!
      const place = ends[group]!
      numbers[place] = all[at]!
      if (words.length > 0) {
        times[place * 2] = words[at * 2]!
        times[place * 2 + 1] = words[at * 2 + 1]!
      }
      ends[group] = place + 1
    }
    return { numbers, times, ends }
  }
}
