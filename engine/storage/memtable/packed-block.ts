// Serialises batches of rows, column by column, into one block of shared memory, and reads such blocks. The main thread
// fills a block to pass rows to the writer thread. As a message the batches would be copied by structured clone, which
// takes longer than the writer's work on the rows.
//
// Layout, little-endian u32; bytes begin at multiples of 8:
//
//   block    batches | batch*
//   batch    rows | columns | column*
//   column   column id | type tag u8, type parameters a u8 and b u8 (types/column-types.ts) |
//            kind (0 fixed width, 1 strings, 2 symbols) | distinct symbols |
//            first bytes | second bytes | first | second
//            first and second are   fixed: values, nothing   strings: lengths, bytes   symbols: ids, strings
//
// Owner: the main thread writes a block. The writer reads it until it responds; then the block returns to the pool.

import { assert } from '../../base/assert.js'
import { columnTypes, dataType, typeByTag } from '../../types/column-types.js'
import type { PackedColumn, PackedRows } from '../jobs/messages.js'

const columnWords = 6
const kinds = ['fixed', 'strings', 'symbols'] as const
const noBytes = new Uint8Array(0)

const aligned = (bytes: number): number => (bytes + 7) & ~7

/** The two byte ranges that follow the words of a column. */
function partsOf(values: PackedColumn): readonly [first: Uint8Array, second: Uint8Array] {
  if (values.kind === 'fixed') return [values.bytes, noBytes]
  if (values.kind === 'strings') return [bytesOf(values.lengths), values.bytes]
  return [bytesOf(values.ids), values.strings]
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** Size of a block with these batches. */
export function blockBytes(batches: readonly PackedRows[]): number {
  let bytes = 8
  for (const { columns } of batches) {
    bytes += 8
    for (const { values } of columns) {
      const [first, second] = partsOf(values)
      bytes += columnWords * 4 + aligned(first.length) + aligned(second.length)
    }
  }
  return bytes
}

/** Serialises the batches to the beginning of the buffer. */
export function writeBlock(buffer: SharedArrayBuffer, batches: readonly PackedRows[]): void {
  const words = new Uint32Array(buffer)
  const bytes = new Uint8Array(buffer)
  words[0] = batches.length
  let at = 2
  for (const { rows, columns } of batches) {
    words[at] = rows
    words[at + 1] = columns.length
    at += 2
    for (const { columnId, type, values } of columns) {
      const [first, second] = partsOf(values)
      words[at] = columnId
      words[at + 1] = columnTypes[type.name].tag | (type.a << 8) | (type.b << 16)
      words[at + 2] = kinds.indexOf(values.kind)
      words[at + 3] = values.kind === 'symbols' ? values.count : 0
      words[at + 4] = first.length
      words[at + 5] = second.length
      at += columnWords
      bytes.set(first, at * 4)
      at += aligned(first.length) >>> 2
      bytes.set(second, at * 4)
      at += aligned(second.length) >>> 2
    }
  }
  assert(at * 4 <= buffer.byteLength, 'A1: a block holds its batches')
}

/** Deserialises a block; the columns are views of it. */
export function readBlock(buffer: SharedArrayBuffer): PackedRows[] {
  const words = new Uint32Array(buffer)
  const batches: PackedRows[] = []
  let at = 2
  for (let left = words[0]!; left > 0; left--) {
    const rows = words[at]!
    const columns: PackedRows['columns'][number][] = []
    let more = words[at + 1]!
    at += 2
    for (; more > 0; more--) {
      const type = words[at + 1]!
      const name = typeByTag(type & 255)
      assert(name !== undefined, 'R1: a column of a block has a type')
      const from = (at + columnWords) * 4
      const second = from + aligned(words[at + 4]!)
      columns.push({
        columnId: words[at]!,
        type: dataType(name, (type >>> 8) & 255, (type >>> 16) & 255),
        values: valuesAt(buffer, words.subarray(at, at + columnWords), from, second),
      })
      at = (second + aligned(words[at + 5]!)) >>> 2
      assert(at * 4 <= buffer.byteLength, 'A1: a block holds its batches')
    }
    batches.push({ rows, columns })
  }
  return batches
}

function valuesAt(buffer: SharedArrayBuffer, words: Uint32Array, first: number, second: number): PackedColumn {
  const [, , kind = 0, count = 0, firstBytes = 0, secondBytes = 0] = words
  if (kind === 0) return { kind: 'fixed', bytes: new Uint8Array(buffer, first, firstBytes) }
  const numbers = new Int32Array(buffer, first, firstBytes >>> 2)
  const strings = new Uint8Array(buffer, second, secondBytes)
  if (kind === 1) return { kind: 'strings', lengths: numbers, bytes: strings }
  return { kind: 'symbols', ids: numbers, strings, count }
}

const pooledBytes = 256 * 1024
const pooledMax = 8

/** A pool of shared buffers for blocks. */
export class BlockPool {
  readonly #free: SharedArrayBuffer[] = []

  take(bytes: number): SharedArrayBuffer {
    if (bytes > pooledBytes) return new SharedArrayBuffer(aligned(bytes))
    return this.#free.pop() ?? new SharedArrayBuffer(pooledBytes)
  }

  /** Returns a buffer that is no longer read. */
  give(buffer: SharedArrayBuffer): void {
    if (buffer.byteLength === pooledBytes && this.#free.length < pooledMax) this.#free.push(buffer)
  }
}
