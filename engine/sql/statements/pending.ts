// Makes a query in a transaction see the transaction's own uncommitted changes. Each scan of a table is rewritten to
// apply these changes to the stored rows, in the order of the statements. A change also affects rows that the
// transaction inserted before it.
//
//   INSERT     the inserted rows are added by a UNION ALL
//   UPDATE     an assigned column becomes a CASE between the new and the old value
//   DELETE     becomes a filter; TRUNCATE removes all rows
//   DDL        an added column is NULL, a column with a changed type is cast, a new table has no stored rows
//
// Tables, views and sequences that the transaction has created or dropped are resolved by drafted-catalog.ts.

import type { PendingChange } from '../../api/session.js'
import { type DraftTable, requireUnchanged } from '../../storage/schema/draft.js'
import { type ColumnSchema, liveColumns, resultTypeOf, type TableVersion } from '../../storage/schema/schema.js'
import { dataType, isDay } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { bindCondition } from '../bind/expression.js'
import { dropExtra } from '../bind/order.js'
import { ownName } from '../parse/expect.js'
import type { Expression, Plan } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { draftedCatalog } from '../scope/drafted-catalog.js'
import { type Relation, scopeOf as scopeOfPlan } from '../scope/scope.js'
import { scalarCall } from '../typing/make-call.js'
import { constantOf } from '../typing/types.js'
import { boundAssignments, castColumn, scopeOf, withAssigned } from './rewrite.js'

type Change = ast.Update | ast.Delete

/** A table, while changes are being applied to it. */
interface Seen {
  readonly relation: Relation
  readonly version: TableVersion
}

/** The table as the transaction sees it. `scan` reads the stored rows. */
export function withPending(
  version: TableVersion,
  alias: string,
  context: BindContext,
  scan: (stored: TableVersion) => Relation,
): Relation {
  const { pending, own } = context
  const { id } = version.schema
  const drafted = lastDraft(pending, id)
  const before = drafted === undefined ? version : storedOf(drafted, context)
  let seen: Seen | null = before === undefined ? null : { relation: scan(before), version: before }
  for (const [index, change] of pending.entries()) {
    if (seen !== null)
      seen = { ...seen, relation: withRows(seen.relation, change.rows?.own(seen.version) ?? [], context) }
    const after = change.draft?.tables.get(id)
    if (after !== undefined) seen = redrafted(seen, after, change.emptied?.has(id) === true, alias, context)
    else if (seen !== null && change.statement !== null && isAbout(change.statement, seen.version)) {
      context.cacheable = false
      seen = { ...seen, relation: changed(seen.relation, seen.version, context, index) }
    }
  }
  if (seen === null) return emptyRelation(version, alias)
  return withRows(seen.relation, own?.own(version) ?? [], context)
}

function lastDraft(pending: readonly PendingChange[], id: number): DraftTable | undefined {
  return pending.findLast(({ draft }) => draft?.tables.has(id) === true)?.draft?.tables.get(id)
}

/** The stored version of a table that the transaction has changed; undefined if the transaction created it. */
function storedOf(drafted: DraftTable, { stored }: BindContext): TableVersion | undefined {
  if (drafted.base === null) return undefined
  const now = stored.stored?.(drafted.base.schema.id)
  requireUnchanged(drafted, now)
  return now
}

function emptyRelation({ schema }: TableVersion, alias: string): Relation {
  const columns = liveColumns(schema).map((column) => ({ name: column.name, type: resultTypeOf(column) }))
  const plan: Plan = { kind: 'values', columns, rows: [] }
  const timestampIndex = liveColumns(schema).findIndex(({ id }) => id === schema.timestampId)
  const order = timestampIndex < 0 ? 'none' : 'ascending'
  return { plan, columns: scopeOfPlan(plan, alias), timestampIndex, order }
}

/** The table after a change of its schema. */
function redrafted(
  seen: Seen | null,
  { version, retyped }: DraftTable,
  isEmptied: boolean,
  alias: string,
  context: BindContext,
): Seen | null {
  context.cacheable = false
  if (version === null) return seen
  if (seen === null) return { relation: emptyRelation(version, alias), version }
  const relation = isEmptied ? filtered(seen.relation, constantOf(false, dataType('BOOLEAN'), 0)) : seen.relation
  if (version.schema.version === seen.version.schema.version) return { relation, version }
  return { relation: withColumns(relation, seen.version, version, retyped, alias), version }
}

/** The relation with the columns of the new schema. */
function withColumns(
  relation: Relation,
  before: TableVersion,
  { schema }: TableVersion,
  retyped: DraftTable['retyped'],
  alias: string,
): Relation {
  const places = new Map(liveColumns(before.schema).map(({ id }, index) => [id, index]))
  const old = (id: number): Expression | undefined => {
    const index = places.get(id)
    const type = index === undefined ? undefined : relation.plan.columns[index]?.type
    return index === undefined || type === undefined ? undefined : { kind: 'column', index, type, position: 0 }
  }
  const live = liveColumns(schema)
  const replacement = (column: ColumnSchema): Expression => {
    const same = old(column.id)
    if (same !== undefined) return { ...same, type: resultTypeOf(column) }
    const other = old(retyped.get(column.id) ?? -1)
    const type = resultTypeOf(column)
    return other === undefined
      ? constantOf(nullOf(type), type, 0)
      : { ...castColumn(other, isDay(type) ? type : column.type), type }
  }
  const expressions = live.map(replacement)
  const columns = live.map(({ name }, index) => ({ name, type: (expressions[index] as Expression).type }))
  const plan: Plan = { kind: 'project', columns, input: relation.plan, expressions }
  const timestampIndex = live.findIndex(({ id }) => id === schema.timestampId)
  return { ...relation, plan, columns: scopeOfPlan(plan, alias), timestampIndex }
}

/** Adds inserted rows to the relation, in the same order. */
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

function isAbout({ table }: Change, { schema }: TableVersion): boolean {
  return table.name.toLowerCase() === schema.name.toLowerCase()
}

/**
 * The relation after the change with that index. The change is bound with its own text, to the table as it was before
 * it.
 */
function changed(relation: Relation, version: TableVersion, context: BindContext, index: number): Relation {
  const { statement, sql, parameters, rows } = context.pending[index] as PendingChange
  if (statement === null) return relation
  const earlier = context.pending.slice(0, index)
  const before = { sql: '', parameters: [], statement: null, rows }
  const inner: BindContext = {
    ...context,
    ...{ sql, parameters, pending: [...earlier, before], own: null },
    catalog: draftedCatalog(context.stored, earlier.findLast(({ draft }) => draft !== undefined)?.draft ?? null),
    ...{ commonTables: [], returned: null, deferred: null },
  }
  const never = constantOf(false, dataType('BOOLEAN'), 0)
  const name = statement.alias?.name ?? ownName(statement.table)
  const columns = relation.columns.map((column) => ({ ...column, source: name }))
  const below = { relation: { ...relation, columns } }
  const scope = scopeOf(below, inner)
  const always = constantOf(true, dataType('BOOLEAN'), 0)
  const condition = statement.where === null ? always : bindCondition(statement.where, scope)
  if (statement.kind === 'delete') {
    const retained = filtered(below.relation, scalarCall('case', [condition, never, always], 0, context))
    return { ...dropExtra(retained, relation.plan.columns.length), columns: relation.columns }
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
