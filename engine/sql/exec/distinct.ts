// Operator: each different row once, at its first appearance.

import type { PlanColumn } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { GroupKeys } from './group-keys.js'
import { Gathered } from './selection.js'
import { batchRowsMax, isBatch, type Operator, type Pull } from './vector.js'

export function distinctOperator(context: ExecContext, input: Operator, columns: readonly PlanColumn[]): Operator {
  const types = columns.map(({ type }) => type)
  const groups = new GroupKeys(context, types)
  const gathered = new Gathered(context, types)
  const index = context.space.take(batchRowsMax * 4)
  const pull = (): Pull => {
    const batch = input.pull()
    if (!isBatch(batch)) return batch
    let known = groups.count
    groups.assign(batch.vectors, batch.rows)
    const { u32 } = context.memory
    let fresh = 0
    for (let row = 0; row < batch.rows; row++) {
      if (u32[(groups.ids >>> 2) + row] !== known) continue
      u32[(index >>> 2) + fresh++] = row
      known++
    }
    return fresh === 0 ? 'working' : gathered.gather(batch.vectors, index, fresh)
  }
  return { pull }
}
