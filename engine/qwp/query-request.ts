// Reads the messages by which clients query over QWP (columnar protocol over WebSocket). They have no header: a kind,
// and its fields, little-endian.
//
//   query    0x10 | request i64 | bytes varint | SQL | credit varint (bytes; 0: no limit) | binds varint
//            | (type u8 | values of one row) * binds | [flags varint | [timeout varint (ms), with flag 0x02]]
//   cancel   0x14 | request i64
//   credit   0x15 | request i64 | bytes varint
//
// Values are those of message.ts without flags: timestamps have no encoding byte, a SYMBOL is sent like a VARCHAR, and
// a VARCHAR or BINARY that is NULL has no offsets. Flag 0x01 of a query asks for a new dictionary of symbols, which
// every result has anyway.

import { NetworkError } from '../base/errors.js'
import { type DataType, dataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import {
  newWireColumn,
  readWireValues,
  type WireColumn,
  WireReader,
  type WireType,
  wireTypeOf,
  wireWidths,
} from './message.js'

const kinds = { query: 0x10, cancel: 0x14, credit: 0x15 } as const
const flagBits = { newDictionary: 0x01, timeout: 0x02 } as const
const knownFlags = flagBits.newDictionary | flagBits.timeout
const bindsMax = 1024
const sqlBytesMax = 1024 * 1024
const varintBytesMax = 10

interface WireBind {
  readonly value: Value
  readonly type: DataType
}

export interface QueryRequest {
  readonly kind: 'query'
  readonly requestId: bigint
  readonly sql: string
  /** Bytes of the result that may be sent before the client grants more; 0: no limit. */
  readonly credit: number
  readonly parameters: readonly WireBind[]
  /** 0: that of the server. */
  readonly timeoutMs: number
}

export type WireRequest =
  | QueryRequest
  | { readonly kind: 'cancel'; readonly requestId: bigint }
  | { readonly kind: 'credit'; readonly requestId: bigint; readonly bytes: number }

/** A message of a known request that breaks the format, or exceeds a limit of it: the connection can go on. */
export class RequestError extends NetworkError {
  readonly requestId: bigint
  readonly isLimit: boolean

  constructor(message: string, requestId: bigint, isLimit: boolean) {
    super(message)
    this.requestId = requestId
    this.isLimit = isLimit
  }
}

/** A statement or its parameters exceed a limit of the protocol. */
class LimitError extends NetworkError {}

/** Throws NetworkError: the message breaks the format. */
export function readWireRequest(message: Uint8Array): WireRequest {
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  const reader = new WireReader(message, view, 0, message.length)
  const kind = reader.byte()
  if (kind !== kinds.query && kind !== kinds.cancel && kind !== kinds.credit) {
    throw reader.error(`unknown kind of message [kind=${kind}]`)
  }
  const requestId = view.getBigInt64(reader.take(8), true)
  try {
    const request = readBody(reader, kind, requestId)
    if (reader.at !== reader.end) throw reader.error('bytes follow its last field')
    return request
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new RequestError(error.message, requestId, error instanceof LimitError)
  }
}

function readBody(reader: WireReader, kind: (typeof kinds)[keyof typeof kinds], requestId: bigint): WireRequest {
  switch (kind) {
    case kinds.cancel:
      return { kind: 'cancel', requestId }
    case kinds.credit:
      return { kind: 'credit', requestId, bytes: readLarge(reader) }
    case kinds.query:
      return readQuery(reader, requestId)
  }
}

function readQuery(reader: WireReader, requestId: bigint): QueryRequest {
  const sqlBytes = reader.varint()
  if (sqlBytes > sqlBytesMax) {
    throw new LimitError(`the statement is too long [bytes=${sqlBytes}, limit=${sqlBytesMax}]`)
  }
  const sql = reader.text(sqlBytes)
  const credit = readLarge(reader)
  const count = reader.varint()
  if (count > bindsMax) throw new LimitError(`too many parameters [parameters=${count}, limit=${bindsMax}]`)
  const parameters: WireBind[] = []
  for (let index = 0; index < count; index++) parameters.push(readBind(reader))
  const flags = reader.at < reader.end ? reader.varint() : 0
  if (flags > knownFlags) throw reader.error(`unknown flags of a query [flags=${flags}]`)
  const timeoutMs = (flags & flagBits.timeout) === 0 ? 0 : readLarge(reader)
  if ((flags & flagBits.timeout) !== 0 && timeoutMs === 0) throw reader.error('the timeout is 0')
  return { kind: 'query', requestId, sql, credit, parameters, timeoutMs }
}

/** Any 64-bit number, since clients send the largest one for no limit; it need not be exact above 2^53. */
function readLarge(reader: WireReader): number {
  let bytes = 0
  let scale = 1
  for (let index = 0; index < varintBytesMax; index++) {
    const byte = reader.byte()
    bytes += (byte & 0x7f) * scale
    if (byte < 0x80) return bytes
    scale *= 128
  }
  throw reader.error('a number is too large')
}

function readBind(reader: WireReader): WireBind {
  const code = reader.byte()
  const type = wireTypeOf(code)
  if (type === undefined) throw reader.error(`unknown type of a parameter [type=${code}]`)
  const column = newWireColumn('', type === 'SYMBOL' ? 'VARCHAR' : type)
  const { typeOf, read } = binds[column.type]
  if ((column.type === 'VARCHAR' || column.type === 'BINARY') && isNullNext(reader)) {
    reader.take(2)
    return { type: typeOf(column), value: null }
  }
  readWireValues(reader, column, 1, 0)
  return { type: typeOf(column), value: column.values === 0 ? null : read(reader, column) }
}

/** Whether the flag and the bitmap of a NULL follow. */
function isNullNext({ u8, at, end }: WireReader): boolean {
  return at + 1 < end && u8[at] !== 0 && (u8[at + 1]! & 1) === 1
}

interface BindReader {
  readonly typeOf: (column: WireColumn) => DataType
  readonly read: (reader: WireReader, column: WireColumn) => Value
}

function bind(name: DataType['name'], read: BindReader['read']): BindReader {
  const type = dataType(name)
  return { typeOf: () => type, read }
}

const longMin = -(2n ** 63n)
const intMin = -(2 ** 31)

function orNull<T extends Value>(value: T, sentinel: T): T | null {
  return value === sentinel ? null : value
}

const readLong: BindReader['read'] = ({ view }, { at }) => orNull(view.getBigInt64(at, true), longMin)

/** An integer without sign. */
function wideAt(view: DataView, at: number, bytes: number): bigint {
  let value = 0n
  for (let word = bytes - 8; word >= 0; word -= 8) value = (value << 64n) | view.getBigUint64(at + word, true)
  return value
}

/** UUID and LONG256 are NULL when each of their words is the smallest integer. */
const readWords: BindReader['read'] = ({ view }, { at, type }) => {
  const bytes = wireWidths[type] ?? 0
  let isNull = true
  for (let word = 0; word < bytes; word += 8) isNull = isNull && view.getBigInt64(at + word, true) === longMin
  return isNull ? null : wideAt(view, at, bytes)
}

function decimal(precision: number): BindReader {
  return {
    typeOf: ({ parameter }) => dataType('DECIMAL', Math.max(precision, parameter), parameter),
    read: ({ view }, { at, type }) => {
      const bytes = wireWidths[type] ?? 0
      return orNull(BigInt.asIntN(bytes * 8, wideAt(view, at, bytes)), -(1n << BigInt(bytes * 8 - 1)))
    },
  }
}

const array: BindReader = {
  typeOf: ({ parameter }) => dataType('ARRAY', Math.max(1, parameter)),
  read: ({ u8, view }, { at, type }) => {
    const dimensions = u8[at]!
    const shape = Array.from({ length: dimensions }, (_, index) => view.getInt32(at + 1 + index * 4, true))
    const count = shape.reduce((product, length) => product * length, 1)
    const first = at + 1 + dimensions * 4
    const elementAt = (position: number): number =>
      type === 'LONG_ARRAY' ? longElement(view.getBigInt64(position, true)) : view.getFloat64(position, true)
    return { shape, data: Float64Array.from({ length: count }, (_, index) => elementAt(first + index * 8)) }
  },
}

function longElement(value: bigint): number {
  return value === longMin ? Number.NaN : Number(value)
}

function textBytes({ u8, view }: WireReader, { at, data }: WireColumn): Uint8Array {
  return u8.slice(data, data + view.getUint32(at + 4, true))
}

const text = bind('VARCHAR', (reader, column) => Buffer.from(textBytes(reader, column)).toString('utf8'))

const geohash: BindReader = {
  typeOf: ({ parameter }) => dataType('GEOHASH', parameter),
  read: ({ u8 }, { at, parameter }) => {
    const bytes = Math.ceil(parameter / 8)
    let value = 0n
    for (let byte = bytes - 1; byte >= 0; byte--) value = (value << 8n) | BigInt(u8[at + byte]!)
    return orNull(value, (1n << BigInt(bytes * 8)) - 1n)
  },
}

const binds: Record<WireType, BindReader> = {
  BOOLEAN: bind('BOOLEAN', ({ u8 }, { at }) => (u8[at]! & 1) === 1),
  BYTE: bind('BYTE', ({ view }, { at }) => view.getInt8(at)),
  SHORT: bind('SHORT', ({ view }, { at }) => view.getInt16(at, true)),
  INT: bind('INT', ({ view }, { at }) => orNull(view.getInt32(at, true), intMin)),
  LONG: bind('LONG', readLong),
  FLOAT: bind('FLOAT', ({ view }, { at }) => nanAsNull(view.getFloat32(at, true))),
  DOUBLE: bind('DOUBLE', ({ view }, { at }) => nanAsNull(view.getFloat64(at, true))),
  SYMBOL: text,
  VARCHAR: text,
  TIMESTAMP: bind('TIMESTAMP', readLong),
  TIMESTAMP_NANOS: bind('TIMESTAMP_NS', readLong),
  DATE: bind('DATE', readLong),
  UUID: bind('UUID', readWords),
  LONG256: bind('LONG256', readWords),
  GEOHASH: geohash,
  DOUBLE_ARRAY: array,
  LONG_ARRAY: array,
  DECIMAL64: decimal(18),
  DECIMAL128: decimal(38),
  DECIMAL256: decimal(76),
  CHAR: bind('CHAR', ({ view }, { at }) => String.fromCharCode(view.getUint16(at, true))),
  BINARY: bind('BINARY', textBytes),
  IPv4: bind('IPv4', ({ view }, { at }) => orNull(view.getUint32(at, true), 0)),
}

function nanAsNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}
