// The result of one window function call, and its conversion to output vectors. A result is either a computed value for
// each row, or, for functions such as lag() that return a value of another row, the number of that row.

import { noRow } from '../../kernels/join.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { StringHeap } from '../batch/string-heap.js'
import { type WriteTarget, writeValue } from '../batch/values.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import type { WindowRows } from './window-rows.js'

export type WindowResult =
  | { readonly kind: 'values'; readonly address: number; readonly dictionary: number }
  /** u32 row numbers of column `slot`; noRow = the row's own value of column `fallback`, or NULL if that is -1. */
  | { readonly kind: 'rows'; readonly address: number; readonly slot: number; readonly fallback: number }

/** Writes an integer below 2^53 as i64. */
export function putLong(i32: Int32Array, word: number, value: number): void {
  i32[word] = value | 0
  i32[word + 1] = Math.floor(value / 0x1_0000_0000)
}

/** A column of values for the rows in memory. */
export class ResultColumn {
  readonly #target: WriteTarget
  readonly #type: DataType
  readonly #address: number

  constructor(rows: WindowRows, type: DataType) {
    const { arena, memory, symbols } = rows.context
    this.#type = type
    this.#address = arena.take(rows.rows * widthOf(type))
    this.#target = { memory, symbols, heap: new StringHeap(arena) }
  }

  set(row: number, value: Value): void {
    writeValue(this.#target, this.#type, this.#address, row, value)
  }

  /** Repeats the value of the row before. */
  repeat(row: number): void {
    const width = widthOf(this.#type)
    const at = this.#address + row * width
    this.#target.memory.u8.copyWithin(at, at - width, at)
  }

  get result(): WindowResult {
    const dictionary = this.#type.name === 'SYMBOL' ? this.#target.symbols.dictionary : 0
    return { kind: 'values', address: this.#address, dictionary }
  }
}

/** Returns the results of a call as vectors, batch by batch. */
export class ResultReader {
  readonly #context: ExecContext
  readonly #type: DataType
  readonly #result: WindowResult
  readonly #rows: WindowRows
  readonly #area: number

  constructor(rows: WindowRows, type: DataType, result: WindowResult) {
    this.#context = rows.context
    this.#rows = rows
    this.#type = type
    this.#result = result
    this.#area = result.kind === 'rows' ? rows.context.arena.take(Math.min(batchRowsMax, rows.rows) * widthOf(type)) : 0
  }

  vector(from: number, rows: number): Vector {
    const result = this.#result
    const type = this.#type
    const width = widthOf(type)
    if (result.kind === 'values') return { type, address: result.address + from * width, dictionary: result.dictionary }
    const { kernels, arena } = this.#context
    const column = this.#rows.column(result.slot)
    const index = result.address + from * 4
    kernels.sort.gatherOr(width, column.address, index, rows, arena.nulls(type), this.#area)
    const dictionary =
      result.fallback < 0
        ? column.dictionary
        : this.#fallBack(column, this.#rows.column(result.fallback), index, from, rows)
    return { type, address: this.#area, dictionary }
  }

  /** Copies the row's own value of the fallback column where no row was found. */
  #fallBack(found: Vector, column: Vector, index: number, from: number, rows: number): number {
    const { memory, symbols } = this.#context
    const width = widthOf(this.#type)
    const foreign = this.#type.name === 'SYMBOL' && found.dictionary !== column.dictionary
    for (let row = 0; row < rows; row++) {
      const missing = memory.u32[(index >>> 2) + row] === noRow
      const source = column.address + (from + row) * width
      if (missing) memory.u8.copyWithin(this.#area + row * width, source, source + width)
      if (!foreign) continue
      const word = (this.#area >>> 2) + row
      memory.i32[word] = symbols.translate((missing ? column : found).dictionary, memory.i32[word]!)
    }
    return foreign ? symbols.dictionary : found.dictionary
  }
}

/** Operator steps: the buffered rows from `first` on, up to `last` if there is one, with their results. */
export function* emitted(
  rows: WindowRows,
  results: readonly ResultReader[],
  first: number,
  last = Number.POSITIVE_INFINITY,
): Steps {
  for (let from = first; ; ) {
    const batch = rows.batchAt(from, last)
    if (batch === null) return
    yield { rows: batch.rows, vectors: [...batch.vectors, ...results.map((result) => result.vector(from, batch.rows))] }
    from += batch.rows
  }
}
