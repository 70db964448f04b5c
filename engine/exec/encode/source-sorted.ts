// One way to divide a query result among threads (see morsel-source.ts): the result of an ORDER BY. One thread sorts
// and leaves the rows and their sorted order in shared memory. Each unit of parallel work (morsel) is a range of the
// sorted order, and any thread can gather the rows of a range. This is worth dividing because rows that are adjacent in
// the order are far apart in memory, so gathering is slow.
//
// A sort that was spilled to disk is not divided: the thread that runs the query merges its sorted runs alone.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { GatheredBatch } from '../batch/selection.js'
import { rowsFor } from '../batch/small-batches.js'
import { batchRowsMax, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { buildSort } from '../build.js'
import type { SortedDetails } from '../parallel/coordinator.js'
import { listMorsels } from '../scan/morsel-list.js'
import type { SortedRows } from '../sort/sort.js'
import type { DivisibleRows, MorselCut, MorselSource, SourceShape } from './morsel-source.js'

const stepRows = 1024
const morselsWanted = 8

type SortPlan = Extract<Plan, { kind: 'sort' }>

/** A sort, and the columns of it that are selected. */
interface PickedSort {
  readonly sort: SortPlan
  readonly picks: readonly number[]
}

export const sortedShape: SourceShape = {
  open: ({ context, plan, window }, divide) => {
    const picked = context.parallelism === undefined || window.skip > 0 ? undefined : pickedSort(plan)
    if (picked === undefined) return undefined
    const { sort, picks } = picked
    const rows = buildSort(context, sort, (sorted) =>
      sorted.count > window.rowsMax ? undefined : divide(divisible(context, plan.columns, picks, sorted)),
    )
    return plan === sort ? rows : withPicks(rows, picks)
  },
  attach: (context, plan, { sorted }) => {
    const picks = pickedSort(plan)?.picks
    return picks === undefined || sorted === undefined
      ? undefined
      : new SortedRanges(context, plan.columns, picks, sorted)
  },
}

/** undefined when the plan does anything but sort, apply the sort's limit, and select columns. */
function pickedSort(plan: Plan): PickedSort | undefined {
  if (plan.kind === 'sort') return { sort: plan, picks: plan.columns.map((_, index) => index) }
  if (plan.kind !== 'limit' && plan.kind !== 'project') return undefined
  const inner = pickedSort(plan.input)
  if (inner === undefined) return undefined
  if (plan.kind === 'limit') return plan.lo === 0 && plan.hi === inner.sort.limit ? inner : undefined
  const indexes = plan.expressions.map((expression) => (expression.kind === 'column' ? expression.index : -1))
  if (indexes.includes(-1)) return undefined
  return { sort: inner.sort, picks: indexes.map((index) => inner.picks[index] as number) }
}

function withPicks(rows: Operator, picks: readonly number[]): Operator {
  const goIdle = (): void => rows.goIdle?.()
  const pull = (): Pull => {
    const pulled = rows.pull()
    if (!isBatch(pulled) || pulled.vectors.length === 0) return pulled
    return { rows: pulled.rows, vectors: picks.map((index) => pulled.vectors[index] as Vector) }
  }
  return { pull, goIdle }
}

function divisible(
  context: ExecContext,
  columns: readonly PlanColumn[],
  picks: readonly number[],
  rows: SortedRows,
): DivisibleRows {
  return {
    rows: rows.count,
    scanned: null,
    hasStoredPages: false,
    morselsWanted,
    computed: null,
    headRows: batchRowsMax,
    // One batch. Its columns are selected after this operator, as for every batch of the sort.
    head: () => ({ pull: () => (rows.taken === 0 ? rows.next() : null) }),
    divide: (chunkRows): MorselCut => {
      const stored = rows.store.columns().map(({ address, dictionary }) => ({ address, dictionary }))
      const sorted = { order: rows.order, first: rows.taken, end: rows.count, chunkRows, columns: stored }
      return {
        source: new SortedRanges(context, columns, picks, sorted),
        details: () => ({ morsels: listMorsels([]), chunkMorsels: 1, counts: null, sorted }),
      }
    },
  }
}

class SortedRanges implements MorselSource {
  readonly morsels: number
  readonly stepRows = stepRows
  readonly #sorted: SortedDetails
  readonly #vectors: readonly Vector[]
  readonly #gathered: GatheredBatch
  #next = 0
  #end = 0

  constructor(context: ExecContext, columns: readonly PlanColumn[], picks: readonly number[], sorted: SortedDetails) {
    const types = columns.map(({ type }) => type)
    this.#sorted = sorted
    this.#vectors = types.map((type, index) => {
      const { address, dictionary } = sorted.columns[picks[index] as number] as SortedDetails['columns'][number]
      return { type, address, dictionary }
    })
    this.#gathered = new GatheredBatch(context, types)
    this.morsels = Math.ceil((sorted.end - sorted.first) / sorted.chunkRows)
  }

  seek(morsel: number): void {
    const { first, end, chunkRows } = this.#sorted
    this.#next = first + morsel * chunkRows
    this.#end = Math.min(end, this.#next + chunkRows)
  }

  take(): Pull {
    const rows = Math.min(rowsFor(this.#vectors.length), this.#end - this.#next)
    if (rows <= 0) return null
    const batch = this.#gathered.gather(this.#vectors, this.#sorted.order + this.#next * 4, rows)
    this.#next += rows
    return batch
  }

  release(): void {
    this.#end = this.#next
  }
}
