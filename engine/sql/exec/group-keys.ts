// Groups by any key: numbers the groups in order of first appearance. Keys of fixed width become 64-bit words, texts are
// numbered first; so a row's key is a short list of words, looked up in an open-addressing table.
//
// Table: u32 slots (group + 1, 0 = free) of a power of two; words of group g lie at g * words in the list of keys.

import { type DataType, storageOf, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { RowStore } from './row-store.js'
import { bufferOf } from './values.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

const slotsFirst = 1024

/** Words of 64 bits that a value of the type takes in a key. */
export function keyWords(type: DataType): number {
  const kind = storageOf(type)
  return kind === 'b32' ? 4 : kind === 'b16' ? 2 : 1
}

export class GroupKeys {
  /** Groups found so far. */
  count = 0
  /** u32[batchRowsMax]: the group of each row of the last batch. */
  readonly ids: number
  /** The keys' values, one row per group. */
  readonly keys: RowStore
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #words: number
  /** i32 pairs: the words of the batch's rows, row by row. */
  readonly #rowWords: Int32Array
  #groupWords: Int32Array
  #slots: Uint32Array = new Uint32Array(slotsFirst)
  readonly #texts: Map<string, number>[]
  readonly #firstRows: number

  constructor(context: ExecContext, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.#words = types.reduce((sum, type) => sum + keyWords(type), 0)
    this.#rowWords = new Int32Array(batchRowsMax * this.#words * 2)
    this.#groupWords = new Int32Array(slotsFirst * this.#words * 2)
    this.#texts = types.map(() => new Map())
    this.ids = context.space.take(batchRowsMax * 4)
    this.#firstRows = context.space.take(batchRowsMax * 4)
    this.keys = new RowStore(context, types)
  }

  /** Sets `ids` for the rows; keys are vectors in the order of the types. */
  assign(keys: readonly Vector[], rows: number): void {
    let word = 0
    keys.forEach((vector, index) => {
      this.#fill(vector, index, word, rows)
      word += keyWords(this.#types[index] as DataType)
    })
    const before = this.count
    const { u32 } = this.#context.memory
    const ids = this.ids >>> 2
    const firsts = this.#firstRows >>> 2
    for (let row = 0; row < rows; row++) {
      const group = this.#find(row)
      if (group === this.count) {
        u32[firsts + group - before] = row
        this.count++
      }
      u32[ids + row] = group
    }
    if (this.count > before) this.#keep({ rows, vectors: keys }, this.count - before)
  }

  #keep(batch: Batch, fresh: number): void {
    const { kernels, space } = this.#context
    const vectors = batch.vectors.map((vector) => {
      const width = widthOf(vector.type)
      const address = space.take(fresh * width)
      kernels.sort.gather(width, vector.address, this.#firstRows, fresh, address)
      return { ...vector, address }
    })
    this.keys.append({ rows: fresh, vectors })
    for (const { address } of vectors) space.give(address)
  }

  /** The row's group; `count` when it is new (it is entered). */
  #find(row: number): number {
    const width = this.#words * 2
    const words = this.#rowWords
    const from = row * width
    let hash = 0x9e3779b9
    for (let at = from; at < from + width; at++)
      hash = Math.imul(hash ^ (words[at] as number), 0x85ebca6b) ^ (hash >>> 15)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    const mask = this.#slots.length - 1
    let slot = (hash ^ (hash >>> 16)) & mask
    for (;;) {
      const entry = this.#slots[slot] as number
      if (entry === 0) break
      if (this.#same(entry - 1, from, width)) return entry - 1
      slot = (slot + 1) & mask
    }
    this.#slots[slot] = this.count + 1
    this.#enter(from, width)
    return this.count
  }

  #same(group: number, from: number, width: number): boolean {
    const base = group * width
    for (let at = 0; at < width; at++) if (this.#groupWords[base + at] !== this.#rowWords[from + at]) return false
    return true
  }

  #enter(from: number, width: number): void {
    const group = this.count
    if ((group + 1) * width > this.#groupWords.length) {
      const larger = new Int32Array(this.#groupWords.length * 2)
      larger.set(this.#groupWords)
      this.#groupWords = larger
    }
    this.#groupWords.set(this.#rowWords.subarray(from, from + width), group * width)
    if ((group + 1) * 2 > this.#slots.length) this.#rehash(group + 1, width)
  }

  #rehash(groups: number, width: number): void {
    const slots = new Uint32Array(this.#slots.length * 4)
    const mask = slots.length - 1
    const words = this.#groupWords
    for (let group = 0; group < groups; group++) {
      let hash = 0x9e3779b9
      const from = group * width
      for (let at = from; at < from + width; at++)
        hash = Math.imul(hash ^ (words[at] as number), 0x85ebca6b) ^ (hash >>> 15)
      hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
      let slot = (hash ^ (hash >>> 16)) & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = group + 1
    }
    this.#slots = slots
  }

  /** Writes the column's words of each row. */
  #fill(vector: Vector, index: number, word: number, rows: number): void {
    const { memory, symbols } = this.#context
    const stride = this.#words * 2
    const out = this.#rowWords
    const { address, type } = vector
    switch (storageOf(type)) {
      case 'i8':
        for (let row = 0, at = word * 2; row < rows; row++, at += stride)
          setWord(out, at, memory.i8[address + row] as number)
        return
      case 'i16':
        for (let row = 0, at = word * 2; row < rows; row++, at += stride)
          setWord(out, at, memory.i16[(address >>> 1) + row] as number)
        return
      case 'u16':
        for (let row = 0, at = word * 2; row < rows; row++, at += stride)
          setWord(out, at, memory.u16[(address >>> 1) + row] as number)
        return
      case 'i32':
        this.#fillInts(vector, index, word, rows, symbols.dictionary)
        return
      case 'f32':
        for (let row = 0, at = word * 2; row < rows; row++, at += stride) {
          const value = memory.f32[(address >>> 2) + row] as number
          setWord(
            out,
            at,
            value === 0 ? 0 : Number.isNaN(value) ? 0x7fc00000 : (memory.i32[(address >>> 2) + row] as number),
          )
        }
        return
      case 'f64':
        for (let row = 0, at = word * 2; row < rows; row++, at += stride) {
          const value = memory.f64[(address >>> 3) + row] as number
          const plain = value !== 0 && !Number.isNaN(value)
          out[at] = plain ? (memory.i32[(address >>> 2) + row * 2] as number) : 0
          out[at + 1] = plain ? (memory.i32[(address >>> 2) + row * 2 + 1] as number) : value === 0 ? 0 : 0x7ff80000
        }
        return
      case 'entry':
        this.#fillTexts(vector, index, word, rows)
        return
      default: {
        const parts = widthOf(type) / 4
        for (let row = 0; row < rows; row++) {
          const source = (address >>> 2) + row * parts
          for (let part = 0; part < parts; part++)
            out[row * stride + word * 2 + part] = memory.i32[source + part] as number
        }
      }
    }
  }

  /** Symbols of another dictionary than the first rows' are translated once two dictionaries have met. */
  #fillInts(vector: Vector, index: number, word: number, rows: number, own: number): void {
    const { memory, symbols } = this.#context
    const stride = this.#words * 2
    const out = this.#rowWords
    const foreign = vector.type.name === 'SYMBOL' && this.#unite(vector, index, word, own)
    for (let row = 0, at = word * 2; row < rows; row++, at += stride) {
      const value = memory.i32[(vector.address >>> 2) + row] as number
      setWord(out, at, foreign ? symbols.translate(vector.dictionary, value) : value)
    }
  }

  readonly #dictionaries: number[] = []

  /** Whether ids of the vector have to be translated to the query's own dictionary. */
  #unite(vector: Vector, index: number, word: number, own: number): boolean {
    const known = this.#dictionaries[index]
    if (known === undefined) this.#dictionaries[index] = vector.dictionary
    if (known === undefined || known === vector.dictionary) return false
    if (known !== own) {
      const width = this.#words * 2
      for (let group = 0; group < this.count; group++) {
        const at = group * width + word * 2
        setWord(this.#groupWords, at, this.#context.symbols.translate(known, this.#groupWords[at] as number))
      }
      this.#dictionaries[index] = own
      this.#slots.fill(0)
      this.#rehash(this.count, width)
    }
    return vector.dictionary !== own
  }

  #fillTexts({ address }: Vector, index: number, word: number, rows: number): void {
    const { memory } = this.#context
    const stride = this.#words * 2
    const texts = this.#texts[index] as Map<string, number>
    const buffer = bufferOf(memory)
    for (let row = 0, at = word * 2; row < rows; row++, at += stride) {
      const entry = (address >>> 2) + row * 2
      const bytes = memory.i32[entry + 1] as number
      if (bytes < 0) {
        setWord(this.#rowWords, at, -1)
        continue
      }
      const start = memory.u32[entry] as number
      const key = buffer.toString('latin1', start, start + bytes)
      let id = texts.get(key)
      if (id === undefined) {
        id = texts.size
        texts.set(key, id)
      }
      setWord(this.#rowWords, at, id)
    }
  }
}

/** A 32-bit value as a word. */
function setWord(words: Int32Array, at: number, value: number): void {
  words[at] = value
  words[at + 1] = value >> 31
}
