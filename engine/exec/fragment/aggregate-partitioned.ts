// Aggregation with many groups on several threads, in rounds. In each round, the threads first distribute the rows of
// some chunks to partitions by a hash of their keys (row-partitions.ts); then each thread aggregates whole partitions
// (partition-groups.ts), whose hash tables are small enough for the processor's cache. The next round adds its rows to
// the groups of this round. Distributed rows need memory, which the rounds limit. Each group stores the number of its
// first row (rank), by which groups are returned in order of first appearance.
//
// After each round the final size of the groups is estimated. If they will not fit in memory, the operator fails at
// once, and the aggregation starts again with temporary files (spill/spillable.ts). Where it cannot start again, the
// input is read in several passes, each for a range of partitions: partitions for which there is no room are postponed
// to a later pass. The groups of a pass are returned before the next pass begins, so the result as a whole is not in
// order of first appearance.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import type { Expression, Plan } from '../../sql/plan/plan.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { PartialAccumulators } from '../aggregate/accumulators.js'
import type { AggregateShape } from '../aggregate/aggregate.js'
import { savedAccumulators } from '../aggregate/partial-groups.js'
import { PartitionGroups } from '../aggregate/partition-groups.js'
import {
  type PartitionedShape,
  partitionCount,
  partitionedShape,
  RowPartitions,
  rowBytes,
} from '../aggregate/row-partitions.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { rowsFor } from '../batch/small-batches.js'
import { StringHeap } from '../batch/string-heap.js'
import type { Batch, Pull, Vector } from '../batch/vector.js'
import type { BuiltJoin } from '../join/join-built.js'
import {
  type ChunkWorker,
  CoordinatorRun,
  type FragmentDetails,
  morselsPerChunk,
  type PartitionDetails,
  type PartitionRange,
} from '../parallel/coordinator.js'
import { columnAt, rowsAt } from '../parallel/result-columns.js'
import { singleThread } from '../parallel/single-thread.js'
import { listMorsels } from '../scan/morsel-list.js'
import { rowCount, type ScanMorsel } from '../scan/morsels.js'
import type { CountedChunks, ScanCount } from '../scan/scan-progress.js'
import { type ChosenMorsels, type ChunkedMorsels, RowChunks } from './rows-parallel.js'

/** Ranks have 32 bits. */
const rowsMax = 2 ** 32 - 1
const chunkRows = 1_000_000
const chunksMin = 32
/** Partitioned rows may take this fraction of the memory of queries. */
const memoryShare = 5
/**
 * While they are built, the groups of a partition take this many times their final size, because tables and columns
 * double.
 */
const making = 4
/** Blocks of partitioned rows are not full. */
const blockSlack = 1.3
/** Fraction of the free memory that estimates rely on. */
const roomShare = 0.9

/** `input`: the plan whose rows are grouped, over a single scan; `plan`: the node of the query that workers build. */
export interface PartitionedQuery {
  readonly plan: Plan
  readonly input: Plan
  readonly shape: AggregateShape
}

/** Whether every symbol among keys and arguments is a column of the table, so that all chunks have the same ids. */
export function isPartitionable(
  { keys, aggregates }: AggregateShape,
  morsels: readonly ScanMorsel[],
  dense: boolean,
): boolean {
  const plain = ({ kind, type }: Expression): boolean => type.name !== 'SYMBOL' || (dense && kind === 'column')
  const rows = rowCount(morsels)
  // Without keys there is one group, even of no rows, and nothing to partition by.
  return keys.length > 0 && rows < rowsMax && keys.every(plain) && aggregates.every(({ args }) => args.every(plain))
}

/** A worker's work: partitions rows, or aggregates partitions. */
export function partitionWorker(
  context: ExecContext,
  { input, shape }: PartitionedQuery,
  chunked: ChunkedMorsels,
  details: PartitionDetails,
): ChunkWorker {
  const spread = partitionedShape(shape)
  return details.spread === null
    ? spreadWorker(context, input, spread, chunked, details)
    : new PartitionGroups(context, spread, details)
}

function spreadWorker(
  context: ExecContext,
  input: Plan,
  spread: PartitionedShape,
  chunked: ChunkedMorsels,
  { firstRow, partitions }: Pick<PartitionDetails, 'firstRow' | 'partitions'>,
): ChunkWorker {
  const { morsels, chunkMorsels } = chunked
  return new RowChunks(context, input, chunked, (own, chunk) => {
    const before = firstRow + rowCount(morsels.slice(0, chunk * chunkMorsels))
    return new RowPartitions(own, spread, before, partitions)
  })
}

const noMorsels = listMorsels([])

