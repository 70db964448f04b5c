// Operator: rows of a table that are filtered or computed, or merged from pieces that overlap, as bytes made by several
// threads (encoded-chunks.ts). A chunk is a range of time: a thread runs the whole plan over it.
//
// The first range is small, and its rows are encoded before there are chunks: they leave at once, and tell how long a row
// is, and whether it takes longer to find rows than to write them. When it does not, two threads are busy already, this one
// and the main thread: a single helper would take its processor from them (a filter that half of the rows pass: 0.39
// seconds of processor time became 0.50, and the export no faster; with concat() 1.1 seconds of this thread became 0.63).

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { buildOperator } from '../build.js'
import { piecesOf, stableScan } from '../fragment/share-rows.js'
import type { ChunkWorker, ShareDetails } from '../parallel/share.js'
import { rowCount } from '../scan/pieces.js'
import { scanShape } from '../scan/scan-shape.js'
import { listPieces } from '../scan/share-pieces.js'
import { firstRange, restOfTime, within } from '../scan/time-cuts.js'
import { chunkRowsOf, type SharedRows } from './encode-table-shared.js'
import { EncodedChunks, leadRows } from './encoded-chunks.js'
import type { EncoderOptions, RowWindow } from './encoder.js'
import type { RowForm } from './row-forms.js'
import { TimedSource } from './timed-source.js'

/** Rows of the table that the lead reads before it shares, about. */
const probeRows = 4096
const stepRows = 1024
/** A value is hardly shorter: of rows that no probe has seen. */
const valueBytesMin = 8
/** How fast text is made of rows, about. */
const textBytesPerMs = 1_000_000

/** undefined: the plan does more, rows are counted off, or they are few. */
export function sharedRows(
  { context, columns }: EncoderOptions,
  plan: Plan,
  { rows: live, form, give }: SharedRows,
  { skip, rowsMax }: RowWindow,
): Operator | undefined {
  const { sharing } = context
  if (sharing === undefined || sharing.helpers === 0 || skip > 0 || rowsMax < Number.POSITIVE_INFINITY) return undefined
  const scan = stableScan(plan)
  const shape = scan === undefined ? undefined : scanShape(context, scan)
  if (scan === undefined || shape === undefined || shape.snapshot.version.schema.timestampId < 0) return undefined
  const pieces = piecesOf(context, shape)
  if (rowCount(pieces) <= probeRows + sharing.chunkRowsMin / 4) return undefined
  const descending = scan.order === 'descending'
  const first = firstRange(pieces, probeRows, descending)
  const probe = buildOperator(context, within(plan, first))
  let probedRows = 0
  let probedMs = 0
  const begin = (): Operator => {
    const width = Math.max(columns.length * valueBytesMin, live.bytes / Math.max(1, probedRows))
    const rest = restOfTime(pieces, chunkRowsOf(width, sharing.chunkRowsMin), { first, descending })
    // The texts of chunks begin as if rows preceded, which differs in JSON.
    const unlike = form !== 'arrow' && form.flags !== 0 && probedRows === 0
    const worth = sharing.helpers > 1 || probedMs * textBytesPerMs > live.bytes
    if (rest.cuts === undefined || unlike || !worth) return buildOperator(context, within(plan, rest))
    const times = BigInt64Array.from(rest.cuts)
    const source = new TimedSource(context, plan, { times, descending })
    const details = (): ShareDetails => ({ pieces: listPieces([]), chunkPieces: 1, counts: null, times })
    return leadRows(context, sharing, { plan, source, form, columns, stepRows, details, live, give })
  }
  let lead: Operator | null = null
  const pull = (): Pull => {
    if (lead !== null) return lead.pull()
    const startedMs = sharing.nowMs()
    const pulled = probe.pull()
    probedMs += sharing.nowMs() - startedMs
    if (isBatch(pulled)) probedRows += pulled.rows
    if (pulled !== null) return pulled
    lead = begin()
    return 'working'
  }
  return { pull, rest: () => (lead ?? probe).rest?.() }
}

/** What a helper does for it. */
export function helpRows(
  context: ExecContext,
  plan: Plan,
  form: RowForm,
  { times }: ShareDetails,
): ChunkWorker | undefined {
  const scan = stableScan(plan)
  if (scan === undefined || times === undefined) return undefined
  const source = new TimedSource(context, plan, { times, descending: scan.order === 'descending' })
  return new EncodedChunks(context, { source, form, columns: plan.columns, stepRows }, null)
}
