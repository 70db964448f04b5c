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
      description: 'Connections that are open now.',
      read: () => byProtocol((protocol) => registry.active(protocol)),
    },
    {
      name: 'svc_connections_opened_total',
      type: 'counter',
      description: 'Connections opened since the start.',
      read: () => byProtocol((protocol) => registry.counts[protocol].opened),
    },
    {
      name: 'svc_connections_rejected_total',
      type: 'counter',
      description: 'Connections that were not let in since the start.',
      read: () => byProtocol((protocol) => registry.counts[protocol].rejected),
    },
    {
      name: 'svc_connections_closed_total',
      type: 'counter',
      description: 'Connections closed since the start.',
      read: () => byProtocol((protocol) => registry.counts[protocol].closed),
    },
  ]
}

function statementMetrics(counters: GatewayCounters): Metric[] {
  return [
    {
      name: 'svc_queries_total',
      type: 'counter',
      description: 'Statements run.',
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
      description: 'Statements whose plan was in the cache.',
      read: () => counters.queryCacheHits,
    },
    {
      name: 'svc_query_cache_misses',
      type: 'counter',
      description: 'Statements that were planned anew.',
      read: () => counters.queryCacheMisses,
    },
    {
      name: 'svc_rows_written_total',
      type: 'counter',
      description: 'Rows stored.',
      read: () => counters.rowsWritten,
    },
    {
      name: 'svc_rows_rejected_total',
      type: 'counter',
      description: 'Rows that were refused one by one.',
      read: () => counters.rowsRejected,
    },
    {
      name: 'svc_http_responses_total',
      type: 'counter',
      description: 'Answers over HTTP by class of status.',
      read: () => Object.entries(counters.responses).map(([status, value]) => ({ labels: { status }, value })),
    },
    {
      name: 'svc_http_request_duration_seconds',
      type: 'histogram',
      description: 'From a request to the end of its answer, by endpoint.',
      read: () => counters.durations.histograms('endpoint'),
    },
    {
      name: 'svc_unhandled_errors',
      type: 'counter',
      description: 'Errors that nobody expected; 0 in a healthy server.',
      read: () => counters.unhandledErrors,
    },
  ]
}

function qwpMetrics({ qwp }: GatewayCounters): Metric[] {
  return [
    {
      name: 'svc_qwp_messages_total',
      type: 'counter',
      description: 'Messages of rows by QWP, by outcome; a group that is committed together counts once.',
      read: () => [
        { labels: { outcome: 'accepted' }, value: qwp.accepted },
        { labels: { outcome: 'rejected' }, value: qwp.rejected },
      ],
    },
    {
      name: 'svc_qwp_batches_total',
      type: 'counter',
      description: 'Batches of results sent by QWP.',
      read: () => qwp.batches,
    },
    {
      name: 'svc_qwp_batch_bytes_total',
      type: 'counter',
      description: 'Bytes of these batches, as sent.',
      read: () => qwp.batchBytes,
    },
  ]
}

const runtimeMetrics: readonly Metric[] = [
  {
    name: 'svc_memory_jvm_heap_used',
    type: 'gauge',
    description: 'Bytes of the runtime heap in use.',
    read: () => process.memoryUsage().heapUsed,
  },
  {
    name: 'svc_memory_jvm_heap_committed',
    type: 'gauge',
    description: 'Bytes of the runtime heap.',
    read: () => process.memoryUsage().heapTotal,
  },
]
