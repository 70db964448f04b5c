// Writes the manifests of an Iceberg table, which list data files, and its manifest lists, which list the manifests of
// a snapshot; reads those that this server has written. Contains their Avro schemas with the field ids of the Iceberg
// specification, versions 2 and 3. In version 3 the rows of a table have ids: those of a data file follow from the id of
// its first row, which the file inherits from its manifest until an entry says it.

import { type AvroSchema, avroHeader, decodeAvro, encodeAvro } from './avro-file.js'
import type { PartitionField, Transform } from './partition-spec.js'

export const entryStatus = { existing: 0, added: 1, deleted: 2 } as const

/** What a manifest says about the columns of a data file, by field id. */
export interface ColumnMetrics {
  /** Number of values including NULLs. */
  readonly valueCounts: ReadonlyMap<number, number>
  readonly nullCounts: ReadonlyMap<number, number>
  readonly lowerBounds: ReadonlyMap<number, Buffer>
  readonly upperBounds: ReadonlyMap<number, Buffer>
}

export interface DataFile extends ColumnMetrics {
  /** URI. */
  readonly path: string
  readonly rows: number
  readonly bytes: number
  /** Null in an unpartitioned table. */
  readonly partition: number | null
  readonly isSorted: boolean
  /** Id of its first row; absent: the manifest's, or in format version 2 none. */
  readonly firstRowId?: number
}

export interface ManifestEntry {
  readonly status: (typeof entryStatus)[keyof typeof entryStatus]
  readonly snapshotId: number
  /** Of the snapshot that added the file; null: that of the snapshot that adds the manifest. */
  readonly sequenceNumber: number | null
  readonly file: DataFile
}

/** A manifest as the list describes it. */
export interface ManifestFile {
  /** URI. */
  readonly path: string
  readonly bytes: number
  readonly sequenceNumber: number
  readonly minSequenceNumber: number
  readonly snapshotId: number
  /** Files and rows by status. */
  readonly files: readonly [existing: number, added: number, deleted: number]
  readonly rows: readonly [existing: number, added: number, deleted: number]
  /** Range of the partitions of its files; null in an unpartitioned table. */
  readonly partitions: readonly [lowest: number, highest: number] | null
  /** Of the first row whose file has no id; absent in format version 2, and before a snapshot of version 3 lists it. */
  readonly firstRowId?: number
}

/** What the headers of manifests repeat from the table's metadata. */
export interface ManifestHeader {
  readonly schemaId: number
  readonly fields: readonly object[]
  readonly partitionField: PartitionField | null
  /** 0 unless the metadata has other specs, too. */
  readonly specId?: number
  /** 2 unless given. */
  readonly formatVersion?: 2 | 3
}

const specIdDefault = 0
const sortOrderId = 1
const contentData = 0

export function encodeManifest(header: ManifestHeader, entries: readonly ManifestEntry[]): Buffer {
  const { partitionField, schemaId, fields, specId = specIdDefault, formatVersion = 2 } = header
  const metadata = {
    schema: JSON.stringify({ type: 'struct', 'schema-id': schemaId, fields }),
    'schema-id': `${schemaId}`,
    'partition-spec': JSON.stringify(partitionField === null ? [] : [partitionField]),
    'partition-spec-id': `${specId}`,
    'format-version': `${formatVersion}`,
    content: 'data',
  }
  return encodeAvro(
    entrySchema(partitionField, formatVersion === 3),
    metadata,
    entries.map((entry) => entryRecord(partitionField, entry)),
  )
}

/** `from`: the manifest's description, whose numbers its added entries inherit. */
export function decodeManifest(
  partitionField: PartitionField | null,
  from: Pick<ManifestFile, 'sequenceNumber' | 'firstRowId'>,
  bytes: Uint8Array,
): ManifestEntry[] {
  const entries = decodeAvro<EntryRecord>(entrySchema(partitionField, isVersion3(bytes)), bytes).map((record) => {
    const { status, snapshot_id, sequence_number, data_file } = record
    const partition = partitionField === null ? null : (data_file.partition[partitionField.name] ?? null)
    return { status, snapshotId: snapshot_id, sequenceNumber: sequence_number, file: fileOf(data_file, partition) }
  })
  return inherited(entries, from)
}

