// Gives exports access by row number to the rows of a whole table, or of one time interval: in timestamp order, or as
// stored if the query needs no order. Timestamp order requires that the morsels (memtable blocks and pages) do not
// overlap in time, so that the row number alone determines the morsel. The rows can then be divided among several
// threads by row number.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import { hidesRows } from '../../storage/memtable/removed-rows.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import { type MorselList, pickMorsels } from './morsel-list.js'
import { covers, rowCount, type ScanMorsel } from './morsels.js'
import { columnsRead, type ScanShape, scanShape } from './scan-shape.js'
import { type PageReads, SliceReader } from './scan-slices.js'
import { scanRuns } from './zones.js'

/** The scan that is exported, with its columns. */
interface FullScan {
  readonly shape: ScanShape
  readonly columns: readonly PlanColumn[]
}

export interface NumberedScan extends FullScan {
  readonly morsels: readonly ScanMorsel[]
  /** The range of row numbers to export; the first and last morsel may extend beyond the time interval. */
  readonly window: NumberedWindow
}

/** Row numbers from `first` to before `end`. */
export interface NumberedWindow {
  readonly first: number
  readonly end: number
}

/**
 * undefined when rows are filtered, computed, or out of order. `onRowCount` is called with the number of rows when it
 * is certain that the scan can be numbered, before parts are opened: opening hundreds of parts takes time.
 */
export function numberedScan(
  context: ExecContext,
  plan: Plan,
  onRowCount: (rows: number) => void = () => {},
): NumberedScan | undefined {
  const whole = fullScan(context, plan)
  const morsels = whole === undefined ? undefined : morselsInOrder(context, plan, whole.shape, onRowCount)
  if (whole === undefined || morsels === undefined) return undefined
  return { ...whole, morsels, window: windowOf(context, whole.shape, morsels) }
}

/** undefined also when later rows may replace earlier ones. */
function fullScan(context: ExecContext, plan: Plan): FullScan | undefined {
  if (plan.kind === 'scan') {
    if (plan.filter !== null || plan.order === 'descending') return undefined
    const shape = scanShape(context, plan)
    return hidesRows(shape.snapshot.version) ? undefined : { shape, columns: plan.columns }
  }
  if (plan.kind !== 'project') return undefined
  const below = fullScan(context, plan.input)
  if (below === undefined) return undefined
  const { columnIds, types } = below.shape
  const picked = plan.expressions.map((expression) => (expression.kind === 'column' ? expression.index : -1))
  if (picked.includes(-1)) return undefined
  const shape = {
    ...below.shape,
    columnIds: picked.map((index) => columnIds[index] as number),
    types: picked.map((index) => types[index] as (typeof types)[number]),
  }
  return { shape, columns: plan.columns }
}

/**
 * The morsels in time order; undefined when they overlap, or the time ranges cut them in more than one place. With one
 * interval, only the first and the last morsel may have rows outside of it.
 */
function morselsInOrder(
  context: ExecContext,
  plan: Plan,
  shape: ScanShape,
  onRowCount: (rows: number) => void,
): ScanMorsel[] | undefined {
  const runs = scanRuns(context, shape)
  const scan = plan.kind === 'project' ? plan.input : plan
  const timed = shape.snapshot.version.schema.timestampId >= 0
  const anyOrder = !timed || (scan.kind === 'scan' && scan.order === 'any')
  if (shape.ranges === null && (anyOrder || byTime(runs) !== undefined)) onRowCount(rowCount(runs))
  const commits = runs.flatMap((run) => run.morsels)
  const covered = commits.every((morsel) => covers(shape.ranges, morsel.minTs, morsel.maxTs))
  if (!covered && shape.ranges?.length !== 1) return undefined
  return anyOrder && covered ? commits : byTime(commits)
}

function windowOf(
  { kernels }: ExecContext,
  { ranges, snapshot }: ScanShape,
  morsels: readonly ScanMorsel[],
): NumberedWindow {
  const rows = rowCount(morsels)
  const [range, head, tail] = [ranges?.[0], morsels[0], morsels.at(-1)]
  if (range === undefined || head === undefined || tail === undefined) return { first: 0, end: rows }
  const { lowerBound, upperBound } = kernels.sort
  const within = (morsel: ScanMorsel, bound: (times: number) => number): number => {
    const row = bound(morsel.column(snapshot.version.schema.timestampId))
    morsel.release()
    return row
  }
  // Several ranges that contain all morsels need no cut.
  if (covers(ranges, head.minTs, head.maxTs) && covers(ranges, tail.minTs, tail.maxTs)) return { first: 0, end: rows }
  const first = range.lo <= head.minTs ? 0 : within(head, (times) => lowerBound(times, 0, head.rows, range.lo))
  const after =
    range.hi >= tail.maxTs ? 0 : tail.rows - within(tail, (times) => upperBound(times, 0, tail.rows, range.hi))
  return { first, end: rows - after }
}

