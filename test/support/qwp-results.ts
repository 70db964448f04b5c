// Decoder for tests of the results that the server sends by QWP (columnar protocol over WebSocket), as clients read
// them: with one dictionary a connection, and the columns that the first batch of a result defines. Throws when a
// message breaks the format.

import { assert } from '../../engine/base/assert.js'
import { zstd } from '../../engine/base/zstd.js'
import {
  newWireColumn,
  readWireValues,
  type WireColumn,
  WireReader,
  wireTypeOf,
  wireWidths,
} from '../../engine/qwp/message.js'

export interface ServerMessage {
  readonly kind: 'info' | 'batch' | 'end' | 'error' | 'done' | 'reset'
  readonly request?: bigint
  readonly number?: number
  readonly status?: number
  readonly text?: string
  readonly rows?: number
  readonly values?: unknown[][]
  readonly isCompressed?: boolean
}

const kinds = { batch: 0x11, end: 0x12, error: 0x13, done: 0x16, reset: 0x17, info: 0x18 }
const headerBytes = 12

/** One connection's view of what the server sends. */
export class ResultReader {
  readonly #symbols: string[] = []
  #columns: { readonly name: string; readonly type: number }[] = []

  get names(): string[] {
    return this.#columns.map(({ name }) => name)
  }

  read(message: Buffer): ServerMessage {
    assert(message.toString('latin1', 0, 4) === 'QWP1', 'the magic')
    assert(message[4] === 1, 'the version')
    assert(message.readUInt32LE(8) === message.length - headerBytes, 'the payload has its length')
    const kind = message[headerBytes]
    assert(message.readUInt16LE(6) === (kind === kinds.batch ? 1 : 0), 'only batches have a table')
    const reader = readerOf(message, headerBytes + 1)
    const read = this.#readKind(message, kind ?? 0, reader)
    assert(reader.at === reader.end || kind === kinds.batch, 'nothing follows')
    return read
  }

  #readKind(message: Buffer, kind: number, reader: WireReader): ServerMessage {
    if (kind === kinds.info) {
      reader.take(21)
      const names = [0, 0].map(() => reader.text(message.readUInt16LE(reader.take(2))))
      assert(names.length === 2, 'cluster and node')
      return { kind: 'info', status: message.readUInt32LE(headerBytes + 10) }
    }
    if (kind === kinds.reset) {
      if (reader.byte() === 1) this.#symbols.length = 0
      return { kind: 'reset' }
    }
    const request = message.readBigInt64LE(reader.take(8))
    switch (kind) {
      case kinds.batch:
        return this.#readBatch(message, reader, request)
      case kinds.end:
        return { kind: 'end', request, number: reader.varint(), rows: reader.varint() }
      case kinds.done:
        return { kind: 'done', request, status: reader.byte(), rows: reader.varint() }
      case kinds.error: {
        const status = reader.byte()
        return { kind: 'error', request, status, text: reader.text(message.readUInt16LE(reader.take(2))) }
      }
      default:
        throw new Error(`unknown kind ${kind}`)
    }
  }

  #readBatch(message: Buffer, outer: WireReader, request: bigint): ServerMessage {
    const number = outer.varint()
    const isCompressed = ((message[5] ?? 0) & 0x10) !== 0
    assert(((message[5] ?? 0) & 0x0c) === 0x0c, 'flags of every batch')
    const rest = message.subarray(outer.at)
    const body = isCompressed ? Buffer.from(zstd().decompress(rest, 64 * 1024 * 1024)) : rest
    const reader = readerOf(body, 0)
    assert(reader.varint() === this.#symbols.length, 'the delta continues the dictionary')
    for (let count = reader.varint(); count > 0; count--) this.#symbols.push(reader.text(reader.varint()))
    assert(reader.varint() === 0, 'results have no name')
    const rows = reader.varint()
    if (number === 0) {
      const count = reader.varint()
      this.#columns = Array.from({ length: count }, () => ({ name: reader.text(reader.varint()), type: reader.byte() }))
    }
    const columns = this.#columns.map(({ type }) => this.#readColumn(reader, type, rows))
    assert(reader.at === reader.end, 'nothing follows the columns')
    const values = Array.from({ length: rows }, (_, row) => columns.map((column) => column[row]))
    return { kind: 'batch', request, number, rows, values, isCompressed }
  }

  #readColumn(reader: WireReader, code: number, rows: number): unknown[] {
    const type = wireTypeOf(code)
    assert(type !== undefined, 'a known type')
    // What is DATE here is a timestamp where messages to the server are read.
    const column = newWireColumn('', type === 'DATE' ? 'TIMESTAMP' : type)
    readWireValues(reader, column, rows, 0x0c)
    const values = valuesOf(reader, column, this.#symbols)
    let next = 0
    return Array.from({ length: rows }, (_, row) => (isNull(reader.u8, column.nulls, row) ? null : values[next++]))
  }
}

