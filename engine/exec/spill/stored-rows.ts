// Temporary files of rows as inputs of operators that spill to disk. A plan node of kind 'working', made here, stands
// for such a file: an operator built over this node reads the rows of the file.

import { AssertionError } from '../../base/errors.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import { type LoadedBlock, RunFile } from '../batch/run-file.js'
import { type Batch, isBatch, type Operator, type Pull, sliceBatch, type Vector } from '../batch/vector.js'
import type { Steps } from '../join/join-build.js'
import { isAscending } from '../join/join-sides.js'
import { Attempt } from './attempt.js'

/** A new file, which is deleted when the query ends, or earlier by its owner. */
export function newRunFile(context: ExecContext, types: readonly DataType[]): RunFile {
  const { temporary } = context
  if (temporary === undefined) throw new AssertionError('an operator that spills has a place for its files')
  const file = new RunFile(context, temporary.create(), types)
  context.onEnd(() => file.close())
  return file
}

type RowOrder = Pick<WorkingRows, 'unordered' | 'isAscending'>

/** The order matters, and no column is known to ascend. */
const plainOrder: RowOrder = { unordered: false, isAscending: () => false }

/** `file`: null if there are no rows. */
export function rowsOfFile(file: RunFile | null, order = plainOrder): WorkingRows {
  const read = ({ arena }: ExecContext): Operator => {
    let block: LoadedBlock | null = null
    file?.rewind()
    const pull = (): Pull => {
      block?.free()
      block = file === null || file.exhausted ? null : file.load(arena)
      return block?.batch ?? null
    }
    return { pull }
  }
  return { ...order, rows: file?.rows ?? 0, read }
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
  if (known !== undefined) return known
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
