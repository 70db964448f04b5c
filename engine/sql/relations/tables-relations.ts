// System relations that list tables: tables() and all_tables, which also list views, table_storage(), and wal_tables(),
// which lists the tables with a write-ahead log only.

import { schemaStatements, type TableVersion } from '../../storage/schema/schema.js'
import type { Value } from '../../types/value.js'
import type { StoredView, TableStatistics } from '../catalog.js'
import type { BindContext } from '../scope/bind-context.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList, rowOf } from './relation-columns.js'

const tablesColumns = columnList(
  `id INT, table_name STRING, designatedTimestamp STRING, partitionBy STRING, walEnabled BOOLEAN, dedup BOOLEAN, ttlValue INT,
  ttlUnit STRING, matView BOOLEAN, directoryName STRING, maxUncommittedRows INT, o3MaxLag LONG, table_suspended BOOLEAN,
  table_type CHAR, table_row_count LONG, table_min_timestamp TIMESTAMP, table_max_timestamp TIMESTAMP,
  table_last_write_timestamp TIMESTAMP, table_txn LONG, table_memory_pressure_level INT, table_write_amp_count LONG,
  table_write_amp_p50 DOUBLE, table_write_amp_p90 DOUBLE, table_write_amp_p99 DOUBLE, table_write_amp_max DOUBLE,
  table_merge_rate_count LONG, table_merge_rate_p50 LONG, table_merge_rate_p90 LONG, table_merge_rate_p99 LONG,
  table_merge_rate_max LONG, wal_pending_row_count LONG, wal_dedup_row_count_since_start LONG, wal_txn LONG,
  wal_max_timestamp TIMESTAMP, wal_tx_count LONG, wal_tx_size_p50 LONG, wal_tx_size_p90 LONG, wal_tx_size_p99 LONG,
  wal_tx_size_max LONG, replica_batch_count LONG, replica_batch_size_p50 LONG, replica_batch_size_p90 LONG,
  replica_batch_size_p99 LONG, replica_batch_size_max LONG, replica_more_pending BOOLEAN`,
)

/** Whether the table is reported as a WAL table: partitioned tables are, unless created with BYPASS WAL. */
export function isWalTable({ schema }: TableVersion): boolean {
  return !schema.bypassWal && schema.partitionBy !== 'NONE'
}

/** Converts a timestamp from the table's unit to microseconds. */
export function microsOf({ schema }: TableVersion, ticks: bigint | null): bigint | null {
  const timestamp = schema.columns.find(({ id }) => id === schema.timestampId)
  return ticks !== null && timestamp?.type.name === 'TIMESTAMP_NS' ? ticks / 1000n : ticks
}

/**
 * Number of the last transaction, counting row transactions and schema changes together, as clients of this dialect
 * expect.
 */
function sequencerTxn({ schema }: TableVersion, { visibleTxn, rewrites }: TableStatistics): number {
  return visibleTxn + rewrites + schemaStatements(schema)
}

export function tablesRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: tablesColumns,
    rows: () => [
      ...catalog.tables().map((version) => tableRow(version, catalog.statistics(version.schema.id))),
      ...catalog.views().map(viewRow),
    ],
  }
}

function viewRow({ id, name }: StoredView): Value[] {
  const known: Record<string, Value> = {
    id,
    table_name: name,
    partitionBy: 'N/A',
    walEnabled: true,
    ttlUnit: 'HOUR',
    directoryName: `${name}~${id}`,
    table_type: 'V',
    table_row_count: null,
    table_txn: null,
    wal_txn: null,
  }
  return rowOf(tablesColumns, known)
}

/**
 * What this engine does not measure is 0 or NULL. Nothing is pending, since queries see what the log has acknowledged.
 */
