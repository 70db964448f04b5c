// The writer's symbol dictionary, which maps the strings of one SYMBOL column to ids. This file creates, extends,
// evicts and frees the structure in shared memory; memory/column-layout.ts describes it. The kernels look up ids by
// string (engine/kernels/as/shared/symbols.ts); readers look up strings by id.
//
// A string is never removed and its id never changes, not even if the request that added it fails, because a reader may
// already have used the id.
//
// The table owns the dictionary. Its hash table, used only by the writer, is replaced when it grows; the strings do not
// move while a reader holds the dictionary. When memory is short (dictionary-indexes.ts), the hash table can be
// released. A dictionary that is not in use can release everything except its header, and is then reloaded from its
// file on disk (dictionary-file.ts) with the same ids.

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
import { DictionaryIndexes, emptySlots, evictedBytesMin, type IndexedDictionary } from './dictionary-indexes.js'

const slotsFirst = 32
/** From this size on the table only doubles, because the old and the new one exist at the same time. */
const slotsLarge = 65_536
const heapBytesFirst = 512
const heapBytesMax = 1024 * 1024
/** Readable bytes after every string. */
const textPadding = 16

/** Number of dictionaries that this thread has created. */
let serials = 0

/** The functions of the line-protocol kernel that dictionaries use. */
export interface SymbolKernel {
  intern(dictionary: number, address: number, bytes: number): number
  rehashDictionary(dictionary: number): void
}

/** Where an evicted dictionary is reloaded from. */
export interface SymbolSource {
  /** Whether the dictionary may be evicted: no one but holders needs the strings, and the file has all of them. */
  mayEvict(count: number): boolean
  /** The first `count` strings. Throws ResourceError. */
  read(count: number): readonly Uint8Array[]
}

