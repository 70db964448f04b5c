// Formats tables and views as the statements that create them, for SHOW CREATE TABLE, VIEW, MATERIALIZED VIEW, LIVE
// VIEW and DATABASE. Column names in CREATE TABLE are not quoted, because existing clients compare the text with an
// expected one.

import type { RefreshStrategy } from '../../storage/schema/materialized.js'
import {
  type ColumnSchema,
  type ColumnStorage,
  enforcedKey,
  liveColumns,
  type PartitionAge,
  type TableSchema,
} from '../../storage/schema/schema.js'
import { typeText } from '../../types/column-types.js'
import { quoteIdent } from '../../types/identifier.js'
import { formatTimestamp } from '../../types/timestamp.js'
import type { StoredView } from '../catalog.js'
import { defaultIndexCapacity } from './table-relations.js'

export function createTableText(schema: TableSchema): string {
  const columns = [...liveColumns(schema).map(columnText), ...keyText(schema)].join(',\n\t')
  return `CREATE TABLE '${schema.name}' ( \n\t${columns}\n)${tableTail(schema)};`
}

/** Only an enforced key, which makes a difference to the rows of the table. */
function keyText(schema: TableSchema): string[] {
  const key = enforcedKey(schema)
  if (key === undefined) return []
  const names = key.columnIds.map((id) => schema.columns[id]?.name ?? '')
  return [`CONSTRAINT ${quoteIdent(key.name)} PRIMARY KEY (${names.join(', ')}) ENFORCED`]
}

/** With further statements for what CREATE has no clause for: the limit of refreshes, and indexes. */
export function createMaterializedText(schema: TableSchema): string {
  const { name, materialized, partitionBy, ttl } = schema
  if (materialized === undefined) return ''
  const { sql, baseName, refresh, limit } = materialized
  const created = `CREATE MATERIALIZED VIEW '${name}' WITH BASE '${baseName}' REFRESH ${refreshText(refresh)} AS (\n${sql}\n) PARTITION BY ${partitionBy}${ttlText(ttl)};`
  const alter = `\nALTER MATERIALIZED VIEW '${name}'`
  const limited = limit === null ? '' : `${alter} SET REFRESH LIMIT ${ageText(limit)};`
  const indexes = liveColumns(schema).flatMap(({ name: column, indexed }) => {
    if (indexed === undefined) return []
    const capacity = indexed.blockCapacity === 0 ? '' : ` CAPACITY ${indexed.blockCapacity}`
    return [`${alter} ALTER COLUMN ${quoteIdent(column)} ADD INDEX${capacity};`]
  })
  return `${created}${limited}${indexes.join('')}`
}

export function createLiveText({ name, materialized, partitionBy, ...schema }: TableSchema): string {
  if (materialized?.live === undefined) return ''
  const { flushEvery, inMemory, start } = materialized.live
  const type = schema.columns.find(({ id }) => id === schema.timestampId)?.type.name
  const unit = type === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const memory = inMemory === null ? '' : ` IN MEMORY ${inMemory}`
  const units = partitionBy === 'NONE' ? '' : ` PARTITION BY ${partitionBy}`
  const from = start === null ? 'BEGINNING' : `'${formatTimestamp(BigInt(start), unit)}'`
  return `CREATE LIVE VIEW '${name}' FLUSH EVERY ${flushEvery}${memory}${units} START FROM ${from} AS (\n${materialized.sql}\n);`
}

export function createViewText({ name, sql }: Pick<StoredView, 'name' | 'sql'>): string {
  return `CREATE VIEW '${name}' AS ( \n${sql}\n);`
}

