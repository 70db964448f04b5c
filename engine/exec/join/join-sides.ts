// Decides, from the plan and the row counts of tables, from which side of a join the hash table is built, and whether
// an input is already ordered by a timestamp.

import { type Expression, type Plan, rowIdColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'

type JoinPlan = Extract<Plan, { kind: 'join' }>

/** With fewer rows on the larger side than this, building it is cheap enough. */
const largeSideMin = 65_536

/** Whether the left side is built and the right side probed. */
export function probesRight(context: ExecContext, plan: JoinPlan): boolean {
  return plan.join === 'right' ? !marksRight(context, plan) : buildsLeft(context, plan)
}

/**
 * Whether a right join builds its right side and notes which of its rows match. Those without a match come last, so
 * this is only for upserts, whose left side is a table with row ids, and only if that is far larger.
 */
export function marksRight(context: ExecContext, { join, left, right }: JoinPlan): boolean {
  if (join !== 'right' || left.kind !== 'scan' || !left.columnIds.includes(rowIdColumn)) return false
  return isFarLarger(rowsAtMost(context, left), rowsAtMost(context, right))
}

function isFarLarger(rows: number, others: number): boolean {
  return rows >= largeSideMin && others * 4 < rows
}

/** The plan of the side that is probed. */
export function probedPlan(context: ExecContext, plan: JoinPlan): Plan {
  return probesRight(context, plan) ? plan.right : plan.left
}

export function builtPlan(context: ExecContext, plan: JoinPlan): Plan {
  return probesRight(context, plan) ? plan.left : plan.right
}

/**
 * Whether each symbol column of the plan has a single dictionary: its rows are those of one table, possibly filtered.
 */
export function readsOneTable(plan: Plan): boolean {
  if (plan.kind === 'filter') return readsOneTable(plan.input)
  if (plan.kind === 'project') return plan.expressions.every(isPlainSymbol) && readsOneTable(plan.input)
  return plan.kind === 'scan'
}

/**
 * Whether symbols among the keys have their table's dictionary, and not the query's own, which grows with every batch.
 */
export function keysOfOneTable(input: Plan, keys: readonly Expression[]): boolean {
  return keys.every(isPlainSymbol) && readsOneTable(input)
}

function isPlainSymbol({ kind, type }: Expression): boolean {
  return type.name !== 'SYMBOL' || kind === 'column'
}

/** Inner joins whose left rows need no order build the left side if it is far smaller. */
function buildsLeft(context: ExecContext, { join, left, right }: JoinPlan): boolean {
  if (join !== 'inner' || !isUnordered(context, left)) return false
  return isFarLarger(rowsAtMost(context, right), rowsAtMost(context, left))
}

/** Whether nothing depends on the order of the plan's rows. */
export function isUnordered(context: ExecContext, plan: Plan): boolean {
  if (plan.kind === 'filter' || plan.kind === 'project') return isUnordered(context, plan.input)
  if (plan.kind === 'working') return context.working?.get(plan.id)?.unordered ?? true
  return plan.kind === 'scan' && plan.order === 'any'
}

/** Number of rows of a table that is read as a whole, else 0. */
export function rowsKnown(context: ExecContext, plan: Plan): number {
  return plan.kind === 'scan' && plan.filter === null && plan.ranges === null ? rowsAtMost(context, plan) : 0
}

function rowsAtMost(context: ExecContext, plan: Plan): number {
  switch (plan.kind) {
    case 'scan': {
      const snapshot = context.snapshots[plan.table]
      if (snapshot === undefined) return 0
      const parts = snapshot.version.parts.reduce((sum, { rows }) => sum + rows, 0)
      return snapshot.visibleRows.reduce((sum, rows) => sum + rows, parts)
    }
    case 'foreign':
      return plan.rows
    case 'values':
      return plan.rows.length
    case 'sequence':
      return Number(plan.count)
    case 'limit': {
      const rows = rowsAtMost(context, plan.input)
      return plan.hi === null || plan.hi < 0 || plan.lo < 0 ? rows : Math.min(rows, plan.hi - plan.lo)
    }
    case 'working':
      return context.working?.get(plan.id)?.rows ?? 0
    case 'recursive':
      return Number.POSITIVE_INFINITY
    case 'set':
      return rowsAtMost(context, plan.left) + rowsAtMost(context, plan.right)
    case 'join':
      return Math.max(rowsAtMost(context, plan.left), rowsAtMost(context, plan.right))
    default:
      return rowsAtMost(context, plan.input)
  }
}

/** Whether the plan guarantees that rows ascend by the column. */
export function isAscending(context: ExecContext, plan: Plan, index: number): boolean {
  switch (plan.kind) {
    case 'scan': {
      const timestampId = context.snapshots[plan.table]?.version.schema.timestampId ?? -1
      return timestampId >= 0 && plan.order === 'ascending' && plan.columnIds[index] === timestampId
    }
    case 'filter':
    case 'limit':
    case 'distinct':
      return isAscending(context, plan.input, index)
    case 'project': {
      const made = plan.expressions[index]
      return made?.kind === 'column' && isAscending(context, plan.input, made.index)
    }
    case 'working':
      return context.working?.get(plan.id)?.isAscending(index) ?? false
    case 'sample':
      return index === 0
    case 'latest':
      return index === plan.timestampIndex
    case 'sort': {
      const [key] = plan.keys
      return key?.index === index && !key.descending && key.nullsFirst
    }
    case 'window':
      return index < plan.input.columns.length && isAscending(context, plan.input, index)
    case 'join':
      return keepsLeftOrder(plan) && index < plan.left.columns.length && isAscending(context, plan.left, index)
    default:
      return false
  }
}

function keepsLeftOrder({ join }: JoinPlan): boolean {
  return join === 'inner' || join === 'left' || join === 'cross' || join === 'asof' || join === 'lt'
}
