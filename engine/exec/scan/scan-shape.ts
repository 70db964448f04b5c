// ScanShape: what a table scan reads, taken from its plan node: table snapshot, columns, time ranges and filter.

import { assert } from '../../base/assert.js'
import type { Expression, Plan, PlanColumn, TimeRange } from '../../sql/plan/plan.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'

export interface ScanShape {
  readonly snapshot: TableSnapshot
  readonly columnIds: readonly number[]
  readonly types: readonly DataType[]
  readonly ranges: readonly TimeRange[] | null
  readonly filter: Expression | null
}

/** Ids of the columns whose pages a scan reads, with the designated timestamp, by which it cuts and merges. */
export function columnsRead({ columnIds, snapshot }: Pick<ScanShape, 'columnIds' | 'snapshot'>): readonly number[] {
  const { timestampId } = snapshot.version.schema
  return timestampId < 0 || columnIds.includes(timestampId) ? columnIds : [...columnIds, timestampId]
}

export function scanShape(context: ExecContext, plan: Extract<Plan, { kind: 'scan' }>): ScanShape {
  const snapshot = context.snapshots[plan.table]
  assert(snapshot !== undefined, 'Q1: a query comes with the snapshots of its tables')
  assert(plan.viewSides === undefined, 'Q1: the ranges of a view are known when its query starts')
  return {
    snapshot,
    columnIds: plan.columnIds,
    types: plan.columns.map(({ type }: PlanColumn) => type),
    ranges: plan.ranges,
    filter: plan.filter,
  }
}
