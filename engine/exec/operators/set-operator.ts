// Operator: UNION, EXCEPT and INTERSECT, with or without ALL. UNION ALL returns the batches of its inputs unchanged.
// EXCEPT and INTERSECT load the right input into a hash table, by which they filter the left input. Without ALL,
// duplicates are removed from the result by the operator for DISTINCT.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { GroupKeys } from '../batch/group-keys.js'
import { GatheredBatch } from '../batch/selection.js'
import { batchRowsMax, isBatch, type Operator, type Pull } from '../batch/vector.js'
import { distinctOperator } from './distinct.js'

export interface SetShape {
  readonly columns: readonly PlanColumn[]
  readonly operation: 'union' | 'except' | 'intersect'
  readonly all: boolean
  /** The first so many columns are compared; those behind them are carried along by EXCEPT ALL and INTERSECT ALL. */
  readonly compared: number
}

export function setOperator(context: ExecContext, left: Operator, right: Operator, shape: SetShape): Operator {
  if (shape.operation === 'union') {
    const both = concatenated(left, right)
    return shape.all ? both : distinctOperator(context, both, shape.columns, false)
  }
  const matched = matching(context, left, right, shape)
  return shape.all ? matched : distinctOperator(context, matched, shape.columns, false)
}

function concatenated(left: Operator, right: Operator): Operator {
  let leftDone = false
  const pull = (): Pull => {
    if (leftDone) return right.pull()
    const batch = left.pull()
    if (batch !== null) return batch
    leftDone = true
    return 'working'
  }
  return { pull }
}

/** The rows of the left input that the right input has (INTERSECT) or lacks (EXCEPT). */
function matching(
  context: ExecContext,
  left: Operator,
  right: Operator,
  { columns, operation, compared }: SetShape,
): Operator {
  const types = columns.map(({ type }) => type)
  const groups = new GroupKeys(context, types.slice(0, compared))
  const gathered = new GatheredBatch(context, types)
  const index = context.arena.take(batchRowsMax * 4)
  const wanted = operation === 'intersect'
  let rightGroups = -1
  const pull = (): Pull => {
    if (rightGroups < 0) {
      const batch = right.pull()
      if (isBatch(batch)) groups.assign(batch.vectors, batch.rows)
      else if (batch === null) rightGroups = groups.count
      return batch === 'waiting' ? batch : 'working'
    }
    const batch = left.pull()
    if (!isBatch(batch)) return batch
    groups.assign(batch.vectors.slice(0, compared), batch.rows)
    const { u32 } = context.memory
    let count = 0
    for (let row = 0; row < batch.rows; row++) {
      const known = u32[(groups.ids >>> 2) + row]! < rightGroups
      if (known === wanted) u32[(index >>> 2) + count++] = row
    }
    return count === 0 ? 'working' : gathered.gather(batch.vectors, index, count)
  }
  return { pull }
}
