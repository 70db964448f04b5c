// Binds GROUP BY, and HAVING and the select list of a grouped query: their expressions are rewritten to refer to the
// group keys and aggregates instead of the input columns. Without GROUP BY, a select list with aggregates is grouped by
// its items without aggregates, and by the columns that other items use outside of aggregates.

import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import { mapAggregates } from '../scope/map-syntax.js'
import { scopeOf } from '../scope/scope.js'
import { expressionKey, expressionKeys } from '../typing/types.js'
import { hasCall, markIndex, rewriteExpression, visitExpression } from '../typing/walk-expression.js'
import { orderedGroups, orderedInput, withoutOrder } from './aggregate-order.js'
import { aggregateMark, bindExpression, type ExpressionScope, windowMark } from './expression.js'
import { groupsOfSets, isGrouping } from './grouping-sets.js'
import { positionOf } from './order.js'
import type { SelectList } from './select.js'
import type { SelectListIndex } from './select-list-index.js'

export function bindGroups(
  { groupBy, groupingSets }: Pick<ast.Select, 'groupBy' | 'groupingSets'>,
  list: SelectList,
  scope: ExpressionScope,
  places: SelectListIndex,
): void {
  const written = explicitKeys(groupBy, list, scope, places)
  const keys = keysOfGroups(written, groupingSets !== undefined, list, scope)
  const columns = groupColumns(keys, list)
  const sets = groupingSets?.map((set) => placesOf(set, written, keys))
  const { aggregates, input } = list
  const whole = aggregates.some(isGrouping) ? [[...keys.keys()]] : null
  const groups: Plan =
    sets === undefined && whole === null
      ? orderedGroups(input, { kind: 'aggregate', columns, input: input.plan, keys, aggregates })
      : groupsOfSets({
          input: orderedInput(input, aggregates).plan,
          keys,
          sets: sets ?? whole ?? [],
          aggregates: aggregates.map(withoutOrder),
          columns,
        })
  const timestampIndex = keys.length === 0 && isPickedTimestamp(list) ? 0 : -1
  list.input = { plan: groups, columns: scopeOf(groups, null), timestampIndex, order: 'none' }
  liftList(list, groupLift(keys, keys.length))
  applyHaving(list)
}

function keysOfGroups(
  written: readonly Expression[],
  inSets: boolean,
  list: SelectList,
  scope: ExpressionScope,
): readonly Expression[] {
  if (inSets) return distinctKeys(written)
  return written.length > 0 ? withDependents(distinctKeys(written), list, scope) : impliedKeys(list)
}

/** Indexes of a grouping set's expressions among the keys. */
function placesOf(set: readonly number[], written: readonly Expression[], keys: readonly Expression[]): number[] {
  const places = new Map(keys.map((key, index) => [expressionKey(key), index]))
  return [...new Set(set.map((index) => places.get(expressionKey(written[index] as Expression)) ?? -1))]
}

/**
 * `select max(ts) from t`: a single min, max, first or last of a table's designated timestamp is the designated
 * timestamp of the result.
 */
function isPickedTimestamp({ aggregates, input }: SelectList): boolean {
  if (input.ofTable !== true) return false
  const [only] = aggregates
  const [argument] = only?.args ?? []
  if (aggregates.length !== 1 || argument?.kind !== 'column' || argument.index !== input.timestampIndex) return false
  return ['min', 'max', 'first', 'last'].includes(only?.name ?? '')
}

function explicitKeys(
  groupBy: readonly ast.Expression[],
  list: SelectList,
  scope: ExpressionScope,
  places: SelectListIndex,
): Expression[] {
  return groupBy.map((expression) => {
    const position = positionOf(expression, list.columns.length, 'GROUP BY')
    const shown = position === null ? namedItem(expression, places) : position
    if (shown === null) refuseAggregates(expression)
    const bound =
      shown === null
        ? bindExpression(expression, { ...scope, aggregates: null, windows: null })
        : list.columns[shown]?.bound
    if (bound === undefined || hasCall(bound, aggregateMark)) {
      throw new SqlError('aggregate functions are not allowed in GROUP BY', expression.position)
    }
    return bound
  })
}

function refuseAggregates(expression: ast.Expression): void {
  mapAggregates(expression, ({ position }) => {
    throw new SqlError('aggregate functions are not allowed in GROUP BY', position)
  })
}

/**
 * Adds columns of a table whose primary key is among the keys: they are functionally dependent, so they need not be
 * listed.
 */
