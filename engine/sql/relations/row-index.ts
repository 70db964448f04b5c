// Which rows of a list have a value in a column. Lists of the system catalog stay until the catalog changes and are joined by
// many statements, so their index is kept with them (relations.ts).
//
// All members are private, since messages to query threads carry plans and copy public members.

import type { Value } from '../../types/value.js'

/** Indexes of rows by their value in a column, ascending. */
export type RowPlaces = ReadonlyMap<Value, readonly number[]>

export class RowIndex {
  readonly #rows: readonly (readonly Value[])[]
  readonly #columns = new Map<number, RowPlaces>()

  constructor(rows: readonly (readonly Value[])[]) {
    this.#rows = rows
  }

  get rows(): readonly (readonly Value[])[] {
    return this.#rows
  }

  /** `plain` gives the value of a cell as the executor reads it. */
  placesOf(column: number, plain: (value: Value | undefined) => Value): RowPlaces {
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
