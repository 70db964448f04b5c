// Builds the request that creates an Iceberg table in an external catalog: schema, partition spec and sort order. For a
// table that the catalog has already, determines whether the data files of this server fit into its partitions, and
// whether they have its sort order.

import { StoreError } from '../object-store/object-store.js'
import type { PartitionUnit, TableSchema } from '../storage/schema/schema.js'
import type { CatalogMetadata } from './catalog-metadata.js'
import { avroName } from './foreign-metadata.js'
import { fieldIdOf, formatVersionOf, type LakeColumn, lakeColumns } from './lake-columns.js'
import { type PartitionField, partitionFieldOf, sortFieldsOf, type Transform } from './partition-spec.js'

/** The body of a request that creates the table. The catalog gives fields ids of its own. */
export function creationOf(schema: TableSchema): object {
  const partition = partitionFieldOf(schema)
  const sorted = sortFieldsOf(schema)
  return {
    schema: { type: 'struct', 'schema-id': 0, fields: lakeColumns(schema).map(({ field }) => field) },
    'partition-spec': { 'spec-id': 0, fields: partition === null ? [] : [partition] },
    'write-order': { 'order-id': sorted.length === 0 ? 0 : sortOrderId, fields: sorted },
    'stage-create': false,
    properties: {
      'format-version': `${formatVersionOf(schema)}`,
      'write.format.default': 'parquet',
      'write.parquet.compression-codec': 'snappy',
    },
  }
}

export function formatVersionIn(metadata: CatalogMetadata): 2 | 3 {
  return metadata['format-version'] === 3 ? 3 : 2
}

/** Whether the table asks for a higher format version than it has in the catalog. */
export function needsUpgrade(schema: TableSchema, metadata: CatalogMetadata): boolean {
  return formatVersionOf(schema) > formatVersionIn(metadata)
}

/** Catalogs that know version 2 alone answer a request for version 3 with an error, or by a table of version 2. */
export function versionRefused(schema: TableSchema, error: unknown, table: string): unknown {
  if (error !== null && !(error instanceof StoreError)) return error
  const version = formatVersionOf(schema)
  const reason = error?.message ?? 'its answer is a table of version 2'
  return new StoreError(
    'rejected',
    `the catalog gives the table no format version ${version}: ${reason} [table=${table}]`,
    { cause: error },
  )
}

/** The only order of which data files can say that they have it (manifest-files.ts). */
const sortOrderId = 1

const transforms: Readonly<Record<string, Transform>> = { hour: 'hour', day: 'day', month: 'month', year: 'year' }
/** Units of partitions here that lie within one partition of the transform. */
const unitsWithin: Readonly<Record<Transform, readonly PartitionUnit[]>> = {
  hour: ['HOUR'],
  day: ['HOUR', 'DAY'],
  month: ['HOUR', 'DAY', 'MONTH'],
  year: ['HOUR', 'DAY', 'MONTH', 'YEAR'],
}

/** The field of the default spec; null: it has none. Throws StoreError if files here would be in several partitions. */
export function partitionIn(
  schema: TableSchema,
  metadata: CatalogMetadata,
  columns: readonly LakeColumn[],
): PartitionField | null {
  const fields =
    metadata['partition-specs'].find((spec) => spec['spec-id'] === metadata['default-spec-id'])?.fields ?? []
  const [field] = fields
  if (field === undefined) return null
  const transform = transforms[field.transform]
  const isOfTime = field['source-id'] === timestampFieldId(schema, columns)
  if (
    fields.length === 1 &&
    isOfTime &&
    transform !== undefined &&
    unitsWithin[transform].includes(schema.partitionBy)
  ) {
    return { ...field, name: avroName(field.name), transform }
  }
  const spec = fields.map(({ name, transform: text }) => `${name}: ${text}`).join(', ')
  throw new StoreError(
    'rejected',
    `a table partitioned by ${schema.partitionBy} does not fit the partitions of the table in the catalog [spec=${spec}]`,
  )
}

export function isSortedIn(schema: TableSchema, metadata: CatalogMetadata, columns: readonly LakeColumn[]): boolean {
  if (metadata['default-sort-order-id'] !== sortOrderId) return false
  const order = metadata['sort-orders']?.find((one) => one['order-id'] === sortOrderId)
  const [first, ...rest] = order?.fields ?? []
  if (first === undefined || rest.length > 0) return false
  const isAscending =
    first.direction === 'asc' && first.transform === 'identity' && first['null-order'] === 'nulls-first'
  return isAscending && first['source-id'] === timestampFieldId(schema, columns)
}

function timestampFieldId(schema: TableSchema, columns: readonly LakeColumn[]): number {
  const index = lakeColumns(schema).findIndex(({ field }) => field.id === fieldIdOf({ id: schema.timestampId }))
  return columns[index]?.field.id ?? -1
}
