// Rows that pass: from a BOOLEAN vector to row numbers, and columns gathered by them.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { codedTexts, codedVector } from './coded-texts.js'
import type { ExecContext } from './context.js'
import { rowsFor } from './short-batches.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

/** Writes the numbers of the rows whose byte is 1 to out (u32); returns how many. */
export function selectRows(memory: SharedMemory, mask: number, rows: number, out: number): number {
  const { u8, u32 } = memory
  const first = out >>> 2
  let count = 0
  for (let row = 0; row < rows; row++) {
    u32[first + count] = row
    count += u8[mask + row]!
  }
  return count
}

/** Memory of a vector that grows with the rows it has held, up to a whole batch: hundreds of columns may have few rows. */
export interface Room {
  address: number
  rows: number
}

const roomRowsMin = 48
/** So many rows less than a power of two have room in a class of the allocator, with what is added to them. */
const spareRows = 16

/** Room for so many rows; what lay there is gone when it grows. */
export function grownRoom(
  { space }: Pick<ExecContext, 'space'>,
  room: Room,
  rows: number,
  width: number,
  rowsMax = batchRowsMax,
): number {
  if (room.rows >= rows) return room.address
  space.give(room.address)
  const wanted = Math.max(roomRowsMin, 2 ** Math.ceil(Math.log2(rows + spareRows)) - spareRows)
  room.rows = Math.max(rows, Math.min(rowsMax, wanted))
  room.address = space.take(room.rows * width)
  return room.address
}

/** Vectors of its own that hold chosen rows of batches. */
export class Gathered {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #rooms: readonly Room[]
  /** Where the chosen codes of texts lie. */
  readonly #codes: readonly Room[]

  constructor(context: ExecContext, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.#rooms = types.map(() => ({ address: 0, rows: 0 }))
    this.#codes = types.map(() => ({ address: 0, rows: 0 }))
  }

  /** Gives the memory back; what was gathered is gone. */
  clear(): void {
    for (const room of [...this.#rooms, ...this.#codes]) {
      this.#context.space.give(room.address)
      room.address = 0
      room.rows = 0
    }
  }

  /** Rows named by u32 row numbers at `index`. What entries point at is not copied. */
  gather(vectors: readonly Vector[], index: number, rows: number): Batch {
    return { rows, vectors: vectors.map((vector, column) => this.column(vector, column, index, rows)) }
  }

  column(vector: Vector, column: number, index: number, rows: number): Vector {
    const address = this.room(column, rows)
    const width = widthOf(this.#types[column] as DataType)
    const { sort } = this.#context.kernels
    const texts = codedTexts(vector)
    if (texts !== undefined) {
      const codes = grownRoom(this.#context, this.#codes[column] as Room, rows, 4)
      sort.gather(4, texts.codes, index, rows, codes)
      return codedVector(vector.type, { ...texts, codes }, () => {
        sort.gather(8, texts.entries, codes, rows, address)
        return address
      })
    }
    sort.gather(width, vector.address, index, rows, address)
    return { type: vector.type, address, dictionary: vector.dictionary }
  }

  /** Where so many chosen values of a column go; those that lie there are gone. */
  room(column: number, rows: number): number {
    const { length } = this.#types
    // Batches of many columns are short: there is no more to come than they have.
    const width = widthOf(this.#types[column] as DataType)
    return grownRoom(this.#context, this.#rooms[column] as Room, rows, width, rowsFor(length))
  }
}
