// Builds columns in the engine's format from the values of a dump, one builder for each column of a table. A builder
// holds the values of one batch of rows. append() returns false when a value does not fit the column's type; the caller
// then removes the values of the incomplete row by undo() on the builders that it has already filled.

import { isUtf8 } from 'node:buffer'
import type { PackedColumn } from '../../engine/engine.js'
import { type ColumnType, type DataType, typeText } from '../../engine/types/column-types.js'
import { valueKinds } from './row-scan.js'
import { microsOfNumber, microsOfText, type TimeUnit, unitOf } from './times.js'

export interface ColumnBuilder {
  append(bytes: Buffer, kind: number, begin: number, end: number): boolean
  undo(): void
  /** Bytes of variable-length data. */
  readonly heapBytes: number
  /** Transfers ownership of the values and starts anew. */
  take(rows: number): PackedColumn
}

export const batchRows = 16_384

const makers: Partial<Record<ColumnType, (type: DataType, unit: TimeUnit | null) => ColumnBuilder>> = {
  BOOLEAN: () => new FixedBuilder(1, storeBoolean),
  BYTE: () =>
    new FixedBuilder(
      1,
      integerStore((view, at, value) => view.setInt8(at, value), -128, 127),
    ),
  SHORT: () =>
    new FixedBuilder(
      2,
      integerStore((view, at, value) => view.setInt16(at, value, true), -32_768, 32_767),
    ),
  INT: () =>
    new FixedBuilder(
      4,
      nullable(storeInt, (view, at) => view.setInt32(at, -(2 ** 31), true)),
    ),
  LONG: () => new FixedBuilder(8, nullable(storeLong, nullLong)),
  FLOAT: () =>
    new FixedBuilder(
      4,
      nullable(storeFloat, (view, at) => view.setFloat32(at, Number.NaN, true)),
    ),
  DOUBLE: () =>
    new FixedBuilder(
      8,
      nullable(storeDouble, (view, at) => view.setFloat64(at, Number.NaN, true)),
    ),
  TIMESTAMP: (_, unit) => new FixedBuilder(8, nullable(timeStore(unit, 1), nullLong)),
  TIMESTAMP_NS: (_, unit) => new FixedBuilder(8, nullable(timeStore(unit, 1000), nullLong)),
  DATE: (_, unit) => new FixedBuilder(8, nullable(timeStore(unit, 0.001), nullLong)),
  STRING: () => new TextBuilder(false),
  VARCHAR: () => new TextBuilder(false),
  BINARY: () => new TextBuilder(true),
  SYMBOL: () => new SymbolBuilder(),
}

/** Undefined for types that no SQLite value converts to. */
export function columnBuilder(type: DataType, unit: TimeUnit | null): ColumnBuilder | undefined {
  return makers[type.name]?.(type, unit)
}

export function takesType(type: DataType): boolean {
  return makers[type.name] !== undefined
}

/** Message for a value that does not fit. */
export function misfit(
  bytes: Buffer,
  kind: number,
  begin: number,
  end: number,
  column: string,
  type: DataType,
): string {
  if (kind === valueKinds.null) return `NULL in the ${typeText(type)} column ${column}`
  const text = bytes.toString('utf8', begin, Math.min(end, begin + 60))
  const shown = kind === valueKinds.blob ? `X'${text}'` : text
  return `no ${typeText(type)} for the column ${column} [value=${shown}${end - begin > 60 ? '..' : ''}]`
}

type Store = (view: DataView, at: number, bytes: Buffer, kind: number, begin: number, end: number) => boolean

class FixedBuilder implements ColumnBuilder {
  readonly heapBytes = 0
  private readonly width: number
  private readonly store: Store
  private view: DataView
  private row = 0

  constructor(width: number, store: Store) {
    this.width = width
    this.store = store
    this.view = new DataView(new ArrayBuffer(batchRows * width))
  }

