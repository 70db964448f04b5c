// Executes joins on several threads. A hash join puts the rows of one side, the build side, into a hash table and looks
// the rows of the other side, the probe side, up in it. The coordinator (the thread that runs the query) builds the
// hash tables; then several threads scan chunks of the table on the probe side, and look up their rows.

import type { Plan } from '../../sql/plan/plan.js'
import { isStable } from '../../sql/plan/volatile.js'
import { storageOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Operator } from '../batch/vector.js'
import { buildSide, joinRowsOf } from '../join/join.js'
import type { BuiltJoin } from '../join/join-built.js'
import { isText } from '../join/join-keys.js'
import { builtPlan, marksRight, probedPlan, readsOneTable } from '../join/join-sides.js'
import { parallelScan, type ScanPlan } from './rows-parallel.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

/**
 * The scan below filters, projections and probe sides of joins; undefined when there is none that threads can share.
 */
export function probedScan(context: ExecContext, plan: Plan): ScanPlan | undefined {
  switch (plan.kind) {
    case 'filter':
      return isStable(plan.predicate) ? probedScan(context, plan.input) : undefined
    case 'project':
      return plan.expressions.every(isStable) ? probedScan(context, plan.input) : undefined
    case 'join':
      return isProbedAlike(context, plan) ? probedScan(context, probedPlan(context, plan)) : undefined
    default:
      return parallelScan(plan)
  }
}

/**
 * Whether every thread finds the same pairs from the coordinator's build side: symbols have one dictionary, and values
 * are compared as stored.
 */
function isProbedAlike(context: ExecContext, plan: JoinPlan): boolean {
  const { join, residual, left, right } = plan
  if ((join !== 'inner' && join !== 'left' && join !== 'right') || marksRight(context, plan)) return false
  if ((residual !== null && !isStable(residual)) || context.working !== undefined) return false
  // Threads share a build side in memory.
  if (context.state.spills) return false
  const oneTable = readsOneTable(builtPlan(context, plan))
  return plan.leftKeys.every((index, key) => {
    const [a, b] = [left.columns[index]?.type, right.columns[plan.rightKeys[key] ?? -1]?.type]
    if (a === undefined || b === undefined) return false
    if (a.name === 'SYMBOL' && b.name === 'SYMBOL') return oneTable
    return (isText(a) && isText(b)) || storageOf(a) === storageOf(b)
  })
}

/** Builds the build sides of all joins that probedScan() passes, from the top down. */
export function* buildJoins(
  context: ExecContext,
  plan: Plan,
  build: (context: ExecContext, plan: Plan) => Operator,
): Generator<'working' | 'waiting', BuiltJoin[], undefined> {
  if (plan.kind === 'filter' || plan.kind === 'project') return yield* buildJoins(context, plan.input, build)
  if (plan.kind !== 'join') return []
  if (context.temporary !== undefined) context.state.canSpill = true
  const own = { ...context, joinRows: joinRowsOf(context, plan) }
  const { listing, buckets } = yield* buildSide(own, build(own, builtPlan(context, plan)), plan)
  const built = listing === undefined ? {} : { listing }
  const below = yield* buildJoins(own, probedPlan(context, plan), build)
  return [{ ...built, ...(buckets === undefined ? {} : { buckets }) }, ...below]
}
