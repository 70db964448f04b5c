// Reads and writes Avro object container files, the format of Iceberg's manifests. The package avsc encodes the
// records; no other module of the engine uses it. The container is written here, because its header must have the
// attribute `field-id` of the schema, which the package drops. Files of other programs may also be uncompressed or use
// zstandard.
//
//   file     "Obj" 1 | map of metadata | sync marker 16 | blocks
//   block    records as long | bytes as long | records, deflated | sync marker 16

import { createHash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import avsc from 'avsc'
import { zstd } from '../base/zstd.js'

export interface AvroSchema {
  readonly type: 'record'
  readonly name: string
  readonly fields: readonly object[]
}

const magic = Buffer.from('Obj\u0001', 'latin1')
const syncBytes = 16
const metadataType = avsc.Type.forSchema({ type: 'map', values: 'bytes' })
const blockType = avsc.Type.forSchema({
  type: 'record',
  name: 'block',
  fields: [
    { name: 'count', type: 'long' },
    { name: 'content', type: 'bytes' },
  ],
})

/** By the text of the schema: the library generates code for a type, which takes milliseconds. */
const known = new Map<string, avsc.Type>()
const knownMax = 100

function typeOf(schema: AvroSchema): avsc.Type {
  const text = JSON.stringify(schema)
  const found = known.get(text)
  if (found !== undefined) return found
  // Unions as plain values, since each has null and one other type.
  const type = avsc.Type.forSchema(JSON.parse(text), { wrapUnions: false })
  if (known.size >= knownMax) known.clear()
  known.set(text, type)
  return type
}

/**
 * `metadata`: further entries of the header. Records have their values by field name. Bytes are Buffers, maps are lists
 * of {key, value}.
 */
export function encodeAvro(
  schema: AvroSchema,
  metadata: Readonly<Record<string, string>>,
  records: readonly object[],
): Buffer {
  return fileOf(typeOf(schema), JSON.stringify(schema), metadata, records)
}

/** As encodeAvro(), with the text of a schema. A long is a bigint, as decodeForeignAvro() returns it. */
export function encodeExactAvro(
  schema: string,
  metadata: Readonly<Record<string, string>>,
  records: readonly object[],
): Buffer {
  return fileOf(exactTypeOf(schema), schema, metadata, records)
}

function fileOf(
  type: avsc.Type,
  schema: string,
  metadata: Readonly<Record<string, string>>,
  records: readonly object[],
): Buffer {
  const raw = Buffer.concat(records.map((record) => type.toBuffer(record)))
  const entries = { 'avro.schema': schema, 'avro.codec': 'deflate', ...metadata }
  const values = Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text)]))
  // Any 16 bytes that are unlikely elsewhere.
  const sync = createHash('sha256').update(raw).digest().subarray(0, syncBytes)
  const header = [magic, metadataType.toBuffer(values), sync]
  if (records.length === 0) return Buffer.concat(header)
  const block = blockType.toBuffer({ count: records.length, content: deflateRawSync(raw) })
  return Buffer.concat([...header, block, sync])
}

/**
 * The records of a file that encodeAvro() wrote with this schema, which determines `Item`. Throws Error for other
 * bytes.
 */
export function decodeAvro<Item>(schema: AvroSchema, file: Uint8Array): Item[] {
  const { bytes, at } = headerOf(file)
  return recordsOf(typeOf(schema), bytes, at, (content) => inflateRawSync(content))
}

/** The entries of a file's header. Throws Error for bytes that are no such file. */
export function avroHeader(file: Uint8Array): Readonly<Record<string, string>> {
  return textsOf(headerOf(file).entries)
}

function textsOf(entries: Readonly<Record<string, Buffer>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, value.toString()]))
}

/**
 * The records of a file of another program, by the schema in its header: its fields may differ from ours. A long is a
 * bigint, a map a list of pairs or an object. Throws Error for bytes that are no such file.
 */
export function decodeForeignAvro<Item>(file: Uint8Array): Item[] {
  return decodeWholeAvro<Item>(file).records
}

/** The entries of a file's header, the text of its schema among them, and its records as decodeForeignAvro() has them. */
export function decodeWholeAvro<Item>(file: Uint8Array): {
  readonly schema: string
  readonly metadata: Readonly<Record<string, string>>
  readonly records: Item[]
} {
  const { bytes, at, entries } = headerOf(file)
  const metadata = textsOf(entries)
  const { 'avro.codec': codec = 'null', 'avro.schema': schema = '' } = metadata
  const unpack = codecs[codec]
  if (unpack === undefined) throw new Error(`the Avro codec ${codec} is not supported`)
  return { schema, metadata, records: recordsOf(exactTypeOf(schema), bytes, at, unpack) }
}

/** Logical types are not declared, so their values are those of the types below them. */
function exactTypeOf(schema: string): avsc.Type {
  return avsc.Type.forSchema(JSON.parse(schema), { wrapUnions: false, registry: { long: exactLong } })
}

/** Limit of one block of a file of another program. */
const blockBytesMax = 1024 * 1024 * 1024

const codecs: Readonly<Record<string, (content: Buffer) => Buffer>> = {
  null: (content) => content,
  deflate: (content) => inflateRawSync(content, { maxOutputLength: blockBytesMax }),
  zstandard: (content) => Buffer.from(zstd().decompress(content, blockBytesMax)),
}

const exactLong = avsc.types.LongType.__with({
  fromBuffer: (buffer: Buffer) => buffer.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const buffer = Buffer.alloc(8)
    buffer.writeBigInt64LE(value)
    return buffer
  },
  fromJSON: (value: number) => BigInt(value),
  toJSON: (value: bigint) => Number(value),
  isValid: (value: unknown) => typeof value === 'bigint',
  compare: (x: bigint, y: bigint) => (x < y ? -1 : x > y ? 1 : 0),
})

interface Header {
  readonly bytes: Buffer
  /** Where the blocks begin. */
  readonly at: number
  readonly entries: Readonly<Record<string, Buffer>>
}

function headerOf(file: Uint8Array): Header {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length)
  if (!bytes.subarray(0, magic.length).equals(magic)) throw new Error('not an Avro file')
  const { value, end } = decodeAt<Record<string, Buffer>>(metadataType, bytes, magic.length)
  return { bytes, at: end + syncBytes, entries: value }
}

function recordsOf<Item>(type: avsc.Type, bytes: Buffer, start: number, unpack: (content: Buffer) => Buffer): Item[] {
  const records: Item[] = []
  let at = start
  while (at < bytes.length) {
    const { value, end } = decodeAt<Block>(blockType, bytes, at)
    const { count, content } = value
    const raw = unpack(content)
    let offset = 0
    for (let index = 0; index < count; index++) {
      const record = decodeAt<Item>(type, raw, offset)
      records.push(record.value)
      offset = record.end
    }
    at = end + syncBytes
  }
  return records
}

interface Block {
  readonly count: number
  readonly content: Buffer
}

function decodeAt<Value>(
  type: avsc.Type,
  bytes: Buffer,
  offset: number,
): { readonly value: Value; readonly end: number } {
  const { value, offset: end }: { value: Value; offset: number } = type.decode(bytes, offset)
  if (end < 0) throw new Error('an Avro file ends early')
  return { value, end }
}
