// Reads and writes manifests, which list data files, and manifest lists of an Iceberg table to which several programs
// commit. A new snapshot keeps the manifests of other programs as they are. A manifest that lists a removed file is
// written again with all fields of its writer's schema, and the entry of the file is marked as deleted.
//
// In format version 3 the rows of a table have ids. A list says the id of the first row of each manifest of data files;
// those that have none yet get ids from `next-row-id` of the table on, for all their rows.
//
// Invariants:
//   1. If a manifest replaces another, it has all live entries of the other one, with their snapshot id, sequence
//      numbers and ids of rows, whether these were written in the entry or inherited from the list.
//   2. For a manifest that is kept, the new list contains the same entry as the list before. In the first list of format
//      version 3, ids of rows are added.

import { decodeForeignAvro, decodeWholeAvro, encodeExactAvro } from './avro-file.js'
import { entryStatus, intBytes, listSchema } from './manifest-files.js'

interface PartitionSummary {
  readonly contains_null: boolean
  readonly contains_nan?: boolean | null
  readonly lower_bound?: Uint8Array | null
  readonly upper_bound?: Uint8Array | null
}

/** A manifest as a list describes it. */
export interface ListedManifest {
  readonly manifest_path: string
  readonly manifest_length: bigint
  readonly partition_spec_id: number
  /** 0: data files, 1: files of deletes. */
  readonly content: number
  readonly sequence_number: bigint
  readonly min_sequence_number: bigint
  readonly added_snapshot_id: bigint
  readonly added_files_count: number
  readonly existing_files_count: number
  readonly deleted_files_count: number
  readonly added_rows_count: bigint
  readonly existing_rows_count: bigint
  readonly deleted_rows_count: bigint
  readonly partitions: readonly PartitionSummary[] | null
  readonly key_metadata: Uint8Array | null
  /** Null: none of its rows has an id, or it lists files of deletes. */
  readonly first_row_id: bigint | null
}

/** Of an entry, what is read and changed; the other fields are kept. */
interface Entry {
  readonly status: number
  readonly snapshot_id: bigint | null
  readonly sequence_number: bigint | null
  readonly file_sequence_number: bigint | null
  readonly data_file: {
    readonly file_path: string
    readonly record_count: bigint
    readonly file_size_in_bytes: bigint
    /** Absent in manifests of format version 2. */
    readonly first_row_id?: bigint | null
  }
}

export interface Manifest {
  readonly schema: string
  readonly header: Readonly<Record<string, string>>
  readonly listed: ListedManifest
  /** Without deleted ones, and with inherited numbers. */
  readonly live: readonly Entry[]
}

/** A data file of a live entry. */
export interface ListedFile {
  readonly path: string
  readonly rows: number
  readonly bytes: number
}

export interface NewSnapshot {
  readonly id: bigint
  readonly parentId: bigint | null
  readonly sequenceNumber: bigint
  /** The first id that it may give to rows; null: its table has format version 2. */
  readonly firstRowId: bigint | null
}

/** Older writers name counts of files otherwise. */
interface OlderNames {
  readonly added_data_files_count?: number
  readonly existing_data_files_count?: number
  readonly deleted_data_files_count?: number
}

const wholeFields = [
  ...listSchema.fields,
  { name: 'key_metadata', type: ['null', 'bytes'], default: null, 'field-id': 519 },
]
const firstRowIdId = { ofManifest: 520, ofFile: 142 }
const firstRowIdField = { name: 'first_row_id', type: ['null', 'long'], default: null }
const wholeSchemas = {
  version2: JSON.stringify({ ...listSchema, fields: wholeFields }),
  version3: JSON.stringify({
    ...listSchema,
    fields: [...wholeFields, { ...firstRowIdField, 'field-id': firstRowIdId.ofManifest }],
  }),
}

