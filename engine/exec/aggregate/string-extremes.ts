// Smallest and largest strings.
//
// Of symbols, the entries of a dictionary are put in order once, and rows are compared by the places of their ids. A dictionary
// that is large, or grows while the query runs, is not put in order: there a row's string is compared, unless its id is that
// of the group's last row.

import { dictionaryCount } from '../../memory/column-layout.js'
import type { Extreme } from '../../sql/functions/function-types.js'
import { compareText } from '../../types/compare.js'
import type { Value } from '../../types/value.js'
import { codedTexts } from '../batch/coded-texts.js'
import type { ExecContext } from '../batch/context.js'
import { compareBytes } from '../batch/text-at.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

/** Strings: the bytes of the best one of each group. */
export class StringExtremeAccumulator implements Accumulator {
  readonly #memory: ExecContext['memory']
  /** What a better one compares as. */
  readonly #better: -1 | 1
  #best: Uint8Array[] = []

  constructor({ memory }: ExecContext, best: Extreme) {
    this.#memory = memory
    this.#better = best === 'min' ? -1 : 1
  }

  add([column]: readonly [Vector], rows: number, ids: number): void {
    const { u32 } = this.#memory
    const texts = codedTexts(column)
    const entries = texts?.entries ?? column.address
    for (let row = 0; row < rows; row++) {
      const entry = texts === undefined ? row : u32[(texts.codes >>> 2) + row]!
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

  /** An entry {address u32, bytes i32}. */
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

/** Of one dictionary: texts are read and sorted in some 50 ms. */
const orderedMax = 65_536

/** Places in the order by id + 1, the best one 0; NULL comes behind all. */
interface Order {
  readonly places: Int32Array
  readonly ids: readonly number[]
}

export class SymbolExtremeAccumulator implements Accumulator {
  readonly #context: ExecContext
  readonly #sign: 1 | -1
  #dictionary = 0
  #order: Order | undefined
  /** By group: the best place in the order of the dictionary. */
  #best = new Int32Array(0)
  /** By group: of dictionaries before, and of those that have no order. */
  #texts: (string | undefined)[] = []

  constructor(context: ExecContext, best: Extreme) {
    this.#context = context
    this.#sign = best === 'min' ? 1 : -1
  }

  add([column]: readonly [Vector], rows: number, ids: number, groups: number): void {
    const { address, dictionary } = column
    if (dictionary !== this.#dictionary) this.#turnTo(dictionary)
    const { i32, u32 } = this.#context.memory
    if (this.#order === undefined) this.#addTexts(address >>> 2, rows, ids)
    else {
      const best = this.#roomFor(ids === 0 ? 1 : groups, this.#order)
      const { places } = this.#order
      if (ids === 0) best[0] = bestPlace(i32, address >>> 2, rows, places, best[0]!)
      else bestPlaces(i32, address >>> 2, rows, places, best, u32, ids >>> 2)
    }
  }

  result(group: number): Value {
    const text = this.#texts[group]
    const place = this.#best[group]
    const id = place === undefined ? undefined : this.#order?.ids[place]
    if (id === undefined) return text ?? null
    return this.#better(this.#context.texts.of(this.#dictionary)(id), text)
  }

  reset(): void {
    this.#best = new Int32Array(0)
    this.#texts = []
  }

  /** What was found in another dictionary is kept as texts. */
  #turnTo(dictionary: number): void {
    for (let group = 0; group < this.#best.length; group++)
      this.#texts[group] = (this.result(group) as string | null) ?? undefined
    this.#best = new Int32Array(0)
    this.#dictionary = dictionary
    this.#order = this.#orderOf(dictionary)
  }

  #orderOf(dictionary: number): Order | undefined {
    const { memory, symbols, texts } = this.#context
    if (dictionary === 0 || dictionary === symbols.dictionary) return undefined
    const count = dictionaryCount(memory, dictionary)
    if (count > orderedMax) return undefined
    const textOf = texts.of(dictionary)
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

  #addTexts(first: number, rows: number, ids: number): void {
    const { memory, texts } = this.#context
    const { i32, u32 } = memory
    const textOf = texts.of(this.#dictionary)
    const last: number[] = []
    for (let row = 0; row < rows; row++) {
      const group = ids === 0 ? 0 : u32[(ids >>> 2) + row]!
      const id = i32[first + row]!
      if (id < 0 || last[group] === id) continue
      last[group] = id
      this.#texts[group] = this.#better(textOf(id), this.#texts[group])
    }
  }

  #better(text: string, other: string | undefined): string {
    return other === undefined || compareText(text, other) * this.#sign < 0 ? text : other
  }
}

/** 1 ns a row. */
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
