// PartialGroups: the groups of an aggregation over some of the rows. A worker thread aggregates the rows of one chunk
// (a range of the input), and writes the groups, with the states of their accumulators, to shared memory as the result
// of the chunk. The coordinator, the thread that runs the query, uses the same class to merge the results of all
// chunks.
//
// Layout of a result: the keys of each group as in result-columns.ts {rows u32, 0, then address and dictionary of each
// key}; from the next 64-byte boundary on the saved states of the accumulators (accumulators.ts); then the key values.

import { assert } from '../../base/assert.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { dictionaryStrings } from '../batch/dictionary-strings.js'
import { createGrouping, type Grouping, GroupKeys } from '../batch/group-keys.js'
import { type Batch, batchRowsMax } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import type { ChunkRows } from '../fragment/rows-parallel.js'
import { batchOf, columnsBytes, packColumns, packedBytes, rowsAt } from '../parallel/result-columns.js'
import { Accumulators, type PartialAccumulators, type SavedAccumulators } from './accumulators.js'
import type { AggregateShape } from './aggregate.js'

/**
 * Partial aggregation pays off if the first chunk has at least this many rows per group, or per group of
 * dictionary-encoded strings.
 */
const rowsPerGroupMin = 8
const rowsPerTextMin = 64
const groupsSmall = 1024
const manyRowsMin = 131_072

export class PartialGroups implements ChunkRows {
  readonly grouping: Grouping | null
  readonly accumulators: Accumulators
  readonly #partial: PartialAccumulators
  readonly #context: ExecContext
  readonly #keys: readonly VectorEvaluator[]
  /** Types of the keys and the carried columns. */
  readonly #types: readonly DataType[]
  /** Group ids of the rows when there are no keys: zeros. */
  readonly #zeros: number
  #rows = 0
  #dictionaryStrings = false

  /** `dense` as in aggregateOperator; `carried`: expressions that are stored for each group's first row. */
  constructor(context: ExecContext, shape: AggregateShape, dense: boolean, carried: readonly Expression[] = []) {
    const { keys, aggregates } = shape
    this.#context = context
    const columns = [...keys, ...carried]
    this.#keys = columns.map((column) => compileVector(column, context))
    this.#types = columns.map(({ type }) => type)
    this.grouping = keys.length > 0 ? groupingOf(context, this.#types, dense, carried.length) : null
    this.accumulators = new Accumulators(context, aggregates)
    const { partial } = this.accumulators
    assert(partial !== null, 'Q3: aggregates of partial groups can be merged')
    this.#partial = partial
    this.#zeros = keys.length > 0 ? 0 : context.arena.take(batchRowsMax * 4)
    if (this.#zeros !== 0) context.memory.u8.fill(0, this.#zeros, this.#zeros + batchRowsMax * 4)
  }

  get count(): number {
    return this.grouping?.count ?? 1
  }

  /**
   * The factor by which chunks must be longer for parallel partial aggregation to pay off. A thread that knows a
   * dictionary finds groups of its strings by code, but every chunk has to look the strings up again.
   */
  get chunkTimes(): number {
    if (this.count <= groupsSmall) return 1
    if (this.encoded && !this.hasManyGroups) return Math.ceil((this.count * rowsPerTextMin) / this.#rows)
    return this.count * rowsPerGroupMin <= this.#rows ? 1 : Number.POSITIVE_INFINITY
  }

  /** Whether there are certainly many groups, without reading more rows. */
  get hasManyGroups(): boolean {
    const isMany = this.#rows >= manyRowsMin && this.count * 2 > this.#rows
    return isMany && (!this.encoded || this.#keys.length > 1)
  }

  /**
   * Whether a key is a dictionary-encoded string, whose groups are found by code. Such rows are not partitioned unless
   * there are certainly many groups: then these come from several keys, and a hash table of all pairs would be too
   * large.
   */
  get encoded(): boolean {
    return this.#dictionaryStrings
  }

  add(batch: Batch): void {
    this.#rows += batch.rows
    const keys = this.#keys.map((evaluate) => evaluate(batch))
    this.#dictionaryStrings = keys.some((key) => dictionaryStrings(key) !== undefined)
    this.#assign(keys, batch.rows)
    this.accumulators.add(batch, this.#ids, this.#size)
  }

  /** Writes the result, and frees all other memory of the arena. */
  trimmed(): number {
    const address = this.result()
    this.#context.arena.keepOnly([address, ...(this.grouping?.keys.heapAreas ?? [])])
    return address
  }

  result(): number {
    const { arena, memory } = this.#context
    const count = this.#rows === 0 ? 0 : this.count
    const head = this.#headBytes + count * this.#partial.bytes
    const address = arena.take(head + packedBytes(this.#types, count))
    if (this.grouping === null) memory.u32[address >>> 2] = count
    else packColumns(this.#context, address, this.grouping.keys, this.#types, address + ((head + 63) & ~63))
    const ids = this.#consecutive ? count : Array.from({ length: count }, (_, index) => this.grouping?.idAt(index) ?? 0)
    this.#partial.save(ids, savedAccumulators(address, this.#keys.length, count).address)
    return address
  }

  /** Merges the result of later rows. */
  merge(result: number): void {
    const { memory } = this.#context
    const count = rowsAt(memory, result)
    const saved = savedAccumulators(result, this.#keys.length, count)
    // A result has distinct groups, so they get the same ids again.
    const fresh = this.#consecutive && this.count === 0
    this.#rows += count
    for (let from = 0; from < count; from += batchRowsMax) {
      const rows = Math.min(batchRowsMax, count - from)
      this.#assign(batchOf(memory, result, this.#types, from)?.vectors ?? [], rows)
      if (fresh) this.#partial.restore(saved, from, rows)
      else this.#partial.merge(saved, from, rows, this.#ids, this.#size)
    }
  }

  get #headBytes(): number {
    return headBytesOf(this.#keys.length)
  }

  /** Whether group ids are consecutive. */
  get #consecutive(): boolean {
    return this.grouping instanceof GroupKeys
  }

  get #ids(): number {
    return this.grouping?.ids ?? this.#zeros
  }

  get #size(): number {
    return this.grouping?.size ?? 1
  }

  #assign(keys: Parameters<Grouping['assign']>[0], rows: number): void {
    this.grouping?.assign(keys, rows, 0)
  }
}

function groupingOf(context: ExecContext, types: readonly DataType[], dense: boolean, carried: number): Grouping {
  if (carried === 0) return createGrouping(context, types, dense)
  return new GroupKeys(context, types.slice(0, types.length - carried), types.slice(types.length - carried))
}

function headBytesOf(columns: number): number {
  return (columnsBytes(columns) + 63) & ~63
}

/** The saved states within a result with this many columns and groups. */
export function savedAccumulators(result: number, columns: number, count: number): SavedAccumulators {
  return { address: result + headBytesOf(columns), count }
}
