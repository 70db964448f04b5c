// Changes of the session's transaction that wait for COMMIT, as its own statements see them: each is laid over the table, in
// the order in which they came, and rows that the transaction had inserted before a change lie below it.
//
//   UPDATE     a column that it sets is a choice between the new value and the old one
//   DELETE     a filter; TRUNCATE lets nothing through
//   DROP       there is no such table

import type { PendingChange } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import type { TableVersion } from '../../storage/schema.js'
import { dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { bindCondition } from '../bind/expression.js'
import { scalarCall } from '../bind/make-call.js'
import { dropExtra } from '../bind/order.js'
import type { Relation } from '../bind/scope.js'
import { constantOf } from '../bind/types.js'
import type { Catalog } from '../catalog.js'
import type * as ast from '../parse/ast.js'
import { ownName } from '../parse/expect.js'
import type { Expression, Plan } from '../plan/plan.js'
import { boundAssignments, scopeOf, withAssigned } from './rewrite.js'

type Change = ast.Update | ast.Delete

/** Without the tables that the transaction drops: its own questions to the catalog do not find them either. */
export function withoutDropped(catalog: Catalog, pending: readonly PendingChange[]): Catalog {
  const dropped = new Set<string>()
  for (const { statement } of pending)
    if (statement?.kind === 'drop table') for (const { name } of statement.tables) dropped.add(name.toLowerCase())
  if (dropped.size === 0) return catalog
  const stays = (name: string): boolean => !dropped.has(name.toLowerCase())
  return {
    ...catalog,
    table: (name) => (stays(name) ? catalog.table(name) : undefined),
    tables: () => catalog.tables().filter(({ schema }) => stays(schema.name)),
  }
}

/** The table as the transaction has made it. */
export function withPending(relation: Relation, version: TableVersion, context: BindContext): Relation {
  const { pending, own } = context
  const seen = pending.reduce((before, { rows, statement }, index) => {
    const below = withRows(before, rows?.own(version) ?? [], context)
    if (statement === null || !isAbout(statement, version)) return below
    context.cacheable = false
    return changed(below, version, context, index)
  }, relation)
  return withRows(seen, own?.own(version) ?? [], context)
}

/** Rows that lie beside those of the relation, in the same order. */
function withRows(relation: Relation, rows: readonly (readonly Value[])[], context: BindContext): Relation {
  if (rows.length === 0) return relation
  context.cacheable = false
  const { plan, timestampIndex } = relation
  const { columns } = plan
  const right: Plan = { kind: 'values', columns, rows }
  const all: Plan = { kind: 'set', columns, operation: 'union', all: true, left: plan, right }
  if (timestampIndex < 0) return { ...relation, plan: all }
  const keys = [{ index: timestampIndex, descending: false, nullsFirst: true }]
  return { ...relation, plan: { kind: 'sort', columns, input: all, keys, limit: null, implied: true } }
}

type Statement = NonNullable<PendingChange['statement']>

function isAbout(statement: Statement, { schema }: TableVersion): boolean {
  const tables = 'table' in statement ? [statement.table] : statement.tables
  return tables.some(({ name }) => name.toLowerCase() === schema.name.toLowerCase())
}

/** With the change of that index. It is bound as it came: by its own text, over what was there before it. */
function changed(relation: Relation, version: TableVersion, context: BindContext, index: number): Relation {
  const { statement, sql, parameters, rows } = context.pending[index] as PendingChange
  if (statement === null) return relation
  if (statement.kind === 'drop table') throw SqlError.tableMissing(version.schema.name, 0)
  const never = constantOf(false, dataType('BOOLEAN'), 0)
  if (statement.kind === 'truncate') return filtered(relation, never)
  const before = { sql: '', parameters: [], statement: null, rows }
  const inner: BindContext = {
    ...context,
    ...{ sql, parameters, pending: [...context.pending.slice(0, index), before], own: null },
    ...{ commonTables: [], returned: null, late: null },
  }
  const name = statement.alias?.name ?? ownName(statement.table)
  const columns = relation.columns.map((column) => ({ ...column, source: name }))
  const below = { relation: { ...relation, columns } }
  const scope = scopeOf(below, inner)
  const always = constantOf(true, dataType('BOOLEAN'), 0)
  const condition = statement.where === null ? always : bindCondition(statement.where, scope)
  if (statement.kind === 'delete') {
    const kept = filtered(below.relation, scalarCall('case', [condition, never, always], 0, context))
    return { ...dropExtra(kept, relation.plan.columns.length), columns: relation.columns }
  }
  const assignments = boundAssignments(statement as Change, version, scope)
  const plan = withAssigned(below.relation.plan, version, assignments, (value, old) =>
    scalarCall('case', [condition, value, old], 0, context),
  )
  const typed = relation.columns.map((column) => ({ ...column, type: plan.columns[column.index]?.type ?? column.type }))
  return { ...relation, columns: typed, plan }
}

function filtered(relation: Relation, predicate: Expression): Relation {
  const { plan } = relation
  return { ...relation, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate } }
}
