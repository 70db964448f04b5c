// Decodes Avro records in the wire format of schema registries (registered-schemas.ts) into columns of a row. The
// reader walks the value along its Avro type, so that a long stays a long and 5.0 stays a double.

import avsc, { type types as avroTypes, type Type } from 'avsc'
import { nonNull } from '../../engine/base/assert.js'
import { BadRecordError } from './bad-record.js'
import { headerBytes, RegisteredSchemas, type RegistryReader } from './registered-schemas.js'
import type { RowMapper } from './row-mapper.js'
import type { SchemaRegistry, SchemaText } from './schema-registry.js'

const { types } = avsc
const depthMax = 64

/** 64-bit integers as bigint: avsc's own type rejects values that a double cannot represent. */
const longs = types.LongType.__with({
  fromBuffer: (buffer: Buffer) => buffer.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const buffer = Buffer.alloc(8)
    buffer.writeBigInt64LE(value)
    return buffer
  },
  fromJSON: (value: number) => BigInt(value),
  toJSON: (value: bigint) => Number(value),
  isValid: (value: unknown) => typeof value === 'bigint',
  compare: (left: bigint, right: bigint) => (left < right ? -1 : left > right ? 1 : 0),
})

/** A logical type that leaves the value unchanged; the walk interprets it by name. */
class Named extends types.LogicalType {
  protected override _fromValue(value: unknown): unknown {
    return value
  }

  protected override _toValue(value: unknown): unknown {
    return value
  }
}

/** A decimal: unscaled bytes and the schema's scale. */
class Decimal extends types.LogicalType {
  readonly scale: number

  constructor(schema: { readonly scale?: number }, options: object) {
    super(schema as never, options as never)
    this.scale = schema.scale ?? 0
  }

  protected override _fromValue(value: unknown): unknown {
    return value
  }

  protected override _toValue(value: unknown): unknown {
    return value
  }
}

const logicalTypes = {
  'timestamp-millis': Named,
  'timestamp-micros': Named,
  'timestamp-nanos': Named,
  'local-timestamp-millis': Named,
  'local-timestamp-micros': Named,
  date: Named,
  decimal: Decimal,
}

/** Microseconds per unit of each logical type of time. */
const micros: Readonly<Record<string, bigint>> = {
  'logical:timestamp-millis': 1000n,
  'logical:local-timestamp-millis': 1000n,
  'logical:timestamp-micros': 1n,
  'logical:local-timestamp-micros': 1n,
  'logical:date': 86_400_000_000n,
}

export class AvroReader implements RegistryReader {
  readonly #schemas: RegisteredSchemas<Type>
  readonly #mapper: RowMapper

  constructor(registry: SchemaRegistry, mapper: RowMapper) {
    this.#schemas = new RegisteredSchemas(registry, { type: 'AVRO', name: 'Avro', compile: typeOf })
    this.#mapper = mapper
  }

  prepare(values: Iterable<Uint8Array | null>): Promise<void> {
    return this.#schemas.prepare(values)
  }

