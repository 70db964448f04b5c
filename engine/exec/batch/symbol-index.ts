// Finds the ids of symbols by their strings. A symbol dictionary in shared memory maps ids to strings only, so the
// first lookup compares the string with every entry of the dictionary. From the second lookup on, this thread builds a
// hash index of the dictionary, unless it has millions of entries. Each lookup adds a limited number of strings to the
// index, so that no single lookup has to wait for the index of a large dictionary.

import { dictionaryCount, dictionaryEntry, dictionarySerial } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'

/** The index of a dictionary is created at this lookup. */
const indexedAt = 2
/** Entries that a lookup adds to the index: less than a millisecond. */
const stepEntries = 16_384
/** Limit of the slots (4 bytes each) in all indexes of a thread; the least recently used indexes are evicted. */
const slotsMax = 4 * 1024 * 1024
/** Limit of the dictionaries whose lookups are counted. */
const dictionariesMax = 1024

interface Requested {
  /** Serial number of the dictionary, since another one may get its address later. */
  readonly serial: number
  times: number
  index: SymbolIndex | null
}

const indexes = new WeakMap<SharedMemory, Map<number, Requested>>()

/** Ascending ids in [from, to) of the entries that equal one of the strings. */
export function findSymbols(
  memory: SharedMemory,
  dictionary: number,
  from: number,
  to: number,
  strings: readonly Buffer[],
): number[] {
  const index = indexOf(memory, dictionary)
  if (index === null) return findEntries(memory, dictionary, from, to, strings)
  index.grow(to)
  const known = new Set(strings.map((text) => index.idOf(text)).filter((id) => id >= from && id < to))
  const rest = findEntries(memory, dictionary, Math.max(from, index.count), to, strings)
  return [...[...known].sort((a, b) => a - b), ...rest]
}

function indexOf(memory: SharedMemory, dictionary: number): SymbolIndex | null {
  const all = indexes.get(memory) ?? new Map<number, Requested>()
  indexes.set(memory, all)
  const serial = dictionarySerial(memory, dictionary)
  const before = all.get(dictionary)
  const requested = before?.serial === serial ? before : { serial, times: 0, index: null }
  // Reinsert the entry: the order of the map is the order of use.
  all.delete(dictionary)
  all.set(dictionary, requested)
  if (++requested.times < indexedAt) {
    if (all.size > dictionariesMax) all.delete(all.keys().next().value as number)
    return null
  }
  const count = dictionaryCount(memory, dictionary)
  if (requested.index === null || !requested.index.holds(count)) {
    requested.index = null
    const slots = slotsFor(count)
    if (slots > slotsMax) return null
    makeRoom(all, slots)
    requested.index = new SymbolIndex(memory, dictionary, slots)
  }
  return requested.index
}

/** A power of two that leaves half of the slots free, also when the dictionary has doubled. */
function slotsFor(count: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(16, count * 2 + 1)) + 0.5)
}

function makeRoom(all: ReadonlyMap<number, Requested>, slots: number): void {
  let used = slots
  for (const { index } of all.values()) used += index?.slots ?? 0
  for (const requested of all.values()) {
    if (used <= slotsMax) return
    used -= requested.index?.slots ?? 0
    requested.index = null
  }
}

class SymbolIndex {
  /** The entries with ids below this are indexed. */
  count = 0
  readonly slots: number
  readonly #memory: SharedMemory
  readonly #dictionary: number
  /** Open addressing by the hash of the string: id + 1, or 0 for a free slot. */
  readonly #ids: Int32Array

  constructor(memory: SharedMemory, dictionary: number, slots: number) {
    this.slots = slots
    this.#memory = memory
    this.#dictionary = dictionary
    this.#ids = new Int32Array(slots)
  }

  holds(count: number): boolean {
    return count * 2 <= this.slots
  }

  /** Adds the next entries, those before `to`, up to the limit for one lookup. */
  grow(to: number): void {
    const { u8, u32 } = this.#memory
    const end = Math.min(to, this.count + stepEntries)
    for (let id = this.count; id < end; id++) {
      const entry = dictionaryEntry(this.#memory, this.#dictionary, id) >>> 2
      const address = u32[entry]!
      let slot = hashOf(u8, address, u32[entry + 1]!) & (this.slots - 1)
      while (this.#ids[slot] !== 0) slot = (slot + 1) & (this.slots - 1)
      this.#ids[slot] = id + 1
    }
    this.count = Math.max(this.count, end)
  }

  /** The id of the string, or -1 when it is not indexed. */
  idOf(text: Buffer): number {
    const { u8, u32 } = this.#memory
    let slot = hashOf(text, 0, text.length) & (this.slots - 1)
    for (; this.#ids[slot] !== 0; slot = (slot + 1) & (this.slots - 1)) {
      const id = this.#ids[slot]! - 1
      const entry = dictionaryEntry(this.#memory, this.#dictionary, id) >>> 2
      if (u32[entry + 1] === text.length && sameBytes(u8, u32[entry]!, text)) return id
    }
    return -1
  }
}

/** FNV-1a, with its high bits mixed into the low ones, which choose the slot. */
function hashOf(bytes: Uint8Array, at: number, length: number): number {
  let hash = 0x811c9dc5
  for (let index = at; index < at + length; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193)
  return hash ^ (hash >>> 15)
}

/** Scans entries; length and last byte exclude most of them without a comparison. */
function findEntries(
  memory: SharedMemory,
  dictionary: number,
  from: number,
  to: number,
  strings: readonly Buffer[],
): number[] {
  const { u8, u32 } = memory
  const found: number[] = []
  if (from >= to) return found
  const mayBe = new Uint8Array(256)
  for (const text of strings) mayBe[signOf(text.length, text[text.length - 1] ?? 0)] = 1
  for (let id = from; id < to; id++) {
    const entry = dictionaryEntry(memory, dictionary, id) >>> 2
    const address = u32[entry]!
    const bytes = u32[entry + 1]!
    const sign = signOf(bytes, bytes === 0 ? 0 : u8[address + bytes - 1]!)
    if (mayBe[sign] === 1 && isOneOf(u8, address, bytes, strings)) found.push(id)
  }
  return found
}

function signOf(bytes: number, lastByte: number): number {
  return (bytes * 31 + lastByte) & 0xff
}

function isOneOf(u8: Uint8Array, address: number, bytes: number, strings: readonly Buffer[]): boolean {
  for (let at = 0; at < strings.length; at++) {
    const text = strings[at] as Buffer
    if (text.length === bytes && sameBytes(u8, address, text)) return true
  }
  return false
}

function sameBytes(u8: Uint8Array, address: number, text: Buffer): boolean {
  // Compares from the end: similar names differ in their last bytes.
  for (let at = text.length - 1; at >= 0; at--) if (u8[address + at] !== text[at]) return false
  return true
}
