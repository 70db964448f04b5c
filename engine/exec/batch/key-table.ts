// KeyTable: a hash table that maps keys to consecutive ids in order of first appearance, and grows as needed. Keys have
// 8 or 16 bytes or are strings; kernels/aggregate does the lookups.

import { tableBytes, writeKeyTable } from '../../kernels/aggregate.js'
import type { ExecContext } from './context.js'
import { type DictionaryStrings, dictionaryStrings, sameStrings } from './dictionary-strings.js'
import type { Vector } from './vector.js'

/** Bytes of a key; 0 for strings. */
export type KeyWidth = 0 | 8 | 16

const slotsFirst = 256
/**
 * Smaller tables grow fourfold, to rehash seldom, if all tables of the query could. Otherwise tables double and are
 * fuller.
 */
const slotsLarge = 65_536
const heapBytesFirst = 4 * 1024
/** A dictionary with more codes than this for each row of the batch is not worth a table of ids by code. */
const codesPerRow = 32

export class KeyTable {
  readonly #context: ExecContext
  readonly #width: KeyWidth
  readonly #table: number
  #slotCount = slotsFirst
  /** Slots followed by the keys. One allocation, since each is rounded up to whole pages. */
  #slots = 0
  /** Size of the last heap of strings. Heaps do not move, and only the last one has room. */
  #heapBytes = heapBytesFirst

  /** The dictionary whose codes have an id table: u32 by code, 0 = not looked up yet, else id + 1. */
  #dictionaryStrings: DictionaryStrings | null = null
  #idsByCode = 0
  #codesMax = 0

  constructor(context: ExecContext, width: KeyWidth) {
    const { arena, memory } = context
    this.#context = context
    this.#width = width
    this.#table = arena.keep(tableBytes)
    arena.addGrowingTable()
    const countMax = slotsFirst / 2
    const keys = this.#newSlots(countMax)
    const heap = width === 0 ? arena.take(heapBytesFirst) : 0
    writeKeyTable(memory, this.#table, {
      slots: this.#slots,
      slotCount: this.#slotCount,
      countMax,
      keys,
      heap,
      heapBytes: width === 0 ? heapBytesFirst : 0,
    })
  }

  get count(): number {
    return this.#context.memory.u32[(this.#table >>> 2) + 2]!
  }

  /** Writes the id of each row's key to `ids` (u32); rows that the mask excludes (0 = no mask) get 0xffffffff. */
  number(keys: number, mask: number, rows: number, ids: number): void {
    const { aggregate } = this.#context.kernels
    const kernel =
      this.#width === 8 ? aggregate.numberKeys8 : this.#width === 16 ? aggregate.numberKeys16 : aggregate.internStrings
    for (let done = 0; done < rows; ) {
      const from = keys + done * this.#keyBytes
      done += kernel(this.#table, from, mask === 0 ? 0 : mask + done, rows - done, ids + done * 4)
      if (done < rows) this.#grow(keys + done * this.#keyBytes)
    }
  }

  /** Maps strings to ids. Each distinct string of a dictionary is looked up once only. */
  internStrings(vector: Vector, mask: number, rows: number, ids: number): void {
    const strings = dictionaryStrings(vector)
    if (strings === undefined || !this.#knows(strings, rows)) {
      this.number(vector.address, mask, rows, ids)
      return
    }
    const { kernels, memory } = this.#context
    const { codes, entries } = strings
    for (let done = 0; done < rows; ) {
      const rest = mask === 0 ? 0 : mask + done
      const from = codes + done * 4
      done += kernels.aggregate.numberCodes(
        this.#table,
        from,
        entries,
        this.#idsByCode,
        rest,
        rows - done,
        ids + done * 4,
      )
      if (done < rows) this.#grow(entries + memory.u32[(codes >>> 2) + done]! * 8)
    }
  }

  /** Whether an id table exists for this dictionary. It is created if the batch has enough rows for it. */
  #knows(strings: DictionaryStrings, rows: number): boolean {
    if (sameStrings(strings, this.#dictionaryStrings)) return true
    if (rows * codesPerRow < strings.count) return false
    const { arena, memory } = this.#context
    if (this.#codesMax < strings.count) {
      if (this.#idsByCode !== 0) arena.give(this.#idsByCode)
      this.#idsByCode = arena.take(strings.count * 4)
      this.#codesMax = strings.count
    }
    memory.u8.fill(0, this.#idsByCode, this.#idsByCode + strings.count * 4)
    this.#dictionaryStrings = strings
    return true
  }

  get #keyBytes(): number {
    return this.#width === 16 ? 16 : 8
  }

  get #slotBytes(): number {
    return this.#width === 16 ? 8 : 16
  }

  /** Allocates slots followed by keys; returns the address of the keys. */
  #newSlots(countMax: number): number {
    const { arena, memory } = this.#context
    const bytes = this.#slotCount * this.#slotBytes
    this.#slots = arena.take(bytes + countMax * this.#keyBytes)
    const keys = this.#slots + bytes
    // Writes to shared memory are not vectorised, so the widest type is fastest.
    memory.i64.fill(0n, this.#slots >>> 3, keys >>> 3)
    return keys
  }

  /** Makes room for more keys, or for the string of the entry. */
  #grow(entry: number): void {
    const { memory, arena } = this.#context
    const word = this.#table >>> 2
    if (this.count < memory.u32[word + 3]!) {
      const bytes = memory.i32[(entry >>> 2) + 1]!
      this.#heapBytes = Math.max(bytes + 16, Math.min(this.#heapBytes * 2, 4 * 1024 * 1024))
      const heap = arena.take(this.#heapBytes)
      memory.u32[word + 5] = heap
      memory.u32[word + 6] = heap + this.#heapBytes
      return
    }
    const roomyCount = this.#slotCount * (this.#slotCount < slotsLarge ? 4 : 2)
    const roomy = roomyCount * (this.#slotBytes + this.#keyBytes / 2) <= arena.leftForTable
    const slotCount = roomy ? roomyCount : this.#slotCount * 2
    const countMax = roomy ? slotCount / 2 : (slotCount / 4) * 3
    const [oldSlots, oldKeys] = [this.#slots, memory.u32[word + 4]!]
    this.#slotCount = slotCount
    const keys = this.#newSlots(countMax)
    memory.u8.copyWithin(keys, oldKeys, oldKeys + this.count * this.#keyBytes)
    arena.give(oldSlots)
    memory.u32[word] = this.#slots
    memory.u32[word + 1] = this.#slotCount - 1
    memory.u32[word + 3] = countMax
    memory.u32[word + 4] = keys
    this.#context.kernels.aggregate.rehashKeys(this.#table, this.#width)
  }
}
