// Defines the metrics of the engine for /metrics. The engine's statistics are read once for each scrape, not once for
// each metric.

import type { Engine, EngineMetrics } from '../../engine/engine.js'
import type { LabelledValue, Metric } from './metric.js'

/** Older statistics are read again. */
const metricsMs = 2

/** Label of each reason for rejecting writes, by reason code; a failed and a full disk are both `disk`. */
const refusalReasons: Readonly<Record<string, readonly number[]>> = { disk: [1, 4], log: [2], memory: [3] }

type Read = (metrics: EngineMetrics) => ReturnType<Metric['read']>

export function engineMetrics(engine: Pick<Engine, 'metrics'>, nowMs: () => number): Metric[] {
  let metrics: EngineMetrics | null = null
  let readMs = 0
  const current = (): EngineMetrics => {
    const nowMs = performance.now()
    if (metrics === null || nowMs - readMs > metricsMs) {
      metrics = engine.metrics()
      readMs = nowMs
    }
    return metrics
  }
  const table = [...memoryTable, ...commitTable(nowMs), ...storageTable, ...readerTable]
  return table.map(([name, type, description, read]) => ({ name, type, description, read: () => read(current()) }))
}

type Row = readonly [name: string, type: Metric['type'], description: string, read: Read]

const memoryTable: readonly Row[] = [
  [
    'svc_memory_tag_NATIVE_DEFAULT',
    'gauge',
    'Bytes of shared memory that ingest, memtables and queries hold.',
    ({ memory }) => memory.ingest.used + memory.memtables.used + memory.queries.used,
  ],
  [
    'svc_memory_tag_NATIVE_O3',
    'gauge',
    'Bytes of shared memory that sorting and flushing hold.',
    ({ memory }) => memory.flush.used,
  ],
  [
    'svc_memory_tag_NATIVE_MMAP',
    'gauge',
    'Bytes of shared memory that hold pages of data files.',
    ({ memory }) => memory.cache.used,
  ],
  [
    'svc_memory_used_bytes',
    'gauge',
    'Bytes of shared memory in use, by budget.',
    ({ memory }) => budgets(memory, 'used'),
  ],
  ['svc_memory_limit_bytes', 'gauge', 'Bytes that a budget may use.', ({ memory }) => budgets(memory, 'limit')],
  [
    'svc_memory_malloc_count',
    'gauge',
    'Allocations of shared memory since the start.',
    ({ allocations }) => allocations,
  ],
  ['svc_memory_free_count', 'gauge', 'Allocations that were given back since the start.', ({ frees }) => frees],
  ['svc_chunk_cache_hits_total', 'counter', 'Pages of data files found in memory.', ({ cache }) => cache.hits],
  ['svc_chunk_cache_misses_total', 'counter', 'Pages of data files that were read.', ({ cache }) => cache.misses],
  ['svc_chunk_cache_evictions_total', 'counter', 'Pages that made room for others.', ({ cache }) => cache.evictions],
]

function budgets(memory: EngineMetrics['memory'], what: 'used' | 'limit'): LabelledValue[] {
  return Object.entries(memory).map(([budget, metrics]) => ({ labels: { budget }, value: metrics[what] }))
}

function commitTable(nowMs: () => number): readonly Row[] {
  return [
    [
      'svc_commits_total',
      'counter',
      'Transactions of rows that are stored and visible.',
      ({ counts }) => counts.commits,
    ],
    [
      'svc_commit_duration_seconds',
      'histogram',
      'From a decoded transaction to one that is durable, as the commit mode says, and visible.',
      ({ commitSeconds }) => [{ labels: {}, ...commitSeconds }],
    ],
    [
      'svc_committed_rows_total',
      'counter',
      'Rows in those transactions, those of system tables included.',
      ({ counts }) => counts.committedRows,
    ],
    [
      'svc_o3_commits_total',
      'counter',
      'Transactions with rows that are older than the newest one of their table.',
      ({ counts }) => counts.lateCommits,
    ],
    ['svc_rollbacks_total', 'counter', 'Transactions that the log refused.', ({ counts }) => counts.rollbacks],
    ['svc_wal_segments_total', 'counter', 'Segments that the log has begun.', ({ counts }) => counts.walSegments],
    ['svc_wal_bytes', 'gauge', 'Bytes of log that are kept.', ({ counts }) => counts.walBytes],
    [
      'svc_wal_waiting_bytes',
      'gauge',
      'Bytes of log that are not durable yet.',
      ({ counts }) => counts.walWaitingBytes,
    ],
    [
      'svc_wal_apply_lag_seconds',
      'gauge',
      'Age of the oldest transaction that is not visible yet; 0 without one.',
      ({ counts: { oldestCommitMs } }) => (oldestCommitMs === 0 ? 0 : Math.max(0, (nowMs() - oldestCommitMs) / 1e3)),
    ],
  ]
}

const storageTable: readonly Row[] = [
  ['svc_flushes_total', 'counter', 'Memtables that were written as parts.', ({ counts }) => counts.flushes],
  ['svc_merges_total', 'counter', 'Parts that were joined.', ({ counts }) => counts.merges],
  ['svc_physically_written_rows_total', 'counter', 'Rows written into parts.', (metrics) => physicalRows(metrics)],
  ['svc_part_written_bytes_total', 'counter', 'Bytes written into parts.', ({ counts }) => counts.partBytes],
  [
    'svc_write_amplification',
    'gauge',
    'How often a row was written into parts, on average; 0 before the first flush.',
    (metrics) => (metrics.counts.flushedRows === 0 ? 0 : physicalRows(metrics) / metrics.counts.flushedRows),
  ],
  [
    'svc_storage_jobs_failed_total',
    'counter',
    'Flushes, merges and rewrites that failed.',
    ({ counts }) => counts.failedJobs,
  ],
  [
    'svc_wal_losses',
    'gauge',
    'Pieces of the log that starts found damaged or missing, until their notes in db/wal/aside are taken away.',
    ({ counts }) => counts.logLosses,
  ],
  [
    'svc_disk_free_bytes',
    'gauge',
    'Bytes that the file system of the data has left.',
    ({ counts }) => counts.freeBytes,
  ],
  [
    'svc_writes_refused',
    'gauge',
    'Whether writes are refused now, by reason.',
    ({ counts }) =>
      Object.entries(refusalReasons).map(([reason, numbers]) => ({
        labels: { reason },
        value: numbers.includes(counts.refusal) ? 1 : 0,
      })),
  ],
]

function physicalRows({ counts }: EngineMetrics): number {
  return counts.flushedRows + counts.mergedRows + counts.rewrittenRows
}

const readerTable: readonly Row[] = [
  ['svc_tables', 'gauge', 'Tables and views.', ({ tables }) => tables],
  ['svc_table_readers_active', 'gauge', 'Tables that running statements read.', ({ readers }) => readers],
  [
    'svc_table_writers_active',
    'gauge',
    'Tables with rows that are not in parts yet.',
    ({ counts }) => counts.tablesWritten,
  ],
  [
    'svc_reader_leak_counter',
    'counter',
    'Readers that were never closed; a rise is a leak.',
    ({ readerLeaks }) => readerLeaks,
  ],
  ['svc_queries_running', 'gauge', 'Queries that run now.', ({ queries }) => queries],
]
