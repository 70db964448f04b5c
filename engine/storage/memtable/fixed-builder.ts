// Builds a column of a fixed-width type from values that are appended one by one, for a batch of rows that is sent to
// the writer. The result has the layout of a memtable column, so the writer only copies it. 64-bit values are written
// as two 32-bit halves if they are exact as JavaScript numbers (below 2^53), else from a bigint.

import { assert } from '../../base/assert.js'
import type { FixedTake } from '../../kernels/rows.js'
import type { ColumnRun, RowWindow } from '../../pg/row-window.js'
import { type DataType, storageOf, widthOf } from '../../types/column-types.js'
import type { PackedColumn } from '../jobs/messages.js'
import { ownedColumn } from './owned-column.js'

const rowsFirst = 64
const twoTo32 = 2 ** 32

export class FixedBuilder {
  rows = 0
  readonly width: number
  readonly #type: DataType
  readonly #storage: ReturnType<typeof storageOf>
  #capacity = rowsFirst
  #u8: Uint8Array
  #i16: Int16Array
  #i32: Int32Array
  #f32: Float32Array
  #f64: Float64Array
  #i64: BigInt64Array

  constructor(type: DataType) {
    this.#type = type
    this.#storage = storageOf(type)
    this.width = widthOf(type)
    const buffer = new ArrayBuffer(rowsFirst * this.width)
    this.#u8 = new Uint8Array(buffer)
    this.#i16 = new Int16Array(buffer, 0, buffer.byteLength >> 1)
    this.#i32 = new Int32Array(buffer, 0, buffer.byteLength >> 2)
    this.#f32 = new Float32Array(buffer, 0, buffer.byteLength >> 2)
    this.#f64 = new Float64Array(buffer, 0, buffer.byteLength >> 3)
    this.#i64 = new BigInt64Array(buffer, 0, buffer.byteLength >> 3)
  }

  get bytes(): number {
    return this.rows * this.width
  }

  /**
   * Appends the rows of a run up to the first value that the kernel does not convert; returns their number. `required`:
   * NULL is such a value.
   */
  appendRun(window: RowWindow, run: ColumnRun, take: FixedTake, required: boolean): number {
    const values = window.fixed(take, run, required ? null : this.#missingBytes())
    const rows = values.length / this.width
    assert(Number.isInteger(rows), 'R1: a run holds whole values')
    while (this.rows + rows > this.#capacity) this.#grow()
    this.#u8.set(values, this.bytes)
    this.rows += rows
    return rows
  }

  #missingBytes(): Uint8Array {
    this.missing()
    this.rows--
    return this.#u8.subarray(this.bytes, this.bytes + this.width)
  }

  /** Appends a floating-point number or an integer below 2^53. */
  number(value: number): void {
    const row = this.#next()
    switch (this.#storage) {
      case 'f64':
        this.#f64[row] = value
        return
      case 'f32':
        this.#f32[row] = value
        return
      case 'i32':
        this.#i32[row] = value
        return
      case 'i16':
      case 'u16':
        this.#i16[row] = value
        return
      case 'i8':
        this.#u8[row] = value
        return
      default:
        this.#i32[row * 2] = value | 0
        // `| 0` wraps a large number modulo 2^32, as two's complement requires.
        this.#i32[row * 2 + 1] = Math.floor(value / twoTo32)
    }
  }

  /** Appends a 64-bit integer as two halves. */
  halves(low: number, high: number): void {
    const row = this.#next()
    this.#i32[row * 2] = low
    this.#i32[row * 2 + 1] = high
  }

  /** Appends an integer in two's complement, for types of any width. */
  integer(value: bigint): void {
    if (this.width < 8) {
      this.number(Number(value))
      return
    }
    const row = this.#next()
    const words = this.width >> 3
    for (let word = 0; word < words; word++) {
      this.#i64[row * words + word] = BigInt.asIntN(64, value >> BigInt(word * 64))
    }
  }

  /** Appends NULL, or the type's value in its place. */
  missing(): void {
    switch (this.#type.name) {
      case 'BOOLEAN':
      case 'BYTE':
      case 'SHORT':
      case 'CHAR':
      case 'IPv4':
        this.number(0)
        return
      case 'INT':
        this.number(-(2 ** 31))
        return
      case 'FLOAT':
      case 'DOUBLE':
        this.number(Number.NaN)
        return
      case 'GEOHASH':
        this.integer(-1n)
        return
      case 'UUID':
        this.integer((1n << 127n) | (1n << 63n))
        return
      case 'LONG256':
        this.integer([63n, 127n, 191n, 255n].reduce((sum, bit) => sum | (1n << bit), 0n))
        return
      default:
        this.integer(-(1n << BigInt(this.width * 8 - 1)))
    }
  }

  truncate(rows: number): void {
    this.rows = Math.min(this.rows, rows)
  }

  packed(): PackedColumn {
    return ownedColumn(this.borrowed())
  }

  /** Like `packed`, but the memory is valid only until the next row. */
  borrowed(): PackedColumn {
    return { kind: 'fixed', bytes: this.#u8.subarray(0, this.rows * this.width) }
  }

  #next(): number {
    if (this.rows === this.#capacity) this.#grow()
    return this.rows++
  }

  #grow(): void {
    this.#capacity *= 2
    const buffer = new ArrayBuffer(this.#capacity * this.width)
    new Uint8Array(buffer).set(this.#u8)
    this.#u8 = new Uint8Array(buffer)
    this.#i16 = new Int16Array(buffer, 0, buffer.byteLength >> 1)
    this.#i32 = new Int32Array(buffer, 0, buffer.byteLength >> 2)
    this.#f32 = new Float32Array(buffer, 0, buffer.byteLength >> 2)
    this.#f64 = new Float64Array(buffer, 0, buffer.byteLength >> 3)
    this.#i64 = new BigInt64Array(buffer, 0, buffer.byteLength >> 3)
  }
}
