// Produces the output columns of a join for one side: gathers the values of the needed columns by the row numbers of
// the matches. A missing row, as in an outer join, gives NULLs.

import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { ensureCapacity, type GrowableBuffer } from '../batch/selection.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'

/** The rows of a side: vectors, gathered by the u32 row numbers at `index`. `mayLack`: noRow is among them. */
export interface SideRows {
  readonly vectors: readonly Vector[]
  readonly index: number
  readonly mayLack: boolean
}

/** Gathers columns of one side into buffers of its own. */
export class SideGather {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #rooms: readonly GrowableBuffer[]
  readonly #rowsMax: number

  /** `rowsMax`: maximal rows gathered at a time. */
  constructor(context: ExecContext, types: readonly DataType[], rowsMax = batchRowsMax) {
    this.#rowsMax = rowsMax
    this.#context = context
    this.#types = types
    this.#rooms = types.map(() => ({ address: 0, rows: 0 }))
  }

  /** `wanted`: the columns to gather, null = all; the others are returned unchanged. */
  gather({ vectors, index, mayLack }: SideRows, rows: number, wanted: ReadonlySet<number> | null): Vector[] {
    return this.#types.map((type, column) => {
      const vector = vectors[column] as Vector
      if (wanted !== null && !wanted.has(column)) return vector
      const { kernels, arena } = this.#context
      const width = widthOf(type)
      const address = ensureCapacity(this.#context, this.#rooms[column] as GrowableBuffer, rows, width, this.#rowsMax)
      if (mayLack) kernels.sort.gatherOr(width, vector.address, index, rows, arena.nulls(type), address)
      else kernels.sort.gather(width, vector.address, index, rows, address)
      return { type: vector.type, address, dictionary: vector.dictionary }
    })
  }
}

/** Vectors of batchRowsMax NULLs, for a side without rows. */
export function nullVectors({ arena, symbols }: ExecContext, types: readonly DataType[]): Vector[] {
  return types.map((type) => ({
    type,
    address: arena.nulls(type),
    dictionary: type.name === 'SYMBOL' ? symbols.dictionary : 0,
  }))
}
