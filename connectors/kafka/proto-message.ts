// Decodes a Protobuf message to the values of its fields:
//
//   message = { tag value }    tag: varint of (field number << 3 | wire type)
//
//   wire type  value
//   0          varint: 7 bits in a byte, the lowest ones first
//   1, 5       8 or 4 bytes, little-endian
//   2          length varint, then bytes: a string, bytes, a message, an entry of a map, or packed numbers
//   3, 4       start and end of a group
//
// If a field occurs several times, the last value counts; messages are merged, and the values of repeated fields are
// collected. Unknown fields, and values of another wire type than the field's, are skipped.

import { nonNull } from '../../engine/base/assert.js'
import { BadRecordError } from './bad-record.js'
import type { FieldType, MessageType, Scalar, ValueType } from './proto-types.js'

const depthMax = 64
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A 64-bit integer is a bigint if a double cannot hold it. */
export type ProtoScalar = number | bigint | string | boolean | Uint8Array
export type ProtoValue = ProtoScalar | ProtoRecord
/** A repeated field. */
export type ProtoList = ProtoValue[]
/** A map field, by the text of its keys. */
export type ProtoMap = Map<string, ProtoValue>

export class ProtoRecord {
  /** Parallel to the fields of the type; undefined: absent. */
  readonly values: (ProtoValue | ProtoList | ProtoMap | undefined)[]
  readonly type: MessageType

  constructor(type: MessageType) {
    this.type = type
    this.values = new Array(type.fields.length)
  }
}

/** Throws BadRecordError. */
export function decodeProto(type: MessageType, bytes: Uint8Array, start: number): ProtoRecord {
  const record = new ProtoRecord(type)
  new Decoder(bytes, start).message(record, bytes.length, 0, 0)
  return record
}

/** Reads an unsigned varint below 2^53; returns it and the offset behind it. Throws BadRecordError. */
export function readVarint(bytes: Uint8Array, start: number): readonly [value: number, end: number] {
  const decoder = new Decoder(bytes, start)
  return [Number(decoder.varint(bytes.length)), decoder.at]
}

/** What a field without presence has when it is absent. */
export function defaultOf(value: ValueType): ProtoScalar {
  if (value.kind === 'enum') return 0
  const scalar = value.kind === 'scalar' ? value.scalar : 'bytes'
  if (scalar === 'string') return ''
  if (scalar === 'bool') return false
  return scalar === 'bytes' ? new Uint8Array(0) : 0
}

