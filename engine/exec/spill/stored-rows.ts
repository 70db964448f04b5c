// Temporary files of rows as inputs of operators that spill to disk. A plan node of kind 'working', made here, stands
// for such a file: an operator built over this node reads the rows of the file.

import { AssertionError } from '../../base/errors.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import { type LoadedBlock, RunFile } from '../batch/run-file.js'
import type { Operator, Pull, Vector } from '../batch/vector.js'

/** A new file, which is deleted when the query ends, or earlier by its owner. */
export function newRunFile(context: ExecContext, types: readonly DataType[]): RunFile {
  const { temporary } = context
  if (temporary === undefined) throw new AssertionError('an operator that spills has a place for its files')
  const file = new RunFile(context, temporary.create(), types)
  context.onEnd(() => file.close())
  return file
}

/** `file`: null if there are no rows. */
export function rowsOfFile(file: RunFile | null, order: Pick<WorkingRows, 'unordered' | 'isAscending'>): WorkingRows {
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
