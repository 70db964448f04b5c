// Defines the metrics of gateways and process. The engine's metrics are in engine-metrics.ts.

import { type ConnectionRegistry, protocols } from './connections.js'
import type { GatewayCounters, LabelledValue, Metric } from './metric.js'

export function gatewayMetrics(counters: GatewayCounters, registry: ConnectionRegistry): Metric[] {
  return [...connectionMetrics(registry), ...statementMetrics(counters), ...qwpMetrics(counters), ...runtimeMetrics]
}

function connectionMetrics(registry: ConnectionRegistry): Metric[] {
  const byProtocol = (value: (protocol: (typeof protocols)[number]) => number): LabelledValue[] =>
    protocols.map((protocol) => ({ labels: { protocol }, value: value(protocol) }))
  return [
    {
      name: 'svc_connections_active',
      type: 'gauge',
      description: 'Open connections.',
      read: () => byProtocol((protocol) => registry.active(protocol)),
    },
    {
      name: 'svc_connections_opened_total',
      type: 'counter',
      description: 'Connections opened.',
      read: () => byProtocol((protocol) => registry.counts[protocol].opened),
    },
    {
      name: 'svc_connections_rejected_total',
      type: 'counter',
      description: 'Connections refused, for example beyond the connection limit.',
      read: () => byProtocol((protocol) => registry.counts[protocol].rejected),
    },
    {
      name: 'svc_connections_closed_total',
      type: 'counter',
      description: 'Connections closed.',
      read: () => byProtocol((protocol) => registry.counts[protocol].closed),
    },
  ]
}

function statementMetrics(counters: GatewayCounters): Metric[] {
  return [
    {
      name: 'svc_queries_total',
      type: 'counter',
      description: 'Executed statements.',
      read: () => Object.entries(counters.queries).map(([type, value]) => ({ labels: { type }, value })),
    },
    {
      name: 'svc_query_error_counter',
      type: 'counter',
      description: 'Statements that failed.',
      read: () => counters.queryErrors,
    },
    {
      name: 'svc_query_cache_hits',
      type: 'counter',
      description: 'Statements whose plan was found in the plan cache.',
      read: () => counters.queryCacheHits,
    },
    {
      name: 'svc_query_cache_misses',
      type: 'counter',
      description: 'Statements that had to be planned.',
      read: () => counters.queryCacheMisses,
    },
    {
      name: 'svc_rows_written_total',
      type: 'counter',
      description: 'Rows written.',
      read: () => counters.rowsWritten,
    },
    {
      name: 'svc_rows_rejected_total',
      type: 'counter',
      description: 'Rows rejected individually.',
      read: () => counters.rowsRejected,
    },
    {
      name: 'svc_http_responses_total',
      type: 'counter',
      description: 'HTTP responses by status class.',
      read: () => Object.entries(counters.responses).map(([status, value]) => ({ labels: { status }, value })),
    },
    {
      name: 'svc_http_request_duration_seconds',
      type: 'histogram',
      description: 'Time from a request to the end of its response, by endpoint.',
      read: () => counters.durations.histograms('endpoint'),
    },
    {
      name: 'svc_unhandled_errors',
      type: 'counter',
      description: 'Unexpected internal errors. 0 in a healthy server.',
      read: () => counters.unhandledErrors,
    },
  ]
}

function qwpMetrics({ qwp }: GatewayCounters): Metric[] {
  return [
    {
      name: 'svc_qwp_messages_total',
      type: 'counter',
      description: 'QWP messages with rows, by outcome; a group that is committed together counts once.',
      read: () => [
        { labels: { outcome: 'accepted' }, value: qwp.accepted },
        { labels: { outcome: 'rejected' }, value: qwp.rejected },
      ],
    },
    {
      name: 'svc_qwp_datagrams_total',
      type: 'counter',
      description: 'QWP datagrams, by what became of them.',
      read: () => Object.entries(qwp.udp).map(([outcome, value]) => ({ labels: { outcome }, value })),
    },
    {
      name: 'svc_qwp_batches_total',
      type: 'counter',
      description: 'Result batches sent by QWP.',
      read: () => qwp.batches,
    },
    {
      name: 'svc_qwp_batch_bytes_total',
      type: 'counter',
      description: 'Bytes of result batches sent by QWP.',
      read: () => qwp.batchBytes,
    },
  ]
}

const runtimeMetrics: readonly Metric[] = [
  {
    name: 'svc_memory_jvm_heap_used',
    type: 'gauge',
    description: 'Used bytes of the JavaScript heap.',
    read: () => process.memoryUsage().heapUsed,
  },
  {
    name: 'svc_memory_jvm_heap_committed',
    type: 'gauge',
    description: 'Size of the JavaScript heap in bytes.',
    read: () => process.memoryUsage().heapTotal,
  },
]
