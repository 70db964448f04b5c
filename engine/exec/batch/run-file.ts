// Rows of one order in a temporary file, block by block: what ORDER BY keeps of rows that outgrow its memory.
//
//   block  for each column its values, padded to 64 bytes, as types/column-types.ts says; then the bytes that entries point
//          at, each padded to 8, where an entry's address is an offset from the block's first byte.
//
// Symbols stay numbers of the dictionary that the column had: it lives as long as the query.

import type { TemporaryFile } from '../../storage/part/temporary-files.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import type { Batch, Vector } from './vector.js'

/** Few enough that many files have a block in memory each. */
export const runBlockRows = 1024
/** Blocks of more bytes have fewer rows. */
const blockBytesMax = 1024 * 1024

interface Block {
  readonly position: number
  readonly bytes: number
  readonly rows: number
}

const padded = (bytes: number): number => (bytes + 63) & ~63

/** A block in memory, until it is given back. */
export interface LoadedBlock {
  readonly batch: Batch
  free(): void
}

export class RunFile {
  rows = 0
  /** Of the longest block. */
  blockRows = 0
  readonly #context: ExecContext
  readonly #file: TemporaryFile
  readonly #types: readonly DataType[]
  readonly #blocks: Block[] = []
  #dictionaries: readonly number[] = []
  #next = 0
  #closed = false

  constructor(context: ExecContext, file: TemporaryFile, types: readonly DataType[]) {
    this.#context = context
    this.#file = file
    this.#types = types
  }

  get bytes(): number {
    return this.#file.size
  }

  /** Whether all blocks were loaded. */
  get exhausted(): boolean {
    return this.#next === this.#blocks.length
  }

  /** A column's symbols have one dictionary in all batches of a run. */
  append({ rows, vectors }: Batch): void {
    this.#dictionaries = vectors.map(({ dictionary }) => dictionary)
    for (let from = 0; from < rows; from += runBlockRows)
      this.#appendBlock(vectors, from, Math.min(runBlockRows, rows - from))
  }

  #appendBlock(vectors: readonly Vector[], from: number, rows: number): void {
    const { space, memory, kernels } = this.#context
    const fixed = this.#types.reduce((total, type) => total + padded(rows * widthOf(type)), 0)
    const texts = this.#types.map((type, index) =>
      isVariable(type) ? kernels.text.movedBytes((vectors[index] as Vector).address + from * widthOf(type), rows) : 0,
    )
    const bytes = texts.reduce((total, column) => total + column, fixed)
    if (bytes > blockBytesMax && rows > 1) {
      const half = Math.ceil(rows / 2)
      this.#appendBlock(vectors, from, half)
      this.#appendBlock(vectors, from + half, rows - half)
      return
    }
    const block = space.take(bytes)
    let at = block
    let text = block + fixed
    this.#types.forEach((type, index) => {
      const width = widthOf(type)
      const source = (vectors[index] as Vector).address + from * width
      memory.u8.copyWithin(at, source, source + rows * width)
      if (isVariable(type)) kernels.text.moveTexts(at, rows, text, block)
      text += texts[index] as number
      at += padded(rows * width)
    })
    this.#blocks.push({ position: this.#file.size, bytes, rows })
    this.blockRows = Math.max(this.blockRows, rows)
    this.#file.append(memory.u8.subarray(block, block + bytes))
    this.rows += rows
    space.give(block)
  }

  /** Its rows are gone. More than once does no harm. */
  close(): void {
    if (!this.#closed) this.#file.close()
    this.#closed = true
  }

  /** The next block, which must be there. */
  load(): LoadedBlock {
    const { space, memory } = this.#context
    const { position, bytes, rows } = this.#blocks[this.#next++] as Block
    const block = space.take(bytes)
    this.#file.read(memory.u8.subarray(block, block + bytes), position)
    let at = block
    const vectors = this.#types.map((type, index) => {
      const address = at
      at += padded(rows * widthOf(type))
      if (isVariable(type)) this.#addAddress(address, rows, block)
      return { type, address, dictionary: this.#dictionaries[index] as number }
    })
    return { batch: { rows, vectors }, free: () => space.give(block) }
  }

  #addAddress(entries: number, rows: number, block: number): void {
    const { u32, i32 } = this.#context.memory
    const first = entries >>> 2
    for (let word = first; word < first + rows * 2; word += 2) {
      if (i32[word + 1]! > 0) u32[word] = u32[word]! + block
    }
  }
}
