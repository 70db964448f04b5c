// Builds the tree of operators that executes a plan. If an operator has several implementations, as aggregates, SAMPLE
// BY, LATEST ON, sorts, LIMIT and DISTINCT have, it chooses the fastest one that applies: for example one that needs
// only metadata, one fused with the table scan in generated code (WebAssembly compiled for the query), one on several
// threads, or else the general operator.

import { unreachable } from '../base/assert.js'
import { createRandom } from '../sql/functions/random-generator.js'
import { compileExpression } from '../sql/functions/registry/evaluate.js'
import type { Expression, Plan } from '../sql/plan/plan.js'
import type { Value } from '../types/value.js'
import { aggregateOperator } from './aggregate/aggregate.js'
import { distinctSymbols } from './aggregate/distinct-symbols.js'
import { sampleOperator } from './aggregate/sample.js'
import type { ExecContext } from './batch/context.js'
import { joinInputOperator } from './batch/join-input.js'
import { smallBatches, smallContext } from './batch/small-batches.js'
import { Symbols } from './batch/symbols.js'
import { batchRowsMax, type Operator, type Pull } from './batch/vector.js'
import { distinctGroups, parallelAggregate } from './fragment/aggregate-parallel.js'
import { aggregateFragmentOperator, sampleFragmentOperator } from './fragment/fragment-operators.js'
import { parallelSort } from './fragment/sort-parallel.js'
import { joinOperator, joinRowsOf } from './join/join.js'
import { keysOfOneTable, readsOneTable } from './join/join-sides.js'
import { distinctOperator } from './operators/distinct.js'
import { filterOperator } from './operators/filter.js'
import { limitOperator } from './operators/limit.js'
import { projectOperator } from './operators/project.js'
import { recursiveOperator } from './operators/recursive.js'
import { replicateOperator } from './operators/replicate.js'
import { sequenceOperator, valuesOperator } from './operators/rows-of-values.js'
import { setOperator } from './operators/set-operator.js'
import { metadataOperator } from './scan/answer-from-metadata.js'
import { firstLastOperator } from './scan/first-last-rows.js'
import { foreignOperator } from './scan/foreign-scan.js'
import { isByTime } from './scan/full-scan.js'
import { symbolsOf } from './scan/indexed-rows.js'
import { latestOfTable, latestOperator } from './scan/latest.js'
import { latestBySymbol, newestGroups } from './scan/latest-symbols.js'
import { reversedPlan, reverseOperator } from './scan/limit-tail.js'
import { scanOperator } from './scan/scan.js'
import { orderedScanOperator } from './scan/scan-ordered.js'
import { type ScanShape, scanShape } from './scan/scan-shape.js'
import { scanRuns } from './scan/zones.js'
import { type ParallelSorted, sortOperator } from './sort/sort.js'
import { spillable } from './spill/spillable.js'
import { windowOperator } from './window/window.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

export function buildOperator(context: ExecContext, plan: Plan): Operator {
  return context.profile?.watch(plan, () => operatorOf(context, plan)) ?? operatorOf(context, plan)
}

function operatorOf(context: ExecContext, plan: Plan): Operator {
  switch (plan.kind) {
    case 'scan':
      return buildScan(context, plan)
    case 'foreign':
      return foreignOperator(context, plan)
    case 'values':
      return valuesOperator(
        context,
        plan.columns,
        (from, count) => plan.rows.slice(from, from + count),
        plan.rows.length,
      )
    case 'sequence':
      return sequenceOperator(context, plan.columns, plan.count)
    case 'filter':
      return filterOperator(context, buildOperator(context, plan.input), plan.columns, plan.predicate)
    case 'project':
      return (
        seededRows(context, plan) ??
        projectOperator(
          smallContext(narrowed(seeded(context, plan.input), plan.input), plan.expressions.length),
          smallBatches(buildOperator(context, plan.input), plan.expressions.length),
          plan.expressions,
        )
      )
    case 'aggregate':
      return spilling(context, plan, (own) => buildAggregate(own, plan))
    case 'sample':
      return spilling(context, plan, (own) => buildSample(own, plan))
    case 'latest':
      return spilling(context, plan, (own) => buildLatest(own, plan))
    case 'sort':
      return buildSort(context, plan)
    case 'limit':
      return buildLimit(context, plan)
    case 'distinct':
      return distinctOf(context, plan, eachOnce)
    case 'expand':
      return replicateOperator(context, buildOperator(context, plan.input), plan.columns, plan.count)
    case 'set':
      return spilling(context, plan, (own) => buildSet(own, plan))
    case 'recursive':
      return recursiveOperator(context, plan, buildOperator)
    case 'working':
      return context.working?.get(plan.id)?.read(context) ?? { pull: () => null }
    case 'join':
      return spilling(context, plan, (own) => buildJoin(own, plan))
    case 'window':
      return spilling(context, plan, (own) => windowOperator(own, buildOperator(own, plan.input), plan))
    default:
      return unreachable(plan)
  }
}

