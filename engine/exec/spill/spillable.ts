// Spilling of operators that keep rows or groups in memory. The operator runs in memory first. If memory does not
// suffice, its state is discarded, and it runs again over partitions of its rows in temporary files (spilled-steps.ts).
// One mechanism serves all these operators, and their code does not know of it:
//
//   GROUP BY, SAMPLE BY by keys, DISTINCT, UNION, EXCEPT, INTERSECT, joins by equal keys, ASOF, LT and SPLICE JOIN,
//   LATEST ON, window functions with PARTITION BY
//
// Window functions without PARTITION BY, and those whose partitions are still too large, are computed over sorted rows
// (window-sorted.ts), and calls with different partitions in several passes (window-passes.ts). Joins without equal keys,
// and those whose rows have almost all the same keys, are computed block by block (block-join.ts).
//
// Aggregates that keep the distinct values of a group, such as count(distinct x), may need much memory for few groups.
// Alone, they are planned as DISTINCT of the keys and x, which spills. Beside other aggregates they are not if reading
// the input twice could be expensive. So the input is written to a file, and each algorithm reads it; the results are
// joined by the keys (sql/plan/separate-aggregates.ts).
//
// Other aggregates without keys have little state, but build the joins below them for all threads. If these outgrow the
// memory, the aggregate runs again on one thread, where the joins can spill.
//
// The second run returns the same rows in the same order, so rows that the first run has returned already are skipped.
// For this, `keepsOrder` in the context obliges operators to return results in the order in which their first rows
// appear in the input, however much memory there is. An operator with an order of its own (`hasOwnOrder`) can begin
// again only before it has returned a row. The same is true of operators above it, and of operators above a join whose
// rows came in another order because it has spilled. If such a join spills only in the second run, that run fails with
// the error of the first one.

import { isShortage, ResourceError } from '../../base/errors.js'
import type { Plan } from '../../sql/plan/plan.js'
import { separatedAggregates } from '../../sql/plan/separate-aggregates.js'
import { isStablePlan } from '../../sql/plan/volatile.js'
import { inputsOf } from '../../sql/plan/walk-plan.js'
import { type ExecContext, InputOrder } from '../batch/context.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
import { sharedScan } from '../fragment/aggregate-parallel.js'
import { operatorOf, type Steps } from '../join/join-build.js'
import { isUnordered } from '../join/join-sides.js'
import type { ScanProgress } from '../scan/scan-progress.js'
import { Attempt } from './attempt.js'
import { blockSteps, joinsBlocks, keepsBlockOrder } from './block-join.js'
import { spillShape } from './spill-shape.js'
import { type Build, spilledSteps, spillLevelsMax, undividedLevels } from './spilled-steps.js'
import { overStored } from './stored-rows.js'
import { passSteps, windowPasses } from './window-passes.js'
import { pickSteps, picksRows } from './window-picks.js'
import { isSortable, sortedSteps } from './window-sorted.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>
type GroupPlan = Extract<Plan, { kind: 'aggregate' | 'sample' }>

/** `build` makes the operator that works in memory, `buildInput` those of other plans. */
export function spillable(
  context: ExecContext,
  plan: Plan,
  build: (context: ExecContext) => Operator,
  buildInput: Build,
): Operator {
  const external = context.temporary === undefined ? null : externalOperator(context, plan, buildInput)
  return external === null ? build(context) : new Spillable(context, plan, build, external)
}

/** How an operator runs with temporary files. */
interface External {
  /** Its rows come in the same order as in memory. */
  readonly ordered: boolean
  /** It keeps values on the heap, so it also spills when the heap is crowded. */
  readonly usesHeap: boolean
  /** It divides rows by their keys, which is repeated up to spillLevelsMax times. */
  readonly divides: boolean
  /** `skip`: rows of the result that were already returned. */
  readonly steps: (context: ExecContext, skip: number) => Steps
}