  read(bytes: Uint8Array, prefix: string, fallback: string): void {
    const type = this.#schemas.of(bytes)
    const value = decode(type, bytes)
    if (type.typeName === 'record') readRecord(this.#mapper, type, value, prefix, 0)
    else readValue(this.#mapper, type, value, prefix === '' ? fallback : prefix, 0)
  }
}

function typeOf(schemas: readonly SchemaText[]): Type {
  const options = { registry: {}, logicalTypes: logicalTypes as never, wrapUnions: true, typeHook: longHook() }
  const types = schemas.map(({ text }) => avsc.Type.forSchema(JSON.parse(text), options))
  return nonNull(types.at(-1))
}

/**
 * Replaces every long. avsc calls the hook twice for one with a logical type: for that type, then for the
 * underlying one.
 */
function longHook(): (schema: unknown) => Type | undefined {
  const requested = new WeakSet<object>()
  return (schema) => {
    if (schema === 'long') return longs
    if (typeof schema !== 'object' || schema === null || !('type' in schema) || schema.type !== 'long') return undefined
    const logical = 'logicalType' in schema && String(schema.logicalType) in logicalTypes
    if (!logical || requested.has(schema)) return longs
    requested.add(schema)
    return undefined
  }
}

function decode(type: Type, bytes: Uint8Array): unknown {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset + headerBytes, bytes.length - headerBytes)
  try {
    return type.fromBuffer(buffer)
  } catch (error) {
    throw new BadRecordError(`invalid Avro: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function readRecord(mapper: RowMapper, type: Type, value: unknown, prefix: string, depth: number): void {
  if (depth > depthMax) throw new BadRecordError('records are nested too deeply')
  const members = value as Readonly<Record<string, unknown>>
  for (const field of (type as avroTypes.RecordType).fields) {
    const path = prefix === '' ? field.name : `${prefix}_${field.name}`
    readValue(mapper, field.type, members[field.name], path, depth + 1)
  }
}

function readValue(mapper: RowMapper, type: Type, value: unknown, path: string, depth: number): void {
  const name = type.typeName
  const unit = micros[name]
  if (unit !== undefined) mapper.instant(path, BigInt(value as number | bigint) * unit)
  else if (name === 'logical:timestamp-nanos') mapper.instant(path, (value as bigint) / 1000n)
  else if (type instanceof Decimal) readDecimal(mapper, type, value as Uint8Array, path)
  else if (name.startsWith('union:')) readUnion(mapper, type as avroTypes.WrappedUnionType, value, path, depth)
  else readPlain(mapper, type, value, path, depth)
}

function readPlain(mapper: RowMapper, type: Type, value: unknown, path: string, depth: number): void {
  switch (type.typeName) {
    case 'null':
      mapper.missing(path)
      return
    case 'boolean':
      mapper.boolean(path, value as boolean)
      return
    case 'int':
    case 'long':
    case 'abstract:long':
      mapper.number(path, String(value))
      return
    case 'float':
    case 'double':
      mapper.double(path, value as number)
      return
    case 'string':
    case 'enum':
      mapper.text(path, value as string)
      return
    case 'record':
      readRecord(mapper, type, value, path, depth)
      return
    case 'map':
      readMap(mapper, type as avroTypes.MapType, value as object, path, depth)
      return
    case 'array':
      readArray(mapper, value as readonly unknown[], path)
      return
    default:
      mapper.unsupported(path, type.typeName)
  }
}

function readUnion(
  mapper: RowMapper,
  type: avroTypes.WrappedUnionType,
  value: unknown,
  path: string,
  depth: number,
): void {
  const [entry] = value === null ? [] : Object.entries(value as object)
  if (entry === undefined) {
    mapper.missing(path)
    return
  }
  const branch = type.types.find((candidate) => candidate.branchName === entry[0])
  if (branch === undefined) mapper.unsupported(path, entry[0])
  else readValue(mapper, branch, entry[1], path, depth)
}

function readMap(mapper: RowMapper, type: avroTypes.MapType, value: object, path: string, depth: number): void {
  if (depth > depthMax) throw new BadRecordError('records are nested too deeply')
  for (const [name, member] of Object.entries(value)) {
    readValue(mapper, type.valuesType, member, `${path}_${name}`, depth + 1)
  }
}

function readDecimal(mapper: RowMapper, { scale }: Decimal, bytes: Uint8Array, path: string): void {
  const hex = Buffer.from(bytes).toString('hex')
  const unscaled = hex === '' ? 0n : BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex}`))
  mapper.double(path, Number(`${unscaled}e-${scale}`))
}

function readArray(mapper: RowMapper, elements: readonly unknown[], path: string): void {
  const values: number[] = []
  const shape: number[] = []
  const problem = gather(elements, 0, shape, values)
  if (problem === '') mapper.array(path, shape, values)
  else mapper.unsupported(path, problem)
}

function gather(elements: readonly unknown[], level: number, shape: number[], values: number[]): string {
  const known = shape[level]
  if (known !== undefined && known !== elements.length) return 'an array whose rows differ in length'
  if (level >= 32) return 'an array of more than 32 dimensions'
  shape[level] = elements.length
  for (const element of elements) {
    if (Array.isArray(element)) {
      const problem = gather(element, level + 1, shape, values)
      if (problem !== '') return problem
    } else if (typeof element === 'number' || typeof element === 'bigint') values.push(Number(element))
    else return `an array of ${element === null ? 'nulls' : typeof element}`
  }
  return ''
}
