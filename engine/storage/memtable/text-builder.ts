// Builds columns of strings, BINARY, arrays and symbols (dictionary-encoded strings) from values that are appended one
// by one, for a batch of rows that is sent to the writer. In a SYMBOL column each distinct string is stored once per
// batch, and the rows contain its number within the batch.

import { isUtf8 } from 'node:buffer'
import { assert } from '../../base/assert.js'
import type { ColumnRun, RowWindow } from '../../pg/row-window.js'
import type { PackedColumn } from '../jobs/messages.js'
import { ownedColumn } from './owned-column.js'

const bytesFirst = 1024
const rowsFirst = 64

/** A growing byte buffer. */
class ByteRun {
  bytes: Buffer = Buffer.allocUnsafe(bytesFirst)
  length = 0

  /** Appends bytes; returns the offset of the first one. */
  put(source: Uint8Array, start: number, end: number): number {
    const count = end - start
    if (this.length + count > this.bytes.length) this.#grow(count)
    const at = this.length
    const { bytes } = this
    if (count > 32) bytes.set(source.subarray(start, end), at)
    else for (let index = 0; index < count; index++) bytes[at + index] = source[start + index]!
    this.length += count
    return at
  }

  #grow(count: number): void {
    const grown = Buffer.allocUnsafe(Math.max(this.length + count, this.bytes.length * 2))
    this.bytes.copy(grown, 0, 0, this.length)
    this.bytes = grown
  }
}

/** Whether the bytes are valid UTF-8 without a zero byte. */
export function isText(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte === 0) return false
    if (byte >= 0x80) return isUtf8(bytes.subarray(start, end)) && !hasZero(bytes, at, end)
  }
  return true
}

function hasZero(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === 0) return true
  return false
}

export class TextBuilder {
  rows = 0
  #lengths: Int32Array = new Int32Array(rowsFirst)
  readonly #run = new ByteRun()

  get bytes(): number {
    return this.#run.length + this.rows * 4
  }