function refreshText({ kind, deferred, every, startMicros, timeZone, period }: RefreshStrategy): string {
  const words = [kind === 'timer' ? `EVERY ${lengthText(every)}` : kind.toUpperCase()]
  if (startMicros !== null) words.push(`START '${formatTimestamp(BigInt(startMicros), 'TIMESTAMP')}'`)
  if (timeZone !== null) words.push(`TIME ZONE '${timeZone}'`)
  if (deferred) words.push('DEFERRED')
  if (period !== null && period.length === null) words.push('PERIOD (SAMPLE BY INTERVAL)')
  if (period !== null && period.length !== null) {
    const zone = period.timeZone === null ? '' : ` TIME ZONE '${period.timeZone}'`
    const delay = period.delay === null ? '' : ` DELAY ${lengthText(period.delay)}`
    words.push(`PERIOD (LENGTH ${lengthText(period.length)}${zone}${delay})`)
  }
  return words.join(' ')
}

function lengthText(length: RefreshStrategy['every']): string {
  return length === null ? '' : `${length.count}${length.unit}`
}

function policyText({ policy }: TableSchema): string {
  if (policy == null) return ''
  const stages = [
    ...(policy.toParquet === null ? [] : [`TO PARQUET ${ageText(policy.toParquet)}`]),
    ...(policy.toRemote === null ? [] : [`TO REMOTE ${ageText(policy.toRemote)}`]),
    ...(policy.dropLocal == null ? [] : [`DROP LOCAL ${ageText(policy.dropLocal)}`]),
    ...(policy.dropRemote == null ? [] : [`DROP REMOTE ${ageText(policy.dropRemote)}`]),
  ]
  return ` STORAGE POLICY(${stages.join(', ')})`
}

function ttlText(ttl: PartitionAge | null): string {
  return ttl === null ? '' : ` TTL ${ageText(ttl)}`
}

function ageText({ value, unit }: PartitionAge): string {
  return `${value} ${unit}${value === 1 ? '' : 'S'}`
}

function columnText({ name, type, symbol, indexed, default: value, parquet }: ColumnSchema): string {
  const cache = type.name === 'SYMBOL' && symbol?.cached === false ? ' NOCACHE' : ''
  const index = indexed === undefined ? '' : ` INDEX CAPACITY ${indexed.blockCapacity || defaultIndexCapacity}`
  const filled = value === undefined ? '' : ` DEFAULT ${value}`
  return `${name} ${typeText(type)}${cache}${index}${filled}${storageText(parquet)}`
}

/** ` PARQUET(rle_dictionary, zstd(3))` */
function storageText(storage: ColumnStorage | undefined): string {
  if (storage === undefined) return ''
  const { encoding, codec, level, bloomFilter } = storage
  const parts = [
    ...(encoding === undefined && (codec !== undefined || bloomFilter !== true) ? ['default'] : []),
    ...(encoding === undefined ? [] : [encoding]),
    ...(codec === undefined ? [] : [level === undefined ? codec : `${codec}(${level})`]),
    ...(bloomFilter === true ? ['BLOOM_FILTER'] : []),
  ]
  return ` PARQUET(${parts.join(', ')})`
}

/** Says what a statement without it would not do: a table is in the lake if it has a storage policy. */
function lakeText({ lake, policy }: TableSchema): string {
  if (lake?.formatVersion !== undefined) return ` LAKE ON FORMAT VERSION ${lake.formatVersion}`
  if (policy == null) return lake == null ? '' : ' LAKE ON'
  return lake === null ? ' LAKE OFF' : ''
}

function tableTail(schema: TableSchema): string {
  const nameOf = (id: number): string => schema.columns.find((column) => column.id === id)?.name ?? ''
  const lake = lakeText(schema)
  if (schema.timestampId < 0) return lake
  if (schema.view !== undefined) return ` timestamp(${nameOf(schema.timestampId)}) PARTITION BY N/A`
  const ttl = ttlText(schema.ttl)
  const wal = schema.bypassWal || schema.partitionBy === 'NONE' ? ' BYPASS WAL' : ''
  const verb = schema.dedupSkips === true ? 'SKIP' : 'UPSERT'
  const dedup = schema.dedupKeys.length === 0 ? '' : `\nDEDUP ${verb} KEYS(${schema.dedupKeys.map(nameOf).join(',')})`
  return ` timestamp(${nameOf(schema.timestampId)}) PARTITION BY ${schema.partitionBy}${ttl}${policyText(schema)}${lake}${wal}${dedup}`
}
