// The metadata of an Iceberg table, format version 2 or 3: a JSON object that lists the table's schemas, partition specs
// and snapshots. Each commit writes the next version of it. In format version 3 each snapshot gives ids to the rows of
// its manifests: `next-row-id` of the table is the first that no snapshot has given.

import type { TableSchema } from '../storage/schema/schema.js'
import { fieldIdOf, formatVersionOf, type IcebergField, type IcebergType, lakeColumns } from './lake-columns.js'
import { type PartitionField, partitionFieldOf, partitionIds, type SortField, sortFieldsOf } from './partition-spec.js'

export interface IcebergSchema {
  readonly type: 'struct'
  readonly 'schema-id': number
  readonly fields: readonly IcebergField[]
}

export interface Snapshot {
  readonly 'snapshot-id': number
  readonly 'parent-snapshot-id'?: number
  readonly 'sequence-number': number
  readonly 'timestamp-ms': number
  readonly 'manifest-list': string
  readonly summary: Readonly<Record<string, string>> & { readonly operation: string }
  readonly 'schema-id': number
  /** In format version 3. */
  readonly 'first-row-id'?: number
  /** In format version 3: how many ids the snapshot has given. */
  readonly 'added-rows'?: number
}

export interface TableMetadata {
  readonly 'format-version': 2 | 3
  readonly 'table-uuid': string
  readonly location: string
  readonly 'last-sequence-number': number
  readonly 'last-updated-ms': number
  readonly 'last-column-id': number
  readonly 'current-schema-id': number
  readonly schemas: readonly IcebergSchema[]
  readonly 'default-spec-id': 0
  readonly 'partition-specs': readonly { readonly 'spec-id': 0; readonly fields: readonly PartitionField[] }[]
  readonly 'last-partition-id': number
  readonly 'default-sort-order-id': number
  readonly 'sort-orders': readonly { readonly 'order-id': number; readonly fields: readonly SortField[] }[]
  readonly properties: Readonly<Record<string, string>>
  /** -1: there is none. */
  readonly 'current-snapshot-id': number
  readonly refs: Readonly<Record<string, { readonly 'snapshot-id': number; readonly type: 'branch' }>>
  readonly snapshots: readonly Snapshot[]
  readonly 'snapshot-log': readonly { readonly 'snapshot-id': number; readonly 'timestamp-ms': number }[]
  readonly 'metadata-log': readonly { readonly 'metadata-file': string; readonly 'timestamp-ms': number }[]
  /** In format version 3. */
  readonly 'next-row-id'?: number
}

/** Snapshots and versions of the metadata that the newest version lists. */
const snapshotsMax = 100

/** The first version, without a snapshot. */
export function firstMetadata(
  schema: TableSchema,
  { uuid, location, nowMs }: { readonly uuid: string; readonly location: string; readonly nowMs: number },
): TableMetadata {
  const fields = fieldsOf(schema)
  const partition = partitionFieldOf(schema)
  const sorted = sortFieldsOf(schema)
  return {
    'format-version': formatVersionOf(schema),
    'table-uuid': uuid,
    location,
    'last-sequence-number': 0,
    'last-updated-ms': nowMs,
    'last-column-id': lastIdOf(schema, fields),
    'current-schema-id': 0,
    schemas: [{ type: 'struct', 'schema-id': 0, fields }],
    'default-spec-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: partition === null ? [] : [partition] }],
    'last-partition-id': partition === null ? partitionIds - 1 : partitionIds,
    'default-sort-order-id': sorted.length === 0 ? 0 : 1,
    'sort-orders': [sorted.length === 0 ? { 'order-id': 0, fields: [] } : { 'order-id': 1, fields: sorted }],
    properties: { 'write.format.default': 'parquet', 'write.parquet.compression-codec': 'snappy' },
    'current-snapshot-id': -1,
    refs: {},
    snapshots: [],
    'snapshot-log': [],
    'metadata-log': [],
    ...(formatVersionOf(schema) === 3 ? { 'next-row-id': 0 } : {}),
  }
}