function spilling(context: ExecContext, plan: Plan, build: (own: ExecContext) => Operator): Operator {
  return spillable(context, plan, build, buildOperator)
}

export function buildSort(context: ExecContext, plan: PlanOf<'sort'>, parallel?: ParallelSorted): Operator {
  return parallelSort(context, plan) ?? sortOperator(context, buildWhole(context, plan.input), plan, parallel)
}

function buildSet(context: ExecContext, plan: PlanOf<'set'>): Operator {
  return setOperator(context, setSide(context, plan.left), setSide(context, plan.right), {
    ...plan,
    compared: plan.right.columns.length,
  })
}

/** Builds the side at its first batch and frees its memory after the last: a statement may have a thousand sides. */
function setSide(context: ExecContext, plan: Plan): Operator {
  if (context.profile !== undefined) return buildOperator(context, plan)
  const arena = context.arena.child()
  const endings: (() => void)[] = []
  const end = (): void => {
    for (const ending of endings.splice(0)) ending()
    arena.freeAll()
  }
  context.onEnd(end)
  let side: Operator | null = null
  let ended = false
  const pull = (): Pull => {
    if (ended) return null
    side ??= buildOperator({ ...context, arena, onEnd: (ending) => void endings.push(ending) }, plan)
    const batch = side.pull()
    if (batch !== null) return batch
    ended = true
    side = null
    // Otherwise workers may still read its memory.
    if (context.parallelism?.invited !== true) end()
    return null
  }
  return { pull, goIdle: () => side?.goIdle?.() }
}

/** Nested joins share the memory of one join: the batches of each also hold the columns of the joins below it. */
function buildJoin(context: ExecContext, plan: PlanOf<'join'>): Operator {
  const own = { ...context, joinRows: joinRowsOf(context, plan) }
  const side = (input: Plan): Operator => joinInputOperator(own, input, buildOperator)
  return joinOperator(own, side(plan.left), side(plan.right), plan)
}

/** A seeded sequence, filtered or limited or not, seeds the random functions of the projection over it. */
function seeded(context: ExecContext, input: Plan): ExecContext {
  if (input.kind === 'filter' || input.kind === 'limit') return seeded(context, input.input)
  if (input.kind !== 'sequence' || input.seed === null) return context
  const random = createRandom(input.seed[0], input.seed[1])
  return { ...context, evaluation: { ...context.evaluation, random } }
}

/**
 * Limits the vectors of a statement to the rows of its input. Statements with thousands of expressions mostly have few
 * rows.
 */
function narrowed(context: ExecContext, input: Plan): ExecContext {
  const rows = rowsOf(context, input)
  const rowsMax = Math.ceil((rows + 1) / 64) * 64
  return rowsMax < batchRowsMax ? { ...context, rowsMax } : context
}

function rowsOf({ working }: ExecContext, plan: Plan): number {
  switch (plan.kind) {
    case 'values':
      return plan.rows.length
    case 'sequence':
      return Number(plan.count)
    case 'working':
      return working?.get(plan.id)?.rows ?? 0
    default:
      return Number.POSITIVE_INFINITY
  }
}

/**
 * Evaluates a projection of several random functions over a seeded sequence with the interpreter, row by row and within
 * a row column by column. Scripts that pass seeds expect this order of the random numbers.
 */
