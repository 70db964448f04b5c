// Spilling of window functions whose PARTITION BY lists differ. Rows that outgrow the memory are usually divided into
// partitions by their PARTITION BY columns, but no division suits several different lists. So the input is stored in a
// temporary file and read in several passes. Each pass computes the calls of some of the lists. It reads only the
// columns that these calls need, and stores the results in a file. At the end the results are joined to the rows by
// position. If a pass outgrows the memory, it is divided into several passes, or, if all of its calls have the same
// list, its rows are partitioned (spilled-steps.ts).

import type { Expression, Plan, WindowCall } from '../../sql/plan/plan.js'
import { expressionsOf } from '../../sql/plan/walk-plan.js'
import { columnsOf, rewriteExpression } from '../../sql/typing/walk-expression.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import type { RunFile } from '../batch/run-file.js'
import { type Batch, isBatch, type Operator, sliceBatch } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { isAscending } from '../join/join-sides.js'
import { expressionKey } from '../window/window-rows.js'
import { Attempt } from './attempt.js'
import type { Build } from './spilled-steps.js'
import { contextWith, newRunFile, nextWorkingId, pick, rowsOfFile, workingPlan } from './stored-rows.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>
type Working<Result> = Generator<'working' | 'waiting', Result, undefined>

/** A pass that outgrows the memory has worked in vain, so a few larger steps are better than halving. */
const passesMax = 8

/** Indexes of the calls of each pass. */
type Passes = readonly (readonly number[])[]

/** Several passes; null when all calls have the same PARTITION BY list. */
export function windowPasses({ calls }: WindowPlan): Passes | null {
  const lists = new Map<string, number[]>()
  calls.forEach(({ partitionBy }, index) => {
    const key = expressionKey(partitionBy)
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
    results.push(rowsOfFile(file, { unordered: false, isAscending: () => false }).read(context))
  }
  const width = plan.input.columns.length
  const places = passes.flat()
  const order = plan.calls.map((_, call) => width + places.indexOf(call))
  const output = [...plan.input.columns.keys(), ...order]
  yield* sideBySide([rows.read(context), ...results], output, skip)
}

/** The rows of the input in a file, in which they may be already. */
function* storedInput(context: ExecContext, plan: Plan, build: Build): Working<WorkingRows> {
  const known = plan.kind === 'working' && plan.id < 0 ? context.working?.get(plan.id) : undefined
  if (known !== undefined) return known
  const order = { unordered: false, isAscending: (column: number) => isAscending(context, plan, column) }
  const types = plan.columns.map(({ type }) => type)
  return rowsOfFile(yield* stored(context, new Attempt(context, (own) => build(own, plan)), types, 0), order)
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

/** Writes the columns of an operator from `from` on to a file. */
function* stored(context: ExecContext, rows: Attempt, types: readonly DataType[], from: number): Working<RunFile> {
  const file = newRunFile(context, types)
  for (let batch = rows.pull(); batch !== null; batch = rows.pull()) {
    if (isBatch(batch)) file.append({ rows: batch.rows, vectors: batch.vectors.slice(from, from + types.length) })
    yield batch === 'waiting' ? batch : 'working'
  }
  while (!rows.release()) yield 'waiting'
  return file
}

/** A source of columns, and its current batch from row `next` on. */
interface Source {
  readonly operator: Operator
  batch: Batch | null
  next: number
}

/** Puts the columns of several operators with equally many rows beside each other. */
function* sideBySide(operators: readonly Operator[], output: readonly number[], skip: number): Steps {
  const sources = operators.map((operator): Source => ({ operator, batch: null, next: 0 }))
  let left = skip
  for (;;) {
    if (!sources.every(hasRows)) return
    const rows = Math.min(...sources.map(({ batch, next }) => (batch?.rows ?? 0) - next))
    const vectors = sources.flatMap((source) => {
      const from = source.next
      source.next += rows
      return source.batch === null ? [] : sliceBatch(source.batch, from, source.next).vectors
    })
    const skipped = Math.min(left, rows)
    left -= skipped
    const batch = sliceBatch({ rows, vectors }, skipped, rows)
    yield batch.rows === 0 ? 'working' : { rows: batch.rows, vectors: pick(batch.vectors, output) }
  }
}

/** Whether the source has a current row; it reads the next batch if necessary. Files never wait. */
function hasRows(source: Source): boolean {
  if (source.batch !== null && source.next < source.batch.rows) return true
  const pulled = source.operator.pull()
  source.batch = isBatch(pulled) ? pulled : null
  source.next = 0
  return source.batch !== null
}