/** The metadata with the format version and the columns of the table; the same object if they have not changed. */
export function withSchema(before: TableMetadata, schema: TableSchema): TableMetadata {
  const isUpgraded = before['format-version'] < formatVersionOf(schema)
  const metadata: TableMetadata = isUpgraded ? { ...before, 'format-version': 3, 'next-row-id': 0 } : before
  const fields = fieldsOf(schema)
  const text = JSON.stringify(fields)
  if (JSON.stringify(currentSchema(metadata).fields) === text) return metadata
  const lastId = Math.max(metadata['last-column-id'], lastIdOf(schema, fields))
  const known = metadata.schemas.find((one) => JSON.stringify(one.fields) === text)
  const id = known?.['schema-id'] ?? Math.max(...metadata.schemas.map((one) => one['schema-id'])) + 1
  const added = known === undefined ? [{ type: 'struct' as const, 'schema-id': id, fields }] : []
  const schemas = [...metadata.schemas, ...added]
  return { ...metadata, schemas, 'current-schema-id': id, 'last-column-id': lastId }
}

export function currentSchema(metadata: TableMetadata): IcebergSchema {
  const found = metadata.schemas.find((schema) => schema['schema-id'] === metadata['current-schema-id'])
  if (found === undefined) throw new Error('the metadata of an Iceberg table lacks its current schema')
  return found
}

export function currentSnapshot(metadata: TableMetadata): Snapshot | null {
  const id = metadata['current-snapshot-id']
  return metadata.snapshots.find((snapshot) => snapshot['snapshot-id'] === id) ?? null
}

export function partitionOf(metadata: TableMetadata): PartitionField | null {
  return metadata['partition-specs'][0]?.fields[0] ?? null
}

/** The metadata with another current snapshot. The oldest snapshots are not listed any more. */
export function withSnapshot(metadata: TableMetadata, snapshot: Snapshot): TableMetadata {
  const snapshots = [...metadata.snapshots, snapshot].slice(-snapshotsMax)
  const id = snapshot['snapshot-id']
  const entry = { 'snapshot-id': id, 'timestamp-ms': snapshot['timestamp-ms'] }
  return {
    ...metadata,
    'last-sequence-number': snapshot['sequence-number'],
    'current-snapshot-id': id,
    refs: { main: { 'snapshot-id': id, type: 'branch' } },
    snapshots,
    ...nextRowId(metadata, snapshot),
    'snapshot-log': [...metadata['snapshot-log'], entry].slice(-snapshotsMax),
  }
}

function nextRowId(
  { 'next-row-id': first }: TableMetadata,
  { 'added-rows': rows = 0 }: Snapshot,
): Pick<TableMetadata, 'next-row-id'> {
  return first === undefined ? {} : { 'next-row-id': first + rows }
}

/** The metadata as the version behind the one in the file `previous`. */
export function asNext(metadata: TableMetadata, previous: string, nowMs: number): TableMetadata {
  const before = metadata['last-updated-ms']
  const log = [...metadata['metadata-log'], { 'metadata-file': previous, 'timestamp-ms': before }]
  return { ...metadata, 'last-updated-ms': Math.max(nowMs, before), 'metadata-log': log.slice(-snapshotsMax) }
}

function fieldsOf(schema: TableSchema): IcebergField[] {
  return lakeColumns(schema).map(({ field }) => field)
}

/** The highest id of a field so far, dropped columns included. */
function lastIdOf({ columns }: TableSchema, fields: readonly IcebergField[]): number {
  const ids = fields.flatMap(({ id, type }) => [id, ...elementIdsOf(type)])
  return Math.max(...columns.map(fieldIdOf), ...ids)
}

function elementIdsOf(type: IcebergType): number[] {
  return typeof type === 'string' ? [] : [type['element-id'], ...elementIdsOf(type.element)]
}
