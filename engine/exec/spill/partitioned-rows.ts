// PartitionedRows: writes the rows of an operator's input to temporary files, one for each partition. The hash of a
// row's keys chooses the partition. Within a partition the rows keep their order. If requested, each row gets its
// number in the input (its rank) as a last column, by which the results of the partitions are merged into the order of
// the input.

import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import type { RunFile } from '../batch/run-file.js'
import { GatheredBatch } from '../batch/selection.js'
import { eachSlice } from '../batch/small-batches.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { newRunFile, rankType, writeRanks } from './stored-rows.js'

export const partitionCount = 16
/** The partition is in the upper bits of the hash. */
const partitionShift = 28
/** Batches of fewer rows are collected before they are divided, so that the blocks of a file are not tiny. */
const wholeRowsMin = 4096
const collectedBytesMax = 1024 * 1024

/** Address of the hashes (u32) of a batch's rows. */
type HashOf = (batch: Batch) => number

/** 'null': the column of ranks is NULL, because only the other input has ranks. */
export type Ranking = 'rows' | 'null' | 'none'

export class PartitionedRows {
  readonly files: (RunFile | null)[] = Array.from({ length: partitionCount }, () => null)
  rows = 0
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #hashOf: HashOf
  readonly #ranking: Ranking
  readonly #gathered: GatheredBatch
  readonly #collected: RowBuffer
  /** Columns without a rank. */
  readonly #width: number
  readonly #starts: number
  readonly #order: number
  readonly #ranks: number

  /** `context`: its arena is freed when all rows are written. */
  constructor(context: ExecContext, types: readonly DataType[], ranking: Ranking, hashOf: HashOf) {
    const { arena } = context
    this.#context = context
    this.#width = types.length
    this.#types = ranking === 'none' ? types : [...types, rankType]
    this.#hashOf = hashOf
    this.#ranking = ranking
    this.#gathered = new GatheredBatch(context, this.#types)
    this.#collected = new RowBuffer(context, types)
    this.#starts = arena.take((partitionCount + 1) * 4)
    this.#order = arena.take(batchRowsMax * 4)
    this.#ranks = ranking === 'rows' ? arena.take(batchRowsMax * widthOf(rankType)) : 0
  }

  add(batch: Batch): void {
    const vectors = batch.vectors.slice(0, this.#width)
    const collected = this.#collected
    if (collected.rows > 0 && !this.#isAlike(vectors)) this.#divideCollected()
    if (collected.rows === 0 && batch.rows >= wholeRowsMin) {
      this.#divide({ rows: batch.rows, vectors })
      return
    }
    collected.append({ rows: batch.rows, vectors })
    if (collected.rows >= wholeRowsMin || collected.bytes > collectedBytesMax) this.#divideCollected()
  }

  /** Called after the last row. */
  complete(): void {
    this.#divideCollected()
    this.#collected.free()
    this.#gathered.clear()
  }

  /** Whether symbols have the same dictionaries as the collected rows. */
  #isAlike(vectors: readonly Vector[]): boolean {
    return vectors.every(
      ({ dictionary, type }, index) =>
        type.name !== 'SYMBOL' || dictionary === this.#collected.column(index).dictionary,
    )
  }

  #divideCollected(): void {
    const collected = this.#collected
    for (let from = 0; from < collected.rows; ) {
      const batch = collected.batchAt(from, collected.rows)
      if (batch === null) break
      this.#divide(batch)
      from += batch.rows
    }
    if (collected.rows > 0) collected.keepLast(0)
  }

  #divide(batch: Batch): void {
    eachSlice(batch, this.#width, (slice) => this.#divideSlice(slice))
  }

  #divideSlice(slice: Batch): void {
    const { kernels, memory } = this.#context
    const { rows } = slice
    const hashes = this.#hashOf(slice)
    kernels.aggregate.spreadRows(hashes, rows, partitionShift, this.#starts, this.#order)
    const vectors = [...slice.vectors, ...this.#rankVectors(rows)]
    this.rows += rows
    for (let partition = 0; partition < partitionCount; partition++) {
      const from = memory.u32[(this.#starts >>> 2) + partition]!
      const to = memory.u32[(this.#starts >>> 2) + partition + 1]!
      if (to === from) continue
      this.#fileOf(partition).append(this.#gathered.gather(vectors, this.#order + from * 4, to - from))
    }
  }

  #rankVectors(rows: number): Vector[] {
    if (this.#ranking === 'none') return []
    const vector = { type: rankType, dictionary: 0 }
    if (this.#ranking === 'null') return [{ ...vector, address: this.#context.arena.nulls(rankType) }]
    writeRanks(this.#context.memory, this.#ranks, this.rows, rows)
    return [{ ...vector, address: this.#ranks }]
  }

  #fileOf(partition: number): RunFile {
    const known = this.files[partition]
    if (known) return known
    const file = newRunFile(this.#context, this.#types)
    this.files[partition] = file
    return file
  }
}
