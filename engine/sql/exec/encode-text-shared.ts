// Operator: a whole table as text, made by several threads. A chunk is so many rows of the table in their order, a page at
// least unless its rows are long, so that one thread alone unpacks a page; the lead writes its own chunk at once while all
// before it have been written, and what other chunks gave in the order of the chunks.
//
//   result   count of blocks u32 | of each: address u32, bytes u32, rows that end in it u32
//
// The first rows are encoded before there are chunks: they leave at once, and tell how long a row is. A thread holds a few
// chunks that were not written yet and no more, so a slow reader stops all.

import { pageRowsMax } from '../../base/limits.js'
import type { Plan } from '../plan/plan.js'
import { ByteWriter } from './byte-writer.js'
import type { ExecContext } from './context.js'
import { type TextForm, TextRows } from './encode-text.js'
import type { EncoderOptions, RowWindow } from './encoder.js'
import type { QuerySpace } from './query-space.js'
import { type ChunkWorker, LeadRun, type ShareDetails, type Sharing } from './share.js'
import { cutRows, listPieces } from './share-pieces.js'
import { batchRowsMax, type Operator, type Pull } from './vector.js'
import { NumberedRows, type NumberedScan, numberedScan, wholeScanOf } from './whole-scan.js'

/** Rows that the lead encodes before it shares. */
const probeRows = 2048
const stepRowsMax = batchRowsMax / 2
const chunkBytes = 8 * 1024 * 1024
const chunkRowsMax = pageRowsMax
const heldMax = 3

/** A block of finished text. */
export interface TextBlock {
  readonly address: number
  readonly bytes: number
  readonly rows: number
}

/** undefined: rows are filtered or computed, do not lie in their order, or are few. `give` hears of blocks in their order. */
export function sharedText(
  options: EncoderOptions,
  plan: Plan,
  text: { readonly rows: TextRows; readonly form: TextForm },
  window: RowWindow,
  give: (block: TextBlock) => void,
): Operator | undefined {
  const { context } = options
  const sharing = context.sharing
  const scan = sharing === undefined || sharing.helpers === 0 ? undefined : numberedScan(context, plan)
  if (sharing === undefined || scan === undefined) return undefined
  const rows = new NumberedRows(context, scan, 'once')
  const first = Math.min(rows.count, window.skip)
  const end = Math.min(rows.count, window.skip + window.rowsMax)
  if (end - first <= probeRows + sharing.chunkRowsMin / 4) return undefined
  rows.seek(first)
  let untold = first
  let lead: Operator | null = null
  const pull = (): Pull => {
    if (untold > 0) {
      const told = untold
      untold = 0
      return { rows: told, vectors: [] }
    }
    if (lead !== null) return lead.pull()
    if (rows.row < first + probeRows) return rows.take(first + probeRows - rows.row)
    rows.release()
    const width = Math.max(1, text.rows.bytes / probeRows)
    const chunkRows = Math.max(1, Math.min(chunkRowsMax, sharing.chunkRowsMin, Math.floor(chunkBytes / width)))
    const range = { first: rows.row, end, all: rows.count }
    const live = { text: text.rows, read: rows }
    lead = leadText(options, sharing, { plan, scan, range, chunkRows, form: text.form, live, give })
    return 'working'
  }
  context.onEnd(() => rows.release())
  return { pull }
}

interface LeadText {
  readonly plan: Plan
  readonly scan: NumberedScan
  readonly range: { readonly first: number; readonly end: number; readonly all: number }
  readonly chunkRows: number
  readonly form: TextForm
  readonly live: { readonly text: TextRows; readonly read: NumberedRows }
  readonly give: (block: TextBlock) => void
}

function leadText({ context, columns }: EncoderOptions, sharing: Sharing, lead: LeadText): Operator {
  const { plan, scan, range, chunkRows, form, live, give } = lead
  const worker = new TextChunks(context, { scan, range, chunkRows, form, columns, live })
  /** Rows that were written and not told yet; those behind the window at the end. */
  const run = new LeadRun(context.memory, sharing, {
    plan,
    worker,
    chunks: worker.chunks,
    details: () => ({ pieces: listPieces(scan.pieces), chunkPieces: chunkRows, counts: null, range }),
    merge: (result) => {
      for (const block of blocksOf(context, result)) give(block)
      worker.merged++
      told.push(worker.rowsOf(worker.merged - 1))
    },
  })
  const told: number[] = []
  let rest = range.all - range.end
  const pull = (): Pull => {
    const rows = told.shift()
    if (rows !== undefined) return { rows, vectors: [] }
    const outcome = run.step()
    if (outcome === 'waiting') return 'waiting'
    if (outcome === 'working') return 'working'
    if (rest === 0) return null
    const behind = rest
    rest = 0
    return { rows: behind, vectors: [] }
  }
  return { pull }
}

