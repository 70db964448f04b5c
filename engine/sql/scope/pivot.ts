// Rewrites PIVOT to GROUP BY with filtered aggregates: `t pivot (sum(x) for side in ('buy', 'sell') group by symbol)`
// becomes `select symbol, sum(x) filter (where side = 'buy') as buy, sum(x) filter (where side = 'sell') as sell from t
// where side in ('buy', 'sell') group by symbol`. Groups without any of the listed values yield no row.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { pivotColumnsMax } from '../../base/limits.js'
import type * as ast from '../ast/ast.js'
import { expressionText } from '../parse/text.js'
import { integerAt, queryOf, querySource, selectBody } from '../rewrite/make-query.js'
import { hasAggregate, mapAggregates } from './map-syntax.js'

/** One combination of values, one of each FOR: its condition, and its parts of the column name. */
interface Cell {
  readonly condition: ast.Expression | null
  readonly names: readonly string[]
}

/** What PIVOT needs to know of values that a query returns. */
export type ListValues = (query: ast.Query) => readonly ast.Expression[]

/**
 * The clause with lists of values alone. `listValues` runs a query: that of the list, or for ANY one for all values of
 * the expression.
 */
export function withLists(select: ast.Select, pivot: ast.Pivot, listValues: ListValues): ast.Pivot {
  const columns = pivot.columns.map((column): ast.PivotColumn => {
    const { values } = column
    if (!('kind' in values)) return column
    const query = values.kind === 'query' ? values : distinctValues(select, column, values)
    const found = listValues(query).map((expression) => ({ position: values.position, expression, alias: null }))
    if (found.length === 0) throw new SqlError('PIVOT: the query of the values returns no rows', values.position)
    return { ...column, values: found }
  })
  return { ...pivot, columns }
}

/** `select distinct expression from .. order by 1`, over the rows that are pivoted. */
function distinctValues(
  { from, joins, where, latestOn }: ast.Select,
  { expression }: ast.PivotColumn,
  { position, orderBy }: ast.AnyValue,
): ast.Query {
  const item = { position, expression, alias: null }
  const body = { ...selectBody(from, [item], where, position), distinct: true, joins, latestOn }
  const ascending = { position, expression: integerAt(1, position), descending: false, nulls: null }
  return { ...queryOf(body), orderBy: orderBy.length > 0 ? orderBy : [ascending] }
}

/** The select without PIVOT. If its list is more than `*`, it becomes a query around the pivoted rows. */
export function unpivoted(select: ast.Select, pivot: ast.Pivot): ast.Select {
  const inner = pivotedRows(select, pivot)
  const [only] = select.items
  const whole = select.items.length === 1 && only?.expression.kind === 'star' && only.expression.exclude.length === 0
  if (whole && !select.distinct && select.groupBy.length === 0 && select.sampleBy === null) return inner
  const from = querySource(queryOf(inner))
  return { ...select, from, joins: [], where: null, latestOn: null, pivot: null }
}

function pivotedRows(select: ast.Select, { aggregates, columns, groupBy, position }: ast.Pivot): ast.Select {
  const cells = columns.reduce<readonly Cell[]>(crossed, [{ condition: null, names: [] }])
  if (cells.length * aggregates.length > pivotColumnsMax)
    throw new SqlError(`too many columns of PIVOT [max=${pivotColumnsMax}]`, position)
  const keys = groupBy.map((expression): ast.SelectItem => ({ position: expression.position, expression, alias: null }))
  const values = cells.flatMap((cell) =>
    aggregates.map((aggregate) => valueItem(cell, aggregate, aggregates.length > 1)),
  )
  return {
    kind: 'select',
    position: select.position,
    implicit: false,
    distinct: false,
    distinctOn: [],
    items: [...keys, ...values],
    from: select.from,
    joins: select.joins,
    where: columns.map(listTest).reduce(both, select.where),
    latestOn: select.latestOn,
    sampleBy: null,
    groupBy,
    having: null,
    windows: [],
    pivot: null,
  }
}

function both(left: ast.Expression | null, right: ast.Expression): ast.Expression {
  return left === null ? right : { kind: 'binary', operator: 'and', left, right, position: right.position }
}

function listTest({ expression: operand, values }: ast.PivotColumn): ast.Expression {
  return listed(values)
    .map(({ expression }) => testOf(operand, expression))
    .reduce((left, right) => ({ kind: 'binary', operator: 'or', left, right, position: right.position }))
}

function listed(values: ast.PivotColumn['values']): readonly ast.SelectItem[] {
  assert(!('kind' in values), 'B2: PIVOT has lists of values when it is rewritten')
  return values
}

function crossed(cells: readonly Cell[], { expression, values }: ast.PivotColumn): Cell[] {
  return cells.flatMap(({ condition, names }) =>
    listed(values).map(
      (value): Cell => ({
        condition: both(condition, testOf(expression, value.expression)),
        names: [...names, nameOf(value)],
      }),
    ),
  )
}

function testOf(operand: ast.Expression, value: ast.Expression): ast.Expression {
  const { position } = value
  return value.kind === 'null'
    ? { kind: 'is null', negated: false, operand, position }
    : { kind: 'binary', operator: '=', left: operand, right: value, position }
}

function nameOf({ alias, expression }: ast.SelectItem): string {
  if (alias !== null) return namePart(alias.name)
  return namePart(expression.kind === 'string' ? expression.value : expressionText(expression))
}

/** Quotes a part of a column name that is empty or contains a dot. */
function namePart(name: string): string {
  return name === '' || name.includes('.') ? `"${name}"` : name
}

/** first() and last() of a cell ignore NULL. */
const ofValues: Readonly<Record<string, string>> = { first: 'first_not_null', last: 'last_not_null' }

/**
 * Several aggregates append their names: `buy_sum(x)`, or `buy_total` with an alias. In an expression over aggregates,
 * each of them counts the rows of the cell alone.
 */
function valueItem({ condition, names }: Cell, aggregate: ast.SelectItem, several: boolean): ast.SelectItem {
  const { expression, alias, position } = aggregate
  if (!hasAggregate(expression))
    throw new SqlError(`expected aggregate function [col=${expressionText(expression)}]`, position)
  const suffix = several || alias !== null ? [namePart(alias?.name ?? expressionText(expression))] : []
  const name = [...names, ...suffix].join('_')
  const filtered = mapAggregates(expression, (call) => {
    const filter = condition === null ? call.filter : both(call.filter, condition)
    return { ...call, name: ofValues[call.name.toLowerCase()] ?? call.name, filter }
  })
  return { position, expression: filtered, alias: { position, name, quoted: true } }
}
