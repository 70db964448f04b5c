// Reads manifests and manifest lists of Iceberg tables that other programs wrote, by the Avro schema in each file.
// Fields that an older version of the format lacks get the default values of the specification.

import { decodeForeignAvro } from './avro-file.js'
import { ForeignTableError } from './foreign-metadata.js'
import type { RawValue } from './foreign-types.js'

export interface ForeignManifest {
  /** URI. */
  readonly path: string
  readonly specId: number
  readonly isOfDeletes: boolean
  readonly sequenceNumber: bigint
  /** Bounds of its partitions, by field of the spec; undefined: unknown. */
  readonly partitions: readonly (
    | { readonly lowest: Uint8Array | null; readonly highest: Uint8Array | null; readonly hasNull: boolean }
    | undefined
  )[]
}

/** A data file, or a file of deletes. */
export interface ForeignDataFile {
  readonly content: 'data' | 'positions' | 'equality'
  /** URI. */
  readonly path: string
  readonly format: string
  readonly specId: number
  /** Values by field of the spec. */
  readonly partition: readonly RawValue[]
  readonly sequenceNumber: bigint
  readonly rows: number
  readonly bytes: number
  /** By field id. */
  readonly lowerBounds: ReadonlyMap<number, Uint8Array>
  readonly upperBounds: ReadonlyMap<number, Uint8Array>
  /** Field ids of the columns that equality deletes compare; empty: the file is another one. */
  readonly equalityIds: readonly number[]
  /** Of these columns, those that have a NULL or may have one. */
  readonly nullIds: ReadonlySet<number>
  /** Of positions: the only data file that they are of; null: of any. */
  readonly dataFile: string | null
  /** Of a deletion vector within its file. */
  readonly range: { readonly offset: number; readonly bytes: number } | null
}

interface ListRecord {
  readonly manifest_path: string
  readonly partition_spec_id?: number
  readonly content?: number
  readonly sequence_number?: bigint
  readonly partitions?: readonly RangeRecord[] | null
}

interface RangeRecord {
  readonly contains_null: boolean
  readonly lower_bound?: Uint8Array | null
  readonly upper_bound?: Uint8Array | null
}

export function decodeForeignList(bytes: Uint8Array): ForeignManifest[] {
  return decodeForeignAvro<ListRecord>(bytes).map((record) => ({
    path: record.manifest_path,
    specId: record.partition_spec_id ?? 0,
    isOfDeletes: record.content === 1,
    sequenceNumber: record.sequence_number ?? 0n,
    partitions: (record.partitions ?? []).map(({ contains_null, lower_bound = null, upper_bound = null }) => ({
      hasNull: contains_null,
      lowest: lower_bound,
      highest: upper_bound,
    })),
  }))
}

interface EntryRecord {
  readonly status: number
  readonly sequence_number?: bigint | null
  readonly data_file: FileRecord
}

type MapRecord<Value = Uint8Array> = readonly { readonly key: number; readonly value: Value }[] | null | undefined

interface FileRecord {
  readonly content?: number
  readonly file_path: string
  readonly file_format: string
  readonly partition: Readonly<Record<string, RawValue>>
  readonly record_count: bigint
  readonly file_size_in_bytes: bigint
  readonly lower_bounds?: MapRecord
  readonly upper_bounds?: MapRecord
  readonly null_value_counts?: MapRecord<bigint>
  readonly equality_ids?: readonly number[] | null
  readonly referenced_data_file?: string | null
  readonly content_offset?: bigint | null
  readonly content_size_in_bytes?: bigint | null
}

const deleted = 2
const contents = ['data', 'positions', 'equality'] as const

/** The live files of a manifest. */
export function decodeForeignManifest(from: ForeignManifest, bytes: Uint8Array): ForeignDataFile[] {
  return decodeForeignAvro<EntryRecord>(bytes)
    .filter(({ status }) => status !== deleted)
    .map(({ sequence_number, data_file: file }) => {
      const content = contents[file.content ?? 0]
      if (content === undefined) throw new ForeignTableError(`files of content ${file.content} are not supported`)
      const { content_offset: offset, content_size_in_bytes: size } = file
      const equalityIds = content === 'equality' ? (file.equality_ids ?? []) : []
      return {
        content,
        path: file.file_path,
        format: file.file_format.toUpperCase(),
        specId: from.specId,
        partition: Object.values(file.partition),
        sequenceNumber: sequence_number ?? from.sequenceNumber,
        rows: Number(file.record_count),
        bytes: Number(file.file_size_in_bytes),
        lowerBounds: mapOf(file.lower_bounds),
        upperBounds: mapOf(file.upper_bounds),
        equalityIds,
        nullIds: new Set(equalityIds.filter((id) => mayHaveNulls(file, id))),
        dataFile: file.referenced_data_file ?? null,
        range: offset == null || size == null ? null : { offset: Number(offset), bytes: Number(size) },
      }
    })
}

function mayHaveNulls({ null_value_counts: counts }: FileRecord, id: number): boolean {
  return counts?.find(({ key }) => key === id)?.value !== 0n
}

function mapOf(record: MapRecord): Map<number, Uint8Array> {
  return new Map((record ?? []).map(({ key, value }) => [key, value]))
}