/** What a helper does for it; `chunkPieces` are rows here. */
export function helpText(
  context: ExecContext,
  plan: Plan,
  form: TextForm,
  { pieces, chunkPieces, range }: ShareDetails,
): ChunkWorker | undefined {
  const scan = range === undefined ? undefined : wholeScanOf(context, plan, pieces)
  if (scan === undefined || range === undefined) return undefined
  const { columns } = scan
  return new TextChunks(context, { scan, range, chunkRows: chunkPieces, form, columns, live: null })
}

interface ChunkOptions extends Pick<LeadText, 'scan' | 'range' | 'chunkRows' | 'form'> {
  readonly columns: EncoderOptions['columns']
  /** Of the lead: what writes to the reader, and what has read the first rows. */
  readonly live: { readonly text: TextRows; readonly read: NumberedRows } | null
}

class TextChunks implements ChunkWorker {
  readonly heldMax = heldMax
  /** Chunks that were written. */
  merged = 0
  readonly #context: ExecContext
  readonly #options: ChunkOptions
  readonly #rows: NumberedRows
  readonly #cuts: readonly number[]
  /** The reader's window is looked at between steps. */
  readonly #stepRows: number
  readonly #writer: ByteWriter
  readonly #collected: TextRows
  readonly #results = new Map<number, QuerySpace>()
  #space: QuerySpace | null = null
  #blocks: TextBlock[] = []
  #text: TextRows
  #rowEnd = 0

  constructor(context: ExecContext, options: ChunkOptions) {
    this.#context = context
    this.#options = options
    const { scan, range, chunkRows } = options
    const whole = chunkRows >= pageRowsMax
    this.#rows = (whole ? options.live?.read : undefined) ?? new NumberedRows(context, scan, whole ? 'once' : 'kept')
    this.#stepRows = Math.max(1, Math.min(stepRowsMax, chunkRows >>> 3))
    this.#cuts = cutRows(scan.pieces, range, chunkRows)
    this.#writer = new ByteWriter(context.memory, {
      open: (bytes) => this.#ownSpace().take(bytes),
      close: (address, bytes, rows) => this.#blocks.push({ address, bytes, rows }),
      drop: (address) => this.#ownSpace().give(address),
    })
    // Rows precede those of every chunk.
    this.#collected = new TextRows({ context, writer: this.#writer, columns: options.columns }, options.form, true)
    this.#text = this.#collected
    context.onEnd(() => {
      this.#abandon()
      for (const result of [...this.#results.keys()]) this.recycle(result)
    })
  }

  get chunks(): number {
    return this.#cuts.length - 1
  }

  rowsOf(chunk: number): number {
    return (this.#cuts[chunk + 1] as number) - (this.#cuts[chunk] as number)
  }

  begin(chunk: number): void {
    this.#abandon()
    const { live } = this.#options
    this.#text = live !== null && chunk === this.merged ? live.text : this.#collected
    this.#rowEnd = this.#cuts[chunk + 1] as number
    this.#rows.seek(this.#cuts[chunk] as number)
  }

  step(): boolean {
    const batch = this.#rows.take(Math.min(this.#stepRows, this.#rowEnd - this.#rows.row))
    this.#text.rows(batch, 0, batch.rows)
    return this.#rows.row < this.#rowEnd
  }

  result(): number {
    this.#writer.flush()
    this.#rows.release()
    const { u32 } = this.#context.memory
    const result = this.#ownSpace().take(4 + this.#blocks.length * 12)
    u32[result >>> 2] = this.#blocks.length
    for (const [index, { address, bytes, rows }] of this.#blocks.entries())
      u32.set([address, bytes, rows], (result >>> 2) + 1 + index * 3)
    this.#results.set(result, this.#ownSpace())
    this.#space = null
    this.#blocks = []
    return result
  }

  recycle(result: number): void {
    this.#results.get(result)?.freeAll()
    this.#results.delete(result)
  }

  #ownSpace(): QuerySpace {
    this.#space ??= this.#context.space.child()
    return this.#space
  }

  #abandon(): void {
    this.#rows.release()
    this.#writer.abandon()
    this.#space?.freeAll()
    this.#space = null
    this.#blocks = []
  }
}

function* blocksOf({ memory: { u32 } }: ExecContext, result: number): Generator<TextBlock> {
  const count = u32[result >>> 2] as number
  for (let word = (result >>> 2) + 1; word < (result >>> 2) + 1 + count * 3; word += 3)
    yield { address: u32[word] as number, bytes: u32[word + 1] as number, rows: u32[word + 2] as number }
}
