// Defines the metrics of the engine for /metrics. The engine's statistics are kept for 2 ms, so that a scrape reads
// them about once, and not once for each metric.

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
    'Bytes of shared memory used by ingestion, memtables and queries.',
    ({ memory }) => memory.ingest.used + memory.memtables.used + memory.queries.used,
  ],
  [
    'svc_memory_tag_NATIVE_O3',
    'gauge',
    'Bytes of shared memory used by sorting and flushing.',
    ({ memory }) => memory.flush.used,
  ],
  [
    'svc_memory_tag_NATIVE_MMAP',
    'gauge',
    'Bytes of shared memory used by cached pages of data files.',
    ({ memory }) => memory.cache.used,
  ],
  [
    'svc_memory_used_bytes',
    'gauge',
    'Used bytes of shared memory, by budget.',
    ({ memory }) => budgets(memory, 'used'),
  ],
  ['svc_memory_limit_bytes', 'gauge', 'Limit of a memory budget in bytes.', ({ memory }) => budgets(memory, 'limit')],
  [
    'svc_memory_malloc_count',
    'gauge',
    'Allocations of shared memory since the start.',
    ({ allocations }) => allocations,
  ],
  ['svc_memory_free_count', 'gauge', 'Freed allocations of shared memory since the start.', ({ frees }) => frees],
  [
    'svc_chunk_cache_hits_total',
    'counter',
    'Reads of pages of data files that were served from memory.',
    ({ cache }) => cache.hits,
  ],
  [
    'svc_chunk_cache_misses_total',
    'counter',
    'Reads of pages of data files that went to disk.',
    ({ cache }) => cache.misses,
  ],
  [
    'svc_chunk_cache_evictions_total',
    'counter',
    'Pages of data files evicted from memory.',
    ({ cache }) => cache.evictions,
  ],
]

function budgets(memory: EngineMetrics['memory'], what: 'used' | 'limit'): LabelledValue[] {
  return Object.entries(memory).map(([budget, metrics]) => ({ labels: { budget }, value: metrics[what] }))
}

function commitTable(nowMs: () => number): readonly Row[] {
  return [
    ['svc_commits_total', 'counter', 'Committed transactions with rows.', ({ counts }) => counts.commits],
    [
      'svc_commit_duration_seconds',
      'histogram',
      'Time from a decoded transaction until it is visible and as durable as the commit mode demands.',
      ({ commitSeconds }) => [{ labels: {}, ...commitSeconds }],
    ],
    [
      'svc_committed_rows_total',
      'counter',
      'Committed rows, including those of system tables.',
      ({ counts }) => counts.committedRows,
    ],
    [
      'svc_o3_commits_total',
      'counter',
      'Committed transactions with out-of-order rows, which are older than the newest row of their table.',
      ({ counts }) => counts.lateCommits,
    ],
    [
      'svc_rollbacks_total',
      'counter',
      'Transactions that were rolled back because the log could not store them.',
      ({ counts }) => counts.rollbacks,
    ],
    ['svc_wal_segments_total', 'counter', 'Log segments started.', ({ counts }) => counts.walSegments],
    ['svc_wal_bytes', 'gauge', 'Size of the write-ahead log in bytes.', ({ counts }) => counts.walBytes],
    [
      'svc_wal_waiting_bytes',
      'gauge',
      'Bytes of the log that are not synced yet.',
      ({ counts }) => counts.walWaitingBytes,
    ],
    [
      'svc_wal_apply_lag_seconds',
      'gauge',
      'Age of the oldest transaction that is not visible yet; 0 if there is none.',
      ({ counts: { oldestCommitMs } }) => (oldestCommitMs === 0 ? 0 : Math.max(0, (nowMs() - oldestCommitMs) / 1e3)),
    ],
  ]
}

const storageTable: readonly Row[] = [
  ['svc_flushes_total', 'counter', 'Memtables flushed to parts.', ({ counts }) => counts.flushes],
  ['svc_merges_total', 'counter', 'Parts replaced by compactions.', ({ counts }) => counts.merges],
  [
    'svc_physically_written_rows_total',
    'counter',
    'Rows written to parts by flushes, compactions and rewrites.',
    (metrics) => physicalRows(metrics),
  ],
  [
    'svc_part_written_bytes_total',
    'counter',
    'Bytes written to parts by flushes, compactions and rewrites.',
    ({ counts }) => counts.partBytes,
  ],
  [
    'svc_write_amplification',
    'gauge',
    'Average number of times that a row was written to parts; 0 before the first flush.',
    (metrics) => (metrics.counts.flushedRows === 0 ? 0 : physicalRows(metrics) / metrics.counts.flushedRows),
  ],
  [
    'svc_storage_jobs_failed_total',
    'counter',
    'Failed flushes, compactions and rewrites.',
    ({ counts }) => counts.failedJobs,
  ],
  [
    'svc_wal_losses',
    'gauge',
    'Parts of the log that were damaged or missing at a start, until their records in db/wal/aside are removed.',
    ({ counts }) => counts.logLosses,
  ],
  [
    'svc_disk_free_bytes',
    'gauge',
    'Free bytes of the file system that holds the data.',
    ({ counts }) => counts.freeBytes,
  ],
  [
    'svc_writes_refused',
    'gauge',
    'Set to 1 while writes are refused, by reason; otherwise 0.',
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
  ['svc_table_readers_active', 'gauge', 'Tables read by running statements.', ({ readers }) => readers],
  [
    'svc_table_writers_active',
    'gauge',
    'Tables with rows that are not flushed yet.',
    ({ counts }) => counts.tablesWritten,
  ],
  [
    'svc_reader_leak_counter',
    'counter',
    'Table readers that were never closed. An increase means a leak.',
    ({ readerLeaks }) => readerLeaks,
  ],
  ['svc_queries_running', 'gauge', 'Running queries.', ({ queries }) => queries],
]
