// Figures that the threads count and the main thread shows: one double each at a fixed place of the shared memory.
// A figure has one writing thread, which adds with plain stores; readers may see a value that is a moment old.
//
//   word 0..63      the figures below
//   word 64..       the histogram of commit durations: a count by bound, one for longer ones, their sum in seconds

import { figuresAddress } from './layout.js'
import type { SharedMemory } from './shared-memory.js'

export const figures = {
  // Counted by the writer.
  commits: 0,
  committedRows: 1,
  /** Commits with rows older than the table's newest one. */
  lateCommits: 2,
  /** When the oldest commit that nobody sees yet was taken, in monotonic milliseconds; 0 without one. */
  oldestCommitMs: 3,
  walSegments: 4,
  walBytes: 5,
  walWaitingBytes: 6,
  /** Tables with rows that are not in parts. */
  tablesWritten: 7,
  flushes: 8,
  flushedRows: 9,
  merges: 10,
  mergedRows: 11,
  rewrittenRows: 12,
  partBytes: 13,
  failedJobs: 14,
  rollbacks: 15,
  /** Of the file system that holds the data, as the writer saw it last. */
  freeBytes: 16,
  /** Why writes are refused: see writeRefusals. */
  refusal: 17,
  /** Pieces of the log that are damaged or missing. */
  logLosses: 18,
  // Counted by the main thread.
  /** Writes are refused when the file system has less. */
  freeBytesMin: 32,
} as const

export type Figure = keyof typeof figures

/** Reasons to refuse writes, by their number in the figure `refusal`. */
export const writeRefusals = { none: 0, diskLow: 1, logFailed: 2, memoryFull: 3, diskFull: 4 } as const

/** Upper bounds of commit durations in seconds. */
const commitSecondsBounds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10] as const

const base = figuresAddress >>> 3
const buckets = base + 64
const overflow = buckets + commitSecondsBounds.length

export function figureOf(memory: SharedMemory, figure: Figure): number {
  return memory.f64[base + figures[figure]]!
}

export function setFigure(memory: SharedMemory, figure: Figure, value: number): void {
  memory.f64[base + figures[figure]] = value
}

export function addFigure(memory: SharedMemory, figure: Figure, change: number): void {
  memory.f64[base + figures[figure]] = memory.f64[base + figures[figure]]! + change
}

export function observeCommit({ f64 }: SharedMemory, seconds: number): void {
  let bucket = 0
  while (bucket < commitSecondsBounds.length && seconds > (commitSecondsBounds[bucket] as number)) bucket++
  f64[buckets + bucket] = f64[buckets + bucket]! + 1
  f64[overflow + 1] = f64[overflow + 1]! + seconds
}

export interface HistogramFigures {
  /** Upper bounds; the counts have one more entry, for what is larger. Not cumulative. */
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

export function commitSeconds({ f64 }: SharedMemory): HistogramFigures {
  return {
    bounds: commitSecondsBounds,
    counts: [...f64.subarray(buckets, overflow + 1)],
    sum: f64[overflow + 1]!,
  }
}
