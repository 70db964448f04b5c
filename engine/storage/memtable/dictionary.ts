// A symbol dictionary of the writer: creation, insertion, growth and release of the structure that layout.ts describes.
// Look-up by text and by id is the kernels' and the readers' business (engine/kernels/as/shared/symbols.ts, layout.ts).
//
// Entries are never taken back, not even when the request that brought them fails: a reader may have evaluated a
// predicate over them already, so an id must not change its text.
//
// Owner: the table. Slots are writer-only and replaced when they grow. Chunks and text heaps never move while a reader
// holds the dictionary (layout.ts). When memory is short (dictionary-indexes.ts), slots are given back, and of dictionaries
// that nobody needs all but the header; what is asked for again is read from the file. Ids and texts are the same then.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { type Allocator, budgets } from '../../memory/budgets.js'
import {
  dictionaryBytes,
  dictionaryChunkFirst,
  dictionaryChunksMax,
  dictionaryCount,
  dictionaryEntry,
  dictionarySlotBytes,
} from '../../memory/column-layout.js'
import * as layout from '../../memory/dictionary-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { DictionaryIndexes, emptySlots, type IndexedDictionary, restedBytesMin } from './dictionary-indexes.js'

const slotsFirst = 32
/** From here on tables double: while one grows, the old one is there as well. */
const slotsLarge = 65_536
const heapBytesFirst = 512
const heapBytesMax = 1024 * 1024
/** Readable bytes behind every text. */
const textPadding = 16

/** Of the dictionaries that this thread has made. */
let serials = 0

/** What of the line-protocol kernel dictionaries use. */
export interface SymbolKernel {
  intern(dictionary: number, address: number, bytes: number): number
  rehashDictionary(dictionary: number): void
}

/** Where a dictionary that was given back comes from again. */
export interface SymbolSource {
  /** Whether nobody but holders needs the texts now, and the file has all of them. */
  mayRest(count: number): boolean
  /** The first `count` texts. Throws ResourceError. */
  read(count: number): readonly Uint8Array[]
}

const noSource: SymbolSource = { mayRest: () => false, read: () => [] }

export class SymbolDictionary implements IndexedDictionary {
  readonly address: number
  private readonly memory: SharedMemory
  private readonly allocator: Allocator
  private readonly kernel: SymbolKernel
  private readonly indexes: DictionaryIndexes
  private readonly source: SymbolSource
  private readonly emptyTable: number
  private readonly heaps: number[] = []
  private heapBytes = 0
  private chunks = 0

  /** Throws ResourceError when the memory is exhausted. */
  constructor(
    memory: SharedMemory,
    allocator: Allocator,
    kernel: SymbolKernel,
    indexes: DictionaryIndexes = new DictionaryIndexes(),
    source: SymbolSource = noSource,
  ) {
    this.source = source
    this.emptyTable = indexes.emptyTable(memory, allocator)
    this.indexes = indexes
    this.memory = memory
    this.allocator = allocator
    this.kernel = kernel
    this.address = allocator.demand(dictionaryBytes, budgets.memtables)
    memory.u8.fill(0, this.address, this.address + dictionaryBytes)
    this.set(layout.serial, ++serials)
    this.replaceSlots(slotsFirst)
    this.addChunk()
    this.addHeap(heapBytesFirst)
  }

  private get(field: number): number {
    return this.memory.u32[(this.address + field) >>> 2]!
  }

  private set(field: number, value: number): void {
    this.memory.u32[(this.address + field) >>> 2] = value
  }

  get count(): number {
    return dictionaryCount(this.memory, this.address)
  }

  /** Id of the text at an address of the shared memory; undefined when it is not UTF-8. 16 readable bytes must follow. */
  intern(address: number, bytes: number): number | undefined {
    for (;;) {
      const id = this.kernel.intern(this.address, address, bytes)
      if (id >= 0) return id
      if (id === layout.invalid) return undefined
      assert(id === layout.full, 'K3: a dictionary takes a text, refuses it, or is full')
      this.grow(bytes)
    }
  }

