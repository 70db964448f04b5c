// Determines which rows of a live view a change of its base reaches, and from which rows of the base a range of the
// view's rows is computed. Both depend on how far its window functions look back (LiveFrames):
//
//   RANGE     a change reaches as far as the longest frame
//   anchored  a change reaches to the end of the period of its anchor; rows are computed from the start of their period
//   ROWS      How far a frame reaches back depends on the data, so an added row may reach any later row. Refreshes
//             record marks {at, from}: rows of the view from `at` on depend on no rows of the base before `from`. So
//             all rows from the last mark before a change on are computed. A removed row reaches no row after a mark
//             with a later `from`. A mark that other changes reach is no longer right, so callers that compute rows
//             leave it out (`keeping`).

import type { TimeRange, ViewBuckets } from '../sql/plan/plan.js'
import type { LiveFrames, StoredBuckets } from '../storage/schema/materialized.js'
import type { TableSchema } from '../storage/schema/schema.js'
import { allOfTime, complement } from '../types/interval.js'

export interface BucketGrid {
  /**
   * The smallest range of whole buckets that contains the range. Of a live view: the rows that are computed again if
   * the base has other rows in the range.
   */
  whole(range: TimeRange): TimeRange
  readonly live?: LiveRanges
}

interface LiveRanges {
  /** Whether ranges begin at marks (live-grid.ts). */
  readonly isMarked: boolean
  /** The rows that a change of the base in the range reaches, from the range on. */
  reached(range: TimeRange, isRemoval: boolean): TimeRange
  /** Like `whole`, if rows in the range are removed and none are added. */
  withoutRows(range: TimeRange): TimeRange
  /** The rows of the base from which those in the range are computed, if the marks are right. */
  input(range: TimeRange): TimeRange
  /** Rows of the base, present or yet to come, without which those in the range would be other ones. */
  needed(range: TimeRange): TimeRange
  /** The first timestamp at which the view may get further rows, if no rows come late. */
  currentStart(newest: bigint): bigint
  /** The same with the marks alone that are right while these rows of the view are. */
  keeping(clean: readonly TimeRange[]): BucketGrid
}

/** From `at` on, rows depend on rows of the base from `from` on. */
interface Mark {
  readonly at: bigint
  readonly from: bigint
}

function marksOf({ marks = [] }: Partial<Pick<StoredBuckets, 'marks'>>): Mark[] {
  return marks.map(([at, from]) => ({ at: BigInt(at), from: BigInt(from) }))
}

/** `below`: of the materialized views that the view reads; `gridOf` makes that of an anchor. */
export function liveGrid(
  frames: LiveFrames,
  { stored }: Pick<TableSchema, 'stored'>,
  below: BucketGrid | null,
  gridOf: (buckets: ViewBuckets) => BucketGrid,
): BucketGrid {
  return markedGrid(frames, frames.rows === 0 ? [] : marksOf(stored ?? {}), below, gridOf)
}

function markedGrid(
  frames: LiveFrames,
  marks: readonly Mark[],
  below: BucketGrid | null,
  gridOf: (buckets: ViewBuckets) => BucketGrid,
): BucketGrid {
  const { ticks, rows, anchors } = frames
  const periods = anchors.map(({ offsetMicros, ...anchor }) =>
    gridOf({ ...anchor, offsetMicros: BigInt(offsetMicros) }),
  )
  const wider = (range: TimeRange): TimeRange => below?.whole(range) ?? range
  const endOf = (ts: bigint): bigint =>
    largest(clamped(ts + BigInt(ticks)), ...periods.map((period) => period.whole({ lo: ts, hi: ts }).hi))
  const startOf = (ts: bigint): bigint =>
    smallest(clamped(ts - BigInt(ticks)), ...periods.map((period) => period.whole({ lo: ts, hi: ts }).lo))
  const lastMark = (ts: bigint): Mark =>
    marks.findLast(({ at }) => at <= ts) ?? { at: allOfTime.lo, from: allOfTime.lo }
  const reached = (range: TimeRange, isRemoval: boolean): TimeRange => {
    const { lo, hi } = wider(range)
    if (rows === 0) return { lo, hi: endOf(hi) }
    const free = isRemoval ? marks.find(({ from }) => from > hi) : undefined
    return { lo, hi: free === undefined ? allOfTime.hi : largest(free.at - 1n, endOf(hi)) }
  }
  const whole = (range: TimeRange, isRemoval: boolean): TimeRange => {
    const { lo, hi } = reached(range, isRemoval)
    return { lo: rows === 0 ? lo : lastMark(lo).at, hi }
  }
  return {
    whole: (range) => whole(range, false),
    live: {
      isMarked: rows > 0,
      reached,
      withoutRows: (range) => whole(range, true),
      input: ({ lo, hi }) => wider({ lo: smallest(startOf(lo), rows === 0 ? lo : lastMark(lo).from), hi }),
      needed: ({ lo, hi }) =>
        rows === 0 ? wider({ lo: startOf(lo), hi }) : { lo: allOfTime.lo, hi: wider({ lo, hi }).hi },
      currentStart: (newest) => below?.whole({ lo: newest, hi: newest }).lo ?? newest + 1n,
      keeping: (clean) => markedGrid(frames, outside(marks, complement(clean)), below, gridOf),
    },
  }
}

/** The marks that are right while only these ranges are not. */
export function keptMarks(stored: StoredBuckets | undefined, changed: readonly TimeRange[]): Mark[] {
  return outside(marksOf(stored ?? {}), changed)
}

function outside(marks: readonly Mark[], changed: readonly TimeRange[]): Mark[] {
  return marks.filter(({ at }) => !changed.some(({ lo, hi }) => lo < at && at <= hi))
}

/** Marks that are listed: half of the older ones are left out if there are too many. */
const marksMax = 96

export function listedMarks(marks: readonly Mark[]): [string, string][] {
  const sorted = [...marks].sort((x, y) => (x.at < y.at ? -1 : 1))
  const newest = sorted.length - marksMax / 2
  const kept = sorted.length <= marksMax ? sorted : sorted.filter((_, index) => index >= newest || index % 2 === 0)
  return kept.map(({ at, from }) => [`${at}`, `${from}`])
}

function clamped(ts: bigint): bigint {
  return largest(allOfTime.lo, smallest(allOfTime.hi, ts))
}

function largest(first: bigint, ...more: readonly bigint[]): bigint {
  let most = first
  for (const value of more) if (value > most) most = value
  return most
}

function smallest(first: bigint, ...more: readonly bigint[]): bigint {
  let least = first
  for (const value of more) if (value < least) least = value
  return least
}
