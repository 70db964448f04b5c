// Rows that pass: from a BOOLEAN vector to row numbers, and columns gathered by them.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { codedTexts, codedVector } from './coded-texts.js'
import type { ExecContext } from './context.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

/** Writes the numbers of the rows whose byte is 1 to out (u32); returns how many. */
export function selectRows(memory: SharedMemory, mask: number, rows: number, out: number): number {
  const { u8, u32 } = memory
  const first = out >>> 2
  let count = 0
  for (let row = 0; row < rows; row++) {
    u32[first + count] = row
    count += u8[mask + row] as number
  }
  return count
}

/** Vectors of its own that hold chosen rows of batches. */
export class Gathered {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #addresses: number[]
  /** Where the chosen codes of texts lie. */
  readonly #codes: number[]

  constructor(context: ExecContext, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.#addresses = types.map(() => 0)
    this.#codes = types.map(() => 0)
  }

  /** Rows named by u32 row numbers at `index`. What entries point at is not copied. */
  gather(vectors: readonly Vector[], index: number, rows: number): Batch {
    return { rows, vectors: vectors.map((vector, column) => this.column(vector, column, index, rows)) }
  }

  column(vector: Vector, column: number, index: number, rows: number): Vector {
    const address = this.room(column)
    const width = widthOf(this.#types[column] as DataType)
    const { sort } = this.#context.kernels
    const texts = codedTexts(vector)
    if (texts !== undefined) {
      const codes = this.#room(this.#codes, column, 4)
      sort.gather(4, texts.codes, index, rows, codes)
      return codedVector(vector.type, { ...texts, codes }, () => {
        sort.gather(8, texts.entries, codes, rows, address)
        return address
      })
    }
    sort.gather(width, vector.address, index, rows, address)
    return { type: vector.type, address, dictionary: vector.dictionary }
  }

  /** Where a column's chosen values lie. */
  room(column: number): number {
    return this.#room(this.#addresses, column, widthOf(this.#types[column] as DataType))
  }

  #room(rooms: number[], column: number, width: number): number {
    if (rooms[column] === 0) rooms[column] = this.#context.space.take(batchRowsMax * width)
    return rooms[column] as number
  }
}
