// Spilling of window functions whose partitions outgrow the memory: those without PARTITION BY, and those of very
// frequent keys. The columns that the calls read are sorted by partition and order in temporary files, and the calls
// are computed over the sorted rows, of which few are in memory (window/window-ordered.ts). The results are sorted back
// into the order of the input, and joined to its rows by position.
//
// Frames that end with the partition are computed in the opposite order, in which they begin with it.

import type { Expression, Plan, PlanColumn, SortKey, WindowCall } from '../../sql/plan/plan.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import type { RunFile } from '../batch/run-file.js'
import { isBatch, type Operator } from '../batch/vector.js'
import { operatorOf, type Steps } from '../join/join-build.js'
import { sortOperator } from '../sort/sort.js'
import { turnedName } from '../window/window-any.js'
import type { Prepared } from '../window/window-calls.js'
import { GroupValues, groupColumns, groupRows, type Level } from '../window/window-groups.js'
import { orderedBlocks, type Way, wayOf } from '../window/window-ordered.js'
import { countsFor } from '../window/window-place.js'
import { expressionKey, WindowRows } from '../window/window-rows.js'
import { constantOf } from '../window/window-running.js'
import { Attempt } from './attempt.js'
import type { Build } from './spilled-steps.js'
import {
  contextWith,
  nextWorkingId,
  rankColumn,
  ranked,
  rankType,
  rowsOfFile,
  sideBySide,
  stored,
  storedInput,
  type Working,
  workingPlan,
} from './stored-rows.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>

/** How a call is computed over sorted rows. */
interface SortedCall {
  /** In the order of the rows, which may be the opposite one. */
  readonly call: WindowCall
  readonly isTurned: boolean
}

/** null: all rows of a partition must be in memory. */
function sortedCall(call: WindowCall): SortedCall | null {
  if (wayOf(call) !== null) return { call, isTurned: false }
  const bounded = boundedNth(call)
  if (bounded !== null) return { call: bounded, isTurned: false }
  const turned = turnedCall(call)
  return turned !== null && wayOf(turned) !== null ? { call: turned, isTurned: true } : null
}

/** nth_value() of a ROWS frame that ends with the partition, over a frame that ends with the row in question. */
function boundedNth(call: WindowCall): WindowCall | null {
  const { name, args, frame, ignoreNulls } = call
  const { unit, lo, hi, exclude } = frame
  const place = name === 'nth_value' ? constantOf(args[1]) : Number.NaN
  if (!(place >= 1) || unit !== 'rows' || lo === null || hi !== null || exclude !== 'none' || ignoreNulls) return null
  return { ...call, frame: { ...frame, hi: place - 1 + Math.max(0, Number(lo)) } }
}

/** The same call over rows in the opposite order; null if there is none. */
function turnedCall(call: WindowCall): WindowCall | null {
  const { frame, orderBy } = call
  const turned = turnedName(call)
  if (turned === null) return null
  const opposite = (bound: bigint | number | null) => (bound === null ? null : -bound)
  return {
    ...call,
    name: turned,
    frame: { ...frame, lo: opposite(frame.hi), hi: opposite(frame.lo) },
    orderBy: orderBy.map((item) => ({ ...item, descending: !item.descending, nullsFirst: !item.nullsFirst })),
  }
}

/** Calls with the same key can be computed together; undefined for a call that cannot be computed over sorted rows. */
export function sortedKey(call: WindowCall): string | undefined {
  const sorted = sortedCall(call)
  if (sorted === null) return undefined
  const { partitionBy, orderBy } = sorted.call
  return `${sorted.isTurned} ${expressionKey([partitionBy, orderBy])}`
}

/** Whether all calls can be computed over the same sorted rows. */
export function isSortable({ calls }: WindowPlan): boolean {
  const keys = new Set(calls.map(sortedKey))
  return keys.size === 1 && !keys.has(undefined)
}

/** `skip`: rows of the result that were already returned. */
export function* sortedSteps(context: ExecContext, plan: WindowPlan, build: Build, skip: number): Steps {
  const rows = yield* storedInput(context, plan.input, build)
  const file = yield* resultsOf(context, plan, rows, build)
  const results = rowsOfFile(file)
  yield* sideBySide([rows.read(context), results.read(context)], [...plan.columns.keys()], skip)
}

/** A file with the results of the calls, in the order of the rows. */
function* resultsOf(context: ExecContext, plan: WindowPlan, rows: WorkingRows, build: Build): Working<RunFile> {
  const shape = sortedShape(plan, nextWorkingId(context), rows)
  const own = contextWith(context, [[shape.id, ranked(rows)]])
  const sorted = new Attempt(own, (inner) => build(inner, shape.sorted))
  const types = shape.sorted.columns.map(({ type }) => type)
  // The rows are read once for each level of groups, and once more.
  const levels: Partial<Record<Level, RunFile>> = {}
  let source: WorkingRows | null = null
  for (const level of levelsOf(shape.calls)) {
    source ??= rowsOfFile(yield* stored(context, sorted, types, 0))
    const first = source
    const groups = new Attempt(own, (inner) => operatorOf(firstPass(inner, shape, level, first.read(inner))))
    const columns = groupColumns(callsOf(shape, level)).map(({ type }) => type)
    levels[level] = yield* stored(context, groups, columns, 0)
  }
  context.profile?.note('rows sorted on disk')
  const results = new Attempt(own, (inner) => {
    const input = source === null ? sorted : source.read(inner)
    const pass = operatorOf(lastPass(inner, shape, levels, input))
    const columns = [rankColumn, ...plan.columns.slice(plan.input.columns.length)]
    if (shape.isInOrder) return pass
    return sortOperator(inner, pass, {
      columns,
      keys: [{ index: 0, descending: false, nullsFirst: false }],
      limit: null,
    })
  })
  const resultTypes = plan.columns.slice(plan.input.columns.length).map(({ type }) => type)
  const file = yield* stored(context, results, resultTypes, 1)
  while (!sorted.release()) yield 'waiting'
  return file
}

