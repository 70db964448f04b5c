// Row groups of a Parquet file, made by several threads: what the lead and its helpers do with the rows of a chunk, wherever
// these come from. The lead places what comes in the order of the chunks.
//
// A thread holds a few chunks that the file has not taken yet and no more, so a slow reader stops all.

import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import type { QuerySpace } from '../batch/query-space.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { type ChunkWorker, LeadRun, type ShareDetails, type Sharing } from '../parallel/share.js'
import { type ExportedGroup, GroupEncoder, packGroups, unpackGroups } from './encode-parquet-group.js'
import type { ChunkSource } from './encoded-chunks.js'
import type { ParquetEncoding } from './parquet-encoding.js'

/** Chunks that a helper holds until the lead has taken them. */
const heldMax = 2

/** The rows of an export, cut into chunks. */
export interface GroupSource {
  readonly chunks: number
  seek(chunk: number): void
  /** Gives some rows of the chunk to the encoder; false when it has no other. */
  feed(encoder: GroupEncoder): boolean
  /** Gives back what the last rows were read from. */
  release(): void
}

/** Rows that come as batches. */
export class BatchGroups implements GroupSource {
  readonly chunks: number
  readonly #rows: ChunkSource

  constructor(rows: ChunkSource) {
    this.#rows = rows
    this.chunks = rows.chunks
  }

  seek(chunk: number): void {
    this.#rows.seek(chunk)
  }

  feed(encoder: GroupEncoder): boolean {
    const pulled = this.#rows.take()
    if (isBatch(pulled)) encoder.rows(pulled.vectors, 0, pulled.rows)
    return pulled !== null
  }

  release(): void {
    this.#rows.release()
  }
}

interface GroupWork {
  readonly source: GroupSource
  readonly encoding: ParquetEncoding
  readonly columns: readonly PlanColumn[]
}

export interface GroupLead extends GroupWork {
  readonly plan: Plan
  readonly details: () => ShareDetails
  /** Hears of groups before their rows are told. */
  readonly give: (group: ExportedGroup) => void
}

/** Its batches have no vectors: they count rows that are in groups. */
export function leadGroups(context: ExecContext, sharing: Sharing, lead: GroupLead): Operator {
  const { plan, details, give } = lead
  const worker = new GroupChunks(context, { ...lead, packed: false })
  const counted: number[] = []
  const run = new LeadRun(context.memory, sharing, {
    ...{ plan, worker, details },
    chunks: lead.source.chunks,
    merge: (result) => {
      for (const group of worker.own(result) ?? unpackGroups(context.memory, result)) {
        give(group)
        counted.push(group.rows)
      }
    },
  })
  const pull = (): Pull => {
    const done = counted.shift()
    if (done !== undefined) return { rows: done, vectors: [] }
    const outcome = run.step()
    // The last chunk may have been merged by this very step.
    return outcome === 'done' ? (counted.length > 0 ? 'working' : null) : outcome
  }
  return { pull }
}

interface GroupChunksOptions extends GroupWork {
  /** Results are for another thread. */
  readonly packed: boolean
}

export class GroupChunks implements ChunkWorker {
  readonly heldMax = heldMax
  readonly #context: ExecContext
  readonly #options: GroupChunksOptions
  /** The memory of what each result names. */
  readonly #results = new Map<number, readonly QuerySpace[]>()
  readonly #own = new Map<number, readonly ExportedGroup[]>()
  #space: QuerySpace | null = null
  #encoder: GroupEncoder | null = null
  #groups: ExportedGroup[] = []

  constructor(context: ExecContext, options: GroupChunksOptions) {
    this.#context = context
    this.#options = options
    context.onEnd(() => {
      this.#abandon()
      for (const result of [...this.#results.keys()]) this.recycle(result)
    })
  }

  begin(chunk: number): void {
    this.#abandon()
    const { encoding, columns, source } = this.#options
    const space = this.#context.space.child()
    this.#space = space
    this.#encoder = new GroupEncoder(encoding, { ...this.#context, space }, columns, (group) =>
      this.#groups.push(group),
    )
    source.seek(chunk)
  }

  step(): boolean {
    return this.#encoder !== null && this.#options.source.feed(this.#encoder)
  }

  result(): number {
    this.#encoder?.end()
    const groups = this.#groups
    this.#groups = []
    this.#abandon()
    const space = this.#context.space.child()
    const { memory } = this.#context
    const result = this.#options.packed ? packGroups(memory, space, groups) : space.take(64)
    this.#results.set(result, [space, ...groups.flatMap(({ space: bodies }) => bodies ?? [])])
    if (!this.#options.packed) this.#own.set(result, groups)
    return result
  }

  /** Groups that were made here and are not packed. */
  own(result: number): readonly ExportedGroup[] | undefined {
    return this.#own.get(result)
  }

  recycle(result: number): void {
    for (const space of this.#results.get(result) ?? []) space.freeAll()
    this.#results.delete(result)
    this.#own.delete(result)
  }

  readonly drop = (): void => this.#abandon()

  #abandon(): void {
    this.#options.source.release()
    for (const { space } of this.#groups) space?.freeAll()
    this.#encoder?.abandon()
    this.#space?.freeAll()
    this.#space = null
    this.#encoder = null
    this.#groups = []
  }
}
