// Pairs of row numbers {left, right} as batches: columns are gathered late, and only those that are asked for. A side
// that has no row gives NULLs.

import { type DataType, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import { grownRoom, type Room } from '../batch/selection.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'

/** Where a side's rows are: any vectors, gathered by u32 row numbers at `index`; `mayLack`: noRow is among them. */
export interface SideRows {
  readonly vectors: readonly Vector[]
  readonly index: number
  readonly mayLack: boolean
}

/** Columns of one side, in areas of their own. */
export class SideGather {
  readonly #context: ExecContext
  readonly #types: readonly DataType[]
  readonly #rooms: readonly Room[]
  readonly #rowsMax: number

  /** `rowsMax`: of what is gathered at once. */
  constructor(context: ExecContext, types: readonly DataType[], rowsMax = batchRowsMax) {
    this.#rowsMax = rowsMax
    this.#context = context
    this.#types = types
    this.#rooms = types.map(() => ({ address: 0, rows: 0 }))
  }

  /** `wanted`: null = all columns; the others come as they are, not gathered. */
  gather({ vectors, index, mayLack }: SideRows, rows: number, wanted: ReadonlySet<number> | null): Vector[] {
    return this.#types.map((type, column) => {
      const vector = vectors[column] as Vector
      if (wanted !== null && !wanted.has(column)) return vector
      const { kernels, space } = this.#context
      const width = widthOf(type)
      const address = grownRoom(this.#context, this.#rooms[column] as Room, rows, width, this.#rowsMax)
      if (mayLack) kernels.sort.gatherOr(width, vector.address, index, rows, space.nulls(type), address)
      else kernels.sort.gather(width, vector.address, index, rows, address)
      return { type: vector.type, address, dictionary: vector.dictionary }
    })
  }
}

/** Vectors of NULLs, batchRowsMax of them, for a side without any row. */
export function nullVectors({ space, symbols }: ExecContext, types: readonly DataType[]): Vector[] {
  return types.map((type) => ({
    type,
    address: space.nulls(type),
    dictionary: type.name === 'SYMBOL' ? symbols.dictionary : 0,
  }))
}