export class PartitionedGroups {
  readonly #context: ExecContext
  readonly #query: PartitionedQuery
  readonly #spread: PartitionedShape
  readonly #morsels: readonly ScanMorsel[]
  readonly #rows: number
  readonly #joins: readonly BuiltJoin[]
  readonly #count: ScanCount | undefined
  readonly #chunkMorsels: number
  /** Maximal rows that are partitioned at a time. */
  readonly #rowsAtOnce: number
  /** Estimated bytes of a group. */
  readonly #groupBytes: number
  /** The partitions of the current pass. */
  #partitions: PartitionRange = { first: 0, end: partitionCount }
  /** The partitions of later passes, the next pass last. */
  readonly #later: PartitionRange[] = []
  #next = 0
  #firstRow = 0
  #roundRows = 0
  /** Bytes of the groups before this round. */
  #bytesBefore = 0
  #spreading: CoordinatorRun | null = null
  #chunks: number[] = []
  #grouping: CoordinatorRun | null = null
  /** The run that produced the current groups. */
  #last: CoordinatorRun | null = null
  /** Address of each partition's groups, beginning with the first partition of the pass. */
  #groups: number[] = []
  #output: GroupsByRank | null = null

  constructor(context: ExecContext, query: PartitionedQuery, { morsels, joins = [], count }: ChosenMorsels) {
    const parallelism = context.parallelism ?? singleThread(context.arena)
    this.#context = context
    this.#query = query
    this.#morsels = morsels
    this.#rows = rowCount(morsels)
    this.#joins = joins
    this.#count = count
    // The rows that were read before are read again.
    if (count !== undefined) count.read = 0
    this.#spread = partitionedShape(query.shape)
    this.#groupBytes = groupBytes(context, this.#spread)
    this.#chunkMorsels = morselsPerChunk(parallelism, morsels, Math.max(chunksMin, Math.ceil(this.#rows / chunkRows)))
    const held = context.arena.limit / memoryShare / rowBytes(this.#spread.types)
    this.#rowsAtOnce = Math.min(held, parallelism.spreadRowsMax ?? Number.POSITIVE_INFINITY)
  }

  pull(): Pull {
    if (this.#output !== null) return this.#output.next() ?? this.#nextPass(this.#output)
    if (this.#grouping !== null) return this.#advance(this.#grouping, () => this.#endRound())
    if (this.#spreading !== null) return this.#advance(this.#spreading, () => this.#group())
    if (this.#next < this.#morsels.length) this.#spreadNext()
    else
      this.#output = new GroupsByRank(
        this.#context,
        { ...this.#spread.shape, columns: this.#query.shape.columns },
        this.#groups,
      )
    return 'working'
  }

  #nextPass(output: GroupsByRank): 'working' | null {
    const partitions = this.#later.pop()
    if (partitions === undefined) return null
    output.close()
    if (this.#count !== undefined) this.#count.rows += this.#rows
    this.#last?.close()
    this.#last = null
    this.#output = null
    this.#groups = []
    this.#bytesBefore = 0
    this.#partitions = partitions
    this.#next = 0
    this.#firstRow = 0
    return 'working'
  }

  #advance(run: CoordinatorRun, end: () => void): Pull {
    const outcome = run.step()
    if (outcome === 'done') end()
    return outcome === 'waiting' ? 'waiting' : 'working'
  }

  #spreadNext(): void {
    const morsels = this.#morsels.slice(this.#next, this.#next + this.#roundMorsels())
    const chunkMorsels = this.#chunkMorsels
    const details = { firstRow: this.#firstRow, partitions: this.#partitions }
    this.#next += morsels.length
    this.#roundRows = rowCount(morsels)
    this.#firstRow += this.#roundRows
    this.#chunks = []
    const { input } = this.#query
    const joins = this.#joins
    this.#spreading = this.#run(
      spreadWorker(this.#context, input, this.#spread, { morsels, chunkMorsels, joins }, details),
      Math.ceil(morsels.length / chunkMorsels),
      () => ({
        morsels: listMorsels(morsels),
        chunkMorsels,
        counts: null,
        joins,
        partitions: { ...details, spread: null, before: [] },
      }),
      (result) => this.#chunks.push(result),
      this.#count === undefined ? undefined : { count: this.#count, rows: this.#roundRows },
    )
  }

  /** Number of morsels in a round: as many as fit in memory, given that rows of other partitions are skipped. */
  #roundMorsels(): number {
    const { first, end } = this.#partitions
    const rows = (this.#rows * (end - first)) / partitionCount
    const chunks = Math.floor((this.#rowsAtOnce * this.#morsels.length) / Math.max(1, rows) / this.#chunkMorsels)
    return Math.max(1, chunks) * this.#chunkMorsels
  }

  #group(): void {
    const before = this.#groups
    const range = this.#partitions
    const partitions = { firstRow: 0, partitions: range, spread: this.#chunks, before }
    const last = this.#last
    const made: number[] = []
    this.#groups = made
    const grouping = this.#run(
      new PartitionGroups(this.#context, this.#spread, partitions),
      range.end - range.first,
      () => ({ morsels: noMorsels, chunkMorsels: 1, counts: null, partitions }),
      (result) => {
        made.push(result)
        // The new groups include the old ones.
        if (!grouping.overtook) last?.letGo(made.length - 1)
      },
    )
    this.#grouping = grouping
  }

  #endRound(): void {
    // A thread whose chunk was taken over may still read these results; they are then freed at the end of the query.
    if (this.#grouping?.overtook !== true) {
      this.#last?.close()
      this.#spreading?.close()
    }
    this.#last = this.#grouping
    this.#grouping = null
    this.#spreading = null
    this.#leaveToLater()
  }

  /** Postpones partitions for which memory will not suffice if groups keep growing as in the last round. */
  #leaveToLater(): void {
    const { memory, arena } = this.#context
    const { first, end } = this.#partitions
    const rowsLeft = this.#rows - this.#firstRow
    const bytes = this.#groupBytes * this.#groups.reduce((sum, result) => sum + rowsAt(memory, result), 0)
    const atTheEnd = bytes + ((bytes - this.#bytesBefore) / Math.max(1, this.#roundRows)) * rowsLeft
    const room = (arena.left + bytes) * roomShare
    let count = end - first
    while (count > 1 && this.#needs(count, atTheEnd / (end - first), rowsLeft) > room) count--
    this.#bytesBefore = (bytes * count) / (end - first)
    if (rowsLeft === 0 || count === end - first) return
    if (this.#context.keepsOrder === true) throw ResourceError.outOfMemory('queries', Math.ceil(atTheEnd))
    for (let index = count; index < this.#groups.length; index++) this.#last?.letGo(index)
    this.#groups.length = count
    this.#partitions = { first, end: first + count }
    // Passes of equal size, in reverse order.
    const passes = Math.ceil((end - first) / count)
    for (let pass = passes - 1; pass > 0; pass--)
      this.#later.push({ first: first + pass * count, end: Math.min(end, first + (pass + 1) * count) })
  }

  /** Estimated bytes for `partitions` partitions with `each` bytes of groups at the end. */
  #needs(partitions: number, each: number, rowsLeft: number): number {
    const threads = Math.min(partitions, (this.#context.parallelism?.workers ?? 0) + 1)
    const spread = Math.min(this.#rowsAtOnce, (rowsLeft * partitions) / partitionCount)
    return (partitions + threads * making) * each + spread * rowBytes(this.#spread.types) * blockSlack
  }

  #run(
    worker: ChunkWorker,
    chunks: number,
    details: () => FragmentDetails,
    merge: (result: number) => void,
    counted?: CountedChunks,
  ): CoordinatorRun {
    const parallelism = this.#context.parallelism ?? singleThread(this.#context.arena)
    return new CoordinatorRun(this.#context.memory, parallelism, {
      ...{ plan: this.#query.plan, worker, chunks, details, merge, counted, retained: true },
    })
  }
}

/** Estimated bytes of a group in a result. */
function groupBytes(context: ExecContext, { shape, rank }: PartitionedShape): number {
  const types = [...shape.keys, rank].map(({ type }) => type)
  return rowBytes(types) + (PartialAccumulators.ofCalls(context, shape.aggregates)?.bytes ?? 0)
}

/** Returns the groups of all partitions in the order of their ranks, batch by batch. */
class GroupsByRank {
  readonly #context: ExecContext
  readonly #arena: QueryArena
  readonly #shape: AggregateShape
  readonly #columns: number
  readonly #groups: readonly number[]
  /** For each partition: its number of groups, how many were returned, and the address of the ranks. */
  readonly #counts: readonly number[]
  readonly #taken: number[]
  readonly #ranks: readonly number[]
  readonly #rowsMax: number
  /** By rank within the current window: the partition + 1, or 0; and the group's row in the partition. */
  readonly #partitionAt: Uint8Array
  readonly #rowAt: Uint32Array
  readonly #runs: number
  readonly #rows: number
  readonly #sources: number
  readonly #cells: number
  readonly #addresses: readonly number[]
  readonly #heap: StringHeap
  readonly #partial: PartialAccumulators

  constructor(context: ExecContext, shape: AggregateShape, groups: readonly number[]) {
    const { memory } = context
    const arena = context.arena.child()
    this.#context = context
    this.#arena = arena
    this.#shape = shape
    this.#columns = shape.keys.length + 1
    this.#groups = groups
    this.#counts = groups.map((result) => rowsAt(memory, result))
    this.#taken = groups.map(() => 0)
    this.#ranks = groups.map((result) => columnAt(memory, result, shape.keys.length))
    this.#rowsMax = rowsFor(shape.columns.length)
    this.#partitionAt = new Uint8Array(this.#rowsMax)
    this.#rowAt = new Uint32Array(this.#rowsMax)
    this.#runs = arena.take(this.#rowsMax)
    this.#rows = arena.take(this.#rowsMax * 4)
    this.#sources = arena.take(groups.length * 4)
    this.#addresses = shape.columns.map(({ type }) => arena.take(this.#rowsMax * widthOf(type)))
    this.#heap = new StringHeap(arena)
    const partial = PartialAccumulators.ofCalls({ ...context, arena }, shape.aggregates)
    assert(partial !== null, 'Q3: aggregates of partitions can be merged')
    this.#partial = partial
    this.#cells = arena.take(this.#rowsMax * Math.max(0, ...shape.aggregates.map((_, call) => partial.bytesOf(call))))
  }

  close(): void {
    this.#arena.freeAll()
  }

  next(): Batch | null {
    const rows = this.#nextRows()
    if (rows === 0) return null
    this.#heap.reset()
    const keys = this.#shape.keys.map(({ type }, index) => this.#key(type, index, rows))
    return { rows, vectors: [...keys, ...this.#aggregates(rows)] }
  }

  #key(type: DataType, index: number, rows: number): Vector {
    const { memory } = this.#context
    const address = this.#addresses[index] as number
    this.#gather(widthOf(type), rows, address, (result) => columnAt(memory, result, index))
    const some = this.#groups.find((_, partition) => (this.#counts[partition] as number) > 0) ?? 0
    return { type, address, dictionary: memory.u32[(some >>> 2) + 3 + index * 2]! }
  }

  #aggregates(rows: number): Vector[] {
    const { memory, symbols } = this.#context
    const target = { memory, symbols, heap: this.#heap }
    const keys = this.#shape.keys.length
    const partial = this.#partial
    return this.#shape.aggregates.map((_, index) => {
      const { type } = this.#shape.columns[keys + index] as { type: DataType }
      const address = this.#addresses[keys + index] as number
      this.#gather(partial.bytesOf(index), rows, this.#cells, (result, count) =>
        partial.addressOf(index, savedAccumulators(result, this.#columns, count)),
      )
      partial.finish(index, this.#cells, rows, type, target, address)
      return { type, address, dictionary: 0 }
    })
  }

  #gather(width: number, rows: number, out: number, addressOf: (result: number, count: number) => number): void {
    const { memory, kernels } = this.#context
    this.#groups.forEach((result, partition) => {
      memory.u32[(this.#sources >>> 2) + partition] = addressOf(result, this.#counts[partition] as number)
    })
    kernels.sort.gatherRuns(width, this.#sources, this.#runs, this.#rows, rows, out)
  }

  /** Lists the groups with the next ranks, at most a batch. */
  #nextRows(): number {
    const { u32, u8 } = this.#context.memory
    const low = this.#lowestRank()
    if (low === Number.POSITIVE_INFINITY) return 0
    this.#partitionAt.fill(0)
    this.#groups.forEach((_, partition) => this.#mark(partition, low))
    let rows = 0
    for (let at = 0; at < this.#rowsMax; at++) {
      const partition = this.#partitionAt[at]!
      if (partition === 0) continue
      u8[this.#runs + rows] = partition - 1
      u32[(this.#rows >>> 2) + rows] = this.#rowAt[at]!
      rows++
    }
    return rows
  }

  #lowestRank(): number {
    const { u32 } = this.#context.memory
    let low = Number.POSITIVE_INFINITY
    this.#ranks.forEach((ranks, partition) => {
      const row = this.#taken[partition] as number
      if (row < (this.#counts[partition] as number)) low = Math.min(low, u32[(ranks >>> 2) + row]!)
    })
    return low
  }

  #mark(partition: number, low: number): void {
    const { u32 } = this.#context.memory
    const ranks = (this.#ranks[partition] as number) >>> 2
    const count = this.#counts[partition] as number
    let row = this.#taken[partition] as number
    for (; row < count; row++) {
      const at = u32[ranks + row]! - low
      if (at >= this.#rowsMax) break
      this.#partitionAt[at] = partition + 1
      this.#rowAt[at] = row
    }
    this.#taken[partition] = row
  }
}
