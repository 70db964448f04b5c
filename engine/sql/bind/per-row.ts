// Helpers for LATERAL, WINDOW JOIN and correlated scalar sub-queries, which compute something for each row of a
// relation. Instead of doing so row by row, the binder numbers the rows, computes the results of all rows at once with
// the number as an additional grouping or join key, and joins them back by number. This file numbers the rows and joins
// back. It also splits an expression such as `sum(a) / count()` into its aggregates, which are joined back, and the
// rest, which is computed afterwards.

import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import { joinPlan } from '../plan/join-plan.js'
import type { Expression, Plan, PlanColumn, WindowCall } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { mapAggregates } from '../scope/map-syntax.js'
import { type Relation, type ScopeColumn, scopeOf } from '../scope/scope.js'
import { scalarCall } from '../typing/make-call.js'
import { constantOf } from '../typing/types.js'
import { columnsIn } from './correlated-conditions.js'
import { columnExpression } from './order.js'

export const longType = dataType('LONG')

/** Appends the row number (from 1). */
export function withNumbers(relation: Relation): Relation {
  return { ...relation, plan: numberedPlan(relation.plan, []) }
}

/** Appends a row number that restarts for each combination of values of the columns. */
export function numberedPlan(input: Plan, partitionBy: readonly number[]): Plan {
  const call: WindowCall = {
    name: 'row_number',
    args: [],
    type: longType,
    partitionBy: partitionBy.map((index) => columnExpression(input.columns[index] as PlanColumn, index)),
    orderBy: [],
    frame: { unit: 'range', lo: null, hi: null, exclude: 'none' },
    ignoreNulls: false,
    position: 0,
  }
  return { kind: 'window', columns: [...input.columns, { name: '$row', type: longType }], input, calls: [call] }
}

/** Marks columns as belonging to the outer query. */
export function outerColumns(columns: readonly ScopeColumn[]): ScopeColumn[] {
  return columns.map((column) => ({ ...column, outer: true, hidden: true }))
}

export function shiftedColumns(columns: readonly ScopeColumn[], by: number): ScopeColumn[] {
  return columns.map((column) => ({ ...column, index: column.index + by }))
}

type Join = Extract<Plan, { kind: 'join' }>

export interface RowResults {
  /** The last column is the row number. */
  readonly plan: Plan
  /** Whether rows without a result are kept. */
  readonly outer: boolean
  /** Columns that are 0 instead of NULL if there is no result. */
  readonly counts: readonly number[]
  readonly alias: string | null
}

/** The numbered rows joined with their results: the columns of the left side, the row number, then the results. */
export function withResults(numbered: Relation, results: RowResults, context: BindContext): Relation {
  const width = numbered.plan.columns.length
  const numberOfResult = results.plan.columns.length - 1
  const join = joinPlan(results.outer ? 'left' : 'inner', numbered.plan, results.plan, [[width - 1, numberOfResult]])
  const found = scopeOf(results.plan, results.alias).slice(0, numberOfResult)
  const columns = [...numbered.columns, ...shiftedColumns(found, width)]
  return { ...numbered, columns, plan: zeroFilled(join, width, results.counts, context) }
}

function zeroFilled(join: Join, width: number, counts: readonly number[], context: BindContext): Plan {
  if (counts.length === 0) return join
  const expressions = join.columns.map((column, index): Expression => {
    const value = columnExpression(column, index)
    if (!counts.includes(index - width)) return value
    return scalarCall('coalesce', [value, constantOf(0n, longType, 0)], 0, context)
  })
  return { kind: 'project', columns: join.columns, input: join, expressions }
}

// Written expressions -----------------------------------------------------------------------------------------------

/** Whether the expression is a count, whose value without rows is 0. */
export function isCount(expression: ast.Expression): boolean {
  return expression.kind === 'call' && /^(approx_)?count(_distinct)?$/i.test(expression.name)
}

// Expressions over aggregates ---------------------------------------------------------------------------------------

export const partName = (index: number): string => `$part${index}`

export interface SplitAggregates {
  readonly calls: readonly ast.Expression[]
  /** The expression over the parts, which are named from index `start`. */
  readonly over: ast.Expression
}

/**
 * Splits an expression into its aggregates and the expression over them, which is also computed for rows without a
 * group.
 */
export function splitAggregates(value: ast.Expression, start = 0): SplitAggregates {
  const calls: ast.Call[] = []
  const over = mapAggregates(value, (aggregate) => partOf(aggregate, start + calls.push(aggregate) - 1))
  const isApart = columnsIn(over, null).every(({ path }) => path[0]?.startsWith('$part') === true)
  return isApart && calls.length > 0 ? { calls, over } : { calls: [value], over: partOf(value, start) }
}

/** A reference to a part. Without a group, a count is 0. */
function partOf(value: ast.Expression, index: number): ast.Expression {
  const { position } = value
  const column: ast.Expression = { kind: 'column', position, path: [partName(index)], quoted: true }
  if (!isCount(value)) return column
  const zero: ast.Expression = { kind: 'integer', position, text: '0', digits: '0', long: false }
  return { ...(value as ast.Call), name: 'coalesce', args: [column, zero], distinct: false, orderBy: [], filter: null }
}