function withDependents(keys: readonly Expression[], list: SelectList, { columns }: ExpressionScope): Expression[] {
  const written = new Set(keys.flatMap((key) => (key.kind === 'column' ? [key.index] : [])))
  const primary = columns.filter((column) => column.primary === true)
  const missing = new Set(primary.filter(({ index }) => !written.has(index)).map(({ source }) => source))
  const sources = new Set(primary.map(({ source }) => source).filter((source) => !missing.has(source)))
  if (sources.size === 0) return [...keys]
  const dependent = new Set(columns.filter(({ source }) => sources.has(source)).map(({ index }) => index))
  const found: Expression[] = []
  for (const expression of aboveGroups(list))
    visitExpression(expression, (part) => {
      if (part.kind === 'column' && dependent.has(part.index)) found.push(part)
    })
  return distinctKeys([...keys, ...found])
}

function aboveGroups({ columns, hidden, having, windows }: SelectList): Expression[] {
  const ofWindows = windows.flatMap((call) => [
    ...call.args,
    ...call.partitionBy,
    ...call.orderBy.map(({ expression }) => expression),
  ])
  return [...columns.map(({ bound }) => bound), ...hidden, ...(having === null ? [] : [having]), ...ofWindows]
}

/** Index of the select item of that name, unless a source column has the name. */
function namedItem(expression: ast.Expression, places: SelectListIndex): number | null {
  if (expression.kind !== 'column' || expression.path.length !== 1) return null
  const wanted = (expression.path[0] ?? '').toLowerCase()
  return places.isColumn(wanted) ? null : places.named(wanted)
}

function impliedKeys(list: SelectList): Expression[] {
  const all = [...list.columns.map(({ bound }) => bound), ...list.hidden]
  return distinctKeys(all.flatMap(keysOf))
}

/**
 * The key expressions of an item: the whole item if it has no aggregates, else the columns outside of its aggregates.
 */
export function keysOf(expression: Expression): Expression[] {
  if (expression.kind === 'constant') return []
  if (!hasCall(expression, aggregateMark) && !hasCall(expression, windowMark)) return [expression]
  const columns: Expression[] = []
  visitExpression(expression, (part) => {
    if (part.kind === 'column') columns.push(part)
  })
  return columns
}

export function distinctKeys(keys: readonly Expression[]): Expression[] {
  return [...new Map(keys.map((key) => [expressionKey(key), key])).values()]
}

function groupColumns(keys: readonly Expression[], list: SelectList): PlanColumn[] {
  const named = (expression: Expression, index: number): string =>
    list.columns.find(({ bound }) => bound === expression)?.name || `key${index}`
  return [
    ...keys.map((key, index) => ({ name: named(key, index), type: key.type })),
    ...list.aggregates.map(({ name, type }) => ({ name, type })),
  ]
}

type Lift = (expression: Expression) => Expression

/** Keys that are plain columns. An oid may occur in different types (number, regclass) and is still one key. */
function keyColumns(keys: readonly Expression[]): ReadonlyMap<number, number> {
  return new Map(keys.flatMap((key, index) => (key.kind === 'column' ? [[key.index, index] as const] : [])))
}

/**
 * Returns a rewriter of expressions from input columns to keys and aggregates. A column that is not a key is an error.
 */
export function groupLift(keys: readonly Expression[], aggregateStart: number, keyStart = 0): Lift {
  const keyOf = expressionKeys()
  const byKey = new Map(keys.map((key, index) => [keyOf(key), index]))
  const columns = keyColumns(keys)
  return (expression) =>
    rewriteExpression(expression, (part) => {
      if (part.kind === 'constant') return part
      const { type, position } = part
      // Keys contain no aggregates, and computing the expression key of an aggregate is expensive.
      if (part.kind === 'call' && part.name === aggregateMark)
        return { kind: 'column', index: aggregateStart + markIndex(part), type, position }
      const index = byKey.get(keyOf(part)) ?? (part.kind === 'column' ? columns.get(part.index) : undefined)
      if (index !== undefined) return { kind: 'column', index: keyStart + index, type, position }
      if (part.kind === 'column')
        throw new SqlError('column must appear in GROUP BY clause or aggregate function', position)
      return part.kind === 'call' && part.name === windowMark ? part : undefined
    })
}

/** Rewrites all expressions above the groups. */
export function liftList(list: SelectList, lift: Lift): void {
  list.columns = list.columns.map((column) => ({ ...column, bound: lift(column.bound) }))
  list.hidden = list.hidden.map(lift)
  list.having = list.having === null ? null : lift(list.having)
  for (const [index, call] of list.windows.entries()) {
    list.windows[index] = {
      ...call,
      args: call.args.map(lift),
      partitionBy: call.partitionBy.map(lift),
      orderBy: call.orderBy.map((item) => ({ ...item, expression: lift(item.expression) })),
    }
  }
}

export function applyHaving(list: SelectList): void {
  if (list.having === null) return
  const { plan } = list.input
  list.input = { ...list.input, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate: list.having } }
}
