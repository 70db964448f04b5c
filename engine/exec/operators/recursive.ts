// Operator: WITH RECURSIVE. Returns the rows of the first query, then repeatedly runs the second query over the rows of
// the previous round, until a round has no rows. Without ALL, rows that were returned before are dropped. Each round
// has its own operators and child arena, which are freed after the following round.

import { SqlError } from '../../base/errors.js'
import { recursionRoundsMax, recursionRowsMax } from '../../base/limits.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext, WorkingRows } from '../batch/context.js'
import { GroupKeys } from '../batch/group-keys.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { type Batch, isBatch, type Operator, type Pull } from '../batch/vector.js'

type Build = (context: ExecContext, plan: Plan) => Operator
type RecursivePlan = Extract<Plan, { kind: 'recursive' }>

/** The operators of a round, and the rows that it returned, which the next round reads. */
interface Round {
  readonly operator: Operator
  readonly given: RowBuffer
  close(): void
}

export function recursiveOperator(context: ExecContext, plan: RecursivePlan, build: Build): Operator {
  const { columns, id, all, left, right, position } = plan
  const types = columns.map(({ type }) => type)
  const seen = all ? null : new GroupKeys(context, types)
  let before: Round | null = null
  let round: Round | null = beginRound(context, left, types, build)
  let rounds = 0
  let rows = 0
  context.onEnd(() => {
    before?.close()
    round?.close()
  })

  const fresh = (batch: Batch): Batch | null => {
    if (seen === null) return batch
    const known = seen.count
    seen.assign(batch.vectors, batch.rows)
    return seen.keys.batchAt(known, seen.count)
  }
  const nextRound = (last: Round): Pull => {
    before?.close()
    before = last
    round = null
    if (last.given.rows === 0) return null
    if (++rounds > recursionRoundsMax)
      throw new SqlError(`recursive query needs too many rounds [max=${recursionRoundsMax}]`, position)
    const working = new Map(context.working).set(id, workingRows(last.given))
    round = beginRound({ ...context, working }, right, types, build)
    return 'working'
  }
  const pull = (): Pull => {
    if (round === null) return null
    const pulled = round.operator.pull()
    if (pulled === null) return nextRound(round)
    const batch = isBatch(pulled) ? fresh(pulled) : pulled
    if (!isBatch(batch)) return batch ?? 'working'
    rows += batch.rows
    if (rows > recursionRowsMax)
      throw new SqlError(`recursive query returns too many rows [max=${recursionRowsMax}]`, position)
    round.given.append(batch)
    return batch
  }
  return { pull }
}

function beginRound(context: ExecContext, plan: Plan, types: RecursiveTypes, build: Build): Round {
  const arena = context.arena.child()
  const endings: (() => void)[] = []
  const { parallelism: _, ...alone } = context
  const own: ExecContext = { ...alone, arena, onEnd: (release) => endings.push(release) }
  const close = (): void => {
    for (const release of endings.splice(0)) release()
    arena.freeAll()
  }
  try {
    return { operator: build(own, plan), given: new RowBuffer(own, types), close }
  } catch (thrown) {
    close()
    throw thrown
  }
}

type RecursiveTypes = ConstructorParameters<typeof RowBuffer>[1]

function workingRows(store: RowBuffer): WorkingRows {
  return {
    rows: store.rows,
    unordered: true,
    isAscending: () => false,
    read: () => {
      let next = 0
      const pull = (): Pull => {
        const batch = store.batchAt(next, store.rows)
        if (batch !== null) next += batch.rows
        return batch
      }
      return { pull }
    },
  }
}
