// Work of hundreds or thousands of expressions goes over short batches: each expression has a vector of its own, and they
// must fit in the memory of a query together.

import type { ExecContext } from './context.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, sliceBatch } from './vector.js'

/** So many vectors of full batches are no burden. */
const fullVectors = 40

/** Rows of a batch over which so many expressions are computed. */
export function rowsFor(expressions: number): number {
  if (expressions <= fullVectors) return batchRowsMax
  return Math.max(64, Math.floor((fullVectors * batchRowsMax) / expressions / 64) * 64)
}

/** A context whose vectors are no longer than that. */
export function shortContext(context: ExecContext, expressions: number): ExecContext {
  const rowsMax = rowsFor(expressions)
  return rowsMax < (context.rowsMax ?? batchRowsMax) ? { ...context, rowsMax } : context
}

/** The rows of an operator in batches that a context of so many expressions takes. */
export function shortBatches(input: Operator, expressions: number): Operator {
  const rowsMax = rowsFor(expressions)
  if (rowsMax >= batchRowsMax) return input
  let rest: Batch | null = null
  let next = 0
  const pull = (): Pull => {
    if (rest === null) {
      const pulled = input.pull()
      if (!isBatch(pulled)) return pulled
      rest = pulled
      next = 0
    }
    const from = next
    next = Math.min(rest.rows, from + rowsMax)
    const piece = sliceBatch(rest, from, next)
    if (next === rest.rows) rest = null
    return piece
  }
  const giveBack = (): void => {
    if (rest === null) input.rest?.()
  }
  return { pull, rest: giveBack }
}

/** Calls `each` with the pieces of a batch and the row where each begins. */
export function eachPiece(batch: Batch, expressions: number, each: (piece: Batch, from: number) => void): void {
  const rowsMax = rowsFor(expressions)
  for (let from = 0; from < batch.rows; from += rowsMax)
    each(sliceBatch(batch, from, Math.min(batch.rows, from + rowsMax)), from)
}