interface SortedShape {
  readonly id: number
  /** The columns that the calls read, sorted; the last one is the rank of a row in the input. */
  readonly sorted: Plan
  /** Over these columns. */
  readonly calls: readonly WindowCall[]
  /** The rows are in the order of the input. */
  readonly isInOrder: boolean
}

function sortedShape({ calls, input }: WindowPlan, id: number, rows: WorkingRows): SortedShape {
  const used = calls.flatMap((call) => sortedCall(call) ?? [])
  const expressions: Expression[] = []
  const placeOf = new Map<string, number>()
  const moved = (expression: Expression): Expression => {
    if (expression.kind === 'constant') return expression
    const key = expressionKey(expression)
    const place = placeOf.get(key) ?? expressions.push(expression) - 1
    placeOf.set(key, place)
    return { kind: 'column', index: place, type: expression.type, position: 0 }
  }
  const movedCalls = used.map(
    ({ call }): WindowCall => ({
      ...call,
      args: call.args.map(moved),
      partitionBy: call.partitionBy.map(moved),
      orderBy: call.orderBy.map((item) => ({ ...item, expression: moved(item.expression) })),
    }),
  )
  const [first] = movedCalls
  const isTurned = used[0]?.isTurned === true
  const keys = sortKeys(first, isTurned ? expressions.length : -1)
  const width = input.columns.length
  expressions.push({ kind: 'column', index: width, type: rankType, position: 0 })
  const columns = expressions.map(({ type }, index): PlanColumn => ({ name: `c${index}`, type }))
  const source = workingPlan(id, [...input.columns, rankColumn])
  const project: Plan = { kind: 'project', input: source, columns, expressions }
  const isInOrder = keys.length === 0 || isAscendingBy(keys, expressions, rows)
  const sorted: Plan = isInOrder ? project : { kind: 'sort', input: project, columns, keys, limit: null }
  return { id, sorted, calls: movedCalls, isInOrder }
}

/** `rank`: column of ranks if they descend; -1 if rows with equal keys stay in the order of the input. */
function sortKeys(call: WindowCall | undefined, rank: number): SortKey[] {
  const indexOf = (expression: Expression): number[] => (expression.kind === 'column' ? [expression.index] : [])
  const partition = (call?.partitionBy ?? []).flatMap(indexOf)
  const order = call?.orderBy ?? []
  return [
    ...partition.map((index): SortKey => ({ index, descending: false, nullsFirst: true })),
    ...order.flatMap(({ expression, descending, nullsFirst }) =>
      indexOf(expression).map((index): SortKey => ({ index, descending, nullsFirst })),
    ),
    ...(rank < 0 ? [] : [{ index: rank, descending: true, nullsFirst: false }]),
  ]
}

function isAscendingBy([key, ...more]: readonly SortKey[], expressions: readonly Expression[], rows: WorkingRows) {
  if (key === undefined || more.length > 0 || key.descending || !key.nullsFirst) return false
  const expression = expressions[key.index]
  return expression?.kind === 'column' && rows.isAscending(expression.index)
}

/** Which groups must be known before the calls can be computed. */
function levelsOf(calls: readonly WindowCall[]): Level[] {
  const needs = (level: Level): boolean => calls.some((call) => wayOf(call) === level || countsFor(call)[level])
  return (['peers', 'partition'] as const).filter(needs)
}

function callsOf({ calls }: SortedShape, way: Way): WindowCall[] {
  return calls.filter((call) => wayOf(call) === way)
}

function firstPass(context: ExecContext, shape: SortedShape, level: Level, input: Operator): Steps {
  const { rows, prepared } = preparedRows(context, shape)
  const calls = prepared.filter(({ call }) => wayOf(call) === level)
  return groupRows(rows, input, prepared[0]?.keys ?? null, calls, level)
}

/** Returns the ranks of the rows, and the results of the calls. */
function* lastPass(
  context: ExecContext,
  shape: SortedShape,
  levels: Partial<Record<Level, RunFile>>,
  input: Operator,
): Steps {
  const { rows, prepared } = preparedRows(context, shape)
  const valuesOf = (level: Level): GroupValues | null => {
    const file = levels[level]
    if (file === undefined) return null
    const groups = rowsOfFile(file)
    return new GroupValues(context, groups.read(context), callsOf(shape, level))
  }
  const width = shape.sorted.columns.length
  const values = { peers: valuesOf('peers'), partition: valuesOf('partition') }
  for (const pulled of orderedBlocks(rows, input, prepared, values)) {
    yield isBatch(pulled) ? { rows: pulled.rows, vectors: pulled.vectors.slice(width - 1) } : pulled
  }
}

function preparedRows(
  context: ExecContext,
  { calls, sorted }: SortedShape,
): { readonly rows: WindowRows; readonly prepared: readonly Prepared[] } {
  const rows = new WindowRows(context, sorted.columns)
  const prepared = calls.map(
    (call): Prepared => ({
      call,
      keys: {
        partition: call.partitionBy.length === 0 ? -1 : rows.partitionSlot(call.partitionBy),
        keys: call.orderBy.map(({ expression, ...key }) => ({ ...key, index: rows.slotOf(expression) })),
        sorted: true,
        together: true,
      },
      slots: call.args.map((argument) => rows.slotOf(argument)),
    }),
  )
  return { rows, prepared }
}