const noSource: SymbolSource = { mayEvict: () => false, read: () => [] }

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

  /** Throws ResourceError if the memory is exhausted. */
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
    this.address = allocator.allocateOrThrow(dictionaryBytes, budgets.memtables)
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

  /**
   * Id of the string at an address, which is added if needed; undefined if it is not UTF-8. Needs 16 readable bytes
   * after it.
   */
  intern(address: number, bytes: number): number | undefined {
    for (;;) {
      const id = this.kernel.intern(this.address, address, bytes)
      if (id >= 0) return id
      if (id === layout.invalid) return undefined
      assert(id === layout.full, 'K3: a dictionary takes a text, refuses it, or is full')
      this.grow(bytes)
    }
  }

  /** Makes room for one more string of that size in whatever structure is full. Throws ResourceError. */
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
      // A rebuilt table is no larger than necessary, because memory is short.
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

  /** Adds a string that is valid UTF-8 and new, without building a hash table. Throws ResourceError. */
  append(text: Uint8Array): void {
    this.restore()
    this.dropIndex()
    const { count } = this
    this.indexes.grow(this, () => this.put(count, text))
    Atomics.store(this.memory.u32, (this.address + layout.count) >>> 2, count + 1)
  }

  /** Writes the entry of the next id. Readers do not see it yet. */
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

  /** Whether the strings are in memory. */
  get resident(): boolean {
    return Atomics.load(this.memory.i32, (this.address + layout.holders) >>> 2) >= 0
  }

  /** Loads the strings into memory if they were evicted. Throws ResourceError. */
  restore(): void {
    if (!this.resident) this.indexes.grow(this, () => this.readAgain())
  }

  private readAgain(): void {
    const { count } = this
    try {
      const strings = this.source.read(count)
      assert(strings.length === count, 'R2: a dictionary that is read again has all its symbols')
      strings.forEach((text, id) => this.put(id, text))
    } catch (thrown) {
      this.freeStrings()
      throw thrown
    }
    Atomics.store(this.memory.i32, (this.address + layout.holders) >>> 2, 0)
  }

  evict(): boolean {
    if (!this.source.mayEvict(this.count)) return false
    if (Atomics.compareExchange(this.memory.i32, (this.address + layout.holders) >>> 2, 0, -1) !== 0) return false
    this.dropIndex()
    this.freeStrings()
    return true
  }

  /** Turns a new dictionary into one with `count` strings that are in the file only. */
  initEvicted(count: number): void {
    assert(this.count === 0, 'R2: only a fresh dictionary takes its symbols from the file')
    Atomics.store(this.memory.u32, (this.address + layout.count) >>> 2, count)
    Atomics.store(this.memory.i32, (this.address + layout.holders) >>> 2, -1)
    this.dropIndex()
    this.freeStrings()
  }

  /** A copy of the string's bytes. */
  textOf(id: number): Uint8Array {
    const entry = dictionaryEntry(this.memory, this.address, id) >>> 2
    const address = this.memory.u32[entry]!
    return this.memory.u8.slice(address, address + this.memory.u32[entry + 1]!)
  }

  /**
   * The entries of a range of ids as log frames and files store them: i32 lengths, and the concatenated strings, which
   * may be those of the dictionary.
   */
  packed(from: number, to: number): { readonly lengths: Uint8Array; readonly bytes: Uint8Array } {
    assert(from <= to, 'R2: symbols are packed in the order of their codes')
    assert(to <= this.count, 'R2: only symbols of the dictionary are packed')
    assert(this.resident, 'S4: symbols are read while they are in memory')
    const { u8, u32 } = this.memory
    const lengths = new Uint8Array((to - from) * 4)
    // Symbols that were added one after the other are contiguous in memory unless a new heap began.
    const runs: Uint8Array[] = []
    let [start, end] = [0, 0]
    for (let id = from, at = 0; id < to; id++) {
      const entry = dictionaryEntry(this.memory, this.address, id) >>> 2
      const address = u32[entry]!
      const size = u32[entry + 1]!
      for (let rest = size, byte = 0; byte < 4; byte++, rest >>>= 8) lengths[at++] = rest & 255
      if (address !== end) {
        if (end > start) runs.push(u8.subarray(start, end))
        start = address
      }
      end = address + size
    }
    const last = u8.subarray(start, end)
    return { lengths, bytes: runs.length === 0 ? last : Buffer.concat([...runs, last]) }
  }

  get indexBytes(): number {
    return (this.get(layout.slotMask) + 1) * dictionarySlotBytes
  }

  get isLarge(): boolean {
    return this.heapBytes + dictionaryChunkFirst * ((1 << this.chunks) - 1) * 8 >= evictedBytesMin
  }

  /** Releases the hash table. The next insertion or lookup reports "full", and the table is rebuilt then. */
  dropIndex(): void {
    this.freeSlots()
    this.set(layout.slotMask, emptySlots - 1)
    this.set(layout.slots, this.emptyTable)
  }

  private freeSlots(): void {
    const slots = this.get(layout.slots)
    if (slots !== this.emptyTable) this.indexes.giveTable(this.allocator, slots)
  }

  private freeStrings(): void {
    for (const heap of this.heaps.splice(0)) this.allocator.free(heap)
    for (let chunk = 0; chunk < this.chunks; chunk++) {
      this.allocator.free(this.get(layout.chunks + chunk * 4))
    }
    this.heapBytes = 0
    this.chunks = 0
    // The empty dictionary has no room for strings or entries, so the next insertion reports "full".
    for (const field of [layout.heapNext, layout.heapEnd, layout.capacity]) this.set(field, 0)
  }

  free(): void {
    this.indexes.forget(this)
    this.freeStrings()
    this.freeSlots()
    this.allocator.free(this.address)
  }

  private nextHeapBytes(): number {
    return Math.min(heapBytesMax, heapBytesFirst << Math.min(2 * this.heaps.length, 12))
  }

  private addHeap(bytes: number): void {
    const heap = this.allocator.allocateOrThrow(bytes, budgets.memtables)
    this.heaps.push(heap)
    this.heapBytes += bytes
    this.set(layout.heapNext, heap)
    this.set(layout.heapEnd, heap + bytes)
  }

  private addChunk(): void {
    if (this.chunks === dictionaryChunksMax) throw new ResourceError('a symbol column has too many different values')
    const entries = dictionaryChunkFirst << this.chunks
    this.set(layout.chunks + this.chunks * 4, this.allocator.allocateOrThrow(entries * 8, budgets.memtables))
    this.chunks++
    this.set(layout.capacity, dictionaryChunkFirst * ((1 << this.chunks) - 1))
  }

  /** Allocates the new table before the old one is freed, so a failed allocation leaves the dictionary unchanged. */
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
