// Restricts the query of a live view (a query with window functions, whose result is stored) to some time ranges.
// Window functions need earlier rows, so the scans of the base table read these, too, and a filter above the window
// functions keeps only the rows of the ranges. Also adds the condition of START FROM to the query.

import type { LiveSchema } from '../../storage/schema/materialized.js'
import { dataType } from '../../types/column-types.js'
import { allOfTime } from '../../types/interval.js'
import { formatTimestamp } from '../../types/timestamp.js'
import type * as ast from '../ast/ast.js'
import type { Expression, Plan, TimeRange, ViewSide } from '../plan/plan.js'
import type { BindContext } from './bind-context.js'

type Filter = Extract<Plan, { kind: 'filter' }>

/** `time`: the designated timestamp of the query's result. */
export function rowsWithin(input: Plan, time: number, ranges: readonly TimeRange[]): Filter {
  const type = input.columns[time]?.type ?? dataType('TIMESTAMP')
  const column: Expression = { kind: 'column', index: time, type, position: 0 }
  return { kind: 'filter', columns: input.columns, input, predicate: inRanges(column, ranges) }
}

/** The rows of this side, which are known when the query has its snapshot. */
export function rowsOfSide(input: Plan, time: number, viewSide: ViewSide): Filter {
  return { ...rowsWithin(input, time, [allOfTime]), viewSide }
}

/** The filter, when the ranges of its side are known. */
export function resolvedRows({ viewSide: _, ...filter }: Filter, ranges: readonly TimeRange[]): Filter {
  const { predicate } = filter
  const [column] = predicate.kind === 'call' ? predicate.args : []
  return column === undefined ? filter : { ...filter, predicate: inRanges(column, ranges) }
}

/** Without any range, one that contains nothing. */
const nothing: TimeRange = { lo: 1n, hi: 0n }

function inRanges(column: Expression, ranges: readonly TimeRange[]): Expression {
  const bounds = (ranges.length === 0 ? [nothing] : ranges).flatMap(({ lo, hi }) => [lo, hi])
  const constants = bounds.map((value): Expression => ({ kind: 'constant', value, type: column.type, position: 0 }))
  return {
    ...{ kind: 'call', name: 'in_ranges', args: [column, ...constants] },
    ...{ type: dataType('BOOLEAN'), position: 0 },
  }
}

/** The query without rows of its table before START FROM. */
export function startingFrom(
  query: ast.Query,
  live: LiveSchema | undefined,
  baseId: number,
  { catalog }: Pick<BindContext, 'catalog'>,
): ast.Query {
  const { start = null } = live ?? {}
  const base = start === null ? undefined : catalog.tables().find(({ schema }) => schema.id === baseId)?.schema
  const time = base?.columns.find(({ id }) => id === base.timestampId)
  const { body } = query
  if (start === null || time === undefined || body.kind !== 'select') return query
  const text = formatTimestamp(BigInt(start), time.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP')
  const position = body.where?.position ?? 0
  const column: ast.Expression = { kind: 'column', position, path: [time.name], quoted: true }
  const value: ast.Expression = { kind: 'string', position, value: text }
  const after: ast.Expression = { kind: 'binary', operator: '>=', left: column, right: value, position }
  const where: ast.Expression =
    body.where === null ? after : { kind: 'binary', operator: 'and', left: after, right: body.where, position }
  return { ...query, body: { ...body, where } }
}