  append(bytes: Buffer, kind: number, begin: number, end: number): boolean {
    if (!this.store(this.view, this.row * this.width, bytes, kind, begin, end)) return false
    this.row++
    return true
  }

  undo(): void {
    this.row--
  }

  take(rows: number): PackedColumn {
    const bytes = new Uint8Array(this.view.buffer, 0, rows * this.width)
    this.view = new DataView(new ArrayBuffer(batchRows * this.width))
    this.row = 0
    return { kind: 'fixed', bytes }
  }
}

function nullable(store: Store, putNull: (view: DataView, at: number) => void): Store {
  return (view, at, bytes, kind, begin, end) => {
    if (kind !== valueKinds.null) return store(view, at, bytes, kind, begin, end)
    putNull(view, at)
    return true
  }
}

function nullLong(view: DataView, at: number): void {
  view.setInt32(at, 0, true)
  view.setInt32(at + 4, -(2 ** 31), true)
}

function storeBoolean(view: DataView, at: number, bytes: Buffer, kind: number, begin: number, end: number): boolean {
  const text = bytes.toString('latin1', begin, end).toLowerCase()
  const yes = text === '1' || text === '1.0' || text === 'true' || text === 't'
  if (kind === valueKinds.null || (!yes && !/^(0|0\.0|false|f)$/.test(text))) return false
  view.setUint8(at, yes ? 1 : 0)
  return true
}

