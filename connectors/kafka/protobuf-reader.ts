// Reads Kafka records in Protobuf with a schema in a schema registry (wire format: registered-schemas.ts) into columns
// of a row. Before the message, a record has the indexes of the message's type in the schema, as zigzag varints:
//
//   count | index of the outermost message | index of a message in it | ..      a single 0 means: the first message
//
// An absent field becomes NULL if the schema distinguishes absent values (messages, `optional`, members of a oneof),
// and otherwise the default value of its type.

import { nonNull } from '../../engine/base/assert.js'
import { BadRecordError } from './bad-record.js'
import { decodeProto, defaultOf, ProtoRecord, type ProtoValue, readVarint } from './proto-message.js'
import { type FieldType, type MessageType, type ProtoSchema, protoSchema, type ValueType } from './proto-types.js'
import { headerBytes, RegisteredSchemas, type RegistryReader } from './registered-schemas.js'
import type { RowMapper } from './row-mapper.js'
import type { SchemaRegistry } from './schema-registry.js'

const indexesMax = 64

export class ProtobufReader implements RegistryReader {
  readonly #schemas: RegisteredSchemas<ProtoSchema>
  readonly #mapper: RowMapper

  constructor(registry: SchemaRegistry, mapper: RowMapper) {
    this.#schemas = new RegisteredSchemas(registry, {
      ...{ type: 'PROTOBUF', name: 'Protobuf' },
      compile: (schemas) => protoSchema(schemas.map(({ text }) => text)),
    })
    this.#mapper = mapper
  }

  prepare(values: Iterable<Uint8Array | null>): Promise<void> {
    return this.#schemas.prepare(values)
  }

  read(bytes: Uint8Array, prefix: string, fallback: string): void {
    const schema = this.#schemas.of(bytes)
    const [type, start] = messageType(schema, bytes)
    const record = decodeProto(type, bytes, start)
    const path = prefix === '' ? fallback : prefix
    if (knownTypes.has(type.name)) readMessage(this.#mapper, record, path)
    else readFields(this.#mapper, record, prefix)
  }
}

/** The type of the message, and where it begins. */
function messageType(schema: ProtoSchema, bytes: Uint8Array): readonly [MessageType, number] {
  let [count, at] = index(bytes, headerBytes)
  if (count === 0) count = 1
  else if (count < 0 || count > indexesMax) throw new BadRecordError('invalid Protobuf: wrong message indexes')
  else {
    let messages = schema.messages
    for (;;) {
      const [place, end] = index(bytes, at)
      at = end
      const message = messages[place]
      if (message === undefined) throw new BadRecordError(`the schema has no such message [index=${place}]`)
      if (--count === 0) return [message.type, at]
      messages = message.messages
    }
  }
  const [first] = schema.messages
  if (first === undefined) throw new BadRecordError('the schema has no message')
  return [first.type, at]
}

function index(bytes: Uint8Array, start: number): readonly [value: number, end: number] {
  const [value, end] = readVarint(bytes, start)
  return [value % 2 === 0 ? value / 2 : -(value + 1) / 2, end]
}

function readFields(mapper: RowMapper, record: ProtoRecord, prefix: string): void {
  for (const field of record.type.fields) {
    const path = prefix === '' ? field.name : `${prefix}_${field.name}`
    readField(mapper, field, record.values[field.index], path)
  }
}

function readField(mapper: RowMapper, field: FieldType, value: ProtoRecord['values'][number], path: string): void {
  if (value instanceof Map) {
    for (const [key, member] of value) readValue(mapper, field.value, member, `${path}_${key}`)
  } else if (Array.isArray(value)) {
    if (field.value.kind === 'enum') mapper.unsupported(path, 'an array of enums')
    else readList(mapper, value, path)
  } else if (value !== undefined) readValue(mapper, field.value, value, path)
  else if (field.presence || field.repeated) mapper.missing(path)
  else readValue(mapper, field.value, defaultOf(field.value), path)
}

function readValue(mapper: RowMapper, type: ValueType, value: ProtoValue, path: string): void {
  if (value instanceof ProtoRecord) readMessage(mapper, value, path)
  else if (value instanceof Uint8Array) mapper.unsupported(path, 'bytes')
  else if (typeof value === 'boolean') mapper.boolean(path, value)
  else if (typeof value === 'string') mapper.text(path, value)
  else if (type.kind === 'enum') mapper.text(path, type.names.get(Number(value)) ?? String(value))
  else if (type.kind === 'scalar' && (type.scalar === 'double' || type.scalar === 'float'))
    mapper.double(path, Number(value))
  else mapper.number(path, String(value))
}

/** Numbers become an array of doubles; other lists are unsupported. */
function readList(mapper: RowMapper, list: readonly ProtoValue[], path: string): void {
  const other = list.find((value) => typeof value !== 'number' && typeof value !== 'bigint')
  if (other === undefined) mapper.array(path, [list.length], list.map(Number))
  else mapper.unsupported(path, `an array of ${kindOf(other)}`)
}

function kindOf(value: ProtoValue): string {
  if (value instanceof ProtoRecord) return 'messages'
  return value instanceof Uint8Array ? 'bytes' : `${typeof value}s`
}

type ReadKnown = (mapper: RowMapper, record: ProtoRecord, path: string) => void

function readMessage(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const known = knownTypes.get(record.type.name)
  if (known === undefined) readFields(mapper, record, path)
  else known(mapper, record, path)
}

/** A message of one field stands for that field. */
const readOnlyField: ReadKnown = (mapper, record, path) => {
  for (const field of record.type.fields) readField(mapper, field, record.values[field.index], path)
}

const wrappers = ['Double', 'Float', 'Int64', 'UInt64', 'Int32', 'UInt32', 'Bool', 'String', 'Bytes']

/** Messages that stand for one value. */
const knownTypes: ReadonlyMap<string, ReadKnown> = new Map([
  ...wrappers.map((name) => [`google.protobuf.${name}Value`, readOnlyField] as const),
  ['google.protobuf.Struct', readOnlyField],
  ['google.protobuf.ListValue', readListValue],
  ['google.protobuf.Value', readDynamic],
  ['google.protobuf.Timestamp', readTimestamp],
  ['google.type.Date', readDate],
  ['google.type.Decimal', readDecimalText],
  ['confluent.type.Decimal', readDecimal],
])

function readTimestamp(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const nanos = BigInt(numberOf(record, 'nanos'))
  mapper.instant(path, BigInt(numberOf(record, 'seconds')) * 1_000_000n + nanos / 1000n)
}

function readDecimalText(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const text = textField(record, 'value')
  const value = text === '' ? 0 : Number(text)
  if (Number.isNaN(value)) throw new BadRecordError(`not a decimal: '${text.slice(0, 40)}' [field=${path}]`)
  mapper.double(path, value)
}

function readDate(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const [year, month, day] = ['year', 'month', 'day'].map((name) => Number(numberOf(record, name)))
  const millis = Date.UTC(nonNull(year), nonNull(month) - 1, day)
  if (year === 0 || month === 0 || day === 0) mapper.unsupported(path, 'a date without year, month or day')
  else mapper.instant(path, BigInt(millis) * 1000n)
}

/** Unscaled value (two's complement, big-endian) and scale. */
function readDecimal(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const bytes = fieldOf(record, 'value')
  const hex = bytes instanceof Uint8Array ? Buffer.from(bytes).toString('hex') : ''
  const unscaled = hex === '' ? 0n : BigInt.asIntN(hex.length * 4, BigInt(`0x${hex}`))
  mapper.double(path, Number(`${unscaled}e${-Number(numberOf(record, 'scale'))}`))
}

/** A value of JSON: the member of its oneof that is there. */
function readDynamic(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const field = record.type.fields.find(({ index: place }) => record.values[place] !== undefined)
  if (field === undefined || field.name === 'null_value') mapper.missing(path)
  else readField(mapper, field, record.values[field.index], path)
}

function readListValue(mapper: RowMapper, record: ProtoRecord, path: string): void {
  const values = fieldOf(record, 'values')
  const list = Array.isArray(values) ? values : []
  readList(mapper, list.map(plainOf), path)
}

/** The number of a google.protobuf.Value, if it is one. */
function plainOf(value: ProtoValue): ProtoValue {
  const number = value instanceof ProtoRecord ? fieldOf(value, 'number_value') : undefined
  return typeof number === 'number' ? number : value
}

function fieldOf(record: ProtoRecord, name: string): ProtoRecord['values'][number] {
  const field = record.type.fields.find((candidate) => candidate.name === name)
  return field === undefined ? undefined : record.values[field.index]
}

function numberOf(record: ProtoRecord, name: string): number | bigint {
  const value = fieldOf(record, name)
  return typeof value === 'number' || typeof value === 'bigint' ? value : 0
}

function textField(record: ProtoRecord, name: string): string {
  const value = fieldOf(record, name)
  return typeof value === 'string' ? value : ''
}
