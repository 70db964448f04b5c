// Filter for ORDER BY .. LIMIT whose first sort key is a string: drops rows that sort after the row that is currently
// last in the result. If the strings are dictionary-encoded, each distinct string is compared with that row's key at
// most once, until the key changes; otherwise a WebAssembly kernel compares the string of each row.

import { textOrders } from '../../kernels/text.js'
import type { SortKey } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { type DictionaryStrings, dictionaryStrings, sameStrings } from '../batch/dictionary-strings.js'
import { selectRows } from '../batch/selection.js'
import { StringHeap } from '../batch/string-heap.js'
import { compareBytes } from '../batch/text-at.js'
import type { Vector } from '../batch/vector.js'
import type { Bound } from './sort-bound.js'

const unknown = 2
const noBytes = new Uint8Array(0)

export class TextThreshold {
  readonly #context: ExecContext
  readonly #key: SortKey
  readonly #bound: Bound
  /** Holds the bound for the kernel. */
  readonly #heap: StringHeap
  #placed: { readonly text: Uint8Array | null; readonly address: number } | null = null
  /** Result by code (0, 1 or unknown) for the bound `last`. */
  #results: {
    readonly strings: DictionaryStrings
    readonly last: Uint8Array | null
    readonly table: Uint8Array
  } | null = null

  constructor(context: ExecContext, key: SortKey, bound: Bound) {
    this.#context = context
    this.#key = key
    this.#bound = bound
    this.#heap = new StringHeap(context.arena)
  }

  /** Lowers the bound to the first key of this row, which is the current last row of the result. */
  set({ address }: Vector): void {
    const { u8, i32, u32 } = this.#context.memory
    const bytes = i32[(address >>> 2) + 1]!
    const from = u32[address >>> 2]!
    const known = this.#bound.text
    if (known !== undefined && this.#isWithin(address, known) === 0) return
    this.#bound.text = bytes < 0 ? null : u8.slice(from, from + bytes)
  }

  /** Writes the numbers (u32) of rows that may be in the result to `out`; returns how many, -1 = all. */
  select(vector: Vector, rows: number, out: number): number {
    const last = this.#bound.text
    if (last === undefined) return -1
    const strings = dictionaryStrings(vector)
    if (strings === undefined) return this.#selectPlain(vector, rows, last, out)
    const { u32 } = this.#context.memory
    const target = out >>> 2
    let count = 0
    const { table } = this.#resultsOf(strings, last)
    const codes = strings.codes >>> 2
    for (let row = 0; row < rows; row++) {
      const code = u32[codes + row]!
      if (table[code] === unknown) table[code] = this.#isWithin(strings.entries + code * 8, last)
      u32[target + count] = row
      count += table[code]!
    }
    return count
  }

  #selectPlain({ address }: Vector, rows: number, last: Uint8Array | null, out: number): number {
    const { memory, kernels, arena } = this.#context
    const mask = arena.scratch()
    kernels.text.orderStrings(address, rows, this.#placeOf(last), last?.length ?? 0, this.#wanted(last), mask)
    return selectRows(memory, mask, rows, out)
  }

  #placeOf(text: Uint8Array | null): number {
    if (this.#placed === null || this.#placed.text !== text) {
      this.#heap.reset()
      this.#placed = { text, address: this.#heap.put(text ?? noBytes) }
    }
    return this.#placed.address
  }

  /** The outcomes of a comparison that may be in the result, as flags of orderStrings. */
  #wanted(last: Uint8Array | null): number {
    const { less, equal, greater, missing } = textOrders
    const { nullsFirst, descending } = this.#key
    if (last === null) return nullsFirst ? missing : less | equal | greater | missing
    return equal | (descending ? greater : less) | (nullsFirst ? missing : 0)
  }

  #resultsOf(strings: DictionaryStrings, last: Uint8Array | null): { readonly table: Uint8Array } {
    if (this.#results === null || this.#results.last !== last || !sameStrings(strings, this.#results.strings))
      this.#results = { strings, last, table: new Uint8Array(strings.count).fill(unknown) }
    return this.#results
  }

  /** 0 or 1, for an entry {address u32, bytes i32}. */
  #isWithin(entry: number, last: Uint8Array | null): number {
    const { memory } = this.#context
    const bytes = memory.i32[(entry >>> 2) + 1]!
    const { nullsFirst, descending } = this.#key
    if (bytes < 0) return nullsFirst || last === null ? 1 : 0
    if (last === null) return nullsFirst ? 0 : 1
    const order = compareBytes(memory, memory.u32[entry >>> 2]!, bytes, last)
    return (descending ? order >= 0 : order <= 0) ? 1 : 0
  }
}
