// PartitionGroups: the second of two steps of an aggregation with many groups. The first step (row-partitions.ts) has
// distributed rows to partitions by a hash of their keys. This step aggregates the rows of one partition. Large inputs
// are processed in rounds of these two steps; then it adds the rows to the partition's groups of earlier rounds. Each
// group stores the number of its first row (rank), so that the result can be returned in order of first appearance. The
// result has the layout of partial-groups.ts.

import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { Symbols } from '../batch/symbols.js'
import type { Batch } from '../batch/vector.js'
import type { ChunkWorker, PartitionDetails } from '../parallel/coordinator.js'
import { PartialGroups } from './partial-groups.js'
import { type PartitionedShape, partitionBatches } from './row-partitions.js'

export class PartitionGroups implements ChunkWorker {
  readonly #context: ExecContext
  readonly #spread: PartitionedShape
  readonly #details: PartitionDetails
  /** The arena of each result. */
  readonly #arenas = new Map<number, QueryArena>()
  #arena: QueryArena | null = null
  #groups: PartialGroups | null = null
  #batches: Iterator<Batch> | null = null
  #before = 0

  constructor(context: ExecContext, spread: PartitionedShape, details: PartitionDetails) {
    this.#context = context
    this.#spread = spread
    this.#details = details
  }

  begin(chunk: number): void {
    this.#arena?.freeAll()
    const arena = this.#context.arena.child()
    this.#arena = arena
    const { shape, rank } = this.#spread
    this.#groups = new PartialGroups({ ...this.#context, arena, symbols: new Symbols(arena) }, shape, false, [rank])
    this.#batches = this.#rowsOf(this.#details.partitions.first + chunk)
    this.#before = this.#details.before[chunk] ?? 0
  }

  step(): boolean {
    if (this.#before !== 0) {
      this.#groups?.merge(this.#before)
      this.#before = 0
      return true
    }
    const { done, value } = this.#batches?.next() ?? { done: true, value: undefined }
    if (done === true) return false
    this.#groups?.add(value)
    return true
  }

  result(): number {
    const result = this.#groups?.trimmed() ?? 0
    if (this.#arena !== null) this.#arenas.set(result, this.#arena)
    this.#arena = null
    this.#groups = null
    return result
  }

  recycle(result: number): void {
    this.#arenas.get(result)?.freeAll()
    this.#arenas.delete(result)
  }

  *#rowsOf(partition: number): Generator<Batch, void, undefined> {
    for (const chunk of this.#details.spread ?? []) {
      yield* partitionBatches(this.#context.memory, chunk, this.#spread.types, partition)
    }
  }
}
