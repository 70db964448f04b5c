// Selection vectors: turns a BOOLEAN vector into the row numbers that pass a filter, and gathers the columns of a batch
// by row numbers.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { dictionaryStrings, dictionaryVector } from './dictionary-strings.js'
import { rowsFor } from './small-batches.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

/** Writes the numbers of the rows whose byte is 1 to `out` (u32); returns how many. */
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

/**
 * A buffer that grows with the rows it has had to hold, up to a whole batch. A filter over hundreds of columns often
 * selects few rows.
 */
export interface GrowableBuffer {
  address: number
  rows: number
}

const roomRowsMin = 48
/**
 * Capacities are a power of two minus this many rows, so that an allocation with its overhead fits a size class of the
 * allocator.
 */
const spareRows = 16

/** Ensures room for this many rows, and returns the address. Growing discards the contents. */
export function ensureCapacity(
  { arena }: Pick<ExecContext, 'arena'>,
  room: GrowableBuffer,
  rows: number,
  width: number,
  rowsMax = batchRowsMax,
): number {
  if (room.rows >= rows) return room.address
  arena.give(room.address)
  const wanted = Math.max(roomRowsMin, 2 ** Math.ceil(Math.log2(rows + spareRows)) - spareRows)
  room.rows = Math.max(rows, Math.min(rowsMax, wanted))
  room.address = arena.take(room.rows * width)
  return room.address
}

/** Gathers selected rows of batches into vectors of its own. */
export class GatheredBatch {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #rooms: readonly GrowableBuffer[]
  /** Buffers for the selected codes of dictionary-encoded strings. */
  readonly #codes: readonly GrowableBuffer[]

  constructor(context: ExecContext, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.#rooms = types.map(() => ({ address: 0, rows: 0 }))
    this.#codes = types.map(() => ({ address: 0, rows: 0 }))
  }

  /** Frees the buffers; gathered batches become invalid. */
  clear(): void {
    for (const room of [...this.#rooms, ...this.#codes]) {
      this.#context.arena.give(room.address)
      room.address = 0
      room.rows = 0
    }
  }

  /** Gathers the rows whose u32 numbers are at address `index`. The bytes that entries point at are not copied. */
  gather(vectors: readonly Vector[], index: number, rows: number): Batch {
    return { rows, vectors: vectors.map((vector, column) => this.column(vector, column, index, rows)) }
  }

  column(vector: Vector, column: number, index: number, rows: number): Vector {
    const address = this.room(column, rows)
    const width = widthOf(this.#types[column] as DataType)
    const { sort } = this.#context.kernels
    const strings = dictionaryStrings(vector)
    if (strings !== undefined) {
      const codes = ensureCapacity(this.#context, this.#codes[column] as GrowableBuffer, rows, 4)
      sort.gather(4, strings.codes, index, rows, codes)
      return dictionaryVector(vector.type, { ...strings, codes }, () => {
        sort.gather(8, strings.entries, codes, rows, address)
        return address
      })
    }
    sort.gather(width, vector.address, index, rows, address)
    return { type: vector.type, address, dictionary: vector.dictionary }
  }

  /** The buffer for this many selected values of a column; its former contents are discarded. */
  room(column: number, rows: number): number {
    const { length } = this.#types
    // Batches of many columns are short, so the buffer never needs more rows than they have.
    const width = widthOf(this.#types[column] as DataType)
    return ensureCapacity(this.#context, this.#rooms[column] as GrowableBuffer, rows, width, rowsFor(length))
  }
}
