// Streams: the inputs that an ordered scan merges (scan-ordered.ts). A stream is a list of morsels that do not overlap
// in time, from one part (Parquet file) or memtable; if the morsels of a part or memtable overlap, they are distributed
// to several streams. A stream is read either forward or backward. Only its current morsel is open, to save memory.

import type { TimeRange } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { covers, type Run, runOf, type ScanMorsel } from './morsels.js'
import { orderedView } from './ordered-view.js'

export interface StreamShape {
  readonly context: ExecContext
  readonly timestampId: number
  readonly ranges: readonly TimeRange[] | null
  readonly typeOf: (columnId: number) => DataType
  readonly descending: boolean
  readonly skips: SkipTest
  /** Rows of morsels that were read or skipped. */
  readonly passed: (rows: number) => void
}

/**
 * Whether a morsel, or all of a run, can be skipped. May be called repeatedly before it is read; once true, the answer
 * must stay true.
 */
export type SkipTest = (rows: ScanMorsel | Run) => boolean

/** Streams in commit order. */
export function streamsOf(runs: readonly Run[], shape: StreamShape): Stream[] {
  const whole = (run: Run): boolean => run.sorted || shape.timestampId < 0
  const streams: Stream[] = []
  for (const run of runs) {
    if (whole(run)) streams.push(new Stream(run, shape))
    else for (const part of splitRun(run)) streams.push(new Stream(part, shape))
  }
  return streams
}

/** Splits a run into sequences of morsels without overlap. */
function splitRun(run: Run): Run[] {
  const lists: ScanMorsel[][] = [[]]
  for (const morsel of run.morsels) {
    const last = lists.at(-1)?.at(-1)
    if (last !== undefined && morsel.minTs < last.maxTs) lists.push([])
    lists.at(-1)?.push(morsel)
  }
  return lists.map((morsels) => runOf(morsels, true, run.memtable))
}

export class Stream {
  /** The current morsel once it is open, and its remaining rows [from, to). */
  morsel: ScanMorsel | null = null
  from = 0
  to = 0
  /** Address of the morsel's timestamps; 0: not read since the last goIdle(). */
  #times = 0
  /** Whether the morsel is read in place, and not a sorted copy. */
  #plain = false
  readonly #run: Run
  readonly #shape: StreamShape
  /** In reading order; null: not listed yet. */
  #morsels: readonly ScanMorsel[] | null = null
  #next = 0

  constructor(run: Run, shape: StreamShape) {
    this.#run = run
    this.#shape = shape
  }

  /** Advances to the next morsel if the current one is used up; false at the end. Opens nothing. */
  settle(): boolean {
    if (this.morsel !== null && this.from < this.to) return true
    this.close()
    if (this.#morsels === null) {
      const isSkipped = this.#shape.skips(this.#run)
      if (isSkipped) this.#shape.passed(this.#run.rows)
      return !isSkipped
    }
    for (; this.#next < this.#morsels.length; this.#next++) {
      const next = this.#morsels[this.#next] as ScanMorsel
      if (!this.#shape.skips(next)) return true
      next.release()
      this.#shape.passed(next.rows)
    }
    return false
  }

  /** The next timestamp in reading order; only a bound of it while the morsel is not open. */
  get head(): bigint {
    const { descending, context } = this.#shape
    if (this.morsel === null) {
      const { minTs, maxTs } = this.#morsels?.[this.#next] ?? this.#run
      return descending ? maxTs : minTs
    }
    return context.memory.i64[(this.ts >>> 3) + (descending ? this.to - 1 : this.from)]!
  }

  /** The last timestamp of the current morsel in reading order. */
  get tail(): bigint {
    const { descending, context } = this.#shape
    return context.memory.i64[(this.ts >>> 3) + (descending ? this.from : this.to - 1)]!
  }

  /** Whether open() can read the columns of the current morsel; see ScanMorsel.ready. */
  ready(columnIds: readonly number[]): boolean {
    if (this.morsel !== null) return this.morsel.ready(columnIds)
    const next = this.#listed()[this.#next]
    return next === undefined || this.#shape.skips(next) || next.ready(columnIds)
  }

  #listed(): readonly ScanMorsel[] {
    this.#morsels ??= this.#shape.descending ? this.#run.morsels.toReversed() : this.#run.morsels
    return this.#morsels
  }

  /** Opens the current morsel. It may have no rows in the ranges: call settle() again. */
  open(): void {
    if (this.morsel !== null) return
    const { context, timestampId, typeOf, ranges } = this.#shape
    const next = this.#listed()[this.#next]
    if (next === undefined || this.#shape.skips(next)) return
    this.#next++
    const morsel = orderedView(context, next, timestampId, typeOf)
    this.morsel = morsel
    this.#plain = morsel === next
    this.from = 0
    this.to = morsel.rows
    if (timestampId < 0) return
    this.#times = morsel.column(timestampId)
    if (ranges === null || covers(ranges, morsel.minTs, morsel.maxTs)) return
    const { lowerBound, upperBound } = context.kernels.sort
    this.from = lowerBound(this.ts, 0, morsel.rows, (ranges[0] as TimeRange).lo)
    this.to = upperBound(this.ts, this.from, morsel.rows, (ranges[ranges.length - 1] as TimeRange).hi)
  }

  /** Address of the morsel's timestamps. */
  get ts(): number {
    if (this.#times === 0) this.#times = this.morsel?.column(this.#shape.timestampId) ?? 0
    return this.#times
  }

  /** Unpins pages, which are read again when needed; a sorted copy is kept. */
  goIdle(): void {
    if (!this.#plain) return
    this.morsel?.release()
    this.#times = 0
  }

  /** Number of remaining rows before `value` in reading order; with `inclusive` also those equal to it. */
  rowsUntil(value: bigint, inclusive: boolean): number {
    const { descending, context } = this.#shape
    const { lowerBound, upperBound } = context.kernels.sort
    if (descending) {
      const bound = inclusive ? lowerBound : upperBound
      return this.to - bound(this.ts, this.from, this.to, value)
    }
    const bound = inclusive ? upperBound : lowerBound
    return bound(this.ts, this.from, this.to, value) - this.from
  }

  /** Consumes rows; returns the number of the first of them in memory order. */
  take(rows: number): number {
    if (this.#shape.descending) {
      this.to -= rows
      return this.to
    }
    this.from += rows
    return this.from - rows
  }

  close(): void {
    this.morsel?.release()
    if (this.morsel !== null) this.#shape.passed(this.morsel.rows)
    this.morsel = null
    this.from = 0
    this.to = 0
  }
}
