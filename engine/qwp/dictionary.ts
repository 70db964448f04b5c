// The symbol dictionaries of QWP connections (columnar protocol over WebSocket). A connection sends each string of
// SYMBOL columns once, numbered from 0, and then only the number. The writer keeps the strings until the connection
// ends and, for each SYMBOL column, a cache from the connection's numbers to the ids in the column's dictionary.
//
// Strings stay when the message that contained them is rejected, because the client will not send them again. A client
// that starts over on the connection may send a number again, with another string.
//
// All connections share one memory budget. If it is used up, a connection first discards these caches, and only then is
// refused.

import { isUtf8 } from 'node:buffer'
import { assert } from '../base/assert.js'
import { GapError, ResourceError } from '../base/errors.js'
import type { SymbolDictionary } from '../storage/memtable/dictionary.js'
import type { BatchHeap } from '../storage/writer/writer-batch.js'
import { symbolEntriesMax, tooManySymbols, type WireReader } from './message.js'

const entriesFirst = 256
const bytesFirst = 4096
const entryBytes = 8
const codeBytes = 4
/** No code is known yet. */
const unknown = -1

/** Memory that dictionaries share. */
export class SymbolBudget {
  #used = 0
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  get used(): number {
    return this.#used
  }

  take(bytes: number): boolean {
    if (this.#used + bytes > this.#max) return false
    this.#used += bytes
    return true
  }

  give(bytes: number): void {
    this.#used -= bytes
    assert(this.#used >= 0, 'A2: a budget gets back what it gave')
  }

  refusal(): ResourceError {
    return new ResourceError(
      `symbols of connections take too much memory [limit=${this.#max}, setting=qwp.symbols.bytes.max]`,
    )
  }
}

export class ConnectionSymbols {
  #count = 0
  #starts = new Uint32Array(0)
  #lengths = new Uint32Array(0)
  #bytes = new Uint8Array(0)
  #used = 0
  readonly #codes = new Map<SymbolDictionary, Int32Array>()
  readonly #budget: SymbolBudget
  #taken = 0

  constructor(budget: SymbolBudget) {
    this.#budget = budget
  }

  get count(): number {
    return this.#count
  }

  /** Adds the entries of a delta section. Throws GapError, NetworkError, ResourceError. */
  readDelta(reader: WireReader): void {
    const first = reader.varint()
    const entries = reader.varint()
    if (first > this.#count) {
      throw new GapError(`the dictionary has no entries from ${this.#count} to ${first - 1} [sent=${first}]`)
    }
    if (first + entries > symbolEntriesMax) throw reader.error(tooManySymbols)
    const { at } = reader
    const isSame = this.#readEntries(reader, first, entries, false)
    if (isSame) return
    reader.at = at
    if (first < this.#count) this.#forgetFrom(first, entries)
    this.#readEntries(reader, first, entries, true)
  }

  /** Reads the entries, and stores those that are new. False when nothing was stored but something is to be. */
  #readEntries(reader: WireReader, first: number, entries: number, stores: boolean): boolean {
    let isSame = true
    for (let index = 0; index < entries; index++) {
      const bytes = reader.varint()
      const at = reader.take(bytes)
      const text = reader.u8.subarray(at, at + bytes)
      if (!isUtf8(text)) throw reader.error('a symbol is not UTF-8')
      if (first + index < this.#count && this.#isEntry(first + index, text)) continue
      isSame = false
      if (stores) this.#put(first + index, text)
    }
    return isSame
  }

  #isEntry(id: number, text: Uint8Array): boolean {
    const start = this.#starts[id]!
    if (this.#lengths[id]! !== text.length) return false
    for (let index = 0; index < text.length; index++) if (this.#bytes[start + index] !== text[index]) return false
    return true
  }

  /** Strings of these ids are going to be others: codes and bytes are as if they had never been. */
  #forgetFrom(first: number, entries: number): void {
    this.forgetCodes()
    const kept: Uint8Array[] = []
    for (let id = 0; id < this.#count; id++) {
      const isKept = id < first || id >= first + entries
      kept.push(isKept ? this.text(id).slice() : new Uint8Array(0))
    }
    this.#used = 0
    kept.forEach((text, id) => this.#put(id, text))
  }

  #put(id: number, text: Uint8Array): void {
    if (id >= this.#starts.length) this.#growEntries(id + 1)
    if (this.#used + text.length > this.#bytes.length) this.#growBytes(this.#used + text.length)
    this.#bytes.set(text, this.#used)
    this.#starts[id] = this.#used
    this.#lengths[id] = text.length
    this.#used += text.length
    this.#count = Math.max(this.#count, id + 1)
  }

  #growEntries(wanted: number): void {
    const before = this.#starts.length
    const length = Math.max(entriesFirst, wanted, Math.min(before * 2, symbolEntriesMax))
    this.#reserve((length - before) * entryBytes)
    const [starts, lengths] = [new Uint32Array(length), new Uint32Array(length)]
    starts.set(this.#starts)
    lengths.set(this.#lengths)
    this.#starts = starts
    this.#lengths = lengths
  }

  #growBytes(wanted: number): void {
    const length = Math.max(bytesFirst, wanted, this.#bytes.length * 2)
    this.#reserve(length - this.#bytes.length)
    const bytes = new Uint8Array(length)
    bytes.set(this.#bytes.subarray(0, this.#used))
    this.#bytes = bytes
  }

  #reserve(bytes: number): void {
    if (!this.#budget.take(bytes)) {
      this.forgetCodes()
      if (!this.#budget.take(bytes)) throw this.#budget.refusal()
    }
    this.#taken += bytes
  }

  text(id: number): Uint8Array {
    assert(id < this.#count, 'R2: an id is that of an entry')
    const start = this.#starts[id]!
    return this.#bytes.subarray(start, start + this.#lengths[id]!)
  }

  /** The codes that a column has for the ids; those that are unknown are -1. Throws ResourceError. */
  codesOf(dictionary: SymbolDictionary): Int32Array {
    const known = this.#codes.get(dictionary)
    if (known !== undefined && known.length >= this.#count) return known
    const codes = new Int32Array(this.#starts.length).fill(unknown)
    this.#reserve((codes.length - (known?.length ?? 0)) * codeBytes)
    // Making room may have given back those that are known.
    const isGone = known === undefined || !this.#codes.has(dictionary)
    if (!isGone) codes.set(known)
    else if (known !== undefined) this.#reserve(known.length * codeBytes)
    this.#codes.set(dictionary, codes)
    return codes
  }

  /** The column's code for an id, which is entered where the column lacks it. Throws ResourceError. */
  intern(id: number, dictionary: SymbolDictionary, heap: BatchHeap): number {
    const text = this.text(id)
    const code = dictionary.intern(heap.put(text), text.length)
    assert(code !== undefined, 'R2: strings are checked to be UTF-8 before they become symbols')
    return code
  }

  /** A column's dictionary is gone. */
  forget(dictionary: SymbolDictionary): void {
    const codes = this.#codes.get(dictionary)
    if (codes === undefined) return
    this.#codes.delete(dictionary)
    this.#give(codes.length * codeBytes)
  }

  /** Of columns that may be gone. */
  forgetCodes(): void {
    for (const dictionary of [...this.#codes.keys()]) this.forget(dictionary)
  }

  #give(bytes: number): void {
    this.#budget.give(bytes)
    this.#taken -= bytes
  }

  /** The connection is closed. */
  free(): void {
    this.#codes.clear()
    this.#give(this.#taken)
  }
}
