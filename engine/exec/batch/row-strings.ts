// RowStrings: serialises the key columns of a row to one byte string, by which a single hash table groups them. GROUP
// BY uses it for more than 48 key columns (group-keys.ts). With fewer columns, each column has a hash table of its own;
// with more, these tables would take more memory than the rows. Two rows have equal strings if and only if their keys
// are equal.
//
//   string   for each column in turn: its bytes (DOUBLE and FLOAT normalised to one zero and one NaN), the code of a
//            symbol as u32, or the length of a string as i32 (-1 for NULL) and its bytes

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, storageOf, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { type Coder, keyCoder, plainDoubles } from './key-codes.js'
import type { KeyTable } from './key-table.js'
import { batchRowsMax, type Vector } from './vector.js'

/** Strings are built for this many bytes at a time, or for one row if it is longer. */
const textBytesMax = 1024 * 1024
const entryBytes = 8
const lengthBytes = 4

export class RowStrings {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #coders: readonly (Coder | null)[]
  /** Bytes of a row without the contents of its string columns. */
  readonly #fixedBytes: number
  readonly #entries: number
  #strings = 0
  #textBytes = 0

  constructor(context: ExecContext, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.#coders = types.map((type) =>
      type.name === 'SYMBOL' || storageOf(type) === 'f32' ? keyCoder(context, type) : null,
    )
    this.#fixedBytes = types.reduce((sum, type) => sum + (isText(type) ? lengthBytes : widthOf(type)), 0)
    this.#entries = context.arena.take(batchRowsMax * entryBytes)
  }

  /** Writes the group id of each row to `ids` (u32), like KeyTable.number. */
  number(table: KeyTable, keys: readonly Vector[], rows: number, mask: number, ids: number): void {
    for (let from = 0; from < rows; ) {
      const count = this.#write(keys, from, rows)
      table.number(this.#entries, mask === 0 ? 0 : mask + from, count, ids + from * 4)
      from += count
    }
  }

  /** Serialises rows from `from` on until the buffer is full; returns how many. */
  #write(keys: readonly Vector[], from: number, rows: number): number {
    const { memory } = this.#context
    const { u32, i32 } = memory
    const strings = keys.filter((_, column) => isText(this.#types[column] as DataType))
    const first = this.#entries >>> 2
    let [bytes, count] = [0, 0]
    for (; from + count < rows; count++) {
      let length = this.#fixedBytes
      for (const { address } of strings) length += Math.max(0, i32[(address >>> 2) + (from + count) * 2 + 1]!)
      if (count > 0 && bytes + length > textBytesMax) break
      u32[first + count * 2] = bytes
      // Serves as the write offset until the row is complete.
      i32[first + count * 2 + 1] = 0
      bytes += length
    }
    const base = this.#room(bytes)
    for (let row = 0; row < count; row++) u32[first + row * 2] = u32[first + row * 2]! + base
    for (const [column, vector] of keys.entries()) this.#writeColumn(column, vector, from, count)
    return count
  }

  #writeColumn(column: number, vector: Vector, from: number, count: number): void {
    const type = this.#types[column] as DataType
    const { memory, arena } = this.#context
    if (isText(type)) {
      appendStrings(memory, this.#entries, vector.address + from * 8, count)
      return
    }
    const width = widthOf(type)
    const part = { ...vector, address: vector.address + from * width }
    const coder = this.#coders[column] ?? null
    let { address } = part
    if (coder !== null) {
      address = arena.scratch()
      coder(part, 0, count, address)
    } else if (storageOf(type) === 'f64') {
      address = arena.scratch()
      plainDoubles(this.#context, part.address, count, address)
    }
    appendFixed(memory, this.#entries, address, count, width)
  }

  #room(bytes: number): number {
    if (bytes > this.#textBytes) {
      const { arena } = this.#context
      if (this.#strings !== 0) arena.give(this.#strings)
      this.#textBytes = Math.max(bytes, Math.min(textBytesMax, this.#textBytes * 2))
      this.#strings = arena.take(this.#textBytes)
    }
    return this.#strings
  }
}

function isText(type: DataType): boolean {
  return storageOf(type) === 'entry'
}

function appendFixed(
  { u8, u32, i32 }: SharedMemory,
  entries: number,
  source: number,
  count: number,
  width: number,
): void {
  for (let row = 0, word = entries >>> 2; row < count; row++, word += 2) {
    const target = u32[word]! + i32[word + 1]!
    const at = source + row * width
    for (let byte = 0; byte < width; byte++) u8[target + byte] = u8[at + byte]!
    i32[word + 1] = i32[word + 1]! + width
  }
}

function appendStrings({ u8, u32, i32 }: SharedMemory, entries: number, source: number, count: number): void {
  for (let row = 0, word = entries >>> 2; row < count; row++, word += 2) {
    const target = u32[word]! + i32[word + 1]!
    const entry = (source >>> 2) + row * 2
    const length = Math.max(-1, i32[entry + 1]!)
    for (let byte = 0; byte < lengthBytes; byte++) u8[target + byte] = (length >> (byte * 8)) & 255
    if (length > 0) {
      const text = u32[entry]!
      u8.copyWithin(target + lengthBytes, text, text + length)
    }
    i32[word + 1] = i32[word + 1]! + lengthBytes + Math.max(0, length)
  }
}
