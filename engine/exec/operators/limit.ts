// Operator: LIMIT with a lower and an upper bound. Negative bounds count from the end; for these it buffers rows, and
// discards those that can no longer be in the result.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { isBatch, type Operator, type Pull, sliceBatch } from '../batch/vector.js'

export function limitOperator(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  lo: number,
  hi: number | null,
): Operator {
  if (lo >= 0 && (hi === null || hi >= 0)) return forwardLimit(input, lo, hi ?? Number.POSITIVE_INFINITY)
  return backwardLimit(context, input, columns, lo, hi)
}

function forwardLimit(input: Operator, lo: number, hi: number): Operator {
  let seen = 0
  const pull = (): Pull => {
    if (seen >= hi) return null
    const batch = input.pull()
    if (!isBatch(batch)) return batch
    const from = Math.max(0, lo - seen)
    const to = Math.min(batch.rows, hi - seen)
    seen += batch.rows
    return from >= to ? 'working' : sliceBatch(batch, from, to)
  }
  return { pull, goIdle: () => input.goIdle?.() }
}

const retainedRowsMin = 65_536

/** LIMIT where at least one bound counts from the end. */
function backwardLimit(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  lo: number,
  hi: number | null,
): Operator {
  const store = new RowBuffer(
    context,
    columns.map(({ type }) => type),
  )
  const lastRows = lo < 0 ? -lo : Number.POSITIVE_INFINITY
  let dropped = 0
  let total = -1
  let next = 0
  const end = (): number => (hi === null ? total : hi < 0 ? total + hi : Math.min(hi, total))
  const pull = (): Pull => {
    if (total < 0) {
      const batch = input.pull()
      if (isBatch(batch)) {
        store.append(batch)
        if (store.rows > lastRows * 2 + retainedRowsMin) {
          dropped += store.rows - lastRows
          store.keepLast(lastRows)
        }
        return 'working'
      }
      if (batch !== null) return batch
      total = dropped + store.rows
      next = Math.max(dropped, lo < 0 ? total + lo : lo)
    }
    const batch = store.batchAt(next - dropped, end() - dropped)
    if (batch === null) return null
    next += batch.rows
    return batch
  }
  return { pull }
}
