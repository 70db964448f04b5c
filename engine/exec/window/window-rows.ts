// WindowRows: buffers the input rows of a window operator. Additional columns store the values of the expressions in
// arguments, PARTITION BY and ORDER BY, so that each expression is evaluated once for a row, and the number of the
// row's partition.

import { assert } from '../../base/assert.js'
import type { Expression, PlanColumn } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { isPure } from '../expression/expression-shape.js'
import { codeType, JoinKeys } from '../join/join-keys.js'

interface Partitioning {
  readonly slots: readonly number[]
  readonly slot: number
  /** null when all rows have their codes, which are below `count`. */
  keys: JoinKeys | null
  count: number
  /**
   * Buffer for the codes of a batch, and its size in rows: small, since a query may have hundreds of partitionings of
   * few rows.
   */
  codes: number
  codesRows: number
}

/** Columns are requested first; then batches are appended; then the rows are read. */
export class WindowRows {
  /** For computing results: its arena is freed by forgetWork(). */
  readonly context: ExecContext
  readonly #own: ExecContext
  readonly #keyArena: QueryArena
  readonly #width: number
  readonly #types: DataType[]
  readonly #evaluators: { readonly slot: number; readonly evaluate: VectorEvaluator }[] = []
  readonly #partitionings: Partitioning[] = []
  readonly #known = new Map<string, number>()
  #store: RowBuffer | null = null

  constructor(context: ExecContext, columns: readonly PlanColumn[]) {
    const arena = context.arena.child()
    this.context = { ...context, arena }
    this.#own = context
    this.#keyArena = context.arena.child()
    this.#width = columns.length
    this.#types = columns.map(({ type }) => type)
  }

  /** The context whose memory is freed with the rows. */
  get own(): ExecContext {
    return this.#own
  }

  get rows(): number {
    return this.#store?.rows ?? 0
  }

  /** The column that will have the values of the expression. */
  slotOf(expression: Expression): number {
    if (expression.kind === 'column') return expression.index
    const key = isPure(expression) ? expressionKey(expression) : `#${this.#types.length}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const slot = this.#types.push(expression.type) - 1
    this.#evaluators.push({ slot, evaluate: compileVector(expression, this.#own) })
    this.#known.set(key, slot)
    return slot
  }

  /** The column that will have the codes of the partitions by these expressions. */
  partitionSlot(expressions: readonly Expression[]): number {
    const slots = expressions.map((expression) => this.slotOf(expression))
    const known = this.#partitionings.find((other) => other.slots.join() === slots.join())
    if (known !== undefined) return known.slot
    const types = slots.map((slot) => this.#types[slot] as DataType)
    const slot = this.#types.push(codeType) - 1
    const keys = new JoinKeys({ ...this.#own, arena: this.#keyArena }, types, types)
    this.#partitionings.push({ slots, slot, keys, count: 0, codes: 0, codesRows: 0 })
    return slot
  }

  /** The codes of a partition column are below this. */
  partitionCount(slot: number): number {
    const partitioning = this.#partitionings.find((other) => other.slot === slot)
    return partitioning?.keys?.size ?? partitioning?.count ?? 1
  }

  /** Called after the last row: frees the tables that number partitions. */
  complete(): void {
    for (const partitioning of this.#partitionings) {
      partitioning.count = partitioning.keys?.size ?? partitioning.count
      partitioning.keys = null
    }
    this.#keyArena.freeAll()
  }

  /** The columns of the batch, followed by the requested ones. */
  extended(batch: Batch): Vector[] {
    const vectors = batch.vectors.slice(0, this.#width)
    for (const { slot, evaluate } of this.#evaluators) vectors[slot] = evaluate(batch)
    for (const partitioning of this.#partitionings) {
      const { slots, keys, slot } = partitioning
      const codes = this.#codesFor(partitioning, batch.rows)
      assert(keys !== null, 'Q2: no rows follow complete()')
      keys.number(
        slots.map((index) => vectors[index] as Vector),
        batch.rows,
        codes,
      )
      vectors[slot] = { type: codeType, address: codes, dictionary: 0 }
    }
    return vectors
  }

  #codesFor(partitioning: Partitioning, rows: number): number {
    if (rows > partitioning.codesRows) {
      const { arena } = this.#own
      if (partitioning.codes !== 0) arena.give(partitioning.codes)
      partitioning.codesRows = Math.min(batchRowsMax, 2 ** Math.ceil(Math.log2(rows)))
      partitioning.codes = arena.take(partitioning.codesRows * 4)
    }
    return partitioning.codes
  }

  append(batch: Batch): void {
    this.#store ??= new RowBuffer(this.#own, this.#types)
    this.#store.append({ rows: batch.rows, vectors: this.extended(batch) })
  }

  column(slot: number): Vector {
    return (this.#store as RowBuffer).column(slot)
  }

  get store(): RowBuffer {
    return this.#store as RowBuffer
  }

  forgetWork(): void {
    this.context.arena.freeAll()
  }

  /** A batch of rows from `from` on and before `to`, with the columns of the input. */
  batchAt(from: number, to: number): Batch | null {
    const batch = this.#store?.batchAt(from, Math.min(to, this.rows)) ?? null
    return batch === null ? null : { rows: batch.rows, vectors: batch.vectors.slice(0, this.#width) }
  }
}

/** Two expressions have the same key if they differ in their positions in the statement only. */
export function expressionKey(value: unknown): string {
  return JSON.stringify(value, (name, part: unknown) => {
    if (name === 'position') return undefined
    return typeof part === 'bigint' ? `${part}n` : part
  })
}
