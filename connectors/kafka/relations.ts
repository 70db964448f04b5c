// Defines the virtual tables sys.connectors and sys.connector_partitions, and the metrics of connectors.

import type { VirtualRelation } from '../../engine/engine.js'
import type { ColumnType } from '../../engine/types/column-types.js'
import type { Value } from '../../engine/types/value.js'
import type { KafkaConnectorHandle } from './server.js'
import { type ConnectorStatistics, lagOf, type PartitionStatistics } from './statistics.js'

type Column<Row> = readonly [name: string, type: ColumnType, value: (row: Row) => Value]

const connectorColumns: readonly Column<KafkaConnectorHandle>[] = [
  ['name', 'SYMBOL', ({ options }) => options.name],
  ['kind', 'SYMBOL', () => 'kafka'],
  ['state', 'SYMBOL', ({ statistics }) => statistics.state],
  ['topics', 'STRING', ({ options: { client } }) => client.topicPattern || client.topics.join(',')],
  ['group_id', 'STRING', ({ options }) => options.client.groupId],
  ['partitions', 'LONG', ({ statistics }) => BigInt(statistics.partitions.filter(({ assigned }) => assigned).length)],
  ['lag', 'LONG', ({ statistics }) => BigInt(totalLag(statistics))],
  ['records', 'LONG', ({ statistics }) => BigInt(statistics.records)],
  ['rows', 'LONG', ({ statistics }) => BigInt(statistics.rows)],
  ['bytes', 'LONG', ({ statistics }) => BigInt(statistics.bytes)],
  ['rejected', 'LONG', ({ statistics }) => BigInt(statistics.rejected)],
  ['rows_per_second', 'DOUBLE', ({ statistics }) => statistics.rowsPerSecond],
  ['retries', 'LONG', ({ statistics }) => BigInt(statistics.retries)],
  ['last_error', 'STRING', ({ statistics }) => (statistics.lastError === '' ? null : statistics.lastError)],
  ['last_error_ts', 'TIMESTAMP', ({ statistics }) => (statistics.lastErrorMicros === 0 ? null : BigInt(statistics.lastErrorMicros))], // biome-ignore format: one column a line
]

interface PartitionRow extends PartitionStatistics {
  readonly connector: string
}

const partitionColumns: readonly Column<PartitionRow>[] = [
  ['connector', 'SYMBOL', (row) => row.connector],
  ['topic', 'STRING', (row) => row.topic],
  ['partition', 'LONG', (row) => BigInt(row.partition)],
  ['assigned', 'BOOLEAN', (row) => row.assigned],
  ['stored_offset', 'LONG', (row) => (row.storedOffset < 0 ? null : BigInt(row.storedOffset))],
  ['high_watermark', 'LONG', (row) => (row.highWatermark < 0 ? null : BigInt(row.highWatermark))],
  ['lag', 'LONG', (row) => (row.highWatermark < 0 ? null : BigInt(lagOf(row)))],
]

export function connectorRelations(connectors: readonly KafkaConnectorHandle[]): VirtualRelation[] {
  const partitions = (): PartitionRow[] =>
    connectors.flatMap(({ options, statistics }) =>
      statistics.partitions.map((partition) => ({ ...partition, connector: options.name })),
    )
  return [
    relation('sys.connectors', connectorColumns, () => connectors),
    relation('sys.connector_partitions', partitionColumns, partitions),
  ]
}

function relation<Row>(name: string, columns: readonly Column<Row>[], rows: () => readonly Row[]): VirtualRelation {
  return {
    name,
    columns: columns.map(([column, type]) => ({ name: column, type })),
    rows: () => rows().map((row) => columns.map(([, , value]) => value(row))),
  }
}

function totalLag({ partitions }: ConnectorStatistics): number {
  return partitions.reduce((sum, partition) => sum + (partition.assigned ? lagOf(partition) : 0), 0)
}

/** Has the shape of the gateways' metrics. */
export interface ConnectorMetric {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly description: string
  readonly read: () => readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]
}

const metrics: readonly (Omit<ConnectorMetric, 'read'> & {
  readonly value: (statistics: ConnectorStatistics) => number
})[] = [
  {
    name: 'svc_connector_up',
    type: 'gauge',
    description: 'Set to 1 while the connector consumes; 0 while it is paused, has failed or retries.',
    value: ({ state }) => (state === 'running' || state === 'waiting' ? 1 : 0),
  },
  {
    name: 'svc_connector_records_total',
    type: 'counter',
    description: 'Records that the connector has processed since the start, including rejected ones and tombstones.',
    value: ({ records }) => records,
  },
  {
    name: 'svc_connector_rows_total',
    type: 'counter',
    description: 'Rows stored from these records.',
    value: ({ rows }) => rows,
  },
  {
    name: 'svc_connector_bytes_total',
    type: 'counter',
    description: 'Bytes of line protocol in these records.',
    value: ({ bytes }) => bytes,
  },
  {
    name: 'svc_connector_rejected_total',
    type: 'counter',
    description: 'Records that could not be converted to rows.',
    value: ({ rejected }) => rejected,
  },
  {
    name: 'svc_connector_retries_total',
    type: 'counter',
    description: 'Retries after errors of brokers, the schema registry or the engine.',
    value: ({ retries }) => retries,
  },
  {
    name: 'svc_connector_lag',
    type: 'gauge',
    description: 'Records of the assigned partitions that are not stored yet.',
    value: totalLag,
  },
]

export function connectorMetrics(connectors: readonly KafkaConnectorHandle[]): ConnectorMetric[] {
  return metrics.map(({ value, ...metric }) => ({
    ...metric,
    read: () =>
      connectors.map(({ options, statistics }) => ({ labels: { connector: options.name }, value: value(statistics) })),
  }))
}
