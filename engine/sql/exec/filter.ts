// Operator: rows for which a predicate holds.

import type { Expression, PlanColumn } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { compileVector, type VectorEvaluator } from './expression.js'
import { Gathered, selectRows } from './selection.js'
import { batchRowsMax, isBatch, type Operator, type Pull } from './vector.js'

export function filterOperator(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  predicate: Expression,
): Operator {
  const evaluate: VectorEvaluator = compileVector(predicate, context)
  const index = context.space.take(batchRowsMax * 4)
  const gathered = new Gathered(
    context,
    columns.map(({ type }) => type),
  )
  const pull = (): Pull => {
    const batch = input.pull()
    if (!isBatch(batch)) return batch
    const count = selectRows(context.memory, evaluate(batch).address, batch.rows, index)
    if (count === batch.rows) return batch
    return count === 0 ? 'working' : gathered.gather(batch.vectors, index, count)
  }
  return { pull }
}