/** null if the operator needs all rows together. */
function externalOperator(context: ExecContext, plan: Plan, build: Build): External | null {
  const windows = plan.kind === 'window' ? externalWindow(context, plan, build) : null
  if (windows !== null) return windows
  if (sharesJoins(context, plan))
    return { ordered: false, usesHeap: false, divides: true, steps: (own) => unshared(own, plan, build) }
  if (isSeparable(context, plan)) {
    const passes = (source: Plan): Plan => separatedAggregates({ ...plan, input: source }) ?? plan
    const steps: External['steps'] = (own, skip) => overStored(own, plan.input, build, passes, skip)
    return { ordered: true, usesHeap: true, divides: false, steps }
  }
  if (plan.kind === 'join' && joinsBlocks(context, plan)) {
    const ordered = keepsBlockOrder(context, plan)
    const steps: External['steps'] = (own, skip) => blockSteps(own, plan, build, skip)
    return { ordered, usesHeap: false, divides: false, steps }
  }
  const shape = spillShape(context, plan)
  if (shape === null) return null
  const steps: External['steps'] = (own, skip) => spilledSteps(own, shape, build, skip)
  return { ordered: shape.order !== null, usesHeap: true, divides: true, steps }
}

/** Window functions in several passes, or over sorted rows; null if their rows are to be partitioned. */
function externalWindow(context: ExecContext, plan: WindowPlan, build: Build): External | null {
  const sorts = (context.spillLevel ?? 0) >= undividedLevels
  const common = { ordered: true, usesHeap: true, divides: false }
  const passes = windowPasses(plan, sorts)
  if (passes !== null) return { ...common, steps: (own, skip) => passSteps(own, plan, passes, build, skip) }
  const isWhole = sorts || plan.calls.every(({ partitionBy }) => partitionBy.length === 0)
  if (!isWhole) return null
  if (isSortable(plan)) return { ...common, steps: (own, skip) => sortedSteps(own, plan, build, skip) }
  return picksRows(plan) ? { ...common, steps: (own, skip) => pickSteps(own, plan, build, skip) } : null
}

/** Whether aggregates are computed one after the other, because rows cannot be divided by the keys. */
function isSeparable({ spillLevel = 0 }: ExecContext, plan: Plan): plan is GroupPlan {
  if (plan.kind !== 'aggregate' && plan.kind !== 'sample') return false
  return (plan.keys.length === 0 || spillLevel >= undividedLevels) && separatedAggregates(plan) !== null
}

/** Whether an aggregate without keys builds the joins below it for all threads. */
function sharesJoins(context: ExecContext, plan: Plan): boolean {
  if (context.parallelism === undefined || plan.kind !== 'aggregate' || plan.keys.length > 0) return false
  let { input } = plan
  while (input.kind === 'filter' || input.kind === 'project') input = input.input
  return input.kind === 'join' && sharedScan(context, plan) !== undefined
}

function* unshared(context: ExecContext, plan: Plan, build: Build): Steps {
  const rows = build({ ...context, parallelism: undefined }, plan)
  for (let pulled = rows.pull(); pulled !== null; pulled = rows.pull()) yield pulled
}

class Spillable implements Operator {
  readonly #context: ExecContext
  readonly #plan: Plan
  readonly #external: External
  /** The scans of the attempt in memory. */
  readonly #progress: ScanProgress | undefined
  #attempt: Attempt
  #spilled = false
  /** Why the operator in memory has failed, until its memory is free. */
  #failure: unknown = null
  /** Rows returned so far. */
  #returned = 0
  /** Why the first run has failed, if it had returned rows. */
  #skipFailure: unknown = null
  /** Of the attempt. */
  #order: InputOrder
  #over = false

  constructor(context: ExecContext, plan: Plan, build: (context: ExecContext) => Operator, external: External) {
    this.#context = context
    this.#plan = plan
    this.#external = external
    const { state, spillLevel = 0 } = context
    this.#progress = context.progress?.part()
    const keepsOrder =
      external.ordered && (!external.divides || spillLevel < spillLevelsMax) ? true : context.keepsOrder
    this.#order = new InputOrder(context.order)
    this.#attempt = new Attempt({ ...context, keepsOrder, order: this.#order, progress: this.#progress }, build)
    state.canSpill = true
    if (external.usesHeap) state.canSpillHeap = true
    try {
      if (state.spills && spillLevel === 0) throw ResourceError.outOfMemory('queries', 0)
      this.#attempt.begin()
    } catch (error) {
      this.#fail(error)
    }
  }

