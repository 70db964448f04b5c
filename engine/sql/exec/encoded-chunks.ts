// Chunks of a result as bytes of its rows, made by several threads: what the lead and its helpers do with the rows of a chunk, wherever
// these come from.
//
//   result   count of blocks u32 | rows of the chunk u32 | of each block: address u32, bytes u32, rows that end in it u32
//
// The lead writes its own chunk at once while all before it have been written, and what other chunks gave in the order of
// the chunks. A thread holds a few chunks that were not written yet and no more, so a slow reader stops all.

import type { Plan } from '../plan/plan.js'
import { ByteWriter } from './byte-writer.js'
import type { ExecContext } from './context.js'
import type { EncodedRows } from './encoded-rows.js'
import type { EncoderOptions } from './encoder.js'
import type { QuerySpace } from './query-space.js'
import { encodedRows, type RowForm } from './row-forms.js'
import { type ChunkWorker, LeadRun, type ShareDetails, type Sharing } from './share.js'
import { type Batch, isBatch, type Operator, type Pull } from './vector.js'

const heldMax = 3
const resultHeaderBytes = 8
const blockBytes = 12

/** A block of finished rows. */
export interface RowBlock {
  readonly address: number
  readonly bytes: number
  readonly rows: number
}

/** The rows of a result, cut into chunks. */
export interface ChunkSource {
  readonly chunks: number
  seek(chunk: number): void
  /** Rows of the chunk; null when it has no other. */
  take(): Pull
  /** Gives back what the last batch was read from. */
  release(): void
}

export interface RowWork {
  readonly source: ChunkSource
  readonly form: RowForm
  readonly columns: EncoderOptions['columns']
  /** Rows that are encoded before the reader's window is looked at again. */
  readonly stepRows: number
}

export interface RowLead extends RowWork {
  readonly plan: Plan
  readonly details: () => ShareDetails
  /** What writes to the reader. */
  readonly live: EncodedRows
  /** Hears of blocks in their order. */
  readonly give: (block: RowBlock) => void
}

/** Its batches have no vectors: rows that were written. */
export function leadRows(context: ExecContext, sharing: Sharing, lead: RowLead): Operator {
  const { plan, details, give } = lead
  const worker = new EncodedChunks(context, lead, lead.live)
  const told: number[] = []
  const run = new LeadRun(context.memory, sharing, {
    ...{ plan, worker, details },
    chunks: lead.source.chunks,
    merge: (result) => {
      const { u32 } = context.memory
      const word = result >>> 2
      const blocks = u32[word] as number
      for (let at = word + 2; at < word + 2 + blocks * 3; at += 3)
        give({ address: u32[at] as number, bytes: u32[at + 1] as number, rows: u32[at + 2] as number })
      worker.merged++
      const rows = u32[word + 1] as number
      if (rows > 0) told.push(rows)
    },
  })
  const pull = (): Pull => {
    const rows = told.shift()
    if (rows !== undefined) return { rows, vectors: [] }
    const outcome = run.step()
    return outcome === 'done' ? (told.length > 0 ? 'working' : null) : outcome
  }
  return { pull }
}

export class EncodedChunks implements ChunkWorker {
  readonly heldMax = heldMax
  /** Chunks that were written. */
  merged = 0
  readonly #context: ExecContext
  readonly #work: RowWork
  /** Of the lead. */
  readonly #live: EncodedRows | null
  readonly #writer: ByteWriter
  readonly #collected: EncodedRows
  readonly #results = new Map<number, QuerySpace>()
  #space: QuerySpace | null = null
  #blocks: RowBlock[] = []
  #encoded: EncodedRows
  #batch: Batch | null = null
  /** Of the batch, then of the chunk. */
  #batchRow = 0
  #rows = 0

  constructor(context: ExecContext, work: RowWork, live: EncodedRows | null) {
    this.#context = context
    this.#work = work
    this.#live = live
    this.#writer = new ByteWriter(context.memory, {
      open: (bytes) => this.#ownSpace().take(bytes),
      close: (address, bytes, rows) => this.#blocks.push({ address, bytes, rows }),
      drop: (address) => this.#ownSpace().give(address),
      short: () => context.space.short,
    })
    // Rows precede those of every chunk.
    this.#collected = encodedRows({ context, writer: this.#writer, columns: work.columns }, work.form, true)
    this.#encoded = this.#collected
    context.onEnd(() => {
      this.#abandon()
      for (const result of [...this.#results.keys()]) this.recycle(result)
    })
  }

  begin(chunk: number): void {
    this.#abandon()
    this.#encoded = this.#live !== null && chunk === this.merged ? this.#live : this.#collected
    this.#work.source.seek(chunk)
  }

  step(): boolean {
    if (this.#batch === null) {
      const pulled = this.#work.source.take()
      if (!isBatch(pulled)) return pulled !== null
      this.#batch = pulled
      this.#batchRow = 0
    }
    const from = this.#batchRow
    const to = Math.min(this.#batch.rows, from + this.#work.stepRows)
    this.#encoded.rows(this.#batch, from, to)
    this.#rows += to - from
    this.#batchRow = to
    if (to === this.#batch.rows) this.#batch = null
    return true
  }

  result(): number {
    this.#writer.flush()
    this.#work.source.release()
    const { u32 } = this.#context.memory
    const result = this.#ownSpace().take(resultHeaderBytes + this.#blocks.length * blockBytes)
    const word = result >>> 2
    u32[word] = this.#blocks.length
    u32[word + 1] = this.#rows
    for (const [index, { address, bytes, rows }] of this.#blocks.entries())
      u32.set([address, bytes, rows], word + 2 + index * 3)
    this.#results.set(result, this.#ownSpace())
    this.#space = null
    this.#blocks = []
    this.#rows = 0
    return result
  }

  readonly drop = (): void => this.#abandon()

  recycle(result: number): void {
    this.#results.get(result)?.freeAll()
    this.#results.delete(result)
  }

  #ownSpace(): QuerySpace {
    this.#space ??= this.#context.space.child()
    return this.#space
  }

  #abandon(): void {
    this.#work.source.release()
    this.#writer.abandon()
    this.#space?.freeAll()
    this.#space = null
    this.#blocks = []
    this.#batch = null
    this.#rows = 0
  }
}
