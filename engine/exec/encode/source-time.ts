// Divides a query result among threads by time: for table rows that are filtered, computed, or merged from parts
// (Parquet files) that overlap in time. The result is cut into time ranges (time-cuts.ts), and a thread produces the
// rows of one range by running the whole plan over that range, with its own operators and memory. The other ways to
// divide a result are listed in morsel-source.ts.

import type { Plan } from '../../sql/plan/plan.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { ExecContext } from '../batch/context.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { buildOperator, type IsolatedRows, isolated } from '../build.js'
import { morselsOf, stableScan } from '../fragment/rows-parallel.js'
import { listMorsels } from '../scan/morsel-list.js'
import { rowCount, type ScanMorsel, timeMax, timeMin } from '../scan/morsels.js'
import { scanShape } from '../scan/scan-shape.js'
import { chunkRange, firstRange, restOfTime, timeCuts, within } from '../scan/time-cuts.js'
import type { ComputedRows, DivisibleRows, MorselCut, MorselSource, SourceShape } from './morsel-source.js'

const headRows = 4096
const stepRows = 1024
const morselsWanted = 8
/** Number of samples for the selectivity, and rows of each. */
const samples = 4
const sampleRows = 1024

export const timeShape: SourceShape = {
  open: ({ context, plan, window }, divide) => {
    if (window.skip > 0 || window.rowsMax < Number.POSITIVE_INFINITY) return undefined
    const scan = stableScan(plan)
    const shape = scan === undefined ? undefined : scanShape(context, scan)
    if (scan === undefined || shape === undefined || shape.snapshot.version.schema.timestampId < 0) return undefined
    const morsels = morselsOf(context, shape)
    return morsels.length === 0 ? undefined : divide(new TimedRows(context, plan, shape.snapshot, morsels))
  },
  attach: (context, plan, { times }) => {
    const scan = stableScan(plan)
    if (scan === undefined || times === undefined) return undefined
    return new TimeRanges(context, plan, { times, descending: scan.order === 'descending' })
  },
}

class TimedRows implements DivisibleRows, ComputedRows {
  readonly rows: number
  readonly scanned: TableSnapshot
  readonly hasStoredPages = false
  readonly morselsWanted = morselsWanted
  readonly computed = this
  readonly headRows = headRows
  /** Its scans are not counted: they read samples, or parts of what is counted. */
  readonly #context: ExecContext
  readonly #counting: ExecContext
  readonly #plan: Plan
  readonly #morsels: readonly ScanMorsel[]
  readonly #descending: boolean
  /** The plan restricted to the time that head() has not read. */
  #rest: Plan
  #headRange: { readonly lo: bigint; readonly hi: bigint } | null = null
  readonly #sampled: ScanMorsel[]
  /** The sample that is being read. */
  #sample: IsolatedRows | null = null
  #sampledRows = 0
  #passedRows = 0

  constructor(context: ExecContext, plan: Plan, scanned: TableSnapshot, morsels: readonly ScanMorsel[]) {
    this.#context = { ...context, progress: undefined }
    this.#counting = context
    this.#plan = plan
    this.#rest = plan
    this.#morsels = morsels
    this.#descending = stableScan(plan)?.order === 'descending'
    this.scanned = scanned
    this.rows = rowCount(morsels)
    this.#sampled = Array.from(
      { length: samples },
      (_, sample) => morsels[Math.floor((morsels.length * sample) / samples)] as ScanMorsel,
    )
  }

  head(): Operator {
    const range = firstRange(this.#morsels, headRows, this.#descending)
    this.#headRange = range
    this.#rest = within(
      this.#plan,
      restOfTime(this.#morsels, this.rows, { first: range, descending: this.#descending }),
    )
    return buildOperator(this.#context, within(this.#plan, range))
  }

  selectivity(): number | 'working' | 'waiting' {
    if (this.#sample === null) {
      const morsel = this.#sampled.pop()
      if (morsel === undefined) return Math.min(1, this.#passedRows / Math.max(1, this.#sampledRows))
      const range = { lo: morsel.minTs, hi: firstRange([morsel], sampleRows, false).hi }
      this.#sample = isolated(this.#context, within(this.#plan, range))
      this.#sampledRows += Math.min(sampleRows, morsel.rows)
    }
    for (let pulled = this.#sample.pull(); pulled !== null; pulled = this.#sample.pull()) {
      if (pulled === 'waiting') return pulled
      if (isBatch(pulled)) this.#passedRows += pulled.rows
    }
    this.#sample.release()
    this.#sample = null
    return 'working'
  }

  undivided(): Operator {
    return buildOperator(this.#counting, this.#rest)
  }

  divide(rows: number): MorselCut | undefined {
    const cuts = this.#cuts(rows)
    if (cuts === undefined) return undefined
    const times = BigInt64Array.from(cuts)
    return {
      source: new TimeRanges(this.#context, this.#plan, { times, descending: this.#descending }),
      details: () => ({ morsels: listMorsels([]), chunkMorsels: 1, counts: null, times }),
    }
  }

  #cuts(rows: number): readonly bigint[] | undefined {
    const first = this.#headRange
    if (first !== null) return restOfTime(this.#morsels, rows, { first, descending: this.#descending }).cuts
    const cuts = timeCuts(this.#morsels, rows)
    return cuts === undefined ? undefined : [timeMin, ...cuts, timeMax]
  }
}

interface TimeCut {
  /** As in chunkRange(). */
  readonly times: BigInt64Array
  readonly descending: boolean
}

class TimeRanges implements MorselSource {
  readonly morsels: number
  readonly stepRows = stepRows
  readonly #context: ExecContext
  readonly #plan: Plan
  readonly #cut: TimeCut
  #rows: IsolatedRows | null = null

  constructor(context: ExecContext, plan: Plan, cut: TimeCut) {
    this.#context = context
    this.#plan = plan
    this.#cut = cut
    this.morsels = cut.times.length - 1
  }

  seek(morsel: number): void {
    this.release()
    const { times, descending } = this.#cut
    const range = chunkRange(times, descending ? this.morsels - 1 - morsel : morsel)
    this.#rows = isolated(this.#context, within(this.#plan, range))
  }

  take(): Pull {
    return this.#rows === null ? null : this.#rows.pull()
  }

  release(): void {
    this.#rows?.release()
    this.#rows = null
  }

  goIdle(): void {
    this.#rows?.goIdle?.()
  }
}
