// Metrics in shared memory: one double each at a fixed address. The writer writes most of them, and the main thread
// one; the main thread exports all. Each metric has one writing thread, so plain stores suffice; readers may see a
// slightly old value.
//
//   word 0..63      the metrics below
//   word 64..       the histogram of commit durations: counts by upper bound, count of longer ones, sum in seconds

import { metricsAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

export const metrics = {
  // Written by the writer thread.
  commits: 0,
  committedRows: 1,
  /** Commits with rows older than the newest row of the table. */
  lateCommits: 2,
  /** Start of the oldest commit that is not yet visible, in monotonic milliseconds; 0 if there is none. */
  oldestCommitMs: 3,
  walSegments: 4,
  walBytes: 5,
  walWaitingBytes: 6,
  /** Tables with rows that are not yet in parts. */
  tablesWritten: 7,
  flushes: 8,
  flushedRows: 9,
  merges: 10,
  mergedRows: 11,
  rewrittenRows: 12,
  partBytes: 13,
  failedJobs: 14,
  rollbacks: 15,
  /** Free bytes of the data's file system at the writer's last check. */
  freeBytes: 16,
  /** Reason why writes are refused: one of writeRefusals. */
  refusal: 17,
  /** Damaged or missing ranges of the log. */
  logLosses: 18,
  // Written by the main thread.
  /** Writes are refused when the file system has fewer free bytes. */
  freeBytesMin: 32,
} as const

export type MetricName = keyof typeof metrics

/** Reasons to refuse writes, as values of the metric `refusal`. */
export const writeRefusals = { none: 0, diskLow: 1, logFailed: 2, memoryFull: 3, diskFull: 4 } as const

/** Upper bounds of commit durations in seconds. */
const commitSecondsBounds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10] as const

const base = metricsAddress >>> 3
const buckets = base + 64
const overflow = buckets + commitSecondsBounds.length

export function metricOf(memory: SharedMemory, name: MetricName): number {
  return memory.f64[base + metrics[name]]!
}

export function setMetric(memory: SharedMemory, name: MetricName, value: number): void {
  memory.f64[base + metrics[name]] = value
}

export function addMetric(memory: SharedMemory, name: MetricName, change: number): void {
  memory.f64[base + metrics[name]] = memory.f64[base + metrics[name]]! + change
}

export function observeCommit({ f64 }: SharedMemory, seconds: number): void {
  let bucket = 0
  while (bucket < commitSecondsBounds.length && seconds > (commitSecondsBounds[bucket] as number)) bucket++
  f64[buckets + bucket] = f64[buckets + bucket]! + 1
  f64[overflow + 1] = f64[overflow + 1]! + seconds
}

export interface Histogram {
  /** Upper bounds in seconds. `counts` is not cumulative and has one more entry, for larger values. */
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

export function commitSeconds({ f64 }: SharedMemory): Histogram {
  return {
    bounds: commitSecondsBounds,
    counts: [...f64.subarray(buckets, overflow + 1)],
    sum: f64[overflow + 1]!,
  }
}
