// Binds set-returning functions, such as unnest() and json_array_elements(): in the select list, or in FROM, where the
// arguments may be columns of preceding sources. The plan repeats each input row as often as the function returns rows
// for it, and numbers these copies. The function's columns are expressions over the input row and that number. The
// table of functions is in set-returning.ts.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { withStep } from '../scope/interval-shift.js'
import { type Relation, type ScopeColumn, scopeOf } from '../scope/scope.js'
import { partsOf } from '../typing/deferred-values.js'
import { scalarCall } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { constantOf, convertTo } from '../typing/types.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { columnExpression, withExtra } from './order.js'
import { type RowReplication, setReturningFunctions } from './set-returning.js'

const intType = dataType('INT')
const longType = dataType('LONG')

export function isSetReturning(name: string): boolean {
  return Object.hasOwn(setReturningFunctions, name.toLowerCase())
}

/** The call must be of a set-returning function. */
export function replicationOf(written: ast.Call, scope: ExpressionScope): RowReplication {
  const call = withStep(written, scope.context.parameters)
  const args = call.args.map((argument) => bindExpression(argument, scope))
  const expander = setReturningFunctions[call.name.toLowerCase()]
  if (expander === undefined) throw noMatch(call.name, args, call.position)
  return expander(args, call, scope.context)
}

// Select lists ------------------------------------------------------------------------------------------------------

/** Calls of set-returning functions in the select list, outside of sub-queries. */
export function setReturningCalls(node: unknown, found: ast.Call[] = []): ast.Call[] {
  if (typeof node !== 'object' || node === null) return found
  if ('body' in node && 'commonTables' in node) return found
  if ('kind' in node && node.kind === 'call') {
    const call = node as ast.Call
    if (call.over === null && isSetReturning(call.name)) found.push(call)
  }
  if (Array.isArray(node)) for (const part of node) setReturningCalls(part, found)
  else for (const name in node) setReturningCalls(node[name as keyof typeof node], found)
  return found
}

/** The rows replicated by the largest count of the calls; `ordinal` is the number of the copy. */
export function replicateRows(
  relation: Relation,
  calls: readonly ast.Call[],
  scope: ExpressionScope,
): { readonly relation: Relation; readonly ordinal: Expression } {
  const counts = calls.map((call) => replicationOf(call, scope).count)
  const [first] = counts
  const position = calls[0]?.position ?? 0
  const count = counts.length === 1 ? (first as Expression) : scalarCall('greatest', counts, position, scope.context)
  const expanded = expand(relation, count)
  return { relation: expanded, ordinal: columnExpression({ name: '', type: longType }, relation.plan.columns.length) }
}

function expand(relation: Relation, count: Expression): Relation {
  const { plan } = relation
  const columns: PlanColumn[] = [...plan.columns, { name: '$ordinal', type: longType }]
  const expanded: Plan = { kind: 'expand', columns, input: plan, count }
  return { ...relation, plan: expanded, timestampIndex: -1, order: 'none' }
}

// FROM --------------------------------------------------------------------------------------------------------------

/** One row without columns: the input of the first source. */
const oneRow: Relation = {
  plan: { kind: 'values', columns: [], rows: [[]] },
  columns: [],
  timestampIndex: -1,
  order: 'none',
}

/**
 * The relation with the function's columns appended. `outer`: a row whose count is 0 stays, with NULLs, among them the
 * marker in the plan's last column.
 */
export function withFunction(
  left: Relation,
  source: ast.TableFunction,
  outer: boolean,
  context: BindContext,
): { readonly relation: Relation; readonly marker: Expression } {
  const { call, alias, columnAliases } = source
  const expansion = replicationOf(call, { context, columns: left.columns, aggregates: null, windows: null })
  const width = left.plan.columns.length
  const one = constantOf(1, intType, call.position)
  const none = scalarCall('coalesce', [expansion.count, constantOf(0, intType, call.position)], call.position, context)
  const expanded = expand(left, outer ? scalarCall('greatest', [none, one], call.position, context) : none)
  const ordinal = columnExpression({ name: '', type: longType }, width)
  const exists = scalarCall('<=', [ordinal, convertTo(none, longType)], call.position, context)
  const values = expansion.columns.map(({ value }) => {
    const made = value(ordinal)
    return outer ? onlyIf(exists, made, context) : made
  })
  const marker = outer ? onlyIf(exists, constantOf(1n, longType, call.position), context) : ordinal
  const relation = withExtra(expanded, [...values, marker])
  const name = alias?.name ?? call.name
  const single = expansion.columns.length === 1 && columnAliases.length === 0
  const names = expansion.columns.map(
    (column, index) => columnAliases[index]?.name ?? (single && column.keepsName !== true ? name : column.name),
  )
  const added = names.map(
    (column, index): ScopeColumn => ({
      source: name,
      name: column,
      type: (values[index] as Expression).type,
      index: width + 1 + index,
      fromFunction: true,
    }),
  )
  const ordinality = source.ordinality
    ? [{ source: name, name: columnAliases[names.length]?.name ?? 'ordinality', type: longType, index: width }]
    : []
  return {
    relation: { ...relation, columns: [...left.columns, ...added, ...ordinality] },
    marker: columnExpression({ name: '', type: longType }, relation.plan.columns.length - 1),
  }
}

export function onlyIf(condition: Expression, value: Expression, context: BindContext): Expression {
  const none = constantOf(null, value.type, value.position)
  return scalarCall('case', [condition, value, none], value.position, context)
}

/** The function as the only source, with its own columns alone. */
export function functionRelation(source: ast.TableFunction, context: BindContext): Relation {
  const { relation } = withFunction(oneRow, source, false, context)
  const columns = relation.columns.map(({ name, type }): PlanColumn => ({ name, type }))
  const expressions = relation.columns.map(({ type, index, name }) => columnExpression({ name, type }, index))
  const plan: Plan = { kind: 'project', columns, input: relation.plan, expressions }
  const named = scopeOf(plan, source.alias?.name ?? source.call.name)
  return {
    plan,
    columns: named.map((column) => ({ ...column, fromFunction: true })),
    timestampIndex: -1,
    order: 'none',
  }
}

/** Whether the source is a set-returning function that reads columns of preceding sources. */
export function isLateralFunction(source: ast.TableSource): source is ast.TableFunction {
  return source.kind === 'table function' && isSetReturning(source.call.name) && readsColumns(source.call.args)
}

function readsColumns(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  if ('kind' in node && node.kind === 'column' && 'path' in node) return true
  return partsOf(node).some(readsColumns)
}

/** `from t, unnest(t.list) x`. The join condition filters the copies. */
export function lateralJoin(left: Relation, join: ast.Join, source: ast.TableFunction, context: BindContext): Relation {
  const outer = join.kind === 'left'
  const whole = join.on === null || (join.on.kind === 'boolean' && join.on.value)
  if ((!outer && join.kind !== 'inner' && join.kind !== 'cross') || (outer && !whole))
    throw new SqlError(
      'a function of columns of preceding sources can only be joined by CROSS JOIN or LEFT JOIN ON TRUE',
      join.position,
    )
  return withFunction(left, source, outer, context).relation
}
