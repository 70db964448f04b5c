// Index over a constant list of rows: for a column, a map from each value to the rows that have it, built at its first
// use. Rows of the system catalog stay the same until the catalog changes and many statements join them, so
// relations.ts caches the index with them.
//
// All members are private, because a plan sent to a query thread is copied with all public members, and the index must
// not be copied.

import type { Value } from '../../types/value.js'

/** Indexes of rows by their value in a column, ascending. */
export type RowsByValue = ReadonlyMap<Value, readonly number[]>

export class RowIndex {
  readonly #rows: readonly (readonly Value[])[]
  readonly #columns = new Map<number, RowsByValue>()

  constructor(rows: readonly (readonly Value[])[]) {
    this.#rows = rows
  }

  get rows(): readonly (readonly Value[])[] {
    return this.#rows
  }

  /** `plain` gives the value of a cell as the executor reads it. */
  rowsOf(column: number, plain: (value: Value | undefined) => Value): RowsByValue {
    const known = this.#columns.get(column)
    if (known !== undefined) return known
    const places = new Map<Value, number[]>()
    for (const [place, row] of this.#rows.entries()) {
      const value = plain(row[column])
      const found = places.get(value)
      if (found === undefined) places.set(value, [place])
      else found.push(place)
    }
    this.#columns.set(column, places)
    return places
  }
}
