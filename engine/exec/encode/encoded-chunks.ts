// Chunks of a result as bytes of its rows, made by several threads: what the lead and its helpers do with the rows of a chunk, wherever
// these come from.
//
//   result   count of blocks u32 | rows of the chunk u32 | of each block: address u32, bytes u32, rows that end in it u32
//
// The lead writes its own chunk at once while all before it have been written, and what other chunks gave in the order of
// the chunks. A thread holds a few chunks that were not written yet and no more, so a slow reader stops all. One that has
// stopped makes all of them be dropped: they are made again when it goes on, the chunk that was written in part behind the
// rows of it that have gone out.

import type { Plan } from '../../sql/plan/plan.js'
import { ByteWriter } from '../batch/byte-writer.js'
import type { ExecContext } from '../batch/context.js'
import type { QuerySpace } from '../batch/query-space.js'
import { type Batch, isBatch, type Operator, type Pull } from '../batch/vector.js'
import { type ChunkWorker, LeadRun, type ShareDetails, type Sharing } from '../parallel/share.js'
import type { EncodedRows } from './encoded-rows.js'
import type { EncoderOptions } from './encoder.js'
import { encodedRows, type RowForm } from './row-forms.js'

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
  /** In the middle of a chunk, between two batches: gives back what can be read again. */
  rest?(): void
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
  /** Hears of blocks in their order, one at a time. */
  readonly give: (block: RowBlock) => void
}

/** Blocks of a chunk are small enough for a reader that stops in the middle of one. */
const chunkBlockBytesMax = 128 * 1024

/** Its batches have no vectors: rows that were written. */
export function leadRows(context: ExecContext, sharing: Sharing, lead: RowLead): Operator {
  const { plan, details, give } = lead
  const worker = new EncodedChunks(context, lead, lead.live)
  /** Of the chunk that was merged last: blocks that were not given yet, and rows of those that were. */
  let pending: RowBlock[] = []
  let given = 0
  /** Rows that were written at once. */
  let written = 0
  const run = new LeadRun(context.memory, sharing, {
    ...{ plan, worker, details },
    chunks: lead.source.chunks,
    merge: (result) => {
      const { u32 } = context.memory
      const word = result >>> 2
      const blocks = u32[word]!
      for (let at = word + 2; at < word + 2 + blocks * 3; at += 3)
        pending.push({ address: u32[at]!, bytes: u32[at + 1]!, rows: u32[at + 2]! })
      worker.merged++
      given = 0
      if (blocks === 0) written = u32[word + 1]!
    },
  })
  const pull = (): Pull => {
    const block = pending.shift()
    if (block !== undefined) give(block)
    given += block?.rows ?? 0
    const rows = block?.rows ?? written
    written = 0
    if (rows > 0) return { rows, vectors: [] }
    if (block !== undefined) return 'working'
    const outcome = run.step()
    return outcome === 'done' ? (pending.length > 0 || written > 0 ? 'working' : null) : outcome
  }
  const rest = (): void => {
    const again = pending.length > 0
    if (again) worker.again(given)
    pending = []
    run.rest(again)
    worker.rest()
  }
  return { pull, rest }
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
  /** Rows of the next chunk that were written before. */
  #skipped = 0
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
      blockBytesMax: () => (context.space.short ? 0 : chunkBlockBytesMax),
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
    const skipped = Math.min(this.#skipped, this.#batch.rows - this.#batchRow)
    this.#skipped -= skipped
    const from = this.#batchRow + skipped
    const to = Math.min(this.#batch.rows, from + this.#work.stepRows)
    if (to > from) this.#encoded.rows(this.#batch, from, to)
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

  /** The chunk that was merged last is to be made once more, without its first rows. */
  again(skipped: number): void {
    this.merged--
    this.#skipped = skipped
  }

  /** Between two steps. */
  rest(): void {
    if (this.#batch === null) this.#work.source.rest?.()
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
    this.#work.source.release()
    this.#writer.abandon()
    this.#space?.freeAll()
    this.#space = null
    this.#blocks = []
    this.#batch = null
    this.#rows = 0
  }
}