/** Parses an integer of at most 15 digits; NaN for anything else. */
function smallInteger(bytes: Buffer, begin: number, end: number): number {
  let at = begin
  const negative = bytes[at] === 0x2d
  if (negative || bytes[at] === 0x2b) at++
  if (at === end || end - at > 15) return Number.NaN
  let value = 0
  for (; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return negative ? -value : value
}

function integerOf(bytes: Buffer, kind: number, begin: number, end: number): number {
  const value = smallInteger(bytes, begin, end)
  if (!Number.isNaN(value) || kind !== valueKinds.real) return value
  const number = Number(bytes.toString('latin1', begin, end))
  return Number.isSafeInteger(number) ? number : Number.NaN
}

function integerStore(put: (view: DataView, at: number, value: number) => void, least: number, most: number): Store {
  return (view, at, bytes, kind, begin, end) => {
    const value = kind === valueKinds.null || kind === valueKinds.blob ? Number.NaN : integerOf(bytes, kind, begin, end)
    if (!(value >= least && value <= most)) return false
    put(view, at, value)
    return true
  }
}

function storeInt(view: DataView, at: number, bytes: Buffer, kind: number, begin: number, end: number): boolean {
  const value = kind === valueKinds.blob ? Number.NaN : integerOf(bytes, kind, begin, end)
  if (!(value > -(2 ** 31) && value < 2 ** 31)) return false
  view.setInt32(at, value, true)
  return true
}

const longMin = -(2n ** 63n)
const longMax = 2n ** 63n - 1n

/** The smallest LONG represents NULL. */
function storeLong(view: DataView, at: number, bytes: Buffer, kind: number, begin: number, end: number): boolean {
  if (kind === valueKinds.blob) return false
  const value = integerOf(bytes, kind, begin, end)
  if (!Number.isNaN(value)) {
    putLong(view, at, value)
    return true
  }
  const text = bytes.toString('latin1', begin, end)
  if (kind === valueKinds.real || !/^[+-]?\d{1,19}$/.test(text)) return false
  const big = BigInt(text.replace('+', ''))
  if (big <= longMin || big > longMax) return false
  view.setBigInt64(at, big, true)
  return true
}

/** Stores a whole number below 2^53 as 64 bits. */
function putLong(view: DataView, at: number, value: number): void {
  view.setInt32(at, (value % 2 ** 32) | 0, true)
  view.setInt32(at + 4, Math.floor(value / 2 ** 32), true)
}

const tens = Float64Array.from({ length: 23 }, (_, power) => 10 ** power)

/** Exact: a mantissa below 2^53 and a power of ten up to 22 need one rounding; anything else uses Number(). */
function doubleOf(bytes: Buffer, begin: number, end: number): number {
  let at = begin
  const negative = bytes[at] === 0x2d
  if (negative || bytes[at] === 0x2b) at++
  let mantissa = 0
  let digits = 0
  let scale = -1
  for (; at < end; at++) {
    const byte = bytes[at]!
    if (byte === 0x2e && scale < 0) {
      scale = 0
      continue
    }
    const digit = byte - 0x30
    if (digit < 0 || digit > 9) return slowDouble(bytes, begin, end)
    mantissa = mantissa * 10 + digit
    if (mantissa > 0) digits++
    if (scale >= 0) scale++
  }
  if (digits > 15 || scale > 22 || end - begin === (negative ? 1 : 0)) return slowDouble(bytes, begin, end)
  const value = scale > 0 ? mantissa / tens[scale]! : mantissa
  return negative ? -value : value
}

function slowDouble(bytes: Buffer, begin: number, end: number): number {
  const text = bytes.toString('latin1', begin, end).trim()
  return text === '' || !/^[-+.\deE]+$/.test(text) ? Number.NaN : Number(text)
}

function storeDouble(view: DataView, at: number, bytes: Buffer, kind: number, begin: number, end: number): boolean {
  if (kind === valueKinds.blob) return false
  const value = doubleOf(bytes, begin, end)
  if (Number.isNaN(value)) return false
  view.setFloat64(at, value, true)
  return true
}

function storeFloat(view: DataView, at: number, bytes: Buffer, kind: number, begin: number, end: number): boolean {
  if (kind === valueKinds.blob) return false
  const value = doubleOf(bytes, begin, end)
  if (Number.isNaN(value)) return false
  view.setFloat32(at, value, true)
  return true
}

/** The column's ticks are microseconds times `factor`. */
function timeStore(unit: TimeUnit | null, factor: number): Store {
  return (view, at, bytes, kind, begin, end) => {
    if (kind === valueKinds.blob) return false
    const isNumber = kind === valueKinds.integer || kind === valueKinds.real
    const micros = isNumber ? numberMicros(bytes, begin, end, unit) : microsOfText(bytes, begin, end)
    if (Number.isNaN(micros) || Math.abs(micros) > Number.MAX_SAFE_INTEGER) return false
    if (factor <= 1) putLong(view, at, factor === 1 ? micros : Math.floor(micros / 1000))
    else view.setBigInt64(at, BigInt(micros) * 1000n, true)
    return true
  }
}

function numberMicros(bytes: Buffer, begin: number, end: number, unit: TimeUnit | null): number {
  const value = doubleOf(bytes, begin, end)
  return microsOfNumber(value, unit ?? unitOf(Math.abs(value)))
}

/** An append-only byte buffer that grows by doubling. */
class Heap {
  bytes = Buffer.allocUnsafeSlow(64 * 1024)
  used = 0

  room(count: number): void {
    if (this.used + count <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.used + count))
    this.bytes.copy(larger, 0, 0, this.used)
    this.bytes = larger
  }

  /** Copies a string, reducing doubled quotes. */
  put(source: Buffer, kind: number, begin: number, end: number): void {
    this.room(end - begin)
    const { bytes } = this
    let to = this.used
    if (kind !== valueKinds.quotedText && end - begin > 32) to += source.copy(bytes, to, begin, end)
    else {
      for (let at = begin; at < end; at++) {
        const byte = source[at]!
        bytes[to++] = byte
        if (byte === 0x27 && kind === valueKinds.quotedText) at++
      }
    }
    this.used = to
  }

  /** Returns false when the bytes are not pairs of hexadecimal digits. */
  putHex(source: Buffer, begin: number, end: number): boolean {
    this.room((end - begin) / 2)
    let wrong = (end - begin) % 2
    for (let at = begin; at < end - wrong; at += 2) {
      const high = nibbles[source[at]!]!
      const low = nibbles[source[at + 1]!]!
      this.bytes[this.used++] = (high << 4) | low
      if ((high | low) > 15) wrong = end - at
    }
    return wrong === 0
  }
}

