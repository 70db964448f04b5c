// Accumulators of min() and max() over strings and symbols.
//
// The strings of a symbol dictionary are sorted once, and rows are then compared by their string's rank in that order.
// If the dictionary is too large for this, or is the query's own, which still grows, strings are compared row by row,
// except where a row has the same symbol as the previous row of its group.

import { dictionaryCount } from '../../memory/column-layout.js'
import type { Extreme } from '../../sql/functions/function-types.js'
import { compareText } from '../../types/compare.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { dictionaryStrings } from '../batch/dictionary-strings.js'
import { compareBytes } from '../batch/text-at.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

/** Strings: keeps the bytes of each group's best string. */
export class StringExtremeAccumulator implements Accumulator {
  readonly #memory: ExecContext['memory']
  /** The result of compareBytes() for a better string. */
  readonly #better: -1 | 1
  #best: Uint8Array[] = []

  constructor({ memory }: ExecContext, best: Extreme) {
    this.#memory = memory
    this.#better = best === 'min' ? -1 : 1
  }

  add([column]: readonly [Vector], rows: number, ids: number): void {
    const { u32 } = this.#memory
    const strings = dictionaryStrings(column)
    const entries = strings?.entries ?? column.address
    for (let row = 0; row < rows; row++) {
      const entry = strings === undefined ? row : u32[(strings.codes >>> 2) + row]!
      this.#offer(ids === 0 ? 0 : u32[(ids >>> 2) + row]!, entries + entry * 8)
    }
  }

  result(group: number): Value {
    const best = this.#best[group]
    return best === undefined ? null : Buffer.from(best).toString('utf8')
  }

  reset(): void {
    this.#best = []
  }

  /** Takes an entry {address u32, bytes i32} into account. */
  #offer(group: number, entry: number): void {
    const { u8, u32, i32 } = this.#memory
    const bytes = i32[(entry >>> 2) + 1]!
    if (bytes < 0) return
    const address = u32[entry >>> 2]!
    const best = this.#best[group]
    if (best !== undefined && compareBytes(this.#memory, address, bytes, best) !== this.#better) return
    this.#best[group] = u8.slice(address, address + bytes)
  }
}

/** Dictionaries with more entries are not ranked: reading and sorting this many takes about 50 ms. */
const orderedMax = 65_536

/** Ranks by id + 1, with 0 for the best string; NULL has the last rank. */
interface Order {
  readonly places: Int32Array
  readonly ids: readonly number[]
}

export class SymbolExtremeAccumulator implements Accumulator {
  readonly #context: ExecContext
  readonly #sign: 1 | -1
  #dictionary = 0
  #order: Order | undefined
  /** By group: the best rank in the current dictionary. */
  #best = new Int32Array(0)
  /** By group: the best string of earlier dictionaries, and of dictionaries without ranks. */
  #strings: (string | undefined)[] = []

  constructor(context: ExecContext, best: Extreme) {
    this.#context = context
    this.#sign = best === 'min' ? 1 : -1
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { address, dictionary } = column
    if (dictionary !== this.#dictionary) this.#turnTo(dictionary)
    const { i32, u32 } = this.#context.memory
    if (this.#order === undefined) this.#addStrings(address >>> 2, rows, ids)
    else {
      const best = this.#roomFor(ids === 0 ? 1 : groups, this.#order)
      const { places } = this.#order
      if (ids === 0) best[0] = bestPlace(i32, address >>> 2, rows, places, best[0]!)
      else bestPlaces(i32, address >>> 2, rows, places, best, u32, ids >>> 2)
    }
  }

  result(group: number): Value {
    const text = this.#strings[group]
    const place = this.#best[group]
    const id = place === undefined ? undefined : this.#order?.ids[place]
    if (id === undefined) return text ?? null
    return this.#better(this.#context.strings.of(this.#dictionary)(id), text)
  }

  reset(): void {
    this.#best = new Int32Array(0)
    this.#strings = []
  }

  /** Keeps the results from the previous dictionary as strings. */
  #turnTo(dictionary: number): void {
    for (let group = 0; group < this.#best.length; group++)
      this.#strings[group] = (this.result(group) as string | null) ?? undefined
    this.#best = new Int32Array(0)
    this.#dictionary = dictionary
    this.#order = this.#orderOf(dictionary)
  }

  #orderOf(dictionary: number): Order | undefined {
    const { memory, symbols, strings } = this.#context
    if (dictionary === 0 || dictionary === symbols.dictionary) return undefined
    const count = dictionaryCount(memory, dictionary)
    if (count > orderedMax) return undefined
    const textOf = strings.of(dictionary)
    const ids = Array.from({ length: count }, (_, id) => id)
    ids.sort((x, y) => compareText(textOf(x), textOf(y)) * this.#sign)
    const places = new Int32Array(count + 1).fill(count)
    for (const [place, id] of ids.entries()) places[id + 1] = place
    return { places, ids }
  }

  #roomFor(groups: number, { ids }: Order): Int32Array {
    if (groups > this.#best.length) {
      const grown = new Int32Array(Math.max(groups, this.#best.length * 2)).fill(ids.length)
      grown.set(this.#best)
      this.#best = grown
    }
    return this.#best
  }

  #addStrings(first: number, rows: number, ids: number): void {
    const { memory, strings } = this.#context
    const { i32, u32 } = memory
    const textOf = strings.of(this.#dictionary)
    const last: number[] = []
    for (let row = 0; row < rows; row++) {
      const group = ids === 0 ? 0 : u32[(ids >>> 2) + row]!
      const id = i32[first + row]!
      if (id < 0 || last[group] === id) continue
      last[group] = id
      this.#strings[group] = this.#better(textOf(id), this.#strings[group])
    }
  }

  #better(text: string, other: string | undefined): string {
    return other === undefined || compareText(text, other) * this.#sign < 0 ? text : other
  }
}

/** About 1 ns for each row. */
function bestPlace(i32: Int32Array, first: number, rows: number, places: Int32Array, known: number): number {
  let best = known
  for (let at = first; at < first + rows; at++) {
    const place = places[i32[at]! + 1]!
    if (place < best) best = place
  }
  return best
}

function bestPlaces(
  i32: Int32Array,
  first: number,
  rows: number,
  places: Int32Array,
  best: Int32Array,
  u32: Uint32Array,
  groups: number,
): void {
  for (let row = 0; row < rows; row++) {
    const place = places[i32[first + row]! + 1]!
    const group = u32[groups + row]!
    if (place < best[group]!) best[group] = place
  }
}
