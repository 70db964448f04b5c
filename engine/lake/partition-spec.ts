// Partition spec and sort order of an Iceberg table. Partitions by hour, day, month and year become Iceberg's
// transforms of the designated timestamp (the table's time column). Iceberg has no transform for weeks, so a table with
// weekly partitions is unpartitioned there, like one with PARTITION BY NONE; readers skip its files by column bounds.

import type { PartDescriptor, PartitionUnit, TableSchema } from '../storage/schema/schema.js'
import { fieldIdOf } from './lake-columns.js'

export type Transform = 'hour' | 'day' | 'month' | 'year'

export interface PartitionField {
  readonly 'source-id': number
  readonly 'field-id': number
  readonly name: string
  readonly transform: Transform
}

export interface SortField {
  readonly transform: 'identity'
  readonly 'source-id': number
  readonly direction: 'asc'
  readonly 'null-order': 'nulls-first'
}

/** Ids of partition fields begin here. */
export const partitionIds = 1000

const transforms: Readonly<Partial<Record<PartitionUnit, Transform>>> = {
  HOUR: 'hour',
  DAY: 'day',
  MONTH: 'month',
  YEAR: 'year',
}

/** Null: the table is not partitioned. */
export function partitionFieldOf({ columns, timestampId, partitionBy }: TableSchema): PartitionField | null {
  const transform = transforms[partitionBy]
  const column = columns.find(({ id }) => id === timestampId)
  if (transform === undefined || column === undefined) return null
  const names = new Set(columns.map(({ name }) => name.toLowerCase()))
  // Avro permits no other characters in names.
  let name = `${column.name.replace(/[^A-Za-z0-9_]/g, '_').replace(/^(?=\d)/, '_')}_${transform}`
  while (names.has(name.toLowerCase())) name = `${name}_`
  return { 'source-id': fieldIdOf(column), 'field-id': partitionIds, name, transform }
}

export function sortFieldsOf({ columns, timestampId }: TableSchema): SortField[] {
  const column = columns.find(({ id }) => id === timestampId)
  if (column === undefined) return []
  return [{ transform: 'identity', 'source-id': fieldIdOf(column), direction: 'asc', 'null-order': 'nulls-first' }]
}

/** The partition of a time in microseconds: hours, days, months or years since 1970. */
export function partitionValue(transform: Transform, micros: bigint): number {
  const milliseconds = Number(floorDivide(micros, 1000n))
  const date = new Date(milliseconds)
  switch (transform) {
    case 'hour':
      return Math.floor(milliseconds / 3_600_000)
    case 'day':
      return Math.floor(milliseconds / 86_400_000)
    case 'month':
      return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
    case 'year':
      return date.getUTCFullYear() - 1970
  }
}

/** The partition of rows of one partition here; null in an unpartitioned table. */
export function partitionOfParts(
  schema: TableSchema,
  field: Pick<PartitionField, 'transform'> | null,
  [first]: readonly PartDescriptor[],
): number | null {
  return field === null || first === undefined ? null : partitionValue(field.transform, microsOf(schema, first.minTs))
}

/** The designated timestamp in microseconds. */
function microsOf({ columns, timestampId }: TableSchema, ts: bigint): bigint {
  const column = columns.find(({ id }) => id === timestampId)
  return column?.type.name === 'TIMESTAMP_NS' ? floorDivide(ts, 1000n) : ts
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value % by < 0n ? quotient - 1n : quotient
}