  readonly pull = (): Pull => {
    if (this.#over) return null
    if (this.#failure !== null) return this.#spill(this.#failure)
    const { state } = this.#context
    try {
      if (state.heapFull && this.#mayFreeHeap()) {
        state.heapFull = false
        throw new ResourceError('out of memory: the query keeps too many values [budget=heap]', 'memory')
      }
      const pulled = this.#attempt.pull()
      // Rows of the first run are skipped, which needs them in the same order.
      if (this.#skipFailure !== null && this.#order.isChanged) throw this.#skipFailure
      if (isBatch(pulled)) this.#returned += pulled.rows
      if (pulled === null) this.#end()
      return pulled
    } catch (error) {
      this.#fail(error)
      return 'working'
    }
  }

  #end(): void {
    this.#over = true
    // Otherwise workers may still read its memory.
    if (!this.#attempt.isShared) this.#attempt.release()
  }

  /** Rethrows the error unless memory was short and the operator can run with temporary files. */
  #fail(error: unknown): void {
    if (!isShortage(error) || !this.#canBeginAgain()) throw error
    if (!this.#maySpill()) throw skewed(this.#plan)
    this.#failure = error
  }

  /** If rows were returned, the same rows must come again. */
  #canBeginAgain(): boolean {
    return !this.#spilled && (this.#returned === 0 || this.#comesAgain())
  }

  #comesAgain(): boolean {
    const isOrdered = this.#external.ordered && !this.#order.isChanged
    return isOrdered && isStablePlan(this.#plan) && !hasSymbolWalk(this.#plan)
  }

  #maySpill(): boolean {
    return this.#canBeginAgain() && (!this.#external.divides || (this.#context.spillLevel ?? 0) < spillLevelsMax)
  }

  /** A crowded heap is no failure yet: a second run that might end with one is not worth it. */
  #mayFreeHeap(): boolean {
    if (!this.#external.usesHeap || this.#attempt.hasOwnOrder || !this.#maySpill()) return false
    return this.#returned === 0 || !mayReorder(this.#context, this.#plan)
  }

  /** Frees the memory of the failed operator, and begins again with temporary files. */
  #spill(failure: unknown): Pull {
    if (!this.#attempt.release()) return 'waiting'
    if (!this.#attempt.isFreed) throw failure
    const { steps } = this.#external
    const skip = this.#returned
    this.#failure = null
    this.#spilled = true
    this.#progress?.forget()
    const { order } = this.#context
    if (!this.#external.ordered) order?.change()
    this.#order = new InputOrder(order)
    if (skip > 0) this.#skipFailure = failure
    this.#attempt = new Attempt({ ...this.#context, order: this.#order }, (own) => operatorOf(steps(own, skip)))
    return 'working'
  }
}

/** Whether rows of the input come in another order if a join below spills. */
function mayReorder(context: ExecContext, plan: Plan): boolean {
  return inputsOf(plan).some((input) => {
    const isReordered = input.kind === 'join' && input.join === 'inner' && isUnordered(context, input.left)
    return isReordered || mayReorder(context, input)
  })
}

/** Whether an input may be DISTINCT of one symbol column, which walks over the symbols if all of them are read. */
function hasSymbolWalk(plan: Plan): boolean {
  return inputsOf(plan).some(
    (input) =>
      (input.kind === 'distinct' && input.columns.length === 1 && input.columns[0]?.type.name === 'SYMBOL') ||
      hasSymbolWalk(input),
  )
}

function skewed({ kind }: Plan): ResourceError {
  return new ResourceError(
    `out of memory: too many rows have the same key [operator=${kind}, budget=queries, setting=memory.bytes]`,
    'memory',
  )
}
