// String columns that stay dictionary-encoded: instead of a string, each row has an index (code) into a list of
// strings. The list has the distinct strings of a part (Parquet file), or the results of an expression over the entries
// of a dictionary. So an operator can evaluate an expression or look up a group key once for each entry instead of once
// for each row (lookup-table.ts, key-table.ts). The address and length of each row's string are computed only when an
// operator reads them.

import type { DataType } from '../../types/column-types.js'
import type { Vector } from './vector.js'

export interface DictionaryStrings {
  /**
   * Address of a u32 for each row. In a stored column code 0 is NULL. In a computed column any code may be NULL: its
   * entry says so.
   */
  readonly codes: number
  /** Address of the dictionary: an entry {address u32, bytes i32} for each code. */
  readonly entries: number
  /** Number of entries, including the one of NULL. */
  readonly count: number
  /** Two vectors with the same owner and column have the same dictionary. */
  readonly owner: object
  readonly columnId: number
}

/** A map beside the vectors, and no field of them: a modified copy of a vector must not count as dictionary-encoded. */
const encoded = new WeakMap<Vector, DictionaryStrings>()

/** The codes of a vector, or undefined when it is not dictionary-encoded. */
export function dictionaryStrings(vector: Vector): DictionaryStrings | undefined {
  return encoded.get(vector)
}

export function sameStrings(a: DictionaryStrings, b: Pick<DictionaryStrings, 'owner' | 'columnId'> | null): boolean {
  return b !== null && a.owner === b.owner && a.columnId === b.columnId
}

/**
 * A dictionary-encoded vector. `entries` materialises the rows' entries and returns their address; it is called at most
 * once.
 */
export function dictionaryVector(type: DataType, strings: DictionaryStrings, entries: () => number): Vector {
  let address = 0
  const vector: Vector = {
    type,
    dictionary: 0,
    get address() {
      if (address === 0) address = entries()
      return address
    },
  }
  encoded.set(vector, strings)
  return vector
}

interface Columns {
  strings(columnId: number): DictionaryStrings | undefined
  column(columnId: number): number
}

/** A string column of a morsel, beginning at row `from`; undefined when it is not dictionary-encoded. */
export function dictionaryColumn(morsel: Columns, columnId: number, type: DataType, from: number): Vector | undefined {
  if (type.name !== 'VARCHAR' && type.name !== 'STRING') return undefined
  const strings = morsel.strings(columnId)
  if (strings === undefined) return undefined
  return dictionaryVector(
    type,
    { ...strings, codes: strings.codes + from * 4 },
    () => morsel.column(columnId) + from * 8,
  )
}
