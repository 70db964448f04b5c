// Tells whether an operator that begins again with temporary files may skip the rows that it has returned: whether its
// input comes in the same order in both runs. An operator in the input may spill in one of them only. Some return their
// rows in another order then.

import type { Plan } from '../../sql/plan/plan.js'
import { isStablePlan } from '../../sql/plan/volatile.js'
import { inputsOf } from '../../sql/plan/walk-plan.js'
import type { ExecContext } from '../batch/context.js'
import { isUnordered, marksRight } from '../join/join-sides.js'

export function hasRepeatableInput(context: ExecContext, plan: Plan): boolean {
  return isStablePlan(plan) && inputsOf(plan).every((input) => hasOneOrder(context, input))
}

/** Whether the plan's rows come in the same order with temporary files as without. */
function hasOneOrder(context: ExecContext, plan: Plan): boolean {
  return keepsOwnOrder(context, plan) && inputsOf(plan).every((input) => hasOneOrder(context, input))
}

function keepsOwnOrder(context: ExecContext, plan: Plan): boolean {
  switch (plan.kind) {
    case 'join':
      // With temporary files, the pairs come partition by partition.
      return !(plan.join === 'inner' && isUnordered(context, plan.left)) && !marksRight(context, plan)
    // Over a table, these may have an order of their own (hasOwnOrder in batch/vector.ts).
    case 'aggregate':
    case 'sample':
      return plan.keys.length === 0 || plan.input.kind !== 'scan'
    case 'latest':
      return plan.input.kind !== 'scan'
    case 'distinct':
      return plan.columns.length > 1 || plan.columns[0]?.type.name !== 'SYMBOL'
    default:
      return true
  }
}