  /** Makes room for one more text of that size wherever it lacks. Throws ResourceError when the memory is exhausted. */
  grow(bytes: number): void {
    this.indexes.grow(this, () => this.makeRoom(bytes))
  }

  private makeRoom(bytes: number): void {
    const count = this.count
    if (!this.resident) this.readAgain()
    const before = [this.get(layout.slotMask), this.get(layout.capacity), this.get(layout.heapEnd)]
    if (count >= this.get(layout.capacity)) this.addChunk()
    const slots = this.get(layout.slotMask) + 1
    if ((count + 1) * 2 > slots) {
      // One that is made again is no larger than it has to be: memory is short.
      const isNew = slots < slotsFirst
      let larger = isNew ? slotsFirst : slots
      while ((count + 1) * 2 > larger) larger *= !isNew && larger < slotsLarge ? 4 : 2
      this.replaceSlots(larger)
    }
    this.makeTextRoom(bytes)
    const after = [this.get(layout.slotMask), this.get(layout.capacity), this.get(layout.heapEnd)]
    assert(
      before.some((value, index) => value !== after[index]),
      'R2: a full dictionary lacks something',
    )
  }

  private makeTextRoom(bytes: number): void {
    const room = this.get(layout.heapEnd) - this.get(layout.heapNext)
    if (bytes + textPadding > room) this.addHeap(Math.max(bytes + textPadding, this.nextHeapBytes()))
  }

  /** Enters a text that is valid and not there yet; no hash table is made for it. Throws ResourceError. */
  append(text: Uint8Array): void {
    this.restore()
    this.dropIndex()
    const { count } = this
    this.indexes.grow(this, () => this.put(count, text))
    Atomics.store(this.memory.u32, (this.address + layout.count) >>> 2, count + 1)
  }

  /** Writes the entry of an id, the next one of those that are written. Readers do not see it yet. */
  private put(id: number, text: Uint8Array): void {
    const { u8, u32 } = this.memory
    if (id >= this.get(layout.capacity)) this.addChunk()
    this.makeTextRoom(text.length)
    assert(
      this.get(layout.heapNext) + text.length + textPadding <= this.get(layout.heapEnd),
      'A1: readable bytes follow every symbol',
    )
    const at = this.get(layout.heapNext)
    u8.set(text, at)
    this.set(layout.heapNext, at + text.length)
    const entry = dictionaryEntry(this.memory, this.address, id) >>> 2
    u32[entry] = at
    u32[entry + 1] = text.length
  }

  /** Whether the texts are in memory. */
  get resident(): boolean {
    return Atomics.load(this.memory.i32, (this.address + layout.holders) >>> 2) >= 0
  }

  /** The texts are in memory afterwards. Throws ResourceError. */
  restore(): void {
    if (!this.resident) this.indexes.grow(this, () => this.readAgain())
  }

  private readAgain(): void {
    const { count } = this
    try {
      const texts = this.source.read(count)
      assert(texts.length === count, 'R2: a dictionary that is read again has all its symbols')
      texts.forEach((text, id) => this.put(id, text))
    } catch (thrown) {
      this.freeTexts()
      throw thrown
    }
    Atomics.store(this.memory.i32, (this.address + layout.holders) >>> 2, 0)
  }

  evict(): boolean {
    if (!this.source.mayRest(this.count)) return false
    if (Atomics.compareExchange(this.memory.i32, (this.address + layout.holders) >>> 2, 0, -1) !== 0) return false
    this.dropIndex()
    this.freeTexts()
    return true
  }

  /** A fresh dictionary becomes one of so many texts, all of them in the file only. */
  rest(count: number): void {
    assert(this.count === 0, 'R2: only a fresh dictionary takes its symbols from the file')
    Atomics.store(this.memory.u32, (this.address + layout.count) >>> 2, count)
    Atomics.store(this.memory.i32, (this.address + layout.holders) >>> 2, -1)
    this.dropIndex()
    this.freeTexts()
  }

