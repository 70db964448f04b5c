// Operator: LIMIT with a lower and an upper bound. Negative bounds count from the end; for these it keeps the rows that
// may be in the result, in temporary files if they outgrow the memory.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { KeptRows } from '../batch/kept-rows.js'
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

/** LIMIT where at least one bound counts from the end. */
function backwardLimit(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  lo: number,
  hi: number | null,
): Operator {
  const types = columns.map(({ type }) => type)
  const kept = new KeptRows(context, types, lo < 0 ? -lo : undefined)
  let ended = false
  let next = Math.max(0, lo)
  /** Rows before this one are in the result if they are not before the lower bound. */
  const end = (): number => (hi === null ? kept.rows : hi < 0 ? kept.rows + hi : Math.min(hi, kept.rows))
  const pull = (): Pull => {
    if (lo < 0) next = Math.max(next, kept.rows + lo)
    else kept.dropBefore(next)
    // A lower bound that counts from the end is known at the end only.
    const batch = ended || lo >= 0 ? kept.batchAt(next, end()) : null
    if (batch !== null) {
      next += batch.rows
      return batch
    }
    if (ended) return null
    const pulled = input.pull()
    if (isBatch(pulled)) kept.append(pulled)
    ended = pulled === null
    return pulled === 'waiting' ? pulled : 'working'
  }
  return { pull }
}
