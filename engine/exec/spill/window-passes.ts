// Spilling of window functions whose PARTITION BY lists differ. Rows that outgrow the memory are usually divided into
// partitions by their PARTITION BY columns, but no division suits several different lists. So the input is stored in a
// temporary file and read in several passes. Each pass computes the calls of some of the lists. It reads only the
// columns that these calls need, and stores the results in a file. At the end the results are joined to the rows by
// position. If a pass outgrows the memory, it is divided into several passes, or, if all of its calls have the same
// list, its rows are partitioned (spilled-steps.ts) or sorted (window-sorted.ts).

import type { Expression, Plan, WindowCall } from '../../sql/plan/plan.js'
import { expressionsOf } from '../../sql/plan/walk-plan.js'
import { columnsOf, rewriteExpression } from '../../sql/typing/walk-expression.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import type { RunFile } from '../batch/run-file.js'
import type { Operator } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { expressionKey } from '../window/window-rows.js'
import { Attempt } from './attempt.js'
import type { Build } from './spilled-steps.js'
import {
  contextWith,
  nextWorkingId,
  rowsOfFile,
  sideBySide,
  stored,
  storedInput,
  type Working,
  workingPlan,
} from './stored-rows.js'
import { sortedKey } from './window-sorted.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>
/** A pass that outgrows the memory has worked in vain, so a few larger steps are better than halving. */
const passesMax = 8

/** Indexes of the calls of each pass. */
type Passes = readonly (readonly number[])[]

/**
 * Several passes; null when all calls can be computed in one. `sorts`: rows are not divided by PARTITION BY any more, but
 * sorted.
 */
export function windowPasses({ calls }: WindowPlan, sorts: boolean): Passes | null {
  const lists = new Map<string, number[]>()
  calls.forEach((call, index) => {
    const isSorted = sorts || call.partitionBy.length === 0
    const key = (isSorted ? sortedKey(call) : undefined) ?? expressionKey(call.partitionBy)
    const list = lists.get(key) ?? []
    lists.set(key, list)
    list.push(index)
  })
  if (lists.size < 2) return null
  const all = [...lists.values()]
  const count = Math.min(passesMax, all.length)
  return Array.from({ length: count }, (_, pass) => all.filter((_list, index) => index % count === pass).flat())
}

/** `skip`: rows of the result that were already returned. */
export function* passSteps(context: ExecContext, plan: WindowPlan, passes: Passes, build: Build, skip: number): Steps {
  const rows = yield* storedInput(context, plan.input, build)
  context.profile?.note(`${passes.length} passes over rows on disk`)
  const results: Operator[] = []
  for (const calls of passes) {
    const file = yield* resultsOf(context, plan, calls, rows, build)
    results.push(rowsOfFile(file).read(context))
  }
  const width = plan.input.columns.length
  const places = passes.flat()
  const order = plan.calls.map((_, call) => width + places.indexOf(call))
  const output = [...plan.input.columns.keys(), ...order]
  yield* sideBySide([rows.read(context), ...results], output, skip)
}

/** Computes some of the calls; returns a file with their results, in the order of the rows. */
function* resultsOf(
  context: ExecContext,
  plan: WindowPlan,
  calls: readonly number[],
  rows: WorkingRows,
  build: Build,
): Working<RunFile> {
  const id = nextWorkingId(context)
  const own = contextWith(context, [[id, rows]])
  const pass = passOf(plan, calls, workingPlan(id, plan.input.columns))
  const width = pass.input.columns.length
  const types = pass.columns.slice(width).map(({ type }) => type)
  return yield* stored(context, new Attempt(own, (inner) => build(inner, pass)), types, width)
}

/** A window operator with these calls only, over the columns that they read. */
function passOf(plan: WindowPlan, indexes: readonly number[], source: Plan): WindowPlan {
  const width = plan.input.columns.length
  const calls = indexes.flatMap((index) => plan.calls[index] ?? [])
  const read = new Set(expressionsOf({ ...plan, calls }).flatMap((expression) => [...columnsOf(expression)]))
  // Rows without any column cannot be counted.
  if (read.size === 0) read.add(0)
  const used = [...read]
  const placeOf = new Map(used.map((index, place) => [index, place]))
  const moved = (expression: Expression): Expression =>
    rewriteExpression(expression, (part) =>
      part.kind === 'column' ? { ...part, index: placeOf.get(part.index) ?? 0 } : undefined,
    )
  const columns = used.flatMap((index) => source.columns[index] ?? [])
  const input: Plan = {
    kind: 'project',
    input: source,
    columns,
    expressions: columns.map(({ type }, place) => ({ kind: 'column', index: used[place] ?? 0, type, position: 0 })),
  }
  const callColumns = indexes.flatMap((index) => plan.columns[width + index] ?? [])
  return {
    kind: 'window',
    input,
    columns: [...columns, ...callColumns],
    calls: calls.map(
      (call): WindowCall => ({
        ...call,
        args: call.args.map(moved),
        partitionBy: call.partitionBy.map(moved),
        orderBy: call.orderBy.map((item) => ({ ...item, expression: moved(item.expression) })),
      }),
    ),
  }
}
