// The symbols of a query. SymbolStrings caches the strings of symbol ids, decoded to JavaScript strings. Symbols is a
// dictionary of the query's own, for symbols that its expressions compute and for rows from tables with different
// dictionaries. It has the same layout as the dictionaries of tables (memory/column-layout.ts), so operators treat both
// alike.

import { LazyMap } from '../../base/lazy-map.js'
import { dictionaryBytes, dictionaryChunkFirst, dictionaryCount, dictionaryEntry } from '../../memory/column-layout.js'
import * as layout from '../../memory/dictionary-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { QueryArena } from './query-arena.js'
import { StringHeap } from './string-heap.js'
import { textAt } from './text-at.js'

/** Strings of dictionary entries, decoded on first use. */
export class SymbolStrings {
  readonly #memory: SharedMemory
  readonly #byDictionary = new LazyMap<number, (id: number) => string>()

  constructor(memory: SharedMemory) {
    this.#memory = memory
  }

  of(dictionary: number): (id: number) => string {
    const known = this.#byDictionary.get(dictionary)
    if (known !== undefined) return known
    const strings: (string | undefined)[] = []
    const textOf = (id: number): string => {
      const text = strings[id]
      if (text !== undefined) return text
      const made = symbolText(this.#memory, dictionary, id)
      strings[id] = made
      return made
    }
    this.#byDictionary.set(dictionary, textOf)
    return textOf
  }
}

function symbolText(memory: SharedMemory, dictionary: number, id: number): string {
  const entry = dictionaryEntry(memory, dictionary, id) >>> 2
  return textAt(memory, memory.u32[entry]!, memory.u32[entry + 1]!)
}

/** The dictionary of the query, created with its first string. */
export class Symbols {
  readonly #arena: QueryArena
  readonly #heap: StringHeap
  readonly #ids = new LazyMap<string, number>()
  readonly #mapped = new LazyMap<number, Int32Array>()
  #address = 0
  #chunks = 0

  constructor(arena: QueryArena) {
    this.#arena = arena
    this.#heap = new StringHeap(arena)
  }

  get dictionary(): number {
    if (this.#address === 0) {
      this.#address = this.#arena.keep(dictionaryBytes)
      this.#arena.memory.u8.fill(0, this.#address, this.#address + dictionaryBytes)
    }
    return this.#address
  }

  intern(text: string): number {
    const known = this.#ids.get(text)
    if (known !== undefined) return known
    const { memory } = this.#arena
    const dictionary = this.dictionary
    const id = dictionaryCount(memory, dictionary)
    if (id >= dictionaryChunkFirst * ((1 << this.#chunks) - 1)) this.#addChunk()
    const bytes = Buffer.from(text, 'utf8')
    const entry = dictionaryEntry(memory, dictionary, id) >>> 2
    memory.u32[entry] = this.#heap.put(bytes)
    memory.u32[entry + 1] = bytes.length
    Atomics.store(memory.u32, (dictionary + layout.count) >>> 2, id + 1)
    this.#ids.set(text, id)
    return id
  }

  /** The id in the query's dictionary for a symbol of another dictionary. */
  translate(dictionary: number, id: number): number {
    if (id < 0 || dictionary === this.#address) return id
    let map = this.#mapped.get(dictionary)
    if (map === undefined || id >= map.length) {
      const larger = new Int32Array(Math.max(256, dictionaryCount(this.#arena.memory, dictionary), id + 1)).fill(-1)
      if (map !== undefined) larger.set(map)
      map = larger
      this.#mapped.set(dictionary, map)
    }
    const known = map[id]!
    if (known >= 0) return known
    const made = this.intern(symbolText(this.#arena.memory, dictionary, id))
    map[id] = made
    return made
  }

  #addChunk(): void {
    const address = this.#arena.take((dictionaryChunkFirst << this.#chunks) * 8)
    this.#arena.memory.u32[(this.dictionary + layout.chunks + this.#chunks * 4) >>> 2] = address
    this.#chunks++
  }
}