/** The entries with the numbers that they inherit from their manifest. */
export function inherited(
  entries: readonly ManifestEntry[],
  { sequenceNumber: number, firstRowId }: Pick<ManifestFile, 'sequenceNumber' | 'firstRowId'>,
): ManifestEntry[] {
  let nextRowId = firstRowId
  return entries.map((entry) => {
    const sequenceNumber = entry.sequenceNumber ?? number
    const { file, status } = entry
    if (nextRowId === undefined || file.firstRowId !== undefined || status === entryStatus.deleted)
      return { ...entry, sequenceNumber }
    const own = { ...file, firstRowId: nextRowId }
    nextRowId += file.rows
    return { ...entry, sequenceNumber, file: own }
  })
}

function isVersion3(bytes: Uint8Array): boolean {
  return avroHeader(bytes)['format-version'] === '3'
}

export interface ListedSnapshot {
  readonly id: number
  readonly parentId: number | null
  readonly sequenceNumber: number
  /** Absent in format version 2. */
  readonly firstRowId?: number
}

/**
 * The manifests with ids for the rows of those that have none, from this one on, and the first id that is left. Ids are
 * taken for deleted rows, too: a manifest of version 2 does not say that they have none.
 */
export function withRowIds(
  manifests: readonly ManifestFile[],
  firstRowId: number,
): { readonly manifests: readonly ManifestFile[]; readonly nextRowId: number } {
  let nextRowId = firstRowId
  const given = manifests.map((manifest) => {
    if (manifest.firstRowId !== undefined) return manifest
    const own = { ...manifest, firstRowId: nextRowId }
    nextRowId += manifest.rows.reduce((sum, rows) => sum + rows, 0)
    return own
  })
  return { manifests: given, nextRowId }
}

export function encodeManifestList(snapshot: ListedSnapshot, manifests: readonly ManifestFile[]): Buffer {
  const metadata = {
    'snapshot-id': `${snapshot.id}`,
    'parent-snapshot-id': `${snapshot.parentId}`,
    'sequence-number': `${snapshot.sequenceNumber}`,
    ...(snapshot.firstRowId === undefined ? {} : { 'first-row-id': `${snapshot.firstRowId}` }),
    'format-version': snapshot.firstRowId === undefined ? '2' : '3',
  }
  const schema = snapshot.firstRowId === undefined ? listSchema : listSchemaOfVersion3
  return encodeAvro(schema, metadata, manifests.map(listRecord))
}

export function decodeManifestList(bytes: Uint8Array): ManifestFile[] {
  return decodeAvro<ListRecord>(isVersion3(bytes) ? listSchemaOfVersion3 : listSchema, bytes).map((read) => {
    const [partition] = read.partitions ?? []
    return {
      path: read.manifest_path,
      bytes: read.manifest_length,
      sequenceNumber: read.sequence_number,
      minSequenceNumber: read.min_sequence_number,
      snapshotId: read.added_snapshot_id,
      files: [read.existing_files_count, read.added_files_count, read.deleted_files_count],
      rows: [read.existing_rows_count, read.added_rows_count, read.deleted_rows_count],
      partitions: partition === undefined ? null : [numberOf(partition.lower_bound), numberOf(partition.upper_bound)],
      ...firstRowIdOf(read),
    }
  })
}

// Entries -----------------------------------------------------------------------------------------------------------

type MapRecord<Value> = readonly { readonly key: number; readonly value: Value }[]

/** Fields of records in format version 3. */
interface RowIdRecord {
  readonly first_row_id?: number | null
}

function firstRowIdOf({ first_row_id: id }: RowIdRecord): { readonly firstRowId?: number } {
  return id == null ? {} : { firstRowId: id }
}

interface FileRecord extends RowIdRecord {
  readonly content: number
  readonly file_path: string
  readonly file_format: string
  readonly partition: Readonly<Record<string, number | null>>
  readonly record_count: number
  readonly file_size_in_bytes: number
  readonly value_counts: MapRecord<number> | null
  readonly null_value_counts: MapRecord<number> | null
  readonly lower_bounds: MapRecord<Buffer> | null
  readonly upper_bounds: MapRecord<Buffer> | null
  readonly sort_order_id: number | null
}

