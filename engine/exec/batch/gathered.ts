// Operator: an aggregation that is one side of a join. It is made when its first row is wanted, in a space of its own, and
// gives that back with its last row, since the join keeps copies: an aggregation that is split into hundreds of groupings
// (plan/join-groupings.ts) holds the memory of one or two at a time.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from './context.js'
import type { QuerySpace } from './query-space.js'
import type { Operator, Pull } from './vector.js'

export type Build = (context: ExecContext, plan: Plan) => Operator

/** The side of a join; `build` makes it. */
export function sideOperator(context: ExecContext, plan: Plan, build: Build): Operator {
  if (!isGathered(plan)) return build(context, plan)
  let space: QuerySpace | null = null
  let operator: Operator | null = null
  let over = false
  // EXPLAIN tells of operators that never run.
  if (context.profile !== undefined) {
    space = context.space.child()
    operator = build({ ...context, space }, plan)
  }
  const pull = (): Pull => {
    if (over) return null
    space ??= context.space.child()
    operator ??= build({ ...context, space }, plan)
    const pulled = operator.pull()
    if (pulled !== null) return pulled
    over = true
    operator = null
    space.freeAll()
    return null
  }
  return { pull }
}

/** All rows below are read before the first one leaves. */
function isGathered(plan: Plan): boolean {
  if (plan.kind === 'project' || plan.kind === 'filter') return isGathered(plan.input)
  return plan.kind === 'aggregate'
}
