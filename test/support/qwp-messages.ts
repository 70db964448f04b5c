// Encoder of QWP messages (columnar protocol over WebSocket) for tests, as clients write them, from plain values.
// Timestamps, DATE and wide integers are bigints; NULL needs the bitmap, which is written when a value is null.

import { messageFlags, type WireType, wireTypes, wireWidths } from '../../engine/qwp/message.js'

export type WireValue = null | boolean | number | bigint | string | Uint8Array | { shape: number[]; values: number[] }

export interface ColumnSpec {
  readonly name: string
  readonly type: WireType
  readonly values: readonly WireValue[]
  /** GEOHASH: bits; DECIMAL: scale. */
  readonly parameter?: number
  /** Ids of a SYMBOL column in the connection's dictionary; default: the column has its own. */
  readonly ids?: readonly number[]
}

export interface TableSpec {
  readonly name: string
  readonly columns: readonly ColumnSpec[]
}

export interface MessageSpec {
  readonly defer?: boolean
  readonly gorilla?: boolean
  readonly delta?: { readonly first: number; readonly strings: readonly string[] }
  readonly version?: number
}

class ByteWriter {
  readonly #bytes: number[] = []

  get length(): number {
    return this.#bytes.length
  }

  bytes(bytes: Iterable<number>): this {
    for (const byte of bytes) this.#bytes.push(byte)
    return this
  }

  varint(value: number): this {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) | 0x80)
    return this.bytes([rest])
  }

  /** Two's complement, little-endian. */
  integer(value: bigint | number, bytes: number): this {
    let rest = BigInt.asUintN(bytes * 8, BigInt(value))
    for (let index = 0; index < bytes; index++, rest >>= 8n) this.#bytes.push(Number(rest & 0xffn))
    return this
  }

  number(value: number, bytes: 4 | 8): this {
    const view = new DataView(new ArrayBuffer(8))
    if (bytes === 4) view.setFloat32(0, value, true)
    else view.setFloat64(0, value, true)
    return this.bytes(new Uint8Array(view.buffer, 0, bytes))
  }

  text(text: string): this {
    const bytes = new TextEncoder().encode(text)
    return this.varint(bytes.length).bytes(bytes)
  }

  bits(bits: readonly boolean[]): this {
    for (let first = 0; first < bits.length; first += 8) {
      this.#bytes.push(bits.slice(first, first + 8).reduce((byte, bit, index) => byte | (bit ? 1 << index : 0), 0))
    }
    return this
  }

  done(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }
}

export function qwpMessage(tables: readonly TableSpec[], spec: MessageSpec = {}): Uint8Array {
  const payload = new ByteWriter()
  const { delta } = spec
  if (delta !== undefined) {
    payload.varint(delta.first).varint(delta.strings.length)
    for (const text of delta.strings) payload.text(text)
  }
  for (const table of tables) writeTable(payload, table, spec)
  const flags =
    (spec.defer === true ? messageFlags.defer : 0) |
    (spec.gorilla === true ? messageFlags.gorilla : 0) |
    (delta !== undefined ? messageFlags.deltaSymbols : 0)
  const header = new ByteWriter().bytes([0x51, 0x57, 0x50, 0x31, spec.version ?? 1, flags])
  return header.integer(tables.length, 2).integer(payload.length, 4).bytes(payload.done()).done()
}

function writeTable(out: ByteWriter, { name, columns }: TableSpec, spec: MessageSpec): void {
  out.text(name)
  out.varint(columns[0]?.values.length ?? 0).varint(columns.length)
  for (const column of columns) out.text(column.name).bytes([wireTypes[column.type]])
  for (const column of columns) writeColumn(out, column, spec)
}

function writeColumn(out: ByteWriter, column: ColumnSpec, spec: MessageSpec): void {
  const { values } = column
  const nulls = values.map((value) => value === null)
  if (nulls.includes(true)) out.bytes([1]).bits(nulls)
  else out.bytes([0])
  const present = values.flatMap((value) => (value === null ? [] : [value]))
  switch (column.type) {
    case 'BOOLEAN':
      out.bits(present.map((value) => value === true))
      return
    case 'VARCHAR':
    case 'BINARY':
      writeStrings(out, present)
      return
    case 'SYMBOL':
      writeSymbols(out, column, present)
      return
    case 'TIMESTAMP':
    case 'TIMESTAMP_NANOS':
      writeTimes(out, present.map(BigInt as (value: WireValue) => bigint), spec)
      return
    case 'DOUBLE_ARRAY':
    case 'LONG_ARRAY':
      for (const value of present) writeArray(out, value, column.type === 'LONG_ARRAY')
      return
    case 'GEOHASH':
      out.varint(column.parameter ?? 60)
      break
    case 'DECIMAL64':
    case 'DECIMAL128':
    case 'DECIMAL256':
      out.bytes([column.parameter ?? 0])
      break
    default:
  }
  const width = column.type === 'GEOHASH' ? Math.ceil((column.parameter ?? 60) / 8) : (wireWidths[column.type] ?? 0)
  for (const value of present) {
    if (column.type === 'FLOAT' || column.type === 'DOUBLE') out.number(Number(value), width === 4 ? 4 : 8)
    else out.integer(typeof value === 'string' ? value.charCodeAt(0) : BigInt(value as bigint), width)
  }
}

