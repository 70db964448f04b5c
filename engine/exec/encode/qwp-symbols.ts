// The symbol dictionary of one result that is sent by QWP (columnar protocol over WebSocket), in which strings of
// SYMBOL columns are sent once and then referred to by number. Numbers symbols in the order of their first use, and
// lists those that the next batch has to define, because no earlier batch has. A symbol that occurs in two tables gets
// two numbers.

import { dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'

/** Numbers of the symbols of one dictionary. */
export interface SymbolNumbers {
  readonly dictionary: number
  /** By symbol; -1: none yet. */
  ids: Int32Array
}

const idsMin = 256

export class ResultSymbols {
  /** Numbered symbols. */
  count = 0
  readonly #memory: SharedMemory
  readonly #numbers = new Map<number, SymbolNumbers>()
  #unsent: Buffer[] = []
  /** Size of the strings that were not taken. */
  unsentBytes = 0

  constructor(memory: SharedMemory) {
    this.#memory = memory
  }

  of(dictionary: number): SymbolNumbers {
    let numbers = this.#numbers.get(dictionary)
    if (numbers === undefined) {
      numbers = { dictionary, ids: new Int32Array(idsMin).fill(-1) }
      this.#numbers.set(dictionary, numbers)
    }
    return numbers
  }

  /** Numbers a symbol that has no number. */
  add(numbers: SymbolNumbers, symbol: number): number {
    if (symbol >= numbers.ids.length) {
      const ids = new Int32Array(Math.max(symbol + 1, numbers.ids.length * 2)).fill(-1)
      ids.set(numbers.ids)
      numbers.ids = ids
    }
    const { u8, u32 } = this.#memory
    const entry = dictionaryEntry(this.#memory, numbers.dictionary, symbol) >>> 2
    const at = u32[entry]!
    const text = Buffer.from(u8.slice(at, at + u32[entry + 1]!))
    this.#unsent.push(text)
    this.unsentBytes += text.length
    numbers.ids[symbol] = this.count
    return this.count++
  }

  /** The strings of the next numbers that were not taken, up to a size, and the first of these numbers. */
  take(bytesMax: number): { readonly first: number; readonly texts: readonly Buffer[] } {
    const first = this.count - this.#unsent.length
    let taken = 0
    let bytes = 0
    for (const { length } of this.#unsent) {
      if (taken > 0 && bytes + length > bytesMax) break
      bytes += length
      taken++
    }
    this.unsentBytes -= bytes
    return { first, texts: this.#unsent.splice(0, taken) }
  }
}
