// Filter for ORDER BY .. LIMIT whose first sort key is a symbol: drops rows that sort after the row that is currently
// last in the result. When the key of that last row changes, a table is computed that tells for each symbol of the
// dictionary whether its rows are dropped, so that each row needs only a lookup by its symbol id. With a large
// dictionary, or one that grows during the query, no rows are dropped.

import { dictionaryCount } from '../../memory/column-layout.js'
import type { SortKey } from '../../sql/plan/plan.js'
import { compareText } from '../../types/compare.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'

/** Larger dictionaries are not evaluated. */
const entriesMax = 8192

export class SymbolThreshold {
  readonly #context: ExecContext
  readonly #key: SortKey
  /** The key of the current last row; undefined: no row can be dropped. */
  #last: Value | undefined
  #within: { readonly dictionary: number; readonly table: Uint8Array } | null = null

  constructor(context: ExecContext, key: SortKey) {
    this.#context = context
    this.#key = key
  }

  set({ address, dictionary }: Vector): void {
    const { memory, strings } = this.#context
    const id = memory.i32[address >>> 2]!
    const last = id < 0 ? null : strings.of(dictionary)(id)
    if (last === this.#last) return
    this.#last = last
    this.#within = null
  }

  /** Writes the numbers (u32) of rows that may be in the result to `out`; returns how many, -1 = all. */
  select({ address, dictionary }: Vector, rows: number, out: number): number {
    const { memory } = this.#context
    const table = this.#last === undefined ? undefined : this.#tableOf(dictionary)
    if (table === undefined) return -1
    const { i32, u32 } = memory
    const [first, target] = [address >>> 2, out >>> 2]
    let count = 0
    for (let row = 0; row < rows; row++) {
      u32[target + count] = row
      count += table[i32[first + row]! + 1]!
    }
    return count
  }

  /** Indexed by id + 1. The rows of a snapshot have no higher ids. */
  #tableOf(dictionary: number): Uint8Array | undefined {
    if (this.#within?.dictionary === dictionary) return this.#within.table
    const { memory, strings, symbols } = this.#context
    // The query's own dictionary grows during the query.
    const count = dictionary === symbols.dictionary ? entriesMax + 1 : dictionaryCount(memory, dictionary)
    if (count > entriesMax) return undefined
    const textOf = strings.of(dictionary)
    const table = Uint8Array.from({ length: count + 1 }, (_, at) =>
      this.#isWithin(at === 0 ? null : textOf(at - 1)) ? 1 : 0,
    )
    this.#within = { dictionary, table }
    return table
  }

  #isWithin(value: string | null): boolean {
    const last = this.#last as string | null
    const { nullsFirst, descending } = this.#key
    if (value === null) return nullsFirst || last === null
    if (last === null) return !nullsFirst
    const order = compareText(value, last)
    return descending ? order >= 0 : order <= 0
  }
}
