// Writes Iceberg tables as other programs do, file by file, to test readers: Avro manifests with the fields and logical
// types of Iceberg's own writer, and data files by the tests' Parquet writer. It shares no code with the server's
// readers and writers, apart from structures of Parquet.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import avsc from 'avsc'
import { parquetFile, type WrittenColumn } from '../parquet-writer.js'

interface WrittenField {
  readonly id: number
  readonly name: string
  readonly type: unknown
  readonly required?: boolean
  readonly 'initial-default'?: unknown
}

export interface WrittenFile {
  /** Below the table. */
  readonly name: string
  readonly content?: 0 | 1 | 2
  readonly format?: string
  readonly rows: number
  readonly sequence?: number
  /** By the name of the field of the partition. */
  readonly partition?: Readonly<Record<string, unknown>>
  readonly bounds?: Readonly<Record<number, readonly [Buffer, Buffer]>>
  /** Counts of NULLs by field id. */
  readonly nulls?: Readonly<Record<number, number>>
  /** Of equality deletes; the first field when missing. */
  readonly equalityIds?: readonly number[]
  readonly dataFile?: string
  readonly range?: readonly [offset: number, bytes: number]
  readonly status?: 0 | 1 | 2
}

export interface WrittenTable {
  readonly location: string
  readonly fields: readonly WrittenField[]
  /** Of the schema before. */
  readonly formerFields?: readonly WrittenField[]
  readonly files: readonly WrittenFile[]
  readonly partitions?: readonly { readonly name: string; readonly transform: string; readonly sourceId: number }[]
  /** Avro types of the partition's fields, by name. */
  readonly partitionTypes?: Readonly<Record<string, unknown>>
  /** Those in the manifest of files of deletes; the same when missing. */
  readonly deletePartitionTypes?: Readonly<Record<string, unknown>>
  /** Bounds of the partitions of all files. */
  readonly summaries?: readonly (readonly [Buffer, Buffer])[]
  readonly properties?: Readonly<Record<string, string>>
  readonly version?: number
  readonly codec?: 'null' | 'deflate'
}

const snapshotId = 8_123_456_789_012_345_678n

/** Writes all but the data files; returns the path of the metadata. */
export function writeIceberg(folder: string, table: WrittenTable): string {
  const { location, fields, formerFields = [], files, partitions = [], properties = {}, version = 2 } = table
  const data = files.filter(({ content = 0 }) => content === 0)
  const deletes = files.filter(({ content = 0 }) => content !== 0)
  const manifests = [data, deletes].flatMap((some, index) => {
    if (some.length === 0) return []
    const name = `metadata/m${index}.avro`
    put(
      folder,
      name,
      avroFile(
        entrySchema(table, index === 1),
        some.map((file) => entry(table, file)),
        table.codec,
      ),
    )
    return [{ name, content: index, count: some.length }]
  })
  put(
    folder,
    'metadata/list.avro',
    avroFile(
      listSchema,
      manifests.map((one) => listed(table, one)),
      table.codec,
    ),
  )
  const metadata = {
    'format-version': version,
    'table-uuid': 'b55d9dda-6561-423a-8bfc-787980ce421f',
    location,
    'last-sequence-number': 9,
    'current-schema-id': 1,
    schemas: [
      { type: 'struct', 'schema-id': 0, fields: formerFields.map((field) => ({ required: false, ...field })) },
      { type: 'struct', 'schema-id': 1, fields: fields.map((field) => ({ required: false, ...field })) },
    ],
    'default-spec-id': 0,
    'partition-specs': [
      {
        'spec-id': 0,
        fields: partitions.map(({ name, transform, sourceId }, index) => ({
          ...{ name, transform, 'source-id': sourceId, 'field-id': 1000 + index },
        })),
      },
    ],
    properties,
    'current-snapshot-id': 'ID',
    snapshots: [{ 'snapshot-id': 'ID', 'manifest-list': `${location}/metadata/list.avro`, summary: {} }],
  }
  const text = JSON.stringify(metadata).replaceAll('"ID"', `${snapshotId}`)
  return put(folder, 'metadata/00001-b55d.metadata.json', Buffer.from(text))
}

export function putData(folder: string, name: string, columns: readonly WrittenColumn[], groupRows = 1000): void {
  put(folder, name, parquetFile(columns, { codec: 'snappy', version: 1, pageRows: 400, groupRows }))
}

export function put(folder: string, name: string, bytes: Uint8Array): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  return path
}

export function intBound(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes
}

export function longBound(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}

// Avro --------------------------------------------------------------------------------------------------------------

const long = avsc.types.LongType.__with({
  fromBuffer: (buffer: Buffer) => buffer.readBigInt64LE(),
  toBuffer: longBound,
  fromJSON: (value: number) => BigInt(value),
  toJSON: (value: bigint) => Number(value),
  isValid: (value: unknown) => typeof value === 'bigint',
  compare: () => 0,
})

function avroFile(schema: object, records: readonly object[], codec: 'null' | 'deflate' = 'deflate'): Buffer {
  const type = avsc.Type.forSchema(structuredClone(schema) as avsc.Schema, {
    wrapUnions: false,
    registry: { long },
  })
  const header = avsc.Type.forSchema({ type: 'map', values: 'bytes' })
  const block = avsc.Type.forSchema({
    type: 'record',
    name: 'block',
    fields: [
      { name: 'count', type: 'long' },
      { name: 'content', type: 'bytes' },
    ],
  })
  const sync = Buffer.alloc(16, 7)
  const blocks = records.map((record) => {
    const raw = type.toBuffer(record)
    return Buffer.concat([block.toBuffer({ count: 1, content: codec === 'null' ? raw : deflateRawSync(raw) }), sync])
  })
  const entries = { 'avro.schema': Buffer.from(JSON.stringify(schema)), 'avro.codec': Buffer.from(codec) }
  return Buffer.concat([Buffer.from('Obj\u0001', 'latin1'), header.toBuffer(entries), sync, ...blocks])
}