function writeStrings(out: ByteWriter, values: readonly WireValue[]): void {
  const encoded = values.map((value) => (value instanceof Uint8Array ? value : new TextEncoder().encode(String(value))))
  let end = 0
  out.integer(0, 4)
  for (const { length } of encoded) {
    end += length
    out.integer(end, 4)
  }
  for (const bytes of encoded) out.bytes(bytes)
}

function writeSymbols(out: ByteWriter, { ids }: ColumnSpec, values: readonly WireValue[]): void {
  if (ids !== undefined) {
    for (const id of ids) out.varint(id)
    return
  }
  const entries = [...new Set(values.map(String))]
  out.varint(entries.length)
  for (const text of entries) out.text(text)
  for (const value of values) out.varint(entries.indexOf(String(value)))
}

function writeArray(out: ByteWriter, value: WireValue, isLong: boolean): void {
  const { shape, values } = value as { shape: number[]; values: number[] }
  out.bytes([shape.length])
  for (const length of shape) out.integer(length, 4)
  for (const element of values) isLong ? out.integer(element, 8) : out.number(element, 8)
}

function writeTimes(out: ByteWriter, values: readonly bigint[], { gorilla }: MessageSpec): void {
  const codes = gorilla === true && values.length > 2 ? gorillaCodes(values) : null
  if (gorilla === true) out.bytes([codes === null ? 0 : 1])
  for (const value of codes === null ? values : values.slice(0, 2)) out.integer(value, 8)
  if (codes !== null) out.bits(codes)
}

/** Null: a difference takes more than 32 bits. */
function gorillaCodes(values: readonly bigint[]): boolean[] | null {
  const bits: boolean[] = []
  const put = (value: bigint, count: number): void => {
    for (let bit = 0; bit < count; bit++) bits.push(((value >> BigInt(bit)) & 1n) === 1n)
  }
  for (let index = 2; index < values.length; index++) {
    const [a = 0n, b = 0n, c = 0n] = values.slice(index - 2, index + 1)
    const change = c - b - (b - a)
    if (change === 0n) put(0n, 1)
    else if (change >= -64n && change < 64n) {
      put(0b01n, 2)
      put(change, 7)
    } else if (change >= -256n && change < 256n) {
      put(0b011n, 3)
      put(change, 9)
    } else if (change >= -2048n && change < 2048n) {
      put(0b0111n, 4)
      put(change, 12)
    } else if (BigInt.asIntN(32, change) === change) {
      put(0b1111n, 4)
      put(change, 32)
    } else return null
  }
  return bits
}

// Messages to the query endpoint.

export interface QuerySpec {
  readonly credit?: number | bigint
  readonly binds?: readonly { readonly type: WireType; readonly value: WireValue; readonly parameter?: number }[]
  readonly timeoutMs?: number
}

export function queryRequest(
  id: bigint,
  sql: string,
  { credit = 0, binds = [], timeoutMs }: QuerySpec = {},
): Uint8Array {
  const out = new ByteWriter().bytes([0x10]).integer(id, 8).text(sql).varint(Number(credit)).varint(binds.length)
  for (const { type, value, parameter } of binds) {
    out.bytes([wireTypes[type]])
    if (value === null && (type === 'VARCHAR' || type === 'SYMBOL')) out.bytes([1, 1])
    else writeColumn(out, { name: '', type, values: [value], ...(parameter === undefined ? {} : { parameter }) }, {})
  }
  return (timeoutMs === undefined ? out : out.varint(2).varint(timeoutMs)).done()
}

export function cancelRequest(id: bigint): Uint8Array {
  return new ByteWriter().bytes([0x14]).integer(id, 8).done()
}

export function creditRequest(id: bigint, bytes: number | bigint): Uint8Array {
  const out = new ByteWriter().bytes([0x15]).integer(id, 8)
  let rest = BigInt(bytes)
  for (; rest >= 0x80n; rest >>= 7n) out.bytes([Number(rest & 0x7fn) | 0x80])
  return out.bytes([Number(rest)]).done()
}
