// Groups of partitions: a chunk of this work is a partition, of which the rows lie in the results of other chunks
// (row-partitions.ts), and what was made of earlier rows in a result of this work. Each group carries the rank of its
// first row. A result: partial-groups.ts.

import type { ExecContext } from '../batch/context.js'
import type { QuerySpace } from '../batch/query-space.js'
import { Symbols } from '../batch/symbols.js'
import type { Batch } from '../batch/vector.js'
import type { ChunkWorker, PartitionDetails } from '../parallel/share.js'
import { PartialGroups } from './partial-groups.js'
import { type SpreadShape, spreadBatches } from './row-partitions.js'

export class PartitionGroups implements ChunkWorker {
  readonly #context: ExecContext
  readonly #spread: SpreadShape
  readonly #details: PartitionDetails
  /** By result. */
  readonly #spaces = new Map<number, QuerySpace>()
  #space: QuerySpace | null = null
  #groups: PartialGroups | null = null
  #batches: Iterator<Batch> | null = null
  #before = 0

  constructor(context: ExecContext, spread: SpreadShape, details: PartitionDetails) {
    this.#context = context
    this.#spread = spread
    this.#details = details
  }

  begin(chunk: number): void {
    this.#space?.freeAll()
    const space = this.#context.space.child()
    this.#space = space
    const { shape, rank } = this.#spread
    this.#groups = new PartialGroups({ ...this.#context, space, symbols: new Symbols(space) }, shape, false, [rank])
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
    if (this.#space !== null) this.#spaces.set(result, this.#space)
    this.#space = null
    this.#groups = null
    return result
  }

  recycle(result: number): void {
    this.#spaces.get(result)?.freeAll()
    this.#spaces.delete(result)
  }

  *#rowsOf(partition: number): Generator<Batch, void, undefined> {
    for (const chunk of this.#details.spread ?? []) {
      yield* spreadBatches(this.#context.memory, chunk, this.#spread.types, partition)
    }
  }
}
