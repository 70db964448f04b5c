// KeptRows: the rows of an input from some row on, for operators that return rows only when they know how many follow,
// as LIMIT -n does. Rows are numbered from the first of the input. They are in memory or, if they outgrow it, in
// temporary files, of which those without needed rows are deleted. Rows are read in either direction.

import { assert } from '../../base/assert.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { RowBuffer } from './row-buffer.js'
import { type LoadedBlock, RunFile } from './run-file.js'
import { eachPart } from './small-batches.js'
import { type Batch, batchRowsMax, sliceBatch } from './vector.js'

/** Rows are written to a file when they take more than this fraction of the free memory of queries. */
const memoryShare = 0.25
const writtenBytesMin = 1024 * 1024
/** A file of more bytes is followed by another, so that it can be deleted when its rows are not needed any more. */
const fileBytesMax = 256 * 1024 * 1024
/** Rows that are not needed any more stay in memory until they are so many, and half of all or of more bytes. */
const droppedRowsMin = 16_384
const droppedBytesMin = 1024 * 1024

interface Segment {
  /** Number of its first row. */
  readonly first: number
  readonly file: RunFile
}

export class KeptRows {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #segments: Segment[] = []
  readonly #buffer: RowBuffer
  readonly #last: number
  /** Number of the buffer's first row. */
  #first = 0
  #needed = 0
  #loaded: LoadedBlock | null = null

  /** `last`: only so many rows are needed, the last ones. */
  constructor(context: ExecContext, types: readonly DataType[], last = Number.POSITIVE_INFINITY) {
    this.#context = context
    this.#last = last
    this.#types = types
    this.#buffer = new RowBuffer(context, types)
    context.onEnd(() => {
      for (const { file } of this.#segments) file.close()
    })
  }

  /** Number of rows that the input has had. */
  get rows(): number {
    return this.#first + this.#buffer.rows
  }

  append(batch: Batch): void {
    eachPart(this.#context, batch, (part) => {
      this.#buffer.append(part)
      this.dropBefore(this.rows - this.#last)
      if (this.#outgrown) this.#write()
    })
  }

  get #outgrown(): boolean {
    const { arena, temporary } = this.#context
    const { bytes } = this.#buffer
    return temporary !== undefined && bytes > Math.max(writtenBytesMin, (arena.left + bytes) * memoryShare)
  }

  #write(): void {
    this.#drop()
    const { rows } = this.#buffer
    const file = this.#fileFor(this.#first)
    for (let from = 0; from < rows; ) {
      const batch = this.#buffer.batchAt(from, rows)
      if (batch === null) break
      this.#context.alive()
      file.append(batch)
      from += batch.rows
    }
    this.#first += rows
    this.#buffer.free()
  }

  #fileFor(first: number): RunFile {
    const last = this.#segments.at(-1)
    if (last !== undefined && last.file.bytes < fileBytesMax) return last.file
    const { temporary } = this.#context
    assert(temporary !== undefined, 'Q1: a query that spills has temporary files')
    const file = new RunFile(this.#context, temporary.create(), this.#types)
    this.#segments.push({ first, file })
    this.#context.profile?.note('rows on disk')
    return file
  }

  /** The rows before this one are not read any more. */
  dropBefore(row: number): void {
    this.#needed = Math.max(this.#needed, Math.min(row, this.rows))
    while (isOver(this.#segments[0], this.#needed)) this.#segments.shift()?.file.close()
    const dropped = this.#needed - this.#first
    if (dropped * 2 < this.#buffer.rows) return
    if (dropped >= droppedRowsMin || this.#buffer.bytesHeld > droppedBytesMin) this.#drop()
  }

  /** Drops the rows of the buffer that are not needed. */
  #drop(): void {
    const dropped = this.#needed - this.#first
    if (dropped <= 0) return
    this.#buffer.keepLast(this.#buffer.rows - dropped)
    this.#first += dropped
  }

  /**
   * Rows from `from` on and before `to`, as many as are together and fit a batch; null when there are none. Valid until
   * the next call of a method.
   */
  batchAt(from: number, to: number): Batch | null {
    if (from >= Math.min(to, this.rows)) return null
    if (from >= this.#first) return this.#buffer.batchAt(from - this.#first, to - this.#first)
    const { first, batch } = this.#blockOf(from)
    return sliceBatch(batch, from - first, Math.min(batch.rows, to - first))
  }

  /** The last rows before `to`, as many as are together and fit a batch, but none before `from`; null if there are none. */
  batchBefore(to: number, from: number): Batch | null {
    if (to <= from) return null
    if (to > this.#first) {
      const start = Math.max(from, this.#first, to - batchRowsMax)
      return this.#buffer.batchAt(start - this.#first, to - this.#first)
    }
    const { first, batch } = this.#blockOf(to - 1)
    return sliceBatch(batch, Math.max(0, from - first), to - first)
  }

  #blockOf(row: number): { readonly first: number; readonly batch: Batch } {
    this.#loaded?.free()
    const segment = this.#segments.findLast(({ first }) => first <= row)
    assert(segment !== undefined, 'Q1: rows that are read have not been dropped')
    const { first, file } = segment
    const index = file.blockAt(row - first)
    this.#loaded = file.load(index)
    return { first: first + file.firstOf(index), batch: this.#loaded.batch }
  }
}

function isOver(segment: Segment | undefined, row: number): boolean {
  return segment !== undefined && segment.first + segment.file.rows <= row
}
