// RowPartitions: the first of two steps of an aggregation with many groups. The input is divided into ranges of rows
// (chunks), which several threads process. This step distributes the rows of a chunk to 64 partitions by a hash of their
// group keys, so that all rows of a group are in the same partition in every chunk. Of each row it stores the keys, the
// arguments of the aggregates, and the row number (rank). Strings are copied. The second step, partition-groups.ts,
// aggregates one partition of all chunks.
//
// Layout of a result, u32 words: for each column the address of its dictionary, or 0; for each partition {number of
// blocks, address of its block list}; and the lists, {address, rows, capacity} for each block. A block stores its columns
// one after the other, each with room for `capacity` values.

import { hashKinds } from '../../kernels/aggregate.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Expression } from '../../sql/plan/plan.js'
import { type DataType, dataType, isVariable, storageOf, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { copyStrings } from '../batch/row-buffer.js'
import { eachSlice, smallContext } from '../batch/small-batches.js'
import { StringHeap } from '../batch/string-heap.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { isPure } from '../expression/expression-shape.js'
import type { ChunkRows } from '../fragment/rows-parallel.js'
import type { PartitionRange } from '../parallel/coordinator.js'
import { expressionKey } from '../window/window-rows.js'
import type { AggregateShape } from './aggregate.js'

export const partitionCount = 64
const partitionShift = 26

const blockRowsMin = 512
const blockRowsMax = 8192
/** Assumed bytes of a string, to estimate the size of rows. */
const textBytesUsual = 32
const rankType = dataType('INT')

/** The columns of a partitioned row, and the aggregation over them. */
export interface PartitionedShape {
  /** The keys come first. The rank is the last of `types`, and has no expression. */
  readonly expressions: readonly Expression[]
  readonly types: readonly DataType[]
  readonly shape: AggregateShape
  readonly rank: Expression
}

export function partitionedShape(plan: AggregateShape): PartitionedShape {
  const expressions: Expression[] = [...plan.keys]
  const placeOf = new Map(expressions.map((key, index) => [expressionKey(key), index]))
  const columnOf = (expression: Expression): Expression => {
    if (expression.kind === 'constant') return expression
    const key = isPure(expression) ? expressionKey(expression) : `#${expressions.length}`
    const index = placeOf.get(key) ?? expressions.push(expression) - 1
    placeOf.set(key, index)
    return { kind: 'column', index, type: expression.type, position: expression.position }
  }
  const keys = plan.keys.map(columnOf)
  const aggregates = plan.aggregates.map((call) => ({ ...call, args: call.args.map(columnOf) }))
  const types = [...expressions.map(({ type }) => type), rankType]
  const rank: Expression = { kind: 'column', index: types.length - 1, type: rankType, position: 0 }
  return { expressions, types, shape: { columns: plan.columns, keys, aggregates }, rank }
}

/** Estimated bytes of a row. */
export function rowBytes(types: readonly DataType[]): number {
  return types.reduce((sum, type) => sum + widthOf(type) + (isVariable(type) ? textBytesUsual : 0), 0)
}

interface Block {
  readonly address: number
  readonly capacity: number
  rows: number
}

export class RowPartitions implements ChunkRows {
  readonly #context: ExecContext
  readonly #spread: PartitionedShape
  readonly #evaluators: readonly VectorEvaluator[]
  readonly #heap: StringHeap
  readonly #hashes: number
  readonly #starts: number
  readonly #order: number
  readonly #ranks: number
  readonly #blocks = Array.from({ length: partitionCount }, (): Block[] => [])
  readonly #rows = new Uint32Array(partitionCount)
  readonly #dictionaries: number[]
  readonly #wanted: PartitionRange
  #next: number

  /** `firstRow`: rank of the first row; `wanted`: rows of other partitions are skipped. */
  constructor(context: ExecContext, spread: PartitionedShape, firstRow: number, wanted: PartitionRange) {
    const { arena } = context
    this.#context = context
    this.#spread = spread
    this.#wanted = wanted
    const own = smallContext(context, spread.expressions.length)
    this.#evaluators = spread.expressions.map((expression) => compileVector(expression, own))
    this.#heap = new StringHeap(arena)
    this.#hashes = arena.take(batchRowsMax * 4)
    this.#order = arena.take(batchRowsMax * 4)
    this.#ranks = arena.take(batchRowsMax * 4)
    this.#starts = arena.take((partitionCount + 1) * 4)
    this.#dictionaries = spread.types.map(() => 0)
    this.#next = firstRow
  }

  add(batch: Batch): void {
    eachSlice(batch, this.#evaluators.length, (slice) => this.#addSlice(slice))
  }

  result(): number {
    const { memory, arena } = this.#context
    const blocks = this.#blocks.flat()
    const columns = this.#dictionaries.length
    const address = arena.take((columns + partitionCount * 2 + blocks.length * 3) * 4)
    const word = address >>> 2
    memory.u32.set(this.#dictionaries, word)
    let list = word + columns + partitionCount * 2
    this.#blocks.forEach((own, partition) => {
      memory.u32[word + columns + partition * 2] = own.length
      memory.u32[word + columns + partition * 2 + 1] = list * 4
      for (const block of own) {
        memory.u32.set([block.address, block.rows, block.capacity], list)
        list += 3
      }
    })
    arena.keepOnly([address, ...blocks.map((block) => block.address), ...this.#heap.areas])
    return address
  }

  #addSlice(slice: Batch): void {
    const { memory, kernels } = this.#context
    const { shape } = this.#spread
    const { rows } = slice
    const vectors = this.#evaluators.map((evaluate) => evaluate(slice))
    vectors.forEach(({ dictionary }, index) => {
      this.#dictionaries[index] = dictionary
    })
    memory.u32.fill(0, this.#hashes >>> 2, (this.#hashes >>> 2) + rows)
    shape.keys.forEach(({ type }, index) => {
      kernels.aggregate.hashKeys(hashKinds[hashedAs(type)], (vectors[index] as Vector).address, rows, this.#hashes)
    })
    kernels.aggregate.spreadRows(this.#hashes, rows, partitionShift, this.#starts, this.#order)
    for (let row = 0; row < rows; row++) memory.u32[(this.#ranks >>> 2) + row] = this.#next + row
    this.#next += rows
    vectors.push({ type: rankType, address: this.#ranks, dictionary: 0 })
    for (let partition = this.#wanted.first; partition < this.#wanted.end; partition++) {
      const from = memory.u32[(this.#starts >>> 2) + partition]!
      const to = memory.u32[(this.#starts >>> 2) + partition + 1]!
      if (to > from) this.#append(partition, vectors, from, to)
    }
  }

  #append(partition: number, vectors: readonly Vector[], first: number, end: number): void {
    const { kernels } = this.#context
    for (let from = first; from < end; ) {
      const block = this.#blockOf(partition)
      const rows = Math.min(end - from, block.capacity - block.rows)
      let column = block.address
      for (const { type, address } of vectors) {
        const width = widthOf(type)
        const target = column + block.rows * width
        kernels.sort.gather(width, address, this.#order + from * 4, rows, target)
        if (isVariable(type)) copyStrings(this.#context, this.#heap, target, rows)
        column += columnSpan(type, block.capacity)
      }
      block.rows += rows
      this.#rows[partition] = this.#rows[partition]! + rows
      from += rows
    }
  }

  #blockOf(partition: number): Block {
    const blocks = this.#blocks[partition] as Block[]
    const last = blocks[blocks.length - 1]
    if (last !== undefined && last.rows < last.capacity) return last
    const half = Math.ceil(this.#rows[partition]! / 2 / 64) * 64
    const capacity = Math.max(blockRowsMin, Math.min(blockRowsMax, half))
    const bytes = this.#spread.types.reduce((sum, type) => sum + columnSpan(type, capacity), 0)
    const block = { address: this.#context.arena.take(bytes), capacity, rows: 0 }
    blocks.push(block)
    return block
  }
}

/** Symbols are hashed by id, since all rows are of one table. */
function hashedAs(type: DataType): keyof typeof hashKinds {
  const storage = storageOf(type)
  return storage === 'u16' ? 'i16' : storage
}

/** Capacities are multiples of 64, which keeps every column aligned. */
function columnSpan(type: DataType, capacity: number): number {
  return widthOf(type) * capacity
}

/** The rows of a partition in a result, block by block. */
export function* partitionBatches(
  { u32 }: SharedMemory,
  result: number,
  types: readonly DataType[],
  partition: number,
): Generator<Batch, void, undefined> {
  const word = (result >>> 2) + types.length + partition * 2
  const count = u32[word]!
  const list = u32[word + 1]! >>> 2
  for (let index = 0; index < count; index++) {
    const [address, rows, capacity] = u32.subarray(list + index * 3, list + index * 3 + 3) as unknown as number[]
    let column = address as number
    const vectors = types.map((type, place) => {
      const vector = { type, address: column, dictionary: u32[(result >>> 2) + place]! }
      column += columnSpan(type, capacity as number)
      return vector
    })
    yield { rows: rows as number, vectors }
  }
}