interface EntryRecord {
  readonly status: ManifestEntry['status']
  readonly snapshot_id: number
  readonly sequence_number: number | null
  readonly file_sequence_number: number | null
  readonly data_file: FileRecord
}

function entryRecord(partitionField: PartitionField | null, entry: ManifestEntry): EntryRecord {
  const { path, rows, bytes, partition, isSorted, firstRowId = null, ...metrics } = entry.file
  const file: FileRecord = {
    content: contentData,
    file_path: path,
    file_format: 'PARQUET',
    partition: partitionField === null ? {} : { [partitionField.name]: partition },
    record_count: rows,
    file_size_in_bytes: bytes,
    value_counts: mapRecord(metrics.valueCounts),
    null_value_counts: mapRecord(metrics.nullCounts),
    lower_bounds: mapRecord(metrics.lowerBounds),
    upper_bounds: mapRecord(metrics.upperBounds),
    sort_order_id: isSorted ? sortOrderId : null,
    first_row_id: firstRowId,
  }
  return {
    status: entry.status,
    snapshot_id: entry.snapshotId,
    sequence_number: entry.sequenceNumber,
    file_sequence_number: entry.sequenceNumber,
    data_file: file,
  }
}

function mapRecord<Value>(map: ReadonlyMap<number, Value>): MapRecord<Value> {
  return [...map].map(([key, value]) => ({ key, value }))
}

function mapOf<Value>(record: MapRecord<Value> | null): Map<number, Value> {
  return new Map((record ?? []).map(({ key, value }) => [key, value]))
}

function fileOf(record: FileRecord, partition: number | null): DataFile {
  return {
    path: record.file_path,
    rows: record.record_count,
    bytes: record.file_size_in_bytes,
    partition,
    isSorted: record.sort_order_id === sortOrderId,
    valueCounts: mapOf(record.value_counts),
    nullCounts: mapOf(record.null_value_counts),
    lowerBounds: mapOf(record.lower_bounds),
    upperBounds: mapOf(record.upper_bounds),
    ...firstRowIdOf(record),
  }
}

function entrySchema(partitionField: PartitionField | null, hasRowIds: boolean): AvroSchema {
  return {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      { name: 'status', type: 'int', 'field-id': 0 },
      optional('snapshot_id', 'long', 1),
      optional('sequence_number', 'long', 3),
      optional('file_sequence_number', 'long', 4),
      { name: 'data_file', type: fileSchema(partitionField, hasRowIds), 'field-id': 2 },
    ],
  }
}

function fileSchema(partitionField: PartitionField | null, hasRowIds: boolean): object {
  return {
    type: 'record',
    name: 'r2',
    fields: [
      { name: 'content', type: 'int', 'field-id': 134 },
      { name: 'file_path', type: 'string', 'field-id': 100 },
      { name: 'file_format', type: 'string', 'field-id': 101 },
      { name: 'partition', type: partitionSchema(partitionField), 'field-id': 102 },
      { name: 'record_count', type: 'long', 'field-id': 103 },
      { name: 'file_size_in_bytes', type: 'long', 'field-id': 104 },
      optionalMap('value_counts', 109, [119, 120], 'long'),
      optionalMap('null_value_counts', 110, [121, 122], 'long'),
      optionalMap('lower_bounds', 125, [126, 127], 'bytes'),
      optionalMap('upper_bounds', 128, [129, 130], 'bytes'),
      optional('sort_order_id', 'int', 140),
      ...(hasRowIds ? [optional('first_row_id', 'long', 142)] : []),
    ],
  }
}

function partitionSchema(partitionField: PartitionField | null): object {
  if (partitionField === null) return { type: 'record', name: 'r102', fields: [] }
  const { name, transform, 'field-id': id } = partitionField
  return { type: 'record', name: 'r102', fields: [optional(name, partitionTypes[transform], id)] }
}

/** Days are dates in Iceberg; avsc takes the logical type for a plain number. */
const partitionTypes: Readonly<Record<Transform, unknown>> = {
  hour: 'int',
  day: { type: 'int', logicalType: 'date' },
  month: 'int',
  year: 'int',
}

function optional(name: string, type: unknown, id: number): object {
  return { name, type: ['null', type], default: null, 'field-id': id }
}