/** Sorts morsels or runs, given in commit order, by time; undefined when they overlap. */
export function byTime<Timed extends Pick<ScanMorsel, 'minTs' | 'maxTs' | 'sorted'>>(
  commits: readonly Timed[],
): Timed[] | undefined {
  const numbered = commits.map((rows, commit) => ({ rows, commit }))
  numbered.sort((x, y) => (x.rows.minTs < y.rows.minTs ? -1 : x.rows.minTs > y.rows.minTs ? 1 : x.commit - y.commit))
  const follows = numbered.every(({ rows, commit }, index) => {
    const before = numbered[index - 1]
    if (!rows.sorted) return false
    if (before === undefined || before.rows.maxTs < rows.minTs) return true
    // Rows with equal timestamps are ordered by commit.
    return before.rows.maxTs === rows.minTs && before.commit < commit
  })
  return follows ? numbered.map(({ rows }) => rows) : undefined
}

/** Whether the commit order of the morsels is their time order. */
export function isByTime(commits: readonly ScanMorsel[]): boolean {
  return byTime(commits)?.every((morsel, index) => morsel === commits[index]) === true
}

/** Does the same on a worker thread, with the coordinator's list of morsels. */
export function fullScanOf(
  context: ExecContext,
  plan: Plan,
  list: MorselList,
  window: NumberedWindow,
): NumberedScan | undefined {
  const whole = fullScan(context, plan)
  if (whole === undefined) return undefined
  const candidates = scanRuns(context, whole.shape).flatMap((run) => run.morsels)
  const morsels = pickMorsels(candidates, list)
  return morsels === undefined ? undefined : { ...whole, morsels, window }
}

/** Reads rows by their number. */
export class NumberedRows {
  readonly count: number
  readonly reader: SliceReader
  readonly #morsels: readonly ScanMorsel[]
  /** Number of each morsel's first row. */
  readonly #firsts: readonly number[]
  readonly #read: readonly number[]
  #morsel = 0
  #row = 0

  constructor(context: ExecContext, { shape, morsels }: NumberedScan, reads: PageReads = 'cached') {
    this.reader = new SliceReader(context, shape, reads)
    this.#morsels = morsels
    this.#read = columnsRead(shape)
    let first = 0
    this.#firsts = morsels.map(({ rows }) => {
      first += rows
      return first - rows
    })
    this.count = first
  }

  seek(row: number): void {
    this.release()
    this.#row = row
    this.#morsel = 0
    while (row >= (this.#firsts[this.#morsel + 1] ?? this.count)) this.#morsel++
  }

  get row(): number {
    return this.#row
  }

  /** The morsel of the next row, and the row's position in it; undefined after the last row. */
  next(): { readonly morsel: ScanMorsel; readonly from: number } | undefined {
    this.#leave()
    const morsel = this.#morsels[this.#morsel]
    return morsel === undefined ? undefined : { morsel, from: this.#row - (this.#firsts[this.#morsel] as number) }
  }

  /** Whether the next rows can be read; see ScanMorsel.ready. */
  ready(): boolean {
    return this.next()?.morsel.ready(this.#read) ?? true
  }

  /** Vectors of the next rows of one morsel, at most `rowsMax`; valid until the next call. */
  take(rowsMax: number): { readonly rows: number; readonly vectors: readonly Vector[] } {
    const here = this.next()
    if (here === undefined) return { rows: 0, vectors: [] }
    const rows = Math.min(rowsMax, here.morsel.rows - here.from)
    const vectors = this.reader.vectors(here.morsel, here.from, null)
    this.#row += rows
    return { rows, vectors }
  }

  /** Skips rows of the morsel that the caller has read otherwise. */
  skip(rows: number): void {
    this.#row += rows
  }

  /** Unpins the current morsel, and frees everything that can be read again. */
  goIdle(): void {
    this.release()
    this.reader.goIdle()
  }

  /** Unpins the current morsel. */
  release(): void {
    this.#morsels[this.#morsel]?.release()
  }

  #leave(): void {
    while (this.#row >= (this.#firsts[this.#morsel + 1] ?? Number.POSITIVE_INFINITY)) {
      this.release()
      this.#morsel++
    }
  }
}