  /** Appends the rows of a run up to the first value that the kernel does not convert; returns their number. */
  appendRun(window: RowWindow, run: ColumnRun): number {
    const { lengths, bytes } = window.strings(run)
    while (this.rows + lengths.length > this.#lengths.length) this.#lengths = grown(this.#lengths)
    this.#lengths.set(lengths, this.rows)
    this.rows += lengths.length
    this.#run.put(bytes, 0, bytes.length)
    return lengths.length
  }

  /** Length -1: NULL. */
  append(source: Uint8Array, start: number, end: number): void {
    this.#run.put(source, start, end)
    this.#length(end - start)
  }

  appendNull(): void {
    this.#length(-1)
  }

  truncate(rows: number): void {
    for (; this.rows > rows; this.rows--) this.#run.length -= Math.max(0, this.#lengths[this.rows - 1]!)
    assert(this.#run.length >= 0, 'R3: lengths of strings add up to their bytes')
  }

  reset(): void {
    this.rows = 0
    this.#run.length = 0
  }

  packed(): PackedColumn {
    return ownedColumn(this.borrowed())
  }

  /** Like `packed`, but the memory is valid only until the next row. */
  borrowed(): PackedColumn {
    const { bytes, length } = this.#run
    return { kind: 'strings', lengths: this.#lengths.subarray(0, this.rows), bytes: bytes.subarray(0, length) }
  }

  #length(length: number): void {
    if (this.rows === this.#lengths.length) this.#lengths = grown(this.#lengths)
    this.#lengths[this.rows++] = length
  }
}

/** A dictionary-encoded column: each distinct string once, and its index for each row. */
export class SymbolBuilder {
  rows = 0
  #ids: Int32Array = new Int32Array(rowsFirst)
  /** The strings, each preceded by its length u32. */
  readonly #run = new ByteRun()
  /** Offset of each string, after its length. */
  #starts: Int32Array = new Int32Array(rowsFirst)
  #count = 0
  /** Hash table of string index + 1. */
  #slots = new Int32Array(256)

  get bytes(): number {
    return this.#run.length + this.rows * 4
  }

  append(source: Uint8Array, start: number, end: number): void {
    this.#id(this.#intern(source, start, end))
  }

  /** Appends the rows of a run up to the first value that the kernel does not convert; returns their number. */
  appendRun(window: RowWindow, run: ColumnRun): number {
    const { ids, strings, count } = window.symbols(run)
    const known = new Int32Array(count)
    let read = 0
    for (let index = 0; index < count; index++) {
      const end = read + 4 + strings.readUInt32LE(read)
      known[index] = this.#intern(strings, read + 4, end)
      read = end
    }
    assert(read === strings.length, 'R3: lengths of symbols add up to their bytes')
    while (this.rows + ids.length > this.#ids.length) this.#ids = grown(this.#ids)
    const target = this.#ids
    let at = this.rows
    for (let row = 0; row < ids.length; row++) {
      const id = ids[row]!
      target[at++] = id < 0 ? -1 : known[id]!
    }
    this.rows = at
    return ids.length
  }

  appendNull(): void {
    this.#id(-1)
  }

  /** Strings that no row uses any more remain, and will be added to the table's dictionary, which is harmless. */
  truncate(rows: number): void {
    this.rows = Math.min(this.rows, rows)
  }

  reset(): void {
    this.rows = 0
    this.#run.length = 0
    if (this.#count > 0) this.#slots.fill(0)
    this.#count = 0
  }

  packed(): PackedColumn {
    return ownedColumn(this.borrowed())
  }

  /** Like `packed`, but the memory is valid only until the next row. */
  borrowed(): PackedColumn {
    const { bytes, length } = this.#run
    const strings = bytes.subarray(0, length)
    return { kind: 'symbols', ids: this.#ids.subarray(0, this.rows), strings, count: this.#count }
  }

  #id(id: number): void {
    if (this.rows === this.#ids.length) this.#ids = grown(this.#ids)
    this.#ids[this.rows++] = id
  }

  #intern(source: Uint8Array, start: number, end: number): number {
    const mask = this.#slots.length - 1
    let slot = hashOf(source, start, end) & mask
    for (;;) {
      const id = this.#slots[slot]! - 1
      if (id < 0) break
      if (this.#equals(id, source, start, end)) return id
      slot = (slot + 1) & mask
    }
    const id = this.#add(source, start, end)
    this.#slots[slot] = id + 1
    if (this.#count * 2 > mask) this.#rehash()
    return id
  }

  #add(source: Uint8Array, start: number, end: number): number {
    if (this.#count === this.#starts.length) this.#starts = grown(this.#starts)
    const length = Buffer.allocUnsafe(4)
    length.writeUInt32LE(end - start)
    this.#run.put(length, 0, 4)
    this.#starts[this.#count] = this.#run.put(source, start, end)
    return this.#count++
  }

  #lengthOf(id: number): number {
    return this.#run.bytes.readUInt32LE(this.#starts[id]! - 4)
  }

  #equals(id: number, source: Uint8Array, start: number, end: number): boolean {
    if (this.#lengthOf(id) !== end - start) return false
    const { bytes } = this.#run
    const first = this.#starts[id]!
    for (let at = start; at < end; at++) if (bytes[first + at - start] !== source[at]) return false
    return true
  }

  #rehash(): void {
    this.#slots = new Int32Array(this.#slots.length * 4)
    const mask = this.#slots.length - 1
    for (let id = 0; id < this.#count; id++) {
      const first = this.#starts[id]!
      let slot = hashOf(this.#run.bytes, first, first + this.#lengthOf(id)) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = id + 1
    }
  }
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  return hash ^ (hash >>> 15)
}

function grown(values: Int32Array): Int32Array {
  const larger = new Int32Array(values.length * 2)
  larger.set(values)
  return larger
}
