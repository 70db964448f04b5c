// Operator: a whole table as bytes of its rows, made by several threads (encoded-chunks.ts). A chunk is so many rows of the table in their
// order, a page at least unless its rows are long, so that one thread alone unpacks a page.
//
// The first rows are encoded before there are chunks: they leave at once, and tell how long a row is.

import { pageRowsMax } from '../../base/limits.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { batchRowsMax, type Operator, type Pull } from '../batch/vector.js'
import type { ChunkWorker, ShareDetails } from '../parallel/share.js'
import { cutRows, listPieces } from '../scan/share-pieces.js'
import { NumberedRows, type NumberedScan, numberedScan, wholeScanOf } from '../scan/whole-scan.js'
import { type ChunkSource, EncodedChunks, leadRows, type RowBlock } from './encoded-chunks.js'
import type { EncodedRows } from './encoded-rows.js'
import type { EncoderOptions, RowWindow } from './encoder.js'
import type { RowForm } from './row-forms.js'

/** Rows that the lead encodes before it shares. */
const probeRows = 2048
const stepRowsMax = batchRowsMax / 2
const chunkBytes = 8 * 1024 * 1024
const chunkRowsMax = pageRowsMax

export interface SharedRows {
  readonly rows: EncodedRows
  readonly form: RowForm
  /** Hears of finished blocks in their order. */
  readonly give: (block: RowBlock) => void
  /** Hears that nothing but damage can come between now and the first row. */
  readonly surely: () => void
}

/** undefined: rows are filtered or computed, do not lie in their order, or are few. */
export function sharedTable(
  { context, columns }: EncoderOptions,
  plan: Plan,
  { rows: live, form, give, surely }: SharedRows,
  window: RowWindow,
): Operator | undefined {
  const { sharing } = context
  if (sharing === undefined || sharing.helpers === 0) return undefined
  const rowsMin = probeRows + sharing.chunkRowsMin / 4
  const scan = numberedScan(context, plan, (known) => {
    if (Math.min(known - window.skip, window.rowsMax) > rowsMin) surely()
  })
  if (scan === undefined) return undefined
  const rows = new NumberedRows(context, scan, 'once')
  const first = Math.min(scan.window.end, scan.window.first + window.skip)
  const end = Math.min(scan.window.end, first + window.rowsMax)
  if (end - first <= rowsMin) return undefined
  surely()
  rows.seek(first)
  /** Rows outside of the window, before it and behind it. */
  let [before, behind] = [first - scan.window.first, scan.window.end - end]
  let lead: Operator | null = null
  const begin = (): Operator => {
    rows.release()
    const chunkRows = chunkRowsOf(live.bytes / probeRows, sharing.chunkRowsMin)
    const range = { first: rows.row, end, all: rows.count }
    const source = new NumberedSource(context, { scan, range, chunkRows, read: rows })
    const details = (): ShareDetails => ({
      ...{ pieces: listPieces(scan.pieces), chunkPieces: chunkRows, counts: null, range },
    })
    return leadRows(context, sharing, { plan, source, form, columns, stepRows: stepRowsMax, details, live, give })
  }
  const pull = (): Pull => {
    if (before > 0) {
      const told = before
      before = 0
      return { rows: told, vectors: [] }
    }
    if (lead === null && rows.row < first + probeRows) return rows.take(first + probeRows - rows.row)
    lead ??= begin()
    const pulled = lead.pull()
    if (pulled !== null || behind === 0) return pulled
    const told = behind
    behind = 0
    return { rows: told, vectors: [] }
  }
  context.onEnd(() => rows.release())
  const rest = (): void => {
    lead?.rest?.()
    rows.rest()
  }
  return { pull, rest }
}

/** Rows of a chunk, by the bytes of one. */
export function chunkRowsOf(rowBytes: number, rowsMax: number): number {
  return Math.max(1, Math.min(chunkRowsMax, rowsMax, Math.floor(chunkBytes / Math.max(1, rowBytes))))
}

/** What a helper does for it; `chunkPieces` are rows here. */
export function helpTable(
  context: ExecContext,
  plan: Plan,
  form: RowForm,
  { pieces, chunkPieces, range }: ShareDetails,
): ChunkWorker | undefined {
  const scan = range === undefined ? undefined : wholeScanOf(context, plan, pieces, range)
  if (scan === undefined || range === undefined) return undefined
  const { columns } = scan
  const source = new NumberedSource(context, { scan, range, chunkRows: chunkPieces, read: null })
  return new EncodedChunks(context, { source, form, columns, stepRows: stepRowsMax }, null)
}

interface NumberedSourceOptions {
  readonly scan: NumberedScan
  readonly range: { readonly first: number; readonly end: number }
  readonly chunkRows: number
  /** What the lead has read the first rows with. */
  readonly read: NumberedRows | null
}

class NumberedSource implements ChunkSource {
  readonly #rows: NumberedRows
  readonly #cuts: readonly number[]
  readonly #stepRows: number
  #rowEnd = 0

  constructor(context: ExecContext, { scan, range, chunkRows, read }: NumberedSourceOptions) {
    const whole = chunkRows >= pageRowsMax
    this.#rows = (whole ? read : null) ?? new NumberedRows(context, scan, whole ? 'once' : 'kept')
    this.#stepRows = Math.max(1, Math.min(stepRowsMax, chunkRows >>> 3))
    this.#cuts = cutRows(scan.pieces, range, chunkRows)
  }

  get chunks(): number {
    return this.#cuts.length - 1
  }

  seek(chunk: number): void {
    this.#rowEnd = this.#cuts[chunk + 1] as number
    this.#rows.seek(this.#cuts[chunk] as number)
  }

  take(): Pull {
    const rows = Math.min(this.#stepRows, this.#rowEnd - this.#rows.row)
    return rows === 0 ? null : this.#rows.take(rows)
  }

  release(): void {
    this.#rows.release()
  }

  rest(): void {
    this.#rows.rest()
  }
}
