// Converts one value that was sent by QWP (columnar protocol over WebSocket) for a table column of another type. Types
// that line protocol has, too, are converted by its rules; the other types (geohashes, decimals, ...) have rules of
// their own. Returns an error text for a value that does not fit.

import { int64Max, int64Min } from '../base/int64.js'
import { convertValue } from '../lines/convert.js'
import { addEntity, type LineEntity, newParsedLine } from '../lines/line.js'
import type { ColumnSchema } from '../storage/schema/schema.js'
import { setArray, setBytes, setInteger, setNull, setNumber, type ValueSlot } from '../storage/writer/writer-values.js'
import { type DataType, typeText } from '../types/column-types.js'
import { type WireColumn, type WireType, wireWidths } from './message.js'

/** The values of a column and where they are; `at` moves over values of different sizes. */
export interface ValueSource {
  readonly u8: Uint8Array
  readonly view: DataView
  readonly column: WireColumn
  /** Where the values begin: timestamps are not compressed any more. */
  at: number
  /** The strings of a SYMBOL column by their number. */
  readonly symbolAt: (index: number) => Uint8Array
}

/** Fills the slot with the value for the column; returns what is wrong with it, or an empty string. */
export function convertWireValue(source: ValueSource, index: number, schema: ColumnSchema, slot: ValueSlot): string {
  const error = readers[source.column.type](source, index, schema.type, slot)
  return error === mismatch ? `a ${source.column.type} is no ${typeText(schema.type)}` : error
}

const fine = ''
const mismatch = 'mismatch'
const outOfRange = 'the value is out of range'

type Read = (source: ValueSource, index: number, type: DataType, slot: ValueSlot) => string

const encoder = new TextEncoder()
const line = newParsedLine()
const entity: LineEntity = addEntity(line, '')

const readers: Record<WireType, Read> = {
  BOOLEAN: ({ u8, at }, index, type, slot) => {
    entity.number = (u8[at + (index >>> 3)]! >>> (index & 7)) & 1
    return asLine('boolean', encoder.encode(entity.number === 1 ? 'true' : 'false'), type, slot)
  },
  BYTE: ({ view, at }, index, type, slot) => fromInteger(BigInt(view.getInt8(at + index)), type, slot),
  SHORT: ({ view, at }, index, type, slot) => fromInteger(BigInt(view.getInt16(at + index * 2, true)), type, slot),
  INT: ({ view, at }, index, type, slot) => {
    const value = view.getInt32(at + index * 4, true)
    return fromInteger(value === -0x8000_0000 ? int64Min : BigInt(value), type, slot)
  },
  LONG: ({ view, at }, index, type, slot) => fromInteger(view.getBigInt64(at + index * 8, true), type, slot),
  FLOAT: ({ view, at }, index, type, slot) => fromNumber(view.getFloat32(at + index * 4, true), type, slot),
  DOUBLE: ({ view, at }, index, type, slot) => fromNumber(view.getFloat64(at + index * 8, true), type, slot),
  SYMBOL: ({ symbolAt }, index, type, slot) => asLine('tag', symbolAt(index), type, slot),
  TIMESTAMP: ({ view, at }, index, type, slot) =>
    fromTime('micros', view.getBigInt64(at + index * 8, true), type, slot),
  TIMESTAMP_NANOS: ({ view, at }, index, type, slot) =>
    fromTime('nanos', view.getBigInt64(at + index * 8, true), type, slot),
  DATE: ({ view, at }, index, type, slot) => fromDate(view.getBigInt64(at + index * 8, true), type, slot),
  UUID: (source, index, type, slot) => fromWide(source, index, type.name === 'UUID', slot),
  LONG256: (source, index, type, slot) => fromWide(source, index, type.name === 'LONG256', slot),
  GEOHASH: fromGeohash,
  VARCHAR: (source, index, type, slot) => asLine('string', textAt(source, index), type, slot),
  BINARY: (source, index, type, slot) => {
    if (type.name !== 'BINARY') return mismatch
    setBytes(slot, textAt(source, index))
    return fine
  },
  DOUBLE_ARRAY: fromArray,
  LONG_ARRAY: fromArray,
  DECIMAL64: fromDecimal,
  DECIMAL128: fromDecimal,
  DECIMAL256: fromDecimal,
  CHAR: ({ view, at }, index, type, slot) => {
    const unit = view.getUint16(at + index * 2, true)
    if (type.name !== 'CHAR') return asLine('string', encoder.encode(String.fromCharCode(unit)), type, slot)
    setNumber(slot, unit)
    return fine
  },
  IPv4: ({ view, at }, index, type, slot) => {
    if (type.name !== 'IPv4') return mismatch
    setNumber(slot, view.getUint32(at + index * 4, true))
    return fine
  },
}

/** Converts by the rules of line protocol; `number` and `integer` of the entity are set. */
function asLine(kind: LineEntity['kind'], text: Uint8Array, type: DataType, slot: ValueSlot): string {
  entity.kind = kind
  entity.text = text
  const error = convertValue(entity, type, '', slot)
  if (error === '') return fine
  return error.includes('out bounds') ? outOfRange : mismatch
}

