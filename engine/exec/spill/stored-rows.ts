// Temporary files of rows as inputs of operators that spill to disk. A plan node of kind 'working', made here, stands
// for such a file: an operator built over this node reads the rows of the file.

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import { type LoadedBlock, RunFile } from '../batch/run-file.js'
import { type Batch, isBatch, type Operator, type Pull, sliceBatch, type Vector } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { isAscending } from '../join/join-sides.js'
import { Attempt } from './attempt.js'

export const rankType = dataType('LONG')
export const rankColumn: PlanColumn = { name: 'rank', type: rankType }

/** Writes the ranks of so many rows, from `first` on. */
export function writeRanks({ u32 }: SharedMemory, address: number, first: number, rows: number): void {
  for (let row = 0, word = address >>> 2; row < rows; row++, word += 2) {
    const rank = first + row
    u32[word] = rank
    u32[word + 1] = rank / 2 ** 32
  }
}

/** A new file, which is deleted when the query ends, or earlier by its owner. */
export function newRunFile(context: ExecContext, types: readonly DataType[]): RunFile {
  const { temporary } = context
  assert(temporary !== undefined, 'Q1: a query that spills has temporary files')
  const file = new RunFile(context, temporary.create(), types)
  context.onEnd(() => file.close())
  return file
}

type RowOrder = Pick<WorkingRows, 'unordered' | 'isAscending'>

/** The order matters, and no column is known to ascend. */
const plainOrder: RowOrder = { unordered: false, isAscending: () => false }

/** `file`: null if there are no rows. */
export function rowsOfFile(file: RunFile | null, order = plainOrder): WorkingRows {
  const between = (from: number, to: number): WorkingRows => ({
    ...{ ...order, rows: to - from },
    read: (context) => reader(context, file, from, to),
  })
  return { ...between(0, file?.rows ?? 0), stored: { bytes: file?.bytes ?? 0, between } }
}

function reader({ arena }: ExecContext, file: RunFile | null, from: number, to: number): Operator {
  let block: LoadedBlock | null = null
  let next = file?.blockAt(from) ?? 0
  const pull = (): Pull => {
    block?.free()
    block = null
    if (file === null || next >= file.blocks || file.firstOf(next) >= to) return null
    const first = file.firstOf(next)
    block = file.load(next++, arena)
    const { batch } = block
    return sliceBatch(batch, Math.max(0, from - first), Math.min(batch.rows, to - first))
  }
  return { pull }
}

/** The rows with their numbers, from `first` on, as a last column. */
export function ranked(rows: WorkingRows, first = 0): WorkingRows {
  const read = (context: ExecContext): Operator => {
    const source = rows.read(context)
    const { arena, memory } = context
    let area = 0
    let areaRows = 0
    let next = first
    const pull = (): Pull => {
      const batch = source.pull()
      if (!isBatch(batch)) return batch
      if (batch.rows > areaRows) {
        if (area !== 0) arena.give(area)
        areaRows = batch.rows
        area = arena.take(areaRows * 8)
      }
      writeRanks(memory, area, next, batch.rows)
      next += batch.rows
      const ranks: Vector = { type: rankType, address: area, dictionary: 0 }
      return { rows: batch.rows, vectors: [...batch.vectors, ranks] }
    }
    return { pull }
  }
  return { ...rows, stored: undefined, read }
}

/** An id for a plan that reads stored rows, which no other plan of the context has. */
export function nextWorkingId({ working }: ExecContext): number {
  return -1 - (working?.size ?? 0)
}

/** The context of a plan over stored rows: it is no part of the query's plan, so other threads cannot build it. */
export function contextWith(context: ExecContext, added: Iterable<readonly [number, WorkingRows]>): ExecContext {
  const working = new Map([...(context.working ?? []), ...added])
  return { ...context, working, parallelism: undefined, profile: undefined }
}

export function workingPlan(id: number, columns: Plan['columns']): Plan {
  return { kind: 'working', id, columns }
}

export function pick(vectors: readonly Vector[], indexes: readonly number[]): Vector[] {
  return indexes.flatMap((index) => vectors[index] ?? [])
}

export type Working<Result> = Generator<'working' | 'waiting', Result, undefined>

/** The rows of the input in a file, in which they may be already. */
export function* storedInput(
  context: ExecContext,
  plan: Plan,
  build: (context: ExecContext, plan: Plan) => Operator,
): Working<WorkingRows> {
  const known = plan.kind === 'working' && plan.id < 0 ? context.working?.get(plan.id) : undefined
  if (known?.stored !== undefined) return known
  const order = { unordered: false, isAscending: (column: number) => isAscending(context, plan, column) }
  const types = plan.columns.map(({ type }) => type)
  return rowsOfFile(yield* stored(context, new Attempt(context, (own) => build(own, plan)), types, 0), order)
}

/** Writes the columns of an operator from `from` on to a file. */
export function* stored(
  context: ExecContext,
  rows: Attempt,
  types: readonly DataType[],
  from: number,
): Working<RunFile> {
  const file = newRunFile(context, types)
  for (let batch = rows.pull(); batch !== null; batch = rows.pull()) {
    if (isBatch(batch)) file.append({ rows: batch.rows, vectors: batch.vectors.slice(from, from + types.length) })
    yield batch === 'waiting' ? batch : 'working'
  }
  while (!rows.release()) yield 'waiting'
  return file
}

/** Drops the first rows. */
export function* skipping(rows: Steps, skip: number): Steps {
  let left = skip
  for (const pulled of rows) {
    const from = isBatch(pulled) ? Math.min(left, pulled.rows) : 0
    left -= from
    if (!isBatch(pulled)) yield pulled
    else yield from === pulled.rows ? 'working' : sliceBatch(pulled, from, pulled.rows)
  }
}

/** A plan over the rows of an input, which are stored first: it may read them several times. */
export function* overStored(
  context: ExecContext,
  input: Plan,
  build: (context: ExecContext, plan: Plan) => Operator,
  over: (source: Plan) => Plan,
  skip: number,
): Steps {
  const rows = yield* storedInput(context, input, build)
  const id = nextWorkingId(context)
  const own = { ...contextWith(context, [[id, rows]]), keepsOrder: true }
  const plan = over(workingPlan(id, input.columns))
  yield* skipping(pulledFrom(new Attempt(own, (inner) => build(inner, plan))), skip)
}

function* pulledFrom(rows: Operator): Steps {
  for (let pulled = rows.pull(); pulled !== null; pulled = rows.pull()) yield pulled
}

/** A source of columns, and its current batch from row `next` on. */
interface Source {
  readonly operator: Operator
  batch: Batch | null
  next: number
}

/** Puts the columns of several operators with equally many rows beside each other. */
export function* sideBySide(operators: readonly Operator[], output: readonly number[], skip: number): Steps {
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
