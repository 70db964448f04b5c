// Filter for ORDER BY .. LIMIT. It tests rows whose first key equals the first key of the last row in the result so
// far; such rows are frequent if the first key has few values. A row is dropped if its second key sorts after that of
// the last row. If there are no further keys, it is also dropped if all keys are equal, because among rows with equal
// keys the earlier row has precedence.

import type { SortKey } from '../../sql/plan/plan.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { type KernelKey, kernelKey } from '../batch/sort-keys.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'

interface SecondKey {
  readonly index: number
  readonly width: number
  readonly words: KernelKey
  /** Buffers for the second key of a batch: its values and its sort words. */
  readonly values: number
  readonly out: number
}

export class SortTies {
  readonly #context: ExecContext
  readonly #first: number
  readonly #firstWords: number
  readonly #second: SecondKey | null
  /** The order has no other keys: rows that are equal in these are equal in all. */
  readonly #whole: boolean
  /** The keys of the current last row; the dictionary is -1 before there is one. */
  #dictionary = -1
  #low = 0
  #high = 0
  #secondLow = 0
  #secondHigh = 0

  /**
   * undefined when the first key does not have four or eight bytes, or the kernel cannot make sort words of the second
   * one.
   */
  static of(context: ExecContext, keys: readonly SortKey[], types: readonly DataType[]): SortTies | undefined {
    const [first, second] = keys as [SortKey, SortKey?]
    const type = types[first.index] as DataType
    if (type.name !== 'SYMBOL' && kernelKey(type, first) === undefined) return undefined
    if (second === undefined) return new SortTies(context, first.index, type, null, true)
    const secondType = types[second.index] as DataType
    const words = kernelKey(secondType, second)
    if (words === undefined) return undefined
    const width = widthOf(secondType)
    const [values, out] = [context.arena.take(batchRowsMax * width), context.arena.take(batchRowsMax * 8)]
    return new SortTies(
      context,
      first.index,
      type,
      { index: second.index, width, words, values, out },
      keys.length === 2,
    )
  }

  private constructor(context: ExecContext, first: number, type: DataType, second: SecondKey | null, whole: boolean) {
    this.#context = context
    this.#first = first
    this.#firstWords = widthOf(type) >>> 2
    this.#second = second
    this.#whole = whole
  }

  /** Sets the keys of the current last row of the result. */
  set(vectors: readonly Vector[]): void {
    const { i32 } = this.#context.memory
    const { address, dictionary } = vectors[this.#first] as Vector
    this.#dictionary = dictionary
    this.#low = i32[address >>> 2]!
    this.#high = this.#firstWords === 2 ? i32[(address >>> 2) + 1]! : 0
    if (this.#second === null) return
    const { index, words, out } = this.#second
    this.#wordsOf((vectors[index] as Vector).address, 1, words, out)
    this.#secondLow = i32[out >>> 2]!
    this.#secondHigh = i32[(out >>> 2) + 1]!
  }

  /** Keeps those row numbers at `list` (u32) whose rows may be in the result; returns how many. */
  filter(vectors: readonly Vector[], list: number, count: number): number {
    const { address, dictionary } = vectors[this.#first] as Vector
    if (dictionary !== this.#dictionary || count === 0) return count
    if (this.#second !== null) {
      const { index, width, words, values, out } = this.#second
      this.#context.kernels.sort.gather(width, (vectors[index] as Vector).address, list, count, values)
      this.#wordsOf(values, count, words, out)
    }
    const { u32 } = this.#context.memory
    const rows = list >>> 2
    let retained = 0
    for (let at = 0; at < count; at++) {
      const row = u32[rows + at]!
      u32[rows + retained] = row
      if (!this.#isTie(address, row) || !this.#comesLater(at)) retained++
    }
    return retained
  }

  #isTie(address: number, row: number): boolean {
    const { i32 } = this.#context.memory
    const words = this.#firstWords
    const word = (address >>> 2) + row * words
    return i32[word] === this.#low && (words === 1 || i32[word + 1] === this.#high)
  }

  #comesLater(at: number): boolean {
    if (this.#second === null) return true
    const { i32, u32 } = this.#context.memory
    const word = (this.#second.out >>> 2) + at * 2
    const high = i32[word + 1]!
    if (high !== this.#secondHigh) return high > this.#secondHigh
    const low = u32[word]!
    const last = this.#secondLow >>> 0
    return low === last ? this.#whole : low > last
  }

  #wordsOf(values: number, rows: number, { kind, missing, nullWord, turn }: KernelKey, out: number): void {
    this.#context.kernels.sort.orderWords(kind, values, rows, missing, nullWord, turn, out)
  }
}