function fromInteger(value: bigint, type: DataType, slot: ValueSlot): string {
  entity.integer = value
  return asLine('integer', type.name === 'SYMBOL' ? encoder.encode(String(value)) : noText, type, slot)
}

const noText = new Uint8Array(0)

function fromNumber(value: number, type: DataType, slot: ValueSlot): string {
  entity.number = value
  const isText = type.name === 'SYMBOL' || type.name === 'DECIMAL'
  return asLine('float', isText ? encoder.encode(String(value)) : noText, type, slot)
}

function fromTime(unit: 'micros' | 'nanos', value: bigint, type: DataType, slot: ValueSlot): string {
  entity.integer = value
  return asLine(unit, type.name === 'SYMBOL' ? encoder.encode(String(value)) : noText, type, slot)
}

function fromDate(millis: bigint, type: DataType, slot: ValueSlot): string {
  if (type.name === 'DATE' || millis === int64Min) {
    if (type.name !== 'DATE' && type.name !== 'TIMESTAMP' && type.name !== 'TIMESTAMP_NS') return mismatch
    setInteger(slot, millis)
    return fine
  }
  const micros = millis * 1000n
  if (micros > int64Max || micros < int64Min) return outOfRange
  return fromTime('micros', micros, type, slot)
}

function fromWide({ view, at, column }: ValueSource, index: number, fits: boolean, slot: ValueSlot): string {
  if (!fits) return mismatch
  const bytes = wireWidths[column.type] ?? 0
  setInteger(slot, integerAt(view, at + index * bytes, bytes))
  return fine
}

/** A two's complement integer of whole words. */
function integerAt(view: DataView, at: number, bytes: number): bigint {
  let value = view.getBigInt64(at + bytes - 8, true)
  for (let word = bytes - 16; word >= 0; word -= 8) value = (value << 64n) | view.getBigUint64(at + word, true)
  return value
}

/** A geohash of more bits than the column has is cut to them. */
function fromGeohash({ u8, at, column }: ValueSource, index: number, type: DataType, slot: ValueSlot): string {
  const bits = column.parameter
  if (type.name !== 'GEOHASH' || type.a > bits) return mismatch
  const bytes = Math.ceil(bits / 8)
  let value = 0n
  for (let byte = bytes - 1; byte >= 0; byte--) value = (value << 8n) | BigInt(u8[at + index * bytes + byte]!)
  if (value === (1n << BigInt(bytes * 8)) - 1n) setNull(slot)
  else if (value >= 1n << BigInt(bits)) return outOfRange
  else setInteger(slot, value >> BigInt(bits - type.a))
  return fine
}

function textAt({ u8, view, column }: ValueSource, index: number): Uint8Array {
  const start = view.getUint32(column.at + index * 4, true)
  const end = view.getUint32(column.at + index * 4 + 4, true)
  return u8.subarray(column.data + start, column.data + end)
}

/** Arrays are read in their order. Whole numbers are stored as doubles, if these hold them exactly. */
function fromArray(source: ValueSource, _index: number, type: DataType, slot: ValueSlot): string {
  const { u8, view, at } = source
  const dimensions = u8[at]!
  const shape = Array.from({ length: dimensions }, (_, dimension) => view.getInt32(at + 1 + dimension * 4, true))
  const elements = shape.reduce((product, length) => product * length, 1)
  const from = at + 1 + dimensions * 4
  source.at = from + elements * 8
  if (type.name !== 'ARRAY' || type.a !== dimensions)
    return `an array of ${dimensions} dimensions is no ${typeText(type)}`
  if (source.column.type === 'DOUBLE_ARRAY') {
    setArray(slot, shape, u8.slice(from, source.at))
    return fine
  }
  const doubles = new Float64Array(elements)
  for (let index = 0; index < elements; index++) {
    const value = view.getBigInt64(from + index * 8, true)
    doubles[index] = value === int64Min ? Number.NaN : Number(value)
    if (value !== int64Min && !Number.isSafeInteger(doubles[index])) return outOfRange
  }
  setArray(slot, shape, new Uint8Array(doubles.buffer))
  return fine
}

function fromDecimal({ view, at, column }: ValueSource, index: number, type: DataType, slot: ValueSlot): string {
  const bytes = wireWidths[column.type] ?? 0
  const value = integerAt(view, at + index * bytes, bytes)
  if (type.name !== 'DECIMAL') return mismatch
  if (value === -(1n << BigInt(bytes * 8 - 1))) {
    setNull(slot)
    return fine
  }
  const shift = type.b - column.parameter
  const power = 10n ** BigInt(Math.abs(shift))
  if (shift < 0 && value % power !== 0n) return outOfRange
  const scaled = shift < 0 ? value / power : value * power
  const limit = 10n ** BigInt(type.a)
  if (scaled >= limit || scaled <= -limit) return outOfRange
  setInteger(slot, scaled)
  return fine
}
