// Adapter of avsc in the engine: object container files of Avro, in which Iceberg keeps its manifests. The library encodes
// the records. The container is written here, since its header must have the attributes of the schema (`field-id`) that
// the library drops.
//
//   file     "Obj" 1 | map of metadata | sync marker 16 | blocks
//   block    records as long | bytes as long | records, deflated | sync marker 16

import { createHash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import avsc from 'avsc'

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
 * `metadata`: further entries of the header. Records have their values by field name. Bytes are Buffers, maps are lists of
 * {key, value}.
 */
export function encodeAvro(
  schema: AvroSchema,
  metadata: Readonly<Record<string, string>>,
  records: readonly object[],
): Buffer {
  const type = typeOf(schema)
  const raw = Buffer.concat(records.map((record) => type.toBuffer(record)))
  const entries = { 'avro.schema': JSON.stringify(schema), 'avro.codec': 'deflate', ...metadata }
  const values = Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, Buffer.from(text)]))
  // Any 16 bytes that are unlikely elsewhere.
  const sync = createHash('sha256').update(raw).digest().subarray(0, syncBytes)
  const header = [magic, metadataType.toBuffer(values), sync]
  if (records.length === 0) return Buffer.concat(header)
  const block = blockType.toBuffer({ count: records.length, content: deflateRawSync(raw) })
  return Buffer.concat([...header, block, sync])
}

/** The records of a file that encodeAvro() wrote with this schema, which determines `Item`. Throws Error for other bytes. */
export function decodeAvro<Item>(schema: AvroSchema, file: Uint8Array): Item[] {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length)
  if (!bytes.subarray(0, magic.length).equals(magic)) throw new Error('not an Avro file')
  const type = typeOf(schema)
  const records: Item[] = []
  let at = decodeAt(metadataType, bytes, magic.length).end + syncBytes
  while (at < bytes.length) {
    const { value, end } = decodeAt<Block>(blockType, bytes, at)
    const { count, content } = value
    const raw = inflateRawSync(content)
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