/** 255 for a byte that is not a hexadecimal digit. */
const nibbles = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase())
  return digit < 0 ? 255 : digit
})

class TextBuilder implements ColumnBuilder {
  private readonly binary: boolean
  private readonly heap = new Heap()
  private lengths = new Int32Array(batchRows)
  private row = 0

  constructor(binary: boolean) {
    this.binary = binary
  }

  get heapBytes(): number {
    return this.heap.used
  }

  append(bytes: Buffer, kind: number, begin: number, end: number): boolean {
    const { heap } = this
    const before = heap.used
    if (kind === valueKinds.null) {
      this.lengths[this.row++] = -1
      return true
    }
    if (kind === valueKinds.blob) {
      if (!this.binary) return false
      if (!heap.putHex(bytes, begin, end)) {
        heap.used = before
        return false
      }
    } else {
      heap.put(bytes, kind, begin, end)
      if (!this.binary && !isText(heap.bytes, before, heap.used)) {
        heap.used = before
        return false
      }
    }
    this.lengths[this.row++] = heap.used - before
    return true
  }

  undo(): void {
    this.row--
    this.heap.used -= Math.max(0, this.lengths[this.row]!)
  }

  take(rows: number): PackedColumn {
    const column = {
      kind: 'strings',
      lengths: this.lengths.subarray(0, rows),
      bytes: this.heap.bytes.subarray(0, this.heap.used),
    } as const
    this.lengths = new Int32Array(batchRows)
    this.heap.bytes = Buffer.allocUnsafeSlow(Math.max(64 * 1024, this.heap.used))
    this.heap.used = 0
    this.row = 0
    return column
  }
}

/** Whether the bytes are valid UTF-8; ASCII is recognised without decoding. */
function isText(bytes: Buffer, begin: number, end: number): boolean {
  let high = 0
  for (let at = begin; at < end; at++) high |= bytes[at]!
  return high < 0x80 || isUtf8(bytes.subarray(begin, end))
}

class SymbolBuilder implements ColumnBuilder {
  private ids = new Int32Array(batchRows)
  private row = 0
  private readonly known = new Map<string, number>()
  private readonly heap = new Heap()

  get heapBytes(): number {
    return this.heap.used
  }

  append(bytes: Buffer, kind: number, begin: number, end: number): boolean {
    if (kind === valueKinds.blob) return false
    this.ids[this.row] = -1
    if (kind !== valueKinds.null) {
      const key = bytes.toString('latin1', begin, end)
      const id = this.known.get(key) ?? this.intern(key, bytes, kind, begin, end)
      if (id < 0) return false
      this.ids[this.row] = id
    }
    this.row++
    return true
  }

  private intern(key: string, bytes: Buffer, kind: number, begin: number, end: number): number {
    const { heap } = this
    const at = heap.used
    heap.room(4)
    heap.used += 4
    heap.put(bytes, kind, begin, end)
    if (!isText(heap.bytes, at + 4, heap.used)) {
      heap.used = at
      return -1
    }
    heap.bytes.writeUInt32LE(heap.used - at - 4, at)
    const id = this.known.size
    this.known.set(key, id)
    return id
  }

  undo(): void {
    this.row--
  }

  take(rows: number): PackedColumn {
    const strings = this.heap.bytes.subarray(0, this.heap.used)
    const column = { kind: 'symbols', ids: this.ids.subarray(0, rows), strings, count: this.known.size } as const
    this.ids = new Int32Array(batchRows)
    this.known.clear()
    this.heap.bytes = Buffer.allocUnsafeSlow(64 * 1024)
    this.heap.used = 0
    this.row = 0
    return column
  }
}
