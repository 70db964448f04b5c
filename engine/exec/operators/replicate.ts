// Operator: repeats each input row. An expression over the row says how often; the number of the copy, from 1, is an
// additional column. This operator executes set-returning functions such as unnest(): each copy stands for one element
// of the list, and the number of the copy says for which.

import type { Expression, PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { GatheredBatch } from '../batch/selection.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull } from '../batch/vector.js'
import { compileVector } from '../expression/expression.js'

/** `columns`: those of the input, then the number. `count` is an INT; NULL and negative counts produce no rows. */
export function replicateOperator(
  context: ExecContext,
  input: Operator,
  columns: readonly PlanColumn[],
  count: Expression,
): Operator {
  const { memory, arena } = context
  const evaluate = compileVector(count, context)
  const gathered = new GatheredBatch(
    context,
    columns.slice(0, -1).map(({ type }) => type),
  )
  const numberType = { name: 'LONG', a: 0, b: 0 } as const
  const index = arena.take(batchRowsMax * 4)
  const numbers = arena.take(batchRowsMax * 8)
  // The batch in progress, its vector of counts, its next row, and the copies of that row already returned.
  let batch: Batch | null = null
  let counts = 0
  let row = 0
  let sent = 0

  const fill = (source: Batch): number => {
    let rows = 0
    while (row < source.rows && rows < batchRowsMax) {
      const left = memory.i32[(counts >>> 2) + row]! - sent
      const taken = Math.min(Math.max(left, 0), batchRowsMax - rows)
      for (let copy = 0; copy < taken; copy++) {
        memory.u32[(index >>> 2) + rows] = row
        memory.i64[(numbers >>> 3) + rows] = BigInt(sent + copy + 1)
        rows++
      }
      if (taken < left) {
        sent += taken
        return rows
      }
      row++
      sent = 0
    }
    return rows
  }

  const pull = (): Pull => {
    if (batch === null) {
      const next = input.pull()
      if (!isBatch(next)) return next
      batch = next
      counts = evaluate(next).address
      row = 0
      sent = 0
    }
    const rows = fill(batch)
    const { vectors } = batch
    if (row >= batch.rows) batch = null
    if (rows === 0) return 'working'
    const copies = gathered.gather(vectors, index, rows)
    return { rows, vectors: [...copies.vectors, { type: numberType, address: numbers, dictionary: 0 }] }
  }
  return { pull }
}
