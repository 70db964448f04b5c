// Operator: DISTINCT. Returns each distinct row once, in order of first appearance.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { createGrouping } from '../batch/group-keys.js'
import { type Batch, isBatch, type Operator, type Pull } from '../batch/vector.js'

/** `dense`: the input is the rows of one table, so each symbol column has one dictionary. */
export function distinctOperator(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  dense: boolean,
): Operator {
  const groups = createGrouping(
    context,
    columns.map(({ type }) => type),
    dense,
  )
  let sent = 0
  const fresh = (): Batch | null => {
    const batch = groups.keys.batchAt(sent, groups.count)
    if (batch !== null) sent += batch.rows
    return batch
  }
  const pull = (): Pull => {
    const waiting = fresh()
    if (waiting !== null) return waiting
    const batch = input.pull()
    if (!isBatch(batch)) return batch
    groups.assign(batch.vectors, batch.rows, 0)
    return fresh() ?? 'working'
  }
  return { pull }
}
