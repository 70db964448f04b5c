// Executes LIMIT with negative bounds, such as `limit -100`, over a table in timestamp order: it changes the plan to
// scan from the newest row backwards, and an operator reverses the order of the rows found. So the cost depends on the
// number of rows returned and not on the size of the table.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { KeptRows } from '../batch/kept-rows.js'
import { GatheredBatch } from '../batch/selection.js'
import { rowsFor } from '../batch/small-batches.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull } from '../batch/vector.js'
import { isPure } from '../expression/expression-shape.js'

/** The plan with its rows in reverse order; undefined when it is not a row-by-row plan over an ordered scan. */
export function reversedPlan(plan: Plan): Plan | undefined {
  switch (plan.kind) {
    case 'scan':
      if (plan.order === 'any') return undefined
      return { ...plan, order: plan.order === 'ascending' ? 'descending' : 'ascending' }
    case 'filter': {
      const input = isPure(plan.predicate) ? reversedPlan(plan.input) : undefined
      return input && { ...plan, input }
    }
    case 'project': {
      const input = plan.expressions.every(isPure) ? reversedPlan(plan.input) : undefined
      return input && { ...plan, input }
    }
    default:
      return undefined
  }
}

/** Operator: keeps all rows of its input, then returns them from the last to the first. */
export function reverseOperator(context: ExecContext, input: Operator, { columns }: Pick<Plan, 'columns'>): Operator {
  const types = columns.map(({ type }) => type)
  const kept = new KeptRows(context, types)
  const gathered = new GatheredBatch(context, types)
  let index = 0
  let left = -1
  const turned = (batch: Batch): Batch => {
    const { memory, arena } = context
    if (index === 0) index = arena.take(Math.min(batchRowsMax, kept.rows) * 4)
    for (let row = 0, word = index >>> 2; row < batch.rows; row++) memory.u32[word + row] = batch.rows - 1 - row
    return gathered.gather(batch.vectors, index, batch.rows)
  }
  const pull = (): Pull => {
    if (left < 0) {
      const batch = input.pull()
      if (isBatch(batch)) kept.append(batch)
      else if (batch === null) left = kept.rows
      else return batch
      return 'working'
    }
    const batch = kept.batchBefore(left, Math.max(0, left - rowsFor(types.length)))
    if (batch === null) return null
    left -= batch.rows
    return turned(batch)
  }
  return { pull }
}