function optional(name: string, type: unknown, id: number): object {
  return { name, type: ['null', type], default: null, 'field-id': id }
}

function pairs(name: string, id: number, value: string): object {
  const item = {
    type: 'record',
    name: `k${id}_v${id}`,
    fields: [
      { name: 'key', type: 'int', 'field-id': id + 500 },
      { name: 'value', type: value, 'field-id': id + 600 },
    ],
  }
  return optional(name, { type: 'array', items: item, logicalType: 'map' }, id)
}

function entrySchema(
  { partitions = [], partitionTypes = {}, deletePartitionTypes = partitionTypes }: WrittenTable,
  isOfDeletes: boolean,
): object {
  const types = isOfDeletes ? deletePartitionTypes : partitionTypes
  const partition = {
    type: 'record',
    name: 'r102',
    fields: partitions.map(({ name }, index) => optional(name, types[name] ?? 'int', 1000 + index)),
  }
  const file = [
    { name: 'content', type: 'int', 'field-id': 134 },
    { name: 'file_path', type: 'string', 'field-id': 100 },
    { name: 'file_format', type: 'string', 'field-id': 101 },
    { name: 'partition', type: partition, 'field-id': 102 },
    { name: 'record_count', type: 'long', 'field-id': 103 },
    { name: 'file_size_in_bytes', type: 'long', 'field-id': 104 },
    pairs('column_sizes', 108, 'long'),
    pairs('null_value_counts', 110, 'long'),
    pairs('lower_bounds', 125, 'bytes'),
    pairs('upper_bounds', 128, 'bytes'),
    optional('key_metadata', 'bytes', 131),
    optional('split_offsets', { type: 'array', items: 'long', 'element-id': 133 }, 132),
    optional('equality_ids', { type: 'array', items: 'int', 'element-id': 136 }, 135),
    optional('sort_order_id', 'int', 140),
    optional('referenced_data_file', 'string', 143),
    optional('content_offset', 'long', 144),
    optional('content_size_in_bytes', 'long', 145),
  ]
  return {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      { name: 'status', type: 'int', 'field-id': 0 },
      optional('snapshot_id', 'long', 1),
      optional('sequence_number', 'long', 3),
      optional('file_sequence_number', 'long', 4),
      { name: 'data_file', type: { type: 'record', name: 'r2', fields: file }, 'field-id': 2 },
    ],
  }
}

function entry({ location, partitions = [] }: WrittenTable, file: WrittenFile): object {
  const bounds = (index: 0 | 1): object[] =>
    Object.entries(file.bounds ?? {}).map(([id, both]) => ({ key: Number(id), value: both[index] }))
  const equalityIds = file.content === 2 ? (file.equalityIds ?? [1]) : null
  const nulls = Object.entries(file.nulls ?? {}).map(([id, count]) => ({ key: Number(id), value: BigInt(count) }))
  const path = /^[a-z0-9]+:|^\//.test(file.name) ? file.name : `${location}/${file.name}`
  return {
    status: file.status ?? 1,
    snapshot_id: snapshotId,
    sequence_number: file.sequence === undefined ? null : BigInt(file.sequence),
    file_sequence_number: null,
    data_file: {
      ...{ content: file.content ?? 0, file_path: path, file_format: file.format ?? 'PARQUET' },
      partition: Object.fromEntries(partitions.map(({ name }) => [name, file.partition?.[name] ?? null])),
      ...{ record_count: BigInt(file.rows), file_size_in_bytes: 1000n, column_sizes: [{ key: 1, value: 5n }] },
      ...{ null_value_counts: nulls, lower_bounds: bounds(0), upper_bounds: bounds(1) },
      ...{ key_metadata: null, split_offsets: [4n], equality_ids: equalityIds, sort_order_id: 0 },
      referenced_data_file: file.dataFile === undefined ? null : `${location}/${file.dataFile}`,
      content_offset: file.range === undefined ? null : BigInt(file.range[0]),
      content_size_in_bytes: file.range === undefined ? null : BigInt(file.range[1]),
    },
  }
}

const listSchema = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    { name: 'manifest_path', type: 'string', 'field-id': 500 },
    { name: 'manifest_length', type: 'long', 'field-id': 501 },
    { name: 'partition_spec_id', type: 'int', 'field-id': 502 },
    { name: 'content', type: 'int', 'field-id': 517 },
    { name: 'sequence_number', type: 'long', 'field-id': 515 },
    { name: 'added_files_count', type: 'int', 'field-id': 504 },
    optional(
      'partitions',
      {
        type: 'array',
        'element-id': 508,
        items: {
          type: 'record',
          name: 'r508',
          fields: [
            { name: 'contains_null', type: 'boolean', 'field-id': 509 },
            optional('contains_nan', 'boolean', 518),
            optional('lower_bound', 'bytes', 510),
            optional('upper_bound', 'bytes', 511),
          ],
        },
      },
      507,
    ),
  ],
}

function listed(
  { location, summaries = [] }: WrittenTable,
  { name, content, count }: { readonly name: string; readonly content: number; readonly count: number },
): object {
  return {
    ...{ manifest_path: `${location}/${name}`, manifest_length: 1n, partition_spec_id: 0, content },
    ...{ sequence_number: 5n, added_files_count: count },
    partitions: summaries.map(([low, high]) => ({
      ...{ contains_null: false, contains_nan: null, lower_bound: low, upper_bound: high },
    })),
  }
}