/** A map whose keys are no strings: a list of pairs. */
function optionalMap(name: string, id: number, [keyId, valueId]: readonly [number, number], value: string): object {
  const pair = {
    type: 'record',
    name: `k${keyId}_v${valueId}`,
    fields: [
      { name: 'key', type: 'int', 'field-id': keyId },
      { name: 'value', type: value, 'field-id': valueId },
    ],
  }
  return optional(name, { type: 'array', items: pair, logicalType: 'map' }, id)
}

// The list ----------------------------------------------------------------------------------------------------------

interface PartitionRange {
  readonly contains_null: boolean
  readonly contains_nan: boolean | null
  readonly lower_bound: Buffer | null
  readonly upper_bound: Buffer | null
}

interface ListRecord extends RowIdRecord {
  readonly manifest_path: string
  readonly manifest_length: number
  readonly partition_spec_id: number
  readonly content: number
  readonly sequence_number: number
  readonly min_sequence_number: number
  readonly added_snapshot_id: number
  readonly added_files_count: number
  readonly existing_files_count: number
  readonly deleted_files_count: number
  readonly added_rows_count: number
  readonly existing_rows_count: number
  readonly deleted_rows_count: number
  readonly partitions: readonly PartitionRange[] | null
}

const rangeSchema = {
  type: 'record',
  name: 'r508',
  fields: [
    { name: 'contains_null', type: 'boolean', 'field-id': 509 },
    optional('contains_nan', 'boolean', 518),
    optional('lower_bound', 'bytes', 510),
    optional('upper_bound', 'bytes', 511),
  ],
}

export const listSchema: AvroSchema = {
  type: 'record',
  name: 'manifest_file',
  fields: [
    { name: 'manifest_path', type: 'string', 'field-id': 500 },
    { name: 'manifest_length', type: 'long', 'field-id': 501 },
    { name: 'partition_spec_id', type: 'int', 'field-id': 502 },
    { name: 'content', type: 'int', 'field-id': 517 },
    { name: 'sequence_number', type: 'long', 'field-id': 515 },
    { name: 'min_sequence_number', type: 'long', 'field-id': 516 },
    { name: 'added_snapshot_id', type: 'long', 'field-id': 503 },
    { name: 'added_files_count', type: 'int', 'field-id': 504 },
    { name: 'existing_files_count', type: 'int', 'field-id': 505 },
    { name: 'deleted_files_count', type: 'int', 'field-id': 506 },
    { name: 'added_rows_count', type: 'long', 'field-id': 512 },
    { name: 'existing_rows_count', type: 'long', 'field-id': 513 },
    { name: 'deleted_rows_count', type: 'long', 'field-id': 514 },
    optional('partitions', { type: 'array', items: rangeSchema, 'element-id': 508 }, 507),
  ],
}

const listSchemaOfVersion3: AvroSchema = {
  ...listSchema,
  fields: [...listSchema.fields, optional('first_row_id', 'long', 520)],
}

function listRecord(manifest: ManifestFile): ListRecord {
  const { files, rows, partitions } = manifest
  const ranges: PartitionRange[] =
    partitions === null
      ? []
      : [
          {
            ...{ contains_null: false, contains_nan: false },
            ...{ lower_bound: intBytes(partitions[0]), upper_bound: intBytes(partitions[1]) },
          },
        ]
  return {
    manifest_path: manifest.path,
    manifest_length: manifest.bytes,
    partition_spec_id: specIdDefault,
    content: contentData,
    sequence_number: manifest.sequenceNumber,
    min_sequence_number: manifest.minSequenceNumber,
    added_snapshot_id: manifest.snapshotId,
    added_files_count: files[entryStatus.added],
    existing_files_count: files[entryStatus.existing],
    deleted_files_count: files[entryStatus.deleted],
    added_rows_count: rows[entryStatus.added],
    existing_rows_count: rows[entryStatus.existing],
    deleted_rows_count: rows[entryStatus.deleted],
    partitions: ranges,
    first_row_id: manifest.firstRowId ?? null,
  }
}

export function intBytes(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes
}

function numberOf(bytes: Buffer | null): number {
  return bytes === null ? 0 : bytes.readInt32LE()
}
