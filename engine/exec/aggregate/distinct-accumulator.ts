// count_distinct: values have numbers, and so have pairs of a group and a value; a pair that is new counts one for
// its group. What is a grouping of its own (sql/plan/own-groupings.ts) needs none: these serve SAMPLE BY and rows that
// must not be read twice.
//
// Buckets of SAMPLE BY begin anew with every group: pairs of a few are kept under other numbers of the groups, many are forgotten.

import { storageOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { codedTexts } from '../batch/coded-texts.js'
import type { ExecContext } from '../batch/context.js'
import { type Coder, keyCoder } from '../batch/key-codes.js'
import { KeyTable } from '../batch/key-table.js'
import type { QuerySpace } from '../batch/query-space.js'
import { valueReader } from '../batch/values.js'
import type { Vector } from '../batch/vector.js'
import type { Accumulator } from './accumulator.js'

/** A table of so many pairs is made anew for the groups of the next bucket. */
const pairsKept = 16_384

export class DistinctAccumulator implements Accumulator {
  readonly reads = 1
  readonly #context: ExecContext
  #coder: Coder | null = null
  #pairs: { readonly table: KeyTable; readonly space: QuerySpace } | null = null
  /** Of the first group among the pairs. */
  #base = 0
  #counts: number[] = []
  /** Pairs, codes and groups of a batch: buckets may be of a few rows, and many. */
  #scratch = 0
  #scratchRows = 0

  constructor(context: ExecContext) {
    this.#context = context
  }

  add([vector]: readonly [Vector], rows: number, ids: number): void {
    const { kernels, memory } = this.#context
    this.#coder ??= keyCoder(this.#context, vector.type)
    const pairs = this.#scratchFor(rows)
    const [codes, groups] = [pairs + this.#scratchRows * 8, pairs + this.#scratchRows * 12]
    this.#coder(vector, 0, rows, codes)
    const { u32 } = memory
    for (let row = 0; row < rows; row++) {
      u32[(groups >>> 2) + row] = this.#base + (ids === 0 ? 0 : u32[(ids >>> 2) + row]!)
    }
    kernels.aggregate.pairIds(codes, groups, rows, pairs)
    const table = this.#table()
    const known = table.count
    // The codes are not needed any more.
    table.number(pairs, 0, rows, codes)
    if (table.count > known) this.#countNew(vector, rows, codes, groups, known)
  }

  result(group: number): Value {
    return BigInt(this.#counts[group] ?? 0)
  }

  reset(): void {
    this.#base += this.#counts.length
    this.#counts = []
    if ((this.#pairs?.table.count ?? 0) <= pairsKept) return
    this.#pairs?.space.freeAll()
    this.#pairs = null
    this.#base = 0
  }

  #scratchFor(rows: number): number {
    if (rows > this.#scratchRows) {
      const { space } = this.#context
      if (this.#scratch !== 0) space.give(this.#scratch)
      this.#scratchRows = Math.max(64, 2 ** Math.ceil(Math.log2(rows)))
      this.#scratch = space.take(this.#scratchRows * 16)
    }
    return this.#scratch
  }

  /** New pairs have the next numbers, in the order of their first rows. */
  #countNew(vector: Vector, rows: number, numbers: number, groups: number, known: number): void {
    const { u32 } = this.#context.memory
    const isNull = this.#nullTest(vector)
    for (let row = 0, next = known; row < rows; row++) {
      if (u32[(numbers >>> 2) + row] !== next) continue
      next++
      const group = u32[(groups >>> 2) + row]! - this.#base
      // A group that has nothing but NULL counts for the numbers of the next bucket's groups, too.
      this.#counts[group] = (this.#counts[group] ?? 0) + (isNull(row) ? 0 : 1)
    }
  }

  #nullTest(vector: Vector): (row: number) => boolean {
    const { memory, texts } = this.#context
    if (storageOf(vector.type) === 'entry') {
      const { codes, entries } = codedTexts(vector) ?? { codes: 0, entries: vector.address }
      // The number that is NULL in a column may have an answer that is a text (text-answers.ts), and the reverse.
      const entryOf = (row: number): number => (codes === 0 ? row : memory.u32[(codes >>> 2) + row]!)
      return (row) => memory.i32[(entries >>> 2) + entryOf(row) * 2 + 1]! < 0
    }
    const valueAt = valueReader(memory, texts, vector)
    return (row) => valueAt(row) === null
  }

  #table(): KeyTable {
    if (this.#pairs === null) {
      const space = this.#context.space.child()
      this.#pairs = { space, table: new KeyTable({ ...this.#context, space }, 8) }
    }
    return this.#pairs.table
  }
}