function readerOf(bytes: Buffer, start: number): WireReader {
  return new WireReader(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.length), start, bytes.length)
}

function isNull(u8: Uint8Array, nulls: number, row: number): boolean {
  return nulls >= 0 && (((u8[nulls + (row >>> 3)] ?? 0) >>> (row & 7)) & 1) === 1
}

function integer(view: DataView, at: number, bytes: number): bigint {
  let value = 0n
  for (let byte = bytes - 1; byte >= 0; byte--) value = (value << 8n) | BigInt(view.getUint8(at + byte))
  return value
}

/** The values that are not NULL, as the engine's values. */
function valuesOf({ u8, view }: WireReader, column: WireColumn, symbols: readonly string[]): unknown[] {
  const { type, at, data, values, parameter } = column
  const width = type === 'GEOHASH' ? Math.ceil(parameter / 8) : (wireWidths[type] ?? 0)
  const each = (read: (at: number) => unknown): unknown[] =>
    Array.from({ length: values }, (_, index) => read(at + index * width))
  switch (type) {
    case 'BOOLEAN':
      return Array.from({ length: values }, (_, index) => (((u8[at + (index >>> 3)] ?? 0) >>> (index & 7)) & 1) === 1)
    case 'BYTE':
      return each((place) => view.getInt8(place))
    case 'SHORT':
      return each((place) => view.getInt16(place, true))
    case 'CHAR':
      return each((place) =>
        view.getUint16(place, true) === 0 ? '' : String.fromCharCode(view.getUint16(place, true)),
      )
    case 'INT':
      return each((place) => view.getInt32(place, true))
    case 'IPv4':
      return each((place) => view.getUint32(place, true))
    case 'FLOAT':
      return each((place) => view.getFloat32(place, true))
    case 'DOUBLE':
      return each((place) => view.getFloat64(place, true))
    case 'VARCHAR':
    case 'BINARY':
      return Array.from({ length: values }, (_, index) => {
        const [start, end] = [view.getUint32(at + index * 4, true), view.getUint32(at + index * 4 + 4, true)]
        const bytes = u8.slice(data + start, data + end)
        return type === 'BINARY' ? new Uint8Array(bytes) : Buffer.from(bytes).toString()
      })
    case 'SYMBOL':
      return symbolsOf({ u8, view }, column, symbols)
    case 'DOUBLE_ARRAY':
      return arraysOf(view, column)
    case 'UUID':
    case 'LONG256':
    case 'GEOHASH':
      return each((place) => integer(view, place, width))
    default:
      return each((place) => BigInt.asIntN(width * 8, integer(view, place, width)))
  }
}

function symbolsOf(
  { u8, view }: Pick<WireReader, 'u8' | 'view'>,
  { at, values }: WireColumn,
  symbols: readonly string[],
): unknown[] {
  const reader = new WireReader(u8, view, at, u8.length)
  return Array.from({ length: values }, () => {
    const symbol = symbols[reader.varint()]
    assert(symbol !== undefined, 'the dictionary has the symbol')
    return symbol
  })
}

function arraysOf(view: DataView, { at, values }: WireColumn): unknown[] {
  let next = at
  return Array.from({ length: values }, () => {
    const dimensions = view.getUint8(next)
    const shape = Array.from({ length: dimensions }, (_, index) => view.getInt32(next + 1 + index * 4, true))
    next += 1 + dimensions * 4
    const elements = Float64Array.from({ length: shape.reduce((product, length) => product * length, 1) }, (_, index) =>
      view.getFloat64(next + index * 8, true),
    )
    next += elements.length * 8
    return { shape, data: elements }
  })
}