export function decodeList(bytes: Uint8Array): ListedManifest[] {
  return decodeForeignAvro<Partial<ListedManifest> & OlderNames>(bytes).map((record) => {
    const { manifest_path: path, manifest_length: length, added_snapshot_id: added } = record
    if (path === undefined || length === undefined || added === undefined)
      throw new Error('a manifest list lacks fields')
    return {
      ...{ manifest_path: path, manifest_length: length, added_snapshot_id: added },
      partition_spec_id: record.partition_spec_id ?? 0,
      content: record.content ?? 0,
      sequence_number: record.sequence_number ?? 0n,
      min_sequence_number: record.min_sequence_number ?? 0n,
      added_files_count: record.added_files_count ?? record.added_data_files_count ?? 0,
      existing_files_count: record.existing_files_count ?? record.existing_data_files_count ?? 0,
      deleted_files_count: record.deleted_files_count ?? record.deleted_data_files_count ?? 0,
      added_rows_count: record.added_rows_count ?? 0n,
      existing_rows_count: record.existing_rows_count ?? 0n,
      deleted_rows_count: record.deleted_rows_count ?? 0n,
      partitions: record.partitions ?? null,
      key_metadata: record.key_metadata ?? null,
      first_row_id: record.first_row_id ?? null,
    }
  })
}

/** The list, and the first id of a row that is left; null: in format version 2. */
export function encodeList(
  { id, parentId, sequenceNumber, firstRowId }: NewSnapshot,
  manifests: readonly ListedManifest[],
): { readonly bytes: Buffer; readonly nextRowId: bigint | null } {
  const metadata = {
    'snapshot-id': `${id}`,
    'parent-snapshot-id': `${parentId}`,
    'sequence-number': `${sequenceNumber}`,
    ...(firstRowId === null ? {} : { 'first-row-id': `${firstRowId}` }),
    'format-version': firstRowId === null ? '2' : '3',
  }
  if (firstRowId === null)
    return { bytes: encodeExactAvro(wholeSchemas.version2, metadata, manifests.map(listRecord)), nextRowId: null }
  const { numbered, nextRowId } = withRowIds(manifests, firstRowId)
  return { bytes: encodeExactAvro(wholeSchemas.version3, metadata, numbered.map(listRecord)), nextRowId }
}

function withRowIds(
  manifests: readonly ListedManifest[],
  firstRowId: bigint,
): { readonly numbered: readonly ListedManifest[]; readonly nextRowId: bigint } {
  let nextRowId = firstRowId
  const numbered = manifests.map((manifest) => {
    if (manifest.content !== 0 || manifest.first_row_id !== null) return manifest
    const own = { ...manifest, first_row_id: nextRowId }
    nextRowId += manifest.added_rows_count + manifest.existing_rows_count
    return own
  })
  return { numbered, nextRowId }
}

export function decodeEntries(listed: ListedManifest, bytes: Uint8Array): Manifest {
  const { schema, metadata, records } = decodeWholeAvro<Entry>(bytes)
  const header = Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith('avro.')))
  const live = records
    .filter(({ status }) => status !== entryStatus.deleted)
    .map((entry) => ({
      ...entry,
      snapshot_id: entry.snapshot_id ?? listed.added_snapshot_id,
      sequence_number: entry.sequence_number ?? listed.sequence_number,
      file_sequence_number: entry.file_sequence_number ?? listed.sequence_number,
    }))
  return { schema, header, listed, live }
}

export function filesOf({ live }: Manifest): ListedFile[] {
  return live.map(({ data_file: file }) => ({
    path: file.file_path,
    rows: Number(file.record_count),
    bytes: Number(file.file_size_in_bytes),
  }))
}

/** Whether their entries may be in one manifest. */
export function mayJoin(one: Manifest, other: Manifest): boolean {
  const { listed } = one
  const isAlike = listed.content === other.listed.content && listed.partition_spec_id === other.listed.partition_spec_id
  return isAlike && one.schema === other.schema
}