class Decoder {
  at: number
  readonly #bytes: Uint8Array
  readonly #view: DataView

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.at = start
  }

  /** Reads fields until `end`, or until the end tag of `group`. */
  message(record: ProtoRecord, end: number, group: number, depth: number): void {
    if (depth > depthMax) throw new BadRecordError('messages are nested too deeply')
    while (this.at < end) {
      const tag = Number(this.varint(end))
      const number = Math.floor(tag / 8)
      const wire = tag % 8
      if (wire === 4 && group !== 0 && number === group) return
      if (number === 0) throw invalid('a field has the number 0')
      const field = record.type.byNumber.get(number)
      if (field === undefined || !this.#field(record, field, number, wire, end, depth)) {
        this.#skip(wire, number, end, depth)
      }
    }
    if (group !== 0) throw invalid('a group does not end')
  }

  /** Returns false when the value is of another wire type. */
  #field(record: ProtoRecord, field: FieldType, number: number, wire: number, end: number, depth: number): boolean {
    if (field.key !== null) return wire === 2 && this.#entry(record, field, end, depth)
    const expected = wireOf(field.value, field.group)
    if (field.repeated && wire === 2 && expected !== 2 && expected !== 3) return this.#packed(record, field, end)
    if (wire !== expected) return false
    const value = this.#value(field, record.values[field.index], number, end, depth)
    if (field.repeated) listOf(record, field).push(value)
    else {
      record.values[field.index] = value
      for (const rival of field.rivals) record.values[rival] = undefined
    }
    return true
  }

  /** `earlier`: the value so far, with which a message is merged. */
  #value(field: FieldType, earlier: unknown, number: number, end: number, depth: number): ProtoValue {
    const { value } = field
    if (value.kind === 'enum') return int32(this.varint(end))
    if (value.kind === 'scalar') return this.#scalar(value.scalar, end)
    const record = earlier instanceof ProtoRecord ? earlier : new ProtoRecord(value.message)
    if (field.group) this.message(record, end, number, depth + 1)
    else this.message(record, this.#end(end), 0, depth + 1)
    return record
  }

  #entry(record: ProtoRecord, field: FieldType, outer: number, depth: number): boolean {
    const { index, key, value } = field
    const end = this.#end(outer)
    let name = String(defaultOf({ kind: 'scalar', scalar: nonNull(key) }))
    let content: ProtoValue = value.kind === 'message' ? new ProtoRecord(value.message) : defaultOf(value)
    const valueField: FieldType = { ...field, key: null, repeated: false, group: false }
    while (this.at < end) {
      const tag = Number(this.varint(end))
      if (tag === 8 + wireOf({ kind: 'scalar', scalar: nonNull(key) }, false)) {
        name = String(this.#scalar(nonNull(key), end))
      } else if (tag === 16 + wireOf(value, false)) content = this.#value(valueField, undefined, 2, end, depth)
      else this.#skip(tag % 8, Math.floor(tag / 8), end, depth)
    }
    const known = record.values[index]
    const map: ProtoMap = known instanceof Map ? known : new Map()
    map.set(name, content)
    record.values[index] = map
    return true
  }

  #packed(record: ProtoRecord, field: FieldType, outer: number): boolean {
    const end = this.#end(outer)
    const list = listOf(record, field)
    const { value } = field
    while (this.at < end) {
      list.push(value.kind === 'scalar' ? this.#scalar(value.scalar, end) : int32(this.varint(end)))
    }
    return true
  }

  #scalar(scalar: Scalar, end: number): ProtoScalar {
    switch (scalar) {
      case 'double':
        return this.#view.getFloat64(this.#fixed(8, end), true)
      case 'float':
        return this.#view.getFloat32(this.#fixed(4, end), true)
      case 'fixed32':
        return this.#view.getUint32(this.#fixed(4, end), true)
      case 'sfixed32':
        return this.#view.getInt32(this.#fixed(4, end), true)
      case 'fixed64':
        return this.#view.getBigUint64(this.#fixed(8, end), true)
      case 'sfixed64':
        return this.#view.getBigInt64(this.#fixed(8, end), true)
      case 'string':
        return textOf(this.#slice(end))
      case 'bytes':
        return this.#slice(end)
      default:
        return integer(scalar, this.varint(end))
    }
  }

  #slice(outer: number): Uint8Array {
    const end = this.#end(outer)
    const slice = this.#bytes.subarray(this.at, end)
    this.at = end
    return slice
  }

  /** Reads a length; returns the offset behind that many bytes. */
  #end(outer: number): number {
    const length = Number(this.varint(outer))
    if (length > outer - this.at) throw invalid('a value is cut off')
    return this.at + length
  }

  /** Returns the offset of the bytes and moves behind them. */
  #fixed(bytes: number, end: number): number {
    const at = this.at
    if (bytes > end - at) throw invalid('a value is cut off')
    this.at = at + bytes
    return at
  }

  /** Unsigned, of at most 64 bits; a number if it has at most 28 bits. */
  varint(end: number): number | bigint {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      if (this.at >= end) throw invalid('a value is cut off')
      const byte = nonNull(this.#bytes[this.at++])
      low += (byte & 127) << shift
      if (byte < 128) return low
    }
    let value = BigInt(low)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      if (this.at >= end) throw invalid('a value is cut off')
      const byte = nonNull(this.#bytes[this.at++])
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asUintN(64, value)
    }
    throw invalid('a varint is too long')
  }

  #skip(wire: number, number: number, end: number, depth: number): void {
    if (depth > depthMax) throw new BadRecordError('messages are nested too deeply')
    if (wire === 0) this.varint(end)
    else if (wire === 1) this.#fixed(8, end)
    else if (wire === 5) this.#fixed(4, end)
    else if (wire === 2) this.at = this.#end(end)
    else if (wire === 3) this.#skipGroup(number, end, depth)
    else throw invalid(`the wire type ${wire} has no meaning here`)
  }

  #skipGroup(group: number, end: number, depth: number): void {
    while (this.at < end) {
      const tag = Number(this.varint(end))
      const number = Math.floor(tag / 8)
      if (tag % 8 === 4 && number === group) return
      this.#skip(tag % 8, number, end, depth + 1)
    }
    throw invalid('a group does not end')
  }
}

function invalid(problem: string): BadRecordError {
  return new BadRecordError(`invalid Protobuf: ${problem}`)
}

function listOf(record: ProtoRecord, { index }: FieldType): ProtoList {
  const known = record.values[index]
  if (Array.isArray(known)) return known
  const list: ProtoList = []
  record.values[index] = list
  return list
}

const wires: Readonly<Partial<Record<Scalar, number>>> = {
  ...{ double: 1, fixed64: 1, sfixed64: 1, float: 5, fixed32: 5, sfixed32: 5, string: 2, bytes: 2 },
}

function wireOf(value: ValueType, group: boolean): number {
  if (value.kind === 'message') return group ? 3 : 2
  return value.kind === 'scalar' ? (wires[value.scalar] ?? 0) : 0
}

function integer(scalar: Scalar, value: number | bigint): ProtoScalar {
  switch (scalar) {
    case 'bool':
      return BigInt(value) !== 0n
    case 'int32':
      return int32(value)
    case 'uint32':
      return Number(BigInt.asUintN(32, BigInt(value)))
    case 'sint32':
      return unzigzag32(Number(BigInt.asUintN(32, BigInt(value))))
    case 'sint64': {
      const wide = BigInt(value)
      return (wide >> 1n) ^ -(wide & 1n)
    }
    case 'int64':
      return typeof value === 'number' ? value : BigInt.asIntN(64, value)
    default:
      return value
  }
}

function int32(value: number | bigint): number {
  return typeof value === 'number' ? value : Number(BigInt.asIntN(32, value))
}

function unzigzag32(value: number): number {
  return (value >>> 1) ^ -(value & 1)
}

function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new BadRecordError('a string is not UTF-8')
  }
}
