// Binds WINDOW JOIN, which computes aggregates over those rows of the right side whose time is within a span around the
// time of each left row, such as one minute before to one minute after. Unless EXCLUDE PREVAILING is given, the last
// row before the span (the prevailing row) counts as well if no row is at the start of the span. It is the last one
// that satisfies the conditions on the right side.
//
// All spans have the same length. Time is cut into buckets of that length, so that a span overlaps two buckets at most.
// Each left row is duplicated for its buckets and joined with the right rows by keys and bucket, so the cost is
// proportional to the rows in the spans. The prevailing row is found by an ASOF join with the start of the span. Only
// if a condition other than the keys refers to both sides, all earlier rows are joined. The UNION ALL of the rows of
// both joins is grouped by the number of the left row.

import { SqlError } from '../../base/errors.js'
import type { DataType } from '../../types/column-types.js'
import { isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { expressionText } from '../parse/text.js'
import { joinPlan } from '../plan/join-plan.js'
import type { AggregateCall, Expression, Plan } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { mapAggregates } from '../scope/map-syntax.js'
import { shownName } from '../scope/output-names.js'
import { timestampHint } from '../scope/sample-errors.js'
import type { Relation } from '../scope/scope.js'
import { scalarCall } from '../typing/make-call.js'
import { castTo, constantOf } from '../typing/types.js'
import { allOf, columnsOf, remapColumns } from '../typing/walk-expression.js'
import { aggregateCall } from './call.js'
import { rowlessScope } from './expression.js'
import { bothScopes, checkAlias, joinCondition, type KeyPair, withKeys } from './join.js'
import { columnExpression, withExtra } from './order.js'
import { isCount, longType, withNumbers, withResults } from './per-row.js'
import { bindJoinedSource } from './timed-source.js'
import { frameBound } from './window.js'

interface Written {
  readonly select: ast.Select
  readonly orderBy: readonly ast.OrderItem[]
}

/** Moves aggregates of the select list into the window joins whose rows they read. */
export function withWindowJoins(select: ast.Select, orderBy: readonly ast.OrderItem[]): Written {
  if (!select.joins.some(({ kind }) => kind === 'window')) return { select, orderBy }
  const moved = new Map<ast.Join, { name: string; call: ast.Call }[]>()
  const move = (call: ast.Call): ast.ColumnName => {
    const join = joinOf(call, select.joins)
    const calls = moved.get(join) ?? []
    moved.set(join, calls)
    const text = expressionText(call)
    const known = calls.find((other) => expressionText(other.call) === text)
    const name = known?.name ?? `$${join.position}.${calls.length}`
    if (known === undefined) calls.push({ name, call })
    return { kind: 'column', position: call.position, path: [name], quoted: true }
  }
  const items = select.items.map((item) => {
    const expression = mapAggregates(item.expression, move)
    const isMoved = expression !== item.expression && item.alias === null && item.expression.kind !== 'column'
    const name = isMoved ? shownName(expressionText(item.expression)) : ''
    return isMoved && JSON.stringify(expression) !== JSON.stringify(item.expression)
      ? { ...item, expression, alias: { name, position: item.position, quoted: true } }
      : { ...item, expression }
  })
  const names = new Set(select.joins.filter(({ kind }) => kind === 'window').map(({ source }) => sourceName(source)))
  for (const { expression } of items) requireAggregated(expression, names, moved.size > 0)
  const order = mapAggregates(orderBy, move)
  const joins = select.joins.map((join) =>
    join.window === null ? join : { ...join, window: { ...join.window, aggregates: moved.get(join) ?? [] } },
  )
  return { select: { ...select, items, joins }, orderBy: order }
}

/** Throws if the right side is used outside of aggregates. A star beside aggregates means the left side. */
function requireAggregated(expression: ast.Expression, names: ReadonlySet<string>, aggregated: boolean): void {
  const wholeRow = expression.kind === 'star' && expression.table === null && !aggregated
  if (!wholeRow && !sourcesIn(expression).some((source) => names.has(source))) return
  const message = `WINDOW join cannot reference right table non-aggregate column: ${expressionText(expression)}`
  throw new SqlError(message, expression.position)
}

/** The window join that the call refers to, or else the last one. */
function joinOf(call: ast.Call, joins: readonly ast.Join[]): ast.Join {
  const windows = joins.filter(({ kind }) => kind === 'window')
  const sources = new Set(sourcesIn(call))
  const named = windows.find(({ source }) => sources.has(sourceName(source)))
  return named ?? (windows[windows.length - 1] as ast.Join)
}

function sourceName(source: ast.TableSource): string {
  if (source.alias !== null) return source.alias.name.toLowerCase()
  return source.kind === 'table' ? source.table.name.toLowerCase() : ''
}

function sourcesIn(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  if ('kind' in node && node.kind === 'column' && 'path' in node) {
    const path = node.path as readonly string[]
    return path.length > 1 ? [(path[path.length - 2] ?? '').toLowerCase()] : []
  }
  return Object.values(node).flatMap(sourcesIn)
}

// Binding -----------------------------------------------------------------------------------------------------------

/** Offsets from the left row's timestamp to the ends of its span, in the timestamp's unit. */
interface Span {
  readonly lo: bigint
  readonly hi: bigint
}

interface Sides {
  /** The numbered left side and the right side, both with their key columns. */
  readonly left: Relation
  readonly right: Relation
  readonly leftKeys: readonly number[]
  readonly rightKeys: readonly number[]
  /** The type in which timestamps of both sides are compared. */
  readonly unit: DataType
}

export function bindWindowJoin(left: Relation, join: ast.Join, context: BindContext): Relation {
  const { window, position } = join
  const right = bindJoinedSource(join.source, join, context)
  checkAlias(left, right, join)
  const [leftTime, rightTime] = [timeOf(left, 'left', position), timeOf(right, 'right', position)]
  if (window === null) throw new SqlError('WINDOW join needs RANGE', position)
  // The finer of the two units.
  const unit = leftTime.type.name === 'TIMESTAMP_NS' ? leftTime.type : rightTime.type
  const span = spanOf(window, { ...leftTime, type: unit }, context)
  const width = left.plan.columns.length
  const { pairs, rest } = joinCondition(left, right, join, width, context)
  if (window.aggregates.length === 0) return left
  const [own, others] = partitioned(rest, (condition) => [...columnsOf(condition)].every((index) => index >= width))
  const numbered = withNumbers(left)
  const fitting = { ...right, plan: filtered(right.plan, own, (index) => index - width) }
  const sides = sidesOf(numbered, fitting, pairs, unit)
  const within = inSpan(sides, span, context)
  const added = sides.left.plan.columns.length - width
  const placeOf = (index: number): number => (index < width ? index : index + added)
  const isMixed = others.some((condition) => [...columnsOf(condition)].some((index) => index >= width))
  const before = isMixed
    ? lastFitting(sides, span, (pairs) => filtered(pairs, others, placeOf), width, context)
    : prevailing(sides, span, context)
  const rows = filtered(window.prevailing ? unionOf(before, within) : within, others, placeOf)
  const results = grouped(rows, sides, window.aggregates, context, left, right)
  const counts = window.aggregates.flatMap(({ call }, index) => (isCount(call) ? [index] : []))
  const joined = withResults(numbered, { plan: results, outer: true, counts, alias: null }, context)
  const columns = joined.columns.map((column, index) =>
    index >= numbered.columns.length ? { ...column, hidden: true as const } : column,
  )
  return { ...joined, columns }
}

function timeOf({ plan, timestampIndex }: Relation, side: string, position: number): Expression {
  const column = plan.columns[timestampIndex]
  if (column === undefined || !isTime(column.type))
    throw new SqlError(`${side} side of time series join has no timestamp`, position, timestampHint)
  return columnExpression(column, timestampIndex)
}

function spanOf({ start, end }: ast.WindowJoinRange, time: Expression, context: BindContext): Span {
  const scope = rowlessScope(context)
  const [lo, hi] = [frameBound(start, time, scope), frameBound(end, time, scope)]
  if (lo === null || hi === null) {
    const open = lo === null ? start : end
    throw new SqlError('unbounded preceding/following is not supported in WINDOW joins', wordOf(open, context))
  }
  if (end.kind === 'preceding' && start.kind !== 'preceding') {
    const from = start.kind === 'following' ? 'FOLLOWING' : 'CURRENT'
    throw new SqlError(`start row is ${from}, end row must not be PRECEDING`, wordOf(end, context))
  }
  const { position } = end.kind === 'current row' ? start : end
  if (hi < lo) throw new SqlError('WINDOW join hi value cannot be less than lo value', position)
  return { lo, hi }
}

/** Position of the bound's PRECEDING or FOLLOWING. */
function wordOf({ position }: ast.FrameBound, { sql }: BindContext): number {
  return position + Math.max(sql.slice(position).search(/preceding|following/i), 0)
}

function sidesOf(numbered: Relation, right: Relation, pairs: readonly KeyPair[], unit: DataType): Sides {
  const left = withKeys(
    numbered,
    pairs.map((pair) => pair.left),
  )
  const other = withKeys(
    right,
    pairs.map((pair) => pair.right),
  )
  return { left: left.relation, right: other.relation, leftKeys: left.indexes, rightKeys: other.indexes, unit }
}

/** The timestamp as a number of the unit, plus an offset. */
function ticks({ plan, timestampIndex }: Relation, unit: DataType, by: bigint, context: BindContext): Expression {
  const column = castTo(castTo(at(plan, timestampIndex), unit), longType)
  return by === 0n ? column : scalarCall('+', [column, constantOf(by, longType, 0)], 0, context)
}

/** The plan's column at `index`. */
function at(plan: Plan, index: number): Expression {
  return columnExpression(plan.columns[index] as Plan['columns'][number], index)
}

/** Pairs of left rows and right rows within their span: the left columns, then the right ones. */
function inSpan({ left, right, leftKeys, rightKeys, unit }: Sides, { lo, hi }: Span, context: BindContext): Plan {
  const bucket = (time: Expression): Expression =>
    scalarCall('/', [time, constantOf(hi - lo + 1n, longType, 0)], 0, context)
  const twice: Plan = { kind: 'values', columns: [{ name: '$copy', type: longType }], rows: [[0n], [1n]] }
  const copies = joinPlan('cross', left.plan, twice, [])
  const width = left.plan.columns.length
  const begin = ticks(left, unit, lo, context)
  const leftBucket = scalarCall('+', [bucket(begin), at(copies, width)], 0, context)
  const leftSide = withExtra({ ...left, plan: copies }, [leftBucket, begin, ticks(left, unit, hi, context)]).plan
  const time = ticks(right, unit, 0n, context)
  const rightSide = withExtra(right, [bucket(time), time]).plan
  const rightWidth = right.plan.columns.length
  const pairs = leftKeys.map((key, index) => [key, rightKeys[index] as number] as const)
  const joined = joinPlan('inner', leftSide, rightSide, [...pairs, [width + 1, rightWidth]])
  const found = at(joined, leftSide.columns.length + rightWidth + 1)
  const predicate = scalarCall(
    'and',
    [
      scalarCall('>=', [found, at(joined, width + 2)], 0, context),
      scalarCall('<=', [found, at(joined, width + 3)], 0, context),
    ],
    0,
    context,
  )
  const matched: Plan = { ...joined, residual: predicate }
  return picked(matched, width, leftSide.columns.length, rightWidth)
}

/** The leading columns of both sides. */
function picked(plan: Plan, width: number, start: number, rightWidth: number): Plan {
  const indexes = [...Array(width).keys(), ...Array.from({ length: rightWidth }, (_, index) => start + index)]
  const columns = indexes.map((index) => plan.columns[index] as Plan['columns'][number])
  return { kind: 'project', columns, input: plan, expressions: indexes.map((index) => at(plan, index)) }
}

/** The last row of the right side before the span. */
function prevailing({ left, right, leftKeys, rightKeys, unit }: Sides, { lo }: Span, context: BindContext): Plan {
  const width = left.plan.columns.length
  const begin = ticks(left, unit, lo, context)
  const leftSide = withExtra(left, [castTo(begin, unit), begin]).plan
  const rightSide = withExtra(right, [ticks(right, unit, 0n, context)]).plan
  const rightWidth = right.plan.columns.length
  const joined: Plan = {
    ...joinPlan('inner', leftSide, rightSide, []),
    join: 'asof',
    leftKeys,
    rightKeys,
    leftTimestamp: width,
    rightTimestamp: right.timestampIndex,
  }
  const found = at(joined, leftSide.columns.length + rightWidth)
  const predicate = scalarCall('<', [found, at(joined, width + 1)], 0, context)
  const before: Plan = { kind: 'filter', columns: joined.columns, input: joined, predicate }
  return picked(before, width, leftSide.columns.length, rightWidth)
}

/** The same if a condition refers to both sides: of all rows before the span, the last that satisfies it. */
function lastFitting(
  { left, right, leftKeys, rightKeys, unit }: Sides,
  { lo }: Span,
  fitting: (rows: Plan) => Plan,
  numberIndex: number,
  context: BindContext,
): Plan {
  const width = left.plan.columns.length
  const leftSide = withExtra(left, [ticks(left, unit, lo, context)]).plan
  const rightSide = withExtra(right, [ticks(right, unit, 0n, context)]).plan
  const rightWidth = right.plan.columns.length
  const pairs = leftKeys.map((key, index) => [key, rightKeys[index] as number] as const)
  const joined = joinPlan(pairs.length === 0 ? 'cross' : 'inner', leftSide, rightSide, pairs)
  const found = at(joined, leftSide.columns.length + rightWidth)
  const reached = scalarCall('<=', [found, at(joined, width)], 0, context)
  const upTo: Plan = { kind: 'filter', columns: joined.columns, input: joined, predicate: reached }
  const input = fitting(picked(upTo, width, leftSide.columns.length, rightWidth))
  const { columns } = input
  const timestampIndex = width + right.timestampIndex
  const last: Plan = { kind: 'latest', columns, input, timestampIndex, keys: [numberIndex] }
  const time = ticks({ ...right, plan: last, timestampIndex }, unit, 0n, context)
  const begin = ticks({ ...left, plan: last }, unit, lo, context)
  return { kind: 'filter', columns, input: last, predicate: scalarCall('<', [time, begin], 0, context) }
}

function unionOf(left: Plan, right: Plan): Plan {
  return { kind: 'set', columns: left.columns, operation: 'union', all: true, left, right }
}

/** Filters joined rows. `conditions` refer to the columns of both sides; `placeOf` maps them to the rows' columns. */
function filtered(rows: Plan, conditions: readonly Expression[], placeOf: (index: number) => number): Plan {
  const predicate = allOf(conditions)
  if (predicate === null) return rows
  return { kind: 'filter', columns: rows.columns, input: rows, predicate: remapColumns(predicate, placeOf) }
}

function partitioned<Item>(items: readonly Item[], test: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(test), items.filter((item) => !test(item))]
}

/** Groups by left row: the aggregates, then the row number. Left rows without right rows are missing. */
function grouped(
  rows: Plan,
  sides: Sides,
  calls: ast.WindowJoinRange['aggregates'],
  context: BindContext,
  left: Relation,
  right: Relation,
): Plan {
  const columns = bothScopes(left, right, sides.left.plan.columns.length)
  const scope = { context, columns, aggregates: null, windows: null }
  const aggregates = calls.map(({ call }): AggregateCall => aggregateCall(call, scope))
  const number = at(rows, left.plan.columns.length)
  const named = aggregates.map(({ type }, index) => ({ name: calls[index]?.name ?? '', type }))
  const groups: Plan = {
    kind: 'aggregate',
    columns: [{ name: '$row', type: longType }, ...named],
    input: rows,
    keys: [number],
    aggregates,
  }
  const expressions = [...named.map((_, index) => at(groups, index + 1)), at(groups, 0)]
  return { kind: 'project', columns: [...named, { name: '$row', type: longType }], input: groups, expressions }
}
