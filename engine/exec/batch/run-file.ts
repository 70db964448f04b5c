// RunFile: a temporary file with rows that exceed the memory of a query, such as a sorted run of ORDER BY or a
// partition of GROUP BY. The rows are read back block by block, by any number of readers.
//
//   block  the values of each column, padded to 64 bytes, in the layout of types/column-types.ts; then the bytes of
//          strings, BINARY and ARRAY values, each padded to 8. The address in such a value is its offset in the block.
//
// Symbols are stored as ids of their dictionary, which stays in memory as long as the query.

import type { TemporaryFile } from '../../storage/part/temporary-files.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import type { QueryArena } from './query-arena.js'
import type { Batch, Vector } from './vector.js'

/** Small, since merging many runs needs a block of each in memory. */
export const runBlockRows = 1024
/** A block of more bytes, or of more than this fraction of the free memory of queries, is split. */
const blockBytesMax = 1024 * 1024
const blockBytesMin = 8 * 1024
const blockParts = 128

interface Block {
  /** Number of its first row. */
  readonly first: number
  readonly position: number
  readonly bytes: number
  readonly rows: number
  /** Of each column; 0 for columns other than symbols. */
  readonly dictionaries: readonly number[]
}

const padded = (bytes: number): number => (bytes + 63) & ~63

/** A block in memory, until free() is called. */
export interface LoadedBlock {
  readonly batch: Batch
  free(): void
}

export class RunFile {
  rows = 0
  /** Rows of the longest block. */
  blockRows = 0
  readonly #context: ExecContext
  readonly #file: TemporaryFile
  readonly #types: readonly DataType[]
  readonly #blocks: Block[] = []
  #dictionaries: readonly number[] = []
  readonly #blockBytesMax: number
  #closed = false

  constructor(context: ExecContext, file: TemporaryFile, types: readonly DataType[]) {
    this.#context = context
    this.#file = file
    this.#types = types
    this.#blockBytesMax = Math.max(blockBytesMin, Math.min(blockBytesMax, context.arena.left / blockParts))
  }

  get bytes(): number {
    return this.#file.size
  }

  /** Number of blocks. */
  get blocks(): number {
    return this.#blocks.length
  }

  append({ rows, vectors }: Batch): void {
    if (vectors.some(({ dictionary }, index) => dictionary !== this.#dictionaries[index]))
      this.#dictionaries = vectors.map(({ dictionary }) => dictionary)
    for (let from = 0; from < rows; from += runBlockRows)
      this.#appendBlock(vectors, from, Math.min(runBlockRows, rows - from))
  }

  #appendBlock(vectors: readonly Vector[], from: number, rows: number): void {
    const { arena, memory, kernels } = this.#context
    const fixed = this.#types.reduce((total, type) => total + padded(rows * widthOf(type)), 0)
    const strings = this.#types.map((type, index) =>
      isVariable(type) ? kernels.text.movedBytes((vectors[index] as Vector).address + from * widthOf(type), rows) : 0,
    )
    const bytes = strings.reduce((total, column) => total + column, fixed)
    if (bytes > this.#blockBytesMax && rows > 1) {
      const half = Math.ceil(rows / 2)
      this.#appendBlock(vectors, from, half)
      this.#appendBlock(vectors, from + half, rows - half)
      return
    }
    const block = arena.take(bytes)
    let at = block
    let text = block + fixed
    this.#types.forEach((type, index) => {
      const width = widthOf(type)
      const source = (vectors[index] as Vector).address + from * width
      memory.u8.copyWithin(at, source, source + rows * width)
      if (isVariable(type)) kernels.text.moveStrings(at, rows, text, block)
      text += strings[index] as number
      at += padded(rows * width)
    })
    this.#blocks.push({ first: this.rows, position: this.#file.size, bytes, rows, dictionaries: this.#dictionaries })
    this.blockRows = Math.max(this.blockRows, rows)
    this.#file.append(memory.u8.subarray(block, block + bytes))
    this.rows += rows
    arena.give(block)
  }

  /** Deletes the file. Further calls have no effect. */
  close(): void {
    if (!this.#closed) this.#file.close()
    this.#closed = true
  }

  /** Index of the block that has the row of this number. */
  blockAt(row: number): number {
    let [low, high] = [0, this.#blocks.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.firstOf(middle) <= row) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Number of the first row of a block. */
  firstOf(index: number): number {
    return this.#blocks[index]?.first ?? this.rows
  }

  /** Loads a block, which must exist. */
  load(index: number, arena: QueryArena = this.#context.arena): LoadedBlock {
    const { memory } = this.#context
    const { position, bytes, rows, dictionaries } = this.#blocks[index] as Block
    const block = arena.take(bytes)
    this.#file.read(memory.u8.subarray(block, block + bytes), position)
    let at = block
    const vectors = this.#types.map((type, index) => {
      const address = at
      at += padded(rows * widthOf(type))
      if (isVariable(type)) this.#addAddress(address, rows, block)
      return { type, address, dictionary: dictionaries[index] as number }
    })
    return { batch: { rows, vectors }, free: () => arena.give(block) }
  }

  #addAddress(entries: number, rows: number, block: number): void {
    const { u32, i32 } = this.#context.memory
    const first = entries >>> 2
    for (let word = first; word < first + rows * 2; word += 2) {
      if (i32[word + 1]! > 0) u32[word] = u32[word]! + block
    }
  }
}