function seededRows(context: ExecContext, plan: PlanOf<'project'>): Operator | null {
  const { input, expressions } = plan
  if (input.kind !== 'sequence' || input.seed === null || expressions.filter(draws).length < 2) return null
  const { evaluation } = seeded(context, input)
  const evaluators = expressions.map((expression) => compileExpression(expression, evaluation))
  const rows = (from: number, count: number): Value[][] => {
    const length = Math.min(count, Number(input.count) - from)
    return Array.from({ length }, (_, index) => evaluators.map((evaluate) => evaluate([BigInt(from + index + 1)])))
  }
  return valuesOperator(context, plan.columns, rows, Number(input.count))
}

function draws(expression: Expression): boolean {
  return expression.kind === 'call' && (expression.name.startsWith('rnd_') || expression.args.some(draws))
}

/**
 * If the rows are a table's and its own timestamp decides, LATEST ON reads only the newest row of each symbol, or scans
 * backwards from the newest row.
 */
function buildLatest(context: ExecContext, plan: PlanOf<'latest'>): Operator {
  const { input } = plan
  const scanned = input.kind === 'scan' ? scanShape(context, input) : null
  const { timestampId } = scanned?.snapshot.version.schema ?? { timestampId: -1 }
  if (scanned === null || scanned.columnIds[plan.timestampIndex] !== timestampId || timestampId < 0) {
    return latestOperator(context, buildOperator(context, input), plan)
  }
  const placed = latestBySymbol(context, plan, scanned)
  if (placed !== undefined)
    return withoutScan(context, scanned, 'newest rows of the parts', inOwnOrder(context, placed))
  const keys = plan.keys.map((index) => {
    const columnId = scanned.columnIds[index] as number
    return { columnId, requested: symbolsOf(context, scanned, columnId) }
  })
  const backward = latestOfTable(context, plan, keys, (skips) => orderedScanOperator(context, scanned, true, skips))
  return inOwnOrder(context, backward)
}

/**
 * LIMIT with bounds that count from the end scans backwards and reverses the result, if the input can be scanned
 * backwards.
 */
function buildLimit(context: ExecContext, { input, columns, lo, hi }: PlanOf<'limit'>): Operator {
  const backwards = lo < 0 && (hi === null || hi < 0) ? reversedPlan(input) : undefined
  if (backwards === undefined) return limitOperator(context, buildOperator(context, input), columns, lo, hi)
  const newest = limitOperator(context, buildOperator(context, backwards), columns, -(hi ?? 0), -lo)
  return reverseOperator(context, newest, input)
}

function buildAggregate(context: ExecContext, plan: PlanOf<'aggregate'>): Operator {
  const { input } = plan
  const shape = input.kind === 'scan' ? scanShape(context, input) : null
  const counted = shape === null ? undefined : metadataOperator(context, plan, shape)
  if (shape !== null && counted !== undefined) return withoutScan(context, shape, 'metadata', counted)
  const all = (): Operator => buildGroups(context, plan, shape)
  const ends = shape === null ? undefined : firstLastOperator(context, plan, shape, all)
  return ends === undefined ? all() : noted(context, 'first and last rows', ends)
}

function buildGroups(context: ExecContext, plan: PlanOf<'aggregate'>, shape: ScanShape | null): Operator {
  const { input } = plan
  const newest = shape === null ? undefined : newestGroups(context, plan, shape)
  if (shape !== null && newest !== undefined)
    return withoutScan(context, shape, 'newest rows of the parts', inOwnOrder(context, newest))
  // A fused aggregate returns groups in the order of the morsels, which must be the order of the rows if that is
  // required.
  const inOrder = plan.ordered !== true || (shape !== null && isInOrder(context, input, shape))
  const fused = shape === null || !inOrder ? undefined : aggregateFragmentOperator(context, plan, shape)
  if (fused !== undefined) {
    // Time buckets come in their order.
    const isSame =
      plan.keys.every(({ kind }) => kind === 'column') && shape !== null && isInOrder(context, input, shape)
    return noted(context, 'generated, fused with the scan', isSame ? fused : inOwnOrder(context, fused))
  }
  const dense = keysOfOneTable(input, plan.keys)
  const shared = parallelAggregate(context, plan, buildOperator)
  if (shared !== undefined) return noted(context, 'hash table, shared by threads', shared)
  const work = plan.keys.length + plan.aggregates.length
  const rows = smallBatches(buildWhole(context, input), work)
  return noted(context, 'hash table', aggregateOperator(smallContext(context, work), rows, plan, dense))
}

