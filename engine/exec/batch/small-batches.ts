// Reduces the batch size of operators with hundreds or thousands of expressions. Every expression has an output vector
// as long as a batch, and with the usual batch size all of these together would exceed the memory of a query. The same
// is true of operators that copy long strings.

import { isVariable } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, sliceBatch } from './vector.js'

/** Up to this many vectors, batches keep their full length. */
const fullVectors = 40

/** Maximal rows of a batch for this many expressions. */
export function rowsFor(expressions: number): number {
  if (expressions <= fullVectors) return batchRowsMax
  return Math.max(64, Math.floor((fullVectors * batchRowsMax) / expressions / 64) * 64)
}

/** A context with batches of at most rowsFor(expressions) rows. */
export function smallContext(context: ExecContext, expressions: number): ExecContext {
  const rowsMax = rowsFor(expressions)
  return rowsMax < (context.rowsMax ?? batchRowsMax) ? { ...context, rowsMax } : context
}

/** An operator that returns the rows of `input` in batches of at most rowsFor(expressions) rows. */
export function smallBatches(input: Operator, expressions: number): Operator {
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
    const slice = sliceBatch(rest, from, next)
    if (next === rest.rows) rest = null
    return slice
  }
  const giveBack = (): void => {
    if (rest === null) input.goIdle?.()
  }
  return { pull, goIdle: giveBack }
}

/** Calls `each` with slices of a batch of at most rowsFor(expressions) rows, and the first row of each slice. */
export function eachSlice(batch: Batch, expressions: number, each: (slice: Batch, from: number) => void): void {
  const rowsMax = rowsFor(expressions)
  for (let from = 0; from < batch.rows; from += rowsMax)
    each(sliceBatch(batch, from, Math.min(batch.rows, from + rowsMax)), from)
}

/** The strings of a batch are copied in parts of at most so many bytes, or a fraction of the free memory. */
const textBytesMin = 256 * 1024
const textShare = 1 / 32

/** Calls `each` with slices of a batch whose strings are short enough to be copied at once. */
export function eachPart(context: ExecContext, batch: Batch, each: (part: Batch) => void): void {
  const { arena, kernels } = context
  const bytes = batch.vectors.reduce(
    (sum, { type, address }) => sum + (isVariable(type) ? kernels.text.movedBytes(address, batch.rows) : 0),
    0,
  )
  if (batch.rows === 1 || bytes <= textBytesMin || bytes <= arena.left * textShare) {
    each(batch)
    return
  }
  const half = batch.rows >>> 1
  eachPart(context, sliceBatch(batch, 0, half), each)
  eachPart(context, sliceBatch(batch, half, batch.rows), each)
}
