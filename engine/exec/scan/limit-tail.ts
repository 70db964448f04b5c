// Executes LIMIT with negative bounds, such as `limit -100`, over a table in timestamp order: it changes the plan to
// scan from the newest row backwards, and an operator reverses the order of the rows found. So the cost depends on the
// number of rows returned and not on the size of the table.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { RowBuffer } from '../batch/row-buffer.js'
import { isBatch, type Operator, type Pull } from '../batch/vector.js'
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

/** Operator: buffers all rows of its input, then returns them from the last to the first. */
export function reverseOperator(context: ExecContext, input: Operator, { columns }: Pick<Plan, 'columns'>): Operator {
  const types = columns.map(({ type }) => type)
  const store = new RowBuffer(context, types)
  let next = -1
  const turn = (): void => {
    const { memory, arena } = context
    const index = arena.take(Math.max(1, store.rows) * 4)
    for (let row = 0; row < store.rows; row++) memory.u32[(index >>> 2) + row] = store.rows - 1 - row
    store.keepGathered(index, store.rows)
    arena.give(index)
    next = 0
  }
  const pull = (): Pull => {
    if (next < 0) {
      const batch = input.pull()
      if (isBatch(batch)) store.append(batch)
      else if (batch === null) turn()
      else return batch
      return 'working'
    }
    const batch = store.batchAt(next, store.rows)
    if (batch !== null) next += batch.rows
    return batch
  }
  return { pull }
}
