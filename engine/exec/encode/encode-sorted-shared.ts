// Operator: sorted rows as bytes, or as row groups of a Parquet file, made by several threads (encoded-chunks.ts,
// encode-parquet-chunks.ts). One thread sorts. The rows and their order lie in shared memory, and stay there until no helper
// looks at them, so a chunk is a range of the order, and whoever takes it gathers its rows: that is what costs, with the
// encoding, since neighbours of the order lie far from each other.
//
// Runs of a sort that outgrew the memory are merged by the lead alone.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { Gathered } from '../batch/selection.js'
import { rowsFor } from '../batch/short-batches.js'
import { batchRowsMax, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { buildSort } from '../build.js'
import type { ChunkWorker, ShareDetails, Sharing, SortedDetails } from '../parallel/share.js'
import { listPieces } from '../scan/share-pieces.js'
import type { SortedRows } from '../sort/sort.js'
import { BatchGroups, GroupChunks, leadGroups } from './encode-parquet-chunks.js'
import { type ExportedGroup, groupRoom } from './encode-parquet-group.js'
import { chunkRowsOf, type SharedRows } from './encode-table-shared.js'
import { type ChunkSource, EncodedChunks, leadRows } from './encoded-chunks.js'
import type { EncoderOptions, RowWindow } from './encoder.js'
import type { ParquetEncoding } from './parquet-encoding.js'
import type { RowForm } from './row-forms.js'

/** Rows that are encoded before the reader's window is looked at again. */
const stepRows = 1024
/** Fewer row groups leave threads without work. */
const groupsWanted = 8

type SortPlan = Extract<Plan, { kind: 'sort' }>

/** A sort, and which of its columns are wanted. */
interface Sorted {
  readonly sort: SortPlan
  readonly picks: readonly number[]
}

/** undefined: the plan does more than to sort, to end with the last row that is wanted, and to pick columns. */
function sortedOf(plan: Plan): Sorted | undefined {
  if (plan.kind === 'sort') return { sort: plan, picks: plan.columns.map((_, index) => index) }
  if (plan.kind !== 'limit' && plan.kind !== 'project') return undefined
  const inner = sortedOf(plan.input)
  if (inner === undefined) return undefined
  if (plan.kind === 'limit') return plan.lo === 0 && plan.hi === inner.sort.limit ? inner : undefined
  const indexes = plan.expressions.map((expression) => (expression.kind === 'column' ? expression.index : -1))
  if (indexes.includes(-1)) return undefined
  return { sort: inner.sort, picks: indexes.map((index) => inner.picks[index] as number) }
}

/** undefined: the plan does more, rows are counted off, or nobody could help. */
export function sharedSorted(
  { context, columns }: EncoderOptions,
  plan: Plan,
  { rows: live, form, give }: SharedRows,
  { skip, rowsMax }: RowWindow,
): Operator | undefined {
  return leadSorted(context, plan, skip, (sharing, sorted, { picks }) => {
    if (sorted.count > rowsMax || sorted.count <= batchRowsMax + sharing.chunkRowsMin / 4) return undefined
    // The first rows leave at once, and tell how long a row is.
    let lead: Operator | null = null
    const begin = (): Operator => {
      const chunkRows = chunkRowsOf(live.bytes / sorted.taken, sharing.chunkRowsMin)
      const told = detailsOf(sorted, chunkRows)
      const source = new SortedSource(context, columns, picks, told)
      const details = (): ShareDetails => shareDetails(told)
      return leadRows(context, sharing, { plan, source, form, columns, stepRows, details, live, give })
    }
    const pull = (): Pull => {
      if (lead === null && sorted.taken === 0) return sorted.next()
      lead ??= begin()
      return lead.pull()
    }
    return { pull, rest: () => lead?.rest?.() }
  })
}

/** What a helper does for it. */
export function helpSorted(
  context: ExecContext,
  plan: Plan,
  form: RowForm,
  details: ShareDetails,
): ChunkWorker | undefined {
  const source = toldSource(context, plan, details)
  if (source === undefined) return undefined
  return new EncodedChunks(context, { source, form, columns: plan.columns, stepRows }, null)
}

/** The same for row groups; `give` hears of them before their rows are told. */
export function sharedSortedGroups(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  give: (group: ExportedGroup) => void,
): Operator | undefined {
  return leadSorted(context, plan, 0, (sharing, sorted, { picks }) => {
    const { columns } = plan
    const { rowGroupRows } = encoding
    const wanted = Math.max(sharing.chunkRowsMin, Math.min(rowGroupRows, Math.ceil(sorted.count / groupsWanted)))
    const usual = Math.min(wanted, groupRoom(context, columns).rows)
    // A chunk of several groups has whole ones.
    const chunkRows = usual < rowGroupRows ? usual : Math.ceil(usual / rowGroupRows) * rowGroupRows
    if (sorted.count <= chunkRows) return undefined
    const told = detailsOf(sorted, chunkRows)
    const source = new BatchGroups(new SortedSource(context, columns, picks, told))
    return leadGroups(context, sharing, { plan, source, encoding, columns, details: () => shareDetails(told), give })
  })
}

export function helpSortedGroups(
  context: ExecContext,
  plan: Plan,
  encoding: ParquetEncoding,
  details: ShareDetails,
): ChunkWorker | undefined {
  const source = toldSource(context, plan, details)
  if (source === undefined) return undefined
  const groups = new BatchGroups(source)
  return new GroupChunks(context, { source: groups, encoding, columns: plan.columns, packed: true })
}

/** What a helper was told of the lead's rows. */
function toldSource(context: ExecContext, plan: Plan, { sorted }: ShareDetails): SortedSource | undefined {
  const picks = sortedOf(plan)?.picks
  return picks === undefined || sorted === undefined
    ? undefined
    : new SortedSource(context, plan.columns, picks, sorted)
}

/** `share` is asked when the rows are sorted; undefined: they come as batches. */
function leadSorted(
  context: ExecContext,
  plan: Plan,
  skip: number,
  share: (sharing: Sharing, rows: SortedRows, sorted: Sorted) => Operator | undefined,
): Operator | undefined {
  const { sharing } = context
  const sorted = sortedOf(plan)
  if (sharing === undefined || sharing.helpers === 0 || skip > 0 || sorted === undefined) return undefined
  const { sort, picks } = sorted
  const rows = buildSort(context, sort, (done) => share(sharing, done, sorted))
  if (plan === sort) return rows
  const rest = (): void => rows.rest?.()
  const pull = (): Pull => {
    const pulled = rows.pull()
    if (!isBatch(pulled) || pulled.vectors.length === 0) return pulled
    return { rows: pulled.rows, vectors: picks.map((index) => pulled.vectors[index] as Vector) }
  }
  return { pull, rest }
}

function detailsOf(rows: SortedRows, chunkRows: number): SortedDetails {
  const columns = rows.store.columns().map(({ address, dictionary }) => ({ address, dictionary }))
  return { order: rows.order, first: rows.taken, end: rows.count, chunkRows, columns }
}

function shareDetails(sorted: SortedDetails): ShareDetails {
  return { pieces: listPieces([]), chunkPieces: 1, counts: null, sorted }
}

/** Ranges of the order. */
class SortedSource implements ChunkSource {
  readonly chunks: number
  readonly #sorted: SortedDetails
  readonly #vectors: readonly Vector[]
  readonly #gathered: Gathered
  #next = 0
  #end = 0

  constructor(context: ExecContext, columns: readonly PlanColumn[], picks: readonly number[], sorted: SortedDetails) {
    const types = columns.map(({ type }) => type)
    this.#sorted = sorted
    this.#vectors = types.map((type, index) => {
      const { address, dictionary } = sorted.columns[picks[index] as number] as SortedDetails['columns'][number]
      return { type, address, dictionary }
    })
    this.#gathered = new Gathered(context, types)
    this.chunks = Math.ceil((sorted.end - sorted.first) / sorted.chunkRows)
  }

  seek(chunk: number): void {
    const { first, end, chunkRows } = this.#sorted
    this.#next = first + chunk * chunkRows
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
