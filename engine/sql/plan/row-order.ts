// Planner rule: decides in which order scans return rows. Rows of a table come in timestamp order, which clients rely
// on. Where no node above depends on the order, the scan may return the rows in any order. A sort by the designated
// timestamp (the table's time column) alone becomes a forward or backward scan.

import type { TableVersion } from '../../storage/schema/schema.js'
import { aggregateOf } from '../functions/registry/evaluate.js'
import { type AggregateCall, type Plan, rowIdColumn } from './plan.js'
import type { TablesOf } from './time-ranges.js'
import { mapInputs } from './walk-plan.js'

type Scan = Extract<Plan, { kind: 'scan' }>
type Order = Scan['order']

export function orderRows(plan: Plan, tables: TablesOf): Plan {
  return visit(plan, 'ascending', tables)
}

function visit(plan: Plan, order: Order, tables: TablesOf): Plan {
  switch (plan.kind) {
    case 'scan':
      // The rows with ids are those that an upsert may change, in no order.
      return { ...plan, order: isTimed(tables(plan.table)) && !plan.columnIds.includes(rowIdColumn) ? order : 'any' }
    case 'sort':
      return plan.implied && plan.limit === null && order === 'any'
        ? visit(plan.input, 'any', tables)
        : visitSort(plan, tables)
    case 'aggregate': {
      const ordered = plan.ordered === true || plan.aggregates.some(isOrdered)
      return { ...plan, input: visit(plan.input, ordered ? 'ascending' : 'any', tables) }
    }
    case 'distinct':
      return { ...plan, input: visit(plan.input, order === 'any' ? 'any' : 'ascending', tables) }
    case 'sample':
    case 'latest':
      return { ...plan, input: visit(plan.input, 'ascending', tables) }
    case 'window':
      return { ...plan, input: visit(plan.input, order === 'descending' ? 'descending' : 'ascending', tables) }
    case 'join':
      return visitJoin(plan, order, tables)
    case 'set': {
      const inner: Order = plan.operation === 'union' && plan.all && order !== 'any' ? 'ascending' : 'any'
      return mapInputs(plan, (input) => visit(input, inner, tables))
    }
    case 'limit':
      return { ...plan, input: visit(plan.input, order === 'any' ? 'ascending' : order, tables) }
    default:
      return mapInputs(plan, (input) => visit(input, order, tables))
  }
}

function isOrdered({ name, args }: AggregateCall): boolean {
  return aggregateOf(name, args)?.ordered === true
}

function isTimed(version: TableVersion | undefined): boolean {
  return version !== undefined && version.schema.timestampId >= 0
}

function visitJoin(plan: Extract<Plan, { kind: 'join' }>, order: Order, tables: TablesOf): Plan {
  const timed = plan.join === 'asof' || plan.join === 'lt' || plan.join === 'splice'
  const outer: Order = timed ? 'ascending' : order
  return {
    ...plan,
    left: visit(plan.left, outer, tables),
    // A row of the left side joins rows of the right side in their order.
    right: visit(plan.right, timed || order !== 'any' ? 'ascending' : 'any', tables),
  }
}

function visitSort(plan: Extract<Plan, { kind: 'sort' }>, tables: TablesOf): Plan {
  const [key, ...more] = plan.keys
  if (key !== undefined && more.length === 0 && isScanTime(plan.input, key.index, tables)) {
    const input = visit(plan.input, key.descending ? 'descending' : 'ascending', tables)
    return plan.limit === null ? input : { kind: 'limit', columns: plan.columns, input, lo: 0, hi: plan.limit }
  }
  return { ...plan, input: visit(plan.input, 'any', tables) }
}

/** Whether the column is the designated timestamp of a single scan below, and no node between changes the order. */
function isScanTime(plan: Plan, index: number, tables: TablesOf): boolean {
  switch (plan.kind) {
    case 'scan': {
      const version = tables(plan.table)
      return isTimed(version) && plan.columnIds[index] === version?.schema.timestampId
    }
    case 'filter':
      return isScanTime(plan.input, index, tables)
    case 'project': {
      const made = plan.expressions[index]
      return made?.kind === 'column' && isScanTime(plan.input, made.index, tables)
    }
    default:
      return false
  }
}