  /** A copy of the text's bytes. */
  textOf(id: number): Uint8Array {
    const entry = dictionaryEntry(this.memory, this.address, id) >>> 2
    const address = this.memory.u32[entry]!
    return this.memory.u8.slice(address, address + this.memory.u32[entry + 1]!)
  }

  /** Entries from one id to another as a log frame or a file takes them: i32 lengths, and the texts in a row. */
  packed(from: number, to: number): { readonly lengths: Uint8Array; readonly bytes: Uint8Array } {
    assert(from <= to, 'R2: symbols are packed in the order of their codes')
    assert(to <= this.count, 'R2: only symbols of the dictionary are packed')
    assert(this.resident, 'S4: symbols are read while they are in memory')
    const lengths = new Int32Array(to - from)
    let total = 0
    for (let id = from; id < to; id++) {
      const size = this.memory.u32[(dictionaryEntry(this.memory, this.address, id) >>> 2) + 1]!
      lengths[id - from] = size
      total += size
    }
    const bytes = new Uint8Array(total)
    for (let id = from, at = 0; id < to; id++) {
      const text = this.textOf(id)
      bytes.set(text, at)
      at += text.length
    }
    return { lengths: new Uint8Array(lengths.buffer), bytes }
  }

  get indexBytes(): number {
    return (this.get(layout.slotMask) + 1) * dictionarySlotBytes
  }

  get isLarge(): boolean {
    return this.heapBytes + dictionaryChunkFirst * ((1 << this.chunks) - 1) * 8 >= restedBytesMin
  }

  /** Without slots the dictionary is full for the next text, whichever it is: the table is made then. */
  dropIndex(): void {
    this.freeSlots()
    this.set(layout.slotMask, emptySlots - 1)
    this.set(layout.slots, this.emptyTable)
  }

  private freeSlots(): void {
    const slots = this.get(layout.slots)
    if (slots !== this.emptyTable) this.indexes.giveTable(this.allocator, slots)
  }

  private freeTexts(): void {
    for (const heap of this.heaps.splice(0)) this.allocator.free(heap)
    for (let chunk = 0; chunk < this.chunks; chunk++) {
      this.allocator.free(this.get(layout.chunks + chunk * 4))
    }
    this.heapBytes = 0
    this.chunks = 0
    // No room for a text, none for an entry.
    for (const field of [layout.heapNext, layout.heapEnd, layout.capacity]) this.set(field, 0)
  }

  free(): void {
    this.indexes.forget(this)
    this.freeTexts()
    this.freeSlots()
    this.allocator.free(this.address)
  }

  private nextHeapBytes(): number {
    return Math.min(heapBytesMax, heapBytesFirst << Math.min(2 * this.heaps.length, 12))
  }

  private addHeap(bytes: number): void {
    const heap = this.allocator.demand(bytes, budgets.memtables)
    this.heaps.push(heap)
    this.heapBytes += bytes
    this.set(layout.heapNext, heap)
    this.set(layout.heapEnd, heap + bytes)
  }

  private addChunk(): void {
    if (this.chunks === dictionaryChunksMax) throw new ResourceError('a symbol column has too many different values')
    const entries = dictionaryChunkFirst << this.chunks
    this.set(layout.chunks + this.chunks * 4, this.allocator.demand(entries * 8, budgets.memtables))
    this.chunks++
    this.set(layout.capacity, dictionaryChunkFirst * ((1 << this.chunks) - 1))
  }

  /** The new table must exist before the old one goes: a failed allocation leaves the dictionary as it was. */
  private replaceSlots(slots: number): void {
    const old = this.get(layout.slots)
    assert(this.resident, 'S4: a table is made of texts')
    const table = this.newSlots(slots)
    this.set(layout.slotMask, slots - 1)
    this.set(layout.slots, table)
    if (old === 0) return
    this.kernel.rehashDictionary(this.address)
    if (old !== this.emptyTable) this.indexes.giveTable(this.allocator, old)
  }

  private newSlots(slots: number): number {
    const table = this.indexes.takeTable(this.allocator, slots * dictionarySlotBytes)
    this.memory.u8.fill(0, table, table + slots * dictionarySlotBytes)
    return table
  }
}
