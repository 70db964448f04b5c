// Operator: an aggregation as the input of a join, with memory of its own. The aggregation is created only when the
// join requests its first row (with a profile, as for EXPLAIN ANALYZE, at once). The join copies the rows, so the
// memory of the aggregation is freed after its last row. The planner may split one aggregation into hundreds that are
// joined (plan/join-aggregations.ts); only one or two of these hold memory at a time.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from './context.js'
import type { QueryArena } from './query-arena.js'
import type { Operator, Pull } from './vector.js'

export type OperatorBuilder = (context: ExecContext, plan: Plan) => Operator

/** The operator of a join's input; `build` creates it. */
export function joinInputOperator(context: ExecContext, plan: Plan, build: OperatorBuilder): Operator {
  if (!isGathered(plan)) return build(context, plan)
  let arena: QueryArena | null = null
  let operator: Operator | null = null
  let over = false
  // EXPLAIN also lists operators that never run, so they are built at once.
  if (context.profile !== undefined) {
    arena = context.arena.child()
    operator = build({ ...context, arena }, plan)
  }
  const pull = (): Pull => {
    if (over) return null
    arena ??= context.arena.child()
    operator ??= build({ ...context, arena }, plan)
    const pulled = operator.pull()
    if (pulled !== null) return pulled
    over = true
    operator = null
    arena.freeAll()
    return null
  }
  return { pull }
}

/** Whether the plan reads all its input before it returns its first row. */
function isGathered(plan: Plan): boolean {
  if (plan.kind === 'project' || plan.kind === 'filter') return isGathered(plan.input)
  return plan.kind === 'aggregate'
}
