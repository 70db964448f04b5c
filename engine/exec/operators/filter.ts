// Operator: WHERE. Returns the rows of its input for which the predicate is true.

import type { Expression, PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { GatheredBatch } from '../batch/selection.js'
import { batchRowsMax, isBatch, type Operator, type Pull } from '../batch/vector.js'
import { compileFilter } from '../expression/row-filter.js'

export function filterOperator(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  predicate: Expression,
): Operator {
  const types = columns.map(({ type }) => type)
  const filter = compileFilter(context, predicate, { types, dictionaryOf: () => 0 })
  const index = context.arena.take(batchRowsMax * 4)
  const gathered = new GatheredBatch(context, types)
  const pull = (): Pull => {
    const batch = input.pull()
    if (!isBatch(batch)) return batch
    const count = filter.select(batch.vectors, batch.rows, index)
    if (count === batch.rows) return batch
    return count === 0 ? 'working' : gathered.gather(batch.vectors, index, count)
  }
  const goIdle = (): void => {
    gathered.clear()
    input.goIdle?.()
  }
  return { pull, goIdle }
}