function tableRow(version: TableVersion, statistics: TableStatistics): Value[] {
  const { schema } = version
  const timestamp = schema.columns.find(({ id }) => id === schema.timestampId)
  const maxTs = microsOf(version, statistics.maxTs)
  const known: Record<string, Value> = {
    id: schema.id,
    table_name: schema.name,
    designatedTimestamp: timestamp?.name ?? null,
    partitionBy: schema.partitionBy,
    walEnabled: isWalTable(version),
    dedup: schema.dedupKeys.length > 0,
    ttlValue: schema.ttl?.value ?? 0,
    ttlUnit: schema.ttl?.unit ?? 'HOUR',
    directoryName: `${schema.name}~${schema.id}`,
    maxUncommittedRows: schema.maxUncommittedRows,
    o3MaxLag: BigInt(schema.o3MaxLagMicros),
    matView: schema.materialized !== undefined && schema.materialized.live === undefined,
    table_type: schema.materialized === undefined ? 'T' : schema.materialized.live === undefined ? 'M' : 'L',
    table_row_count: BigInt(statistics.rows),
    table_min_timestamp: microsOf(version, statistics.minTs),
    table_max_timestamp: maxTs,
    table_last_write_timestamp: statistics.lastWriteMicros === null ? null : BigInt(statistics.lastWriteMicros),
    table_txn: BigInt(statistics.visibleTxn),
    table_memory_pressure_level: isWalTable(version) ? 0 : null,
    wal_txn: isWalTable(version) ? BigInt(sequencerTxn(version, statistics)) : null,
    wal_max_timestamp: isWalTable(version) ? maxTs : null,
    wal_dedup_row_count_since_start: BigInt(statistics.repeats),
    ...(isWalTable(version) ? transactionSizes(statistics) : {}),
    ...storageStatistics(statistics),
  }
  return rowOf(tablesColumns, known)
}

/** Percentiles of transaction sizes, from the remembered transactions since the start. */
function transactionSizes({ transactions }: TableStatistics): Record<string, Value> {
  const sizes: number[] = []
  for (const { micros, rows } of transactions.values()) if (micros !== 0) sizes.push(rows)
  return quantiles('wal_tx_count', 'wal_tx_size', sizes, BigInt)
}

/**
 * Percentiles of write amplification and compaction rates, from the remembered flushes and compactions. A flush writes
 * its rows once; the rows that compactions wrote since the last flush amplify it. Rates are in rows per second.
 */
function storageStatistics({ storageWork }: TableStatistics): Record<string, Value> {
  const amplifications: number[] = []
  const rates: number[] = []
  let merged = 0
  for (const { kind, rows, seconds } of storageWork) {
    if (kind === 'merge') {
      merged += rows
      if (seconds > 0) rates.push(Math.round(rows / seconds))
    } else if (rows > 0) {
      amplifications.push((rows + merged) / rows)
      merged = 0
    }
  }
  return {
    ...quantiles('table_write_amp_count', 'table_write_amp', amplifications, Number),
    ...quantiles('table_merge_rate_count', 'table_merge_rate', rates, BigInt),
  }
}

function quantiles(
  count: string,
  name: string,
  numbers: number[],
  asValue: (number: number) => Value,
): Record<string, Value> {
  numbers.sort((a, b) => a - b)
  const at = (share: number): Value => asValue(numbers[Math.max(0, Math.ceil(numbers.length * share) - 1)] ?? 0)
  return {
    [count]: BigInt(numbers.length),
    [`${name}_p50`]: at(0.5),
    [`${name}_p90`]: at(0.9),
    [`${name}_p99`]: at(0.99),
    [`${name}_max`]: at(1),
  }
}

export function tableNamesRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: columnList('table_name STRING'),
    rows: () => [...catalog.tables().map(({ schema }) => [schema.name]), ...catalog.views().map(({ name }) => [name])],
  }
}

export function walTablesRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'name STRING, suspended BOOLEAN, writerTxn LONG, bufferedTxnSize LONG, sequencerTxn LONG, errorTag STRING, errorMessage STRING, memoryPressure INT',
    ),
    rows: () =>
      catalog
        .tables()
        .filter(isWalTable)
        .map((version) => {
          // The sequencer and the writer have the same transaction, because queries see what the log has acknowledged.
          const txn = BigInt(sequencerTxn(version, catalog.statistics(version.schema.id)))
          return [version.schema.name, false, txn, 0n, txn, '', '', 0]
        }),
  }
}

export function tableStorageRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'tableName STRING, walEnabled BOOLEAN, partitionBy STRING, partitionCount LONG, rowCount LONG, diskSize LONG',
    ),
    rows: () =>
      catalog.tables().map((version) => {
        const { rows, partitions } = catalog.statistics(version.schema.id)
        const bytes = version.parts.reduce((sum, part) => sum + part.bytes, 0)
        return [
          version.schema.name,
          isWalTable(version),
          version.schema.partitionBy,
          BigInt(partitions.length),
          BigInt(rows),
          BigInt(bytes),
        ]
      }),
  }
}