function isInOrder(context: ExecContext, scan: Plan, shape: ScanShape): boolean {
  return (
    (scan.kind === 'scan' && scan.order === 'any') || isByTime(scanRuns(context, shape).flatMap((run) => run.morsels))
  )
}

/**
 * DISTINCT. `all` builds the operator that reads all rows. Only that operator may begin again with temporary files: the
 * walk over symbols returns them in another order, so the rows that it has returned could not be skipped.
 */
function distinctOf(
  context: ExecContext,
  plan: PlanOf<'distinct'>,
  all: (own: ExecContext, plan: PlanOf<'distinct'>) => Operator,
): Operator {
  const build = (): Operator => spilling(context, plan, (own) => all(own, plan))
  const symbols = context.state.spills ? undefined : distinctSymbols(context, plan, build)
  if (symbols === undefined) return build()
  // The walk returns nothing before its end, so the query may begin again with temporary files.
  if (context.temporary !== undefined) context.state.canSpill = true
  return noted(context, 'symbol dictionaries of the parts', symbols)
}

function eachOnce(context: ExecContext, { input, columns }: PlanOf<'distinct'>): Operator {
  return distinctOperator(context, buildOperator(context, input), columns, readsOneTable(input))
}

/**
 * Builds a plan whose rows are all needed before the next operator starts: DISTINCT may then run on several threads.
 */
function buildWhole(context: ExecContext, plan: Plan): Operator {
  if (plan.kind !== 'distinct') return buildOperator(context, plan)
  const shared = (own: ExecContext, distinct: PlanOf<'distinct'>): Operator =>
    parallelAggregate(own, distinctGroups(distinct), buildOperator, distinct) ?? eachOnce(own, distinct)
  const build = (): Operator => distinctOf(context, plan, shared)
  return context.profile?.watch(plan, build) ?? build()
}

/** Marks an operator whose rows come in another order than those of the general one. */
function inOwnOrder({ order }: ExecContext, operator: Operator): Operator {
  order?.change()
  return { ...operator, hasOwnOrder: true }
}

function noted(context: ExecContext, kernel: string, operator: Operator): Operator {
  context.profile?.note(kernel)
  return operator
}

/** The operator in the place of a scan, which it does not need. */
function withoutScan(context: ExecContext, { snapshot }: ScanShape, kernel: string, operator: Operator): Operator {
  context.progress?.begin(snapshot, 0)
  return noted(context, kernel, operator)
}

function buildSample(context: ExecContext, plan: PlanOf<'sample'>): Operator {
  const { input } = plan
  const shape = input.kind === 'scan' ? scanShape(context, input) : null
  const fused = shape === null ? undefined : sampleFragmentOperator(context, plan, shape)
  if (fused !== undefined) return noted(context, 'generated, fused with the scan', inOwnOrder(context, fused))
  const work = plan.keys.length + plan.aggregates.length
  const rows = smallBatches(buildOperator(context, input), work)
  return noted(
    context,
    'hash table',
    sampleOperator(smallContext(context, work), rows, plan, keysOfOneTable(input, plan.keys)),
  )
}

function buildScan(context: ExecContext, plan: PlanOf<'scan'>): Operator {
  const shape = scanShape(context, plan)
  if (plan.order === 'any') return scanOperator(context, shape)
  return orderedScanOperator(context, shape, plan.order === 'descending')
}

export interface IsolatedRows extends Operator {
  /** Releases the operators and their memory. */
  release(): void
}

/** The operators of a plan in a child arena, which can be released before the query ends. */
export function isolated(context: ExecContext, plan: Plan): IsolatedRows {
  const arena = context.arena.child()
  const endings: (() => void)[] = []
  const own = { ...context, arena, symbols: new Symbols(arena), onEnd: (end: () => void) => void endings.push(end) }
  const rows = buildOperator(own, plan)
  const release = (): void => {
    for (const end of endings.splice(0)) end()
    arena.freeAll()
  }
  return { pull: () => rows.pull(), goIdle: () => rows.goIdle?.(), release }
}