/** One manifest with the entries of all, which may join; entries of removed files are marked as deleted. */
export function rewritten(
  manifests: readonly Manifest[],
  removed: ReadonlySet<string>,
  { id, sequenceNumber, firstRowId }: NewSnapshot,
  path: string,
): { readonly listed: ListedManifest; readonly bytes: Buffer } {
  const newest = manifests.at(-1)
  if (newest === undefined) throw new Error('a manifest is written again from none')
  const hasRowIds = firstRowId !== null && newest.listed.content === 0
  const entries = manifests
    .flatMap((manifest) => (hasRowIds ? numberedEntries(manifest) : manifest.live))
    .map((entry): Entry => {
      if (!removed.has(entry.data_file.file_path)) return { ...entry, status: entryStatus.existing }
      return { ...entry, status: entryStatus.deleted, snapshot_id: id }
    })
  const schema = hasRowIds ? withRowIdField(newest.schema) : newest.schema
  const header = hasRowIds ? { ...newest.header, 'format-version': '3' } : newest.header
  const bytes = encodeExactAvro(schema, header, entries)
  const kept = entries.filter(({ status }) => status === entryStatus.existing)
  const gone = entries.filter(({ status }) => status === entryStatus.deleted)
  return {
    bytes,
    listed: {
      ...{ manifest_path: path, manifest_length: BigInt(bytes.length), content: newest.listed.content },
      ...{ partition_spec_id: newest.listed.partition_spec_id, sequence_number: sequenceNumber, added_snapshot_id: id },
      min_sequence_number: kept.reduce(
        (least, { sequence_number: number }) => (number !== null && number < least ? number : least),
        sequenceNumber,
      ),
      ...{ added_files_count: 0, existing_files_count: kept.length, deleted_files_count: gone.length },
      ...{ added_rows_count: 0n, existing_rows_count: rowsOf(kept), deleted_rows_count: rowsOf(gone) },
      partitions: joinedPartitions(manifests.map(({ listed }) => listed.partitions)),
      key_metadata: newest.listed.key_metadata,
      first_row_id: null,
    },
  }
}

/** The live entries with the ids of rows that they inherit from the list. */
function numberedEntries({ listed, live }: Manifest): Entry[] {
  let nextRowId = listed.first_row_id
  return live.map((entry) => {
    const { data_file: file } = entry
    const own = file.first_row_id ?? nextRowId
    if (file.first_row_id == null && nextRowId !== null) nextRowId += file.record_count
    return { ...entry, data_file: { ...file, first_row_id: own } }
  })
}

interface AvroField {
  readonly name: string
  readonly type: unknown
}

/** The schema of entries with a field for the id of a file's first row. */
function withRowIdField(schema: string): string {
  const record: { readonly fields: readonly AvroField[] } = JSON.parse(schema)
  const fields = record.fields.map((field) => {
    if (field.name !== 'data_file' || !isRecord(field.type)) return field
    if (field.type.fields.some(({ name }) => name === firstRowIdField.name)) return field
    const own = { ...firstRowIdField, 'field-id': firstRowIdId.ofFile }
    return { ...field, type: { ...field.type, fields: [...field.type.fields, own] } }
  })
  return JSON.stringify({ ...record, fields })
}

function isRecord(type: unknown): type is { readonly fields: readonly AvroField[] } {
  return typeof type === 'object' && type !== null && 'fields' in type && Array.isArray(type.fields)
}

function rowsOf(entries: readonly Entry[]): bigint {
  return entries.reduce((sum, { data_file: file }) => sum + file.record_count, 0n)
}

/** Null, which says nothing, unless the partitions are one int each: of other types a single manifest's are kept. */
function joinedPartitions(all: readonly ListedManifest['partitions'][]): ListedManifest['partitions'] {
  const [first, ...rest] = all
  if (first === undefined || rest.length === 0) return first ?? null
  const bounds = all.map((partitions) => {
    const [one, ...others] = partitions ?? []
    const { lower_bound: low, upper_bound: high } = one ?? {}
    const isInt = others.length === 0 && low?.length === 4 && high?.length === 4
    return isInt ? { low: intOf(low), high: intOf(high), hasNull: one?.contains_null ?? true } : null
  })
  const known = bounds.flatMap((bound) => bound ?? [])
  if (known.length < bounds.length) return null
  const low = known.reduce((least, bound) => Math.min(least, bound.low), Number.POSITIVE_INFINITY)
  const high = known.reduce((most, bound) => Math.max(most, bound.high), Number.NEGATIVE_INFINITY)
  const hasNull = known.some((bound) => bound.hasNull)
  return [{ contains_null: hasNull, contains_nan: false, lower_bound: intBytes(low), upper_bound: intBytes(high) }]
}

function intOf(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getInt32(0, true)
}

/** The encoder wants Buffers and every field. */
function listRecord(manifest: ListedManifest): object {
  const { partitions, key_metadata: key } = manifest
  return {
    ...manifest,
    partitions:
      partitions?.map((summary) => ({
        contains_null: summary.contains_null,
        contains_nan: summary.contains_nan ?? null,
        lower_bound: bufferOf(summary.lower_bound),
        upper_bound: bufferOf(summary.upper_bound),
      })) ?? null,
    key_metadata: bufferOf(key),
  }
}

function bufferOf(bytes: Uint8Array | null | undefined): Buffer | null {
  return bytes == null ? null : Buffer.from(bytes)
}
