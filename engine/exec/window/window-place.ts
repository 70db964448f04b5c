// Window functions that count rows (row_number, rank, dense_rank, percent_rank, cume_dist, ntile), over blocks of rows
// in the order of the window. How many rows a partition has, and how many are equal by ORDER BY, is known from an
// earlier pass over the rows, for the functions that need it.

import { SqlError } from '../../base/errors.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { Block, OrderedCall } from './window-blocks.js'
import type { GroupLevels } from './window-groups.js'
import type { WindowOrder, Working } from './window-order.js'
import { tileOf } from './window-rank.js'
import { putLong, type WindowResult } from './window-result.js'
import type { WindowRows } from './window-rows.js'
import { numberReader } from './window-values.js'

/** Which rows must be counted before the functions that need it. */
export function countsFor({ name }: WindowCall): { readonly peers: boolean; readonly partition: boolean } {
  const partition = name === 'percent_rank' || name === 'cume_dist' || name === 'ntile'
  return { peers: name === 'cume_dist', partition }
}

export class PlaceCall implements OrderedCall {
  readonly type: DataType
  readonly reach = null
  readonly #rows: WindowRows
  readonly #call: WindowCall
  readonly #slots: readonly number[]
  readonly #levels: GroupLevels
  /** Of the last row. */
  #number = 0
  #rank = 0
  #denseRank = 0

  constructor(rows: WindowRows, call: WindowCall, slots: readonly number[], levels: GroupLevels) {
    this.type = call.type
    this.#rows = rows
    this.#call = call
    this.#slots = slots
    this.#levels = levels
  }

  *result(_order: WindowOrder, { from, to, startsPartition, startsPeers }: Block): Working<WindowResult> {
    const { memory, arena } = this.#rows.context
    const address = arena.take(this.#rows.rows * 8)
    const valueAt = this.#valueAt()
    const isDouble = this.type.name === 'DOUBLE'
    for (let row = from; row < to; row++) {
      if (startsPartition(row)) {
        this.#number = 0
        this.#denseRank = 0
      }
      this.#number++
      if (startsPeers(row)) {
        this.#rank = this.#number
        this.#denseRank++
      }
      const value = valueAt(row)
      if (isDouble) memory.f64[(address >>> 3) + row] = value
      else putLong(memory.i32, (address >>> 2) + row * 2, value)
    }
    yield 'working'
    return { kind: 'values', address, dictionary: 0 }
  }

  #valueAt(): (row: number) => number {
    const { peers, partition } = this.#levels
    const rowsOf = (row: number): number => partition?.rowsOf(row) ?? 0
    switch (this.#call.name) {
      case 'row_number':
        return () => this.#number
      case 'rank':
        return () => this.#rank
      case 'dense_rank':
        return () => this.#denseRank
      case 'percent_rank':
        return (row) => (rowsOf(row) === 1 ? 0 : (this.#rank - 1) / (rowsOf(row) - 1))
      case 'cume_dist':
        return (row) => (this.#rank - 1 + (peers?.rowsOf(row) ?? 0)) / rowsOf(row)
      default:
        return this.#tileAt(rowsOf)
    }
  }

  #tileAt(rowsOf: (row: number) => number): (row: number) => number {
    const rows = this.#rows
    const groupsAt = numberReader(rows.context.memory, rows.column(this.#slots[0] ?? 0), rows.rows, false)
    return (row) => {
      const groups = groupsAt(row)
      if (!(groups > 0)) throw new SqlError('ntile takes a positive number of groups', this.#call.position)
      return tileOf(this.#number - 1, rowsOf(row), groups)
    }
  }

  neededFor(to: number): number {
    return to
  }

  drop(): void {}
}
