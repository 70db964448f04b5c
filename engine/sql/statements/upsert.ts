// Plans upserts: MERGE, INSERT .. ON CONFLICT DO UPDATE for tables with a declared PRIMARY KEY or UNIQUE, and UPDATE of
// an enforced key. Each becomes a query that joins the source's rows with the target's. Its rows are the changes, which
// the writer commits as one transaction (storage/writer/writer-replace.ts):
//
//   action   a number of upsertActions: what happens to the row
//   row id   where the replaced or deleted row is stored (exec/scan/row-ids.ts); NULL for an inserted row
//   columns  the columns of the table after the change; for a deleted row, its old values
//
// ON CONFLICT is planned as a MERGE whose source is the table of the inserted rows, under the name `excluded`. UPDATE
// of a key is planned as a MERGE whose source is the keys of the rows to change.

import { SqlError } from '../../base/errors.js'
import { enforcedKey, liveColumns, requireColumn, type TableVersion } from '../../storage/schema/schema.js'
import { dataType } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import { quoteIdent } from '../../types/identifier.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { bindCondition, type ExpressionScope } from '../bind/expression.js'
import { tableRelation } from '../bind/from.js'
import { bindJoin } from '../bind/join.js'
import { tableOf, writableTable } from '../bind/show.js'
import { ownName } from '../parse/expect.js'
import { parseStatement } from '../parse/parse.js'
import { type Expression, type Plan, rowIdColumn } from '../plan/plan.js'
import { columnAt, nameAt, querySource, queryOf as queryTree, selectBody } from '../rewrite/make-query.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { declaredValues, declaredWithin, replaceVariables } from '../scope/substitute.js'
import { scalarCall } from '../typing/make-call.js'
import { constantOf } from '../typing/types.js'
import { defaultOf, isCounted } from './defaults.js'
import { requireTimestamp } from './insert.js'
import { actionColumnId, type PlannedStatement, type TargetColumn, type UpsertQuery, upsertActions } from './planned.js'
import { queryOf } from './query-statement.js'
import { returningOf } from './returning.js'
import { assigned, scopeOf } from './rewrite.js'
import { targetOf } from './target.js'

/** The joined rows: the row id, the target's columns, and then those of the source. */
interface Joined {
  readonly version: TableVersion
  readonly rows: { relation: Relation }
  /** Number of columns before those of the source. */
  readonly width: number
  readonly context: BindContext
}

export function planMerge(written: ast.Merge, context: BindContext): PlannedStatement {
  const values = declaredValues(written.declarations)
  const statement = values.size === 0 ? written : replaceVariables(written, values)
  context.declared = declaredWithin(written, context.declared)
  context.commonTables.push(...statement.commonTables)
  const { table, alias, source, on, clauses, returning } = statement
  const version = tableOf(table, context)
  const { schema } = version
  if (schema.dedupKeys.length > 0)
    throw new SqlError(
      `MERGE is not supported for a table with DEDUP UPSERT KEYS, whose INSERT replaces rows [table=${schema.name}]`,
      table.position,
    )
  const own = (schema.keys ?? []).length > 0
  if (!own)
    throw new SqlError(
      `MERGE needs a table with PRIMARY KEY or UNIQUE: ALTER TABLE ${quoteIdent(schema.name)} ADD PRIMARY KEY (..)`,
      table.position,
    )
  const joined = joinedRows(
    version,
    alias?.name ?? ownName(table),
    { source, on, position: statement.position },
    context,
  )
  const found = changesOf(joined, clauses)
  const list = returning === null ? null : returningOf(table, returning, version, context)
  return { kind: 'upsert', tableId: schema.id, source: { kind: 'query', found }, returning: list, tag: 'MERGE' }
}

/**
 * UPDATE of columns of an enforced key, as a MERGE of the table with the keys of the rows to change. Returns null if the
 * statement is another one.
 */
export function planKeyUpdate(written: ast.Update, context: BindContext): PlannedStatement | null {
  const { table, position, assignments } = written
  const key = enforcedKey(context.catalog.table(table.name)?.schema ?? {})
  const version = key === undefined ? undefined : writableTable(table, context)
  if (key === undefined || version === undefined) return null
  const { columns } = version.schema
  const names = key.columnIds.map((id) => columns[id]?.name ?? '')
  if (!assignments.some(({ column }) => names.some((name) => name.toLowerCase() === column.name.toLowerCase())))
    return null
  if (written.from !== null)
    throw new SqlError(`UPDATE with FROM cannot change an enforced key, MERGE can [key=${key.name}]`, position)
  const own = written.alias ?? nameAt(ownName(table), table.position)
  const others = names.map((_, index) => nameAt(`\u0000key ${index}`, position))
  const from: ast.TableSource = {
    ...{ kind: 'table', position, columnAliases: [], timestamp: null, table, alias: own },
  }
  const items = names.map((name, index) => ({
    position,
    expression: columnAt(name, position),
    alias: others[index] ?? null,
  }))
  const changed = nameAt('\u0000changed', position)
  const equal = names.map((name, index): ast.Expression => {
    const left: ast.Expression = { kind: 'column', position, path: [own.name, name], quoted: true }
    const right: ast.Expression = {
      kind: 'column',
      position,
      path: [changed.name, others[index]?.name ?? ''],
      quoted: true,
    }
    return { kind: 'binary', position, operator: '=', left, right }
  })
  const on = equal.reduce((left, right) => ({ kind: 'binary', position, operator: 'and', left, right }))
  const merge: ast.Merge = {
    ...{ kind: 'merge', position, declarations: written.declarations, commonTables: written.commonTables },
    ...{ table, alias: written.alias, returning: written.returning, on },
    source: querySource(queryTree(selectBody(from, items, written.where, position)), changed),
    clauses: [{ position, matched: true, condition: null, action: { kind: 'update', assignments } }],
  }
  const planned = planMerge(merge, context)
  return planned.kind === 'upsert' ? { ...planned, tag: 'UPDATE' } : planned
}

/** The changes of INSERT .. ON CONFLICT DO UPDATE. `rows` have the values of all columns. */
export function planConflicts(
  statement: ast.Insert,
  keyColumns: readonly number[],
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  context: BindContext,
): UpsertQuery {
  const joined = joinedConflicts(statement, keyColumns, version, rows, context)
  const live = liveColumns(version.schema)
  const { position } = joined.update
  const values = live.map(
    ({ name }): ast.Expression => ({ kind: 'column', position, path: ['excluded', name], quoted: true }),
  )
  const columns = live.map(({ name }) => nameAt(name, position))
  return changesOf(joined, [
    joined.update,
    { position, matched: false, condition: null, action: { kind: 'insert', columns, row: { position, values } } },
  ])
}

/**
 * DO UPDATE over the joined rows: the place of a stored row, its values and those of the new row. The values are those of
 * all columns after the change.
 */
export function boundConflict(
  statement: ast.Insert,
  keyColumns: readonly number[],
  version: TableVersion,
  context: BindContext,
): { readonly condition: Expression; readonly values: readonly Expression[] } {
  const joined = joinedConflicts(statement, keyColumns, version, [], context)
  const { condition, values } = boundClause(joined.update, joined)
  const live = liveColumns(version.schema).length
  if (values === null || joined.rows.relation.plan.columns.length !== 1 + live * 2)
    throw new RangeError('the columns of both rows')
  return { condition, values }
}

/** The new rows under the name `excluded`, joined with the stored ones, and the clause for rows that match. */
function joinedConflicts(
  { table, alias, conflict }: ast.Insert,
  keyColumns: readonly number[],
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  context: BindContext,
): Joined & { readonly update: ast.MergeClause } {
  if (conflict === null) throw new RangeError('an INSERT with ON CONFLICT')
  const { position, assignments, where } = conflict
  const target = alias?.name ?? ownName(table)
  const excluded: ast.TableName = { ...table, schema: null, name: 'excluded' }
  context.returned = { name: excluded, version, rows }
  context.cacheable = false
  const source: ast.TableSource = {
    ...{ kind: 'table', position, columnAliases: [], timestamp: null, table: excluded },
    alias: nameAt('excluded', position),
  }
  const names = keyColumns.map((id) => quoteIdent(version.schema.columns[id]?.name ?? ''))
  const equal = names.map((name) => `${quoteIdent(target)}.${name} = excluded.${name} and excluded.${name} is not null`)
  const from = { source, on: conditionOf(equal.join(' and ')), position, having: { keyColumns, rows } }
  const joined = joinedRows(version, target, from, context)
  const action = { kind: 'update', assignments: assignments ?? [] } as const
  return { ...joined, update: { position, matched: true, condition: where, action } }
}

/** Parses a condition that the planner has written. */
function conditionOf(text: string): ast.Expression {
  const statement = parseStatement(`select 1 from t where ${text}`)
  const where = statement.kind === 'query' && statement.body.kind === 'select' ? statement.body.where : null
  if (where === null) throw new RangeError('a condition')
  return where
}

interface Source extends Pick<ast.Merge, 'source' | 'on' | 'position'> {
  /** Set if only rows of the target with one of these keys can match: rows with the values of all columns. */
  readonly having?: { readonly keyColumns: readonly number[]; readonly rows: readonly (readonly Value[])[] }
}

/** With more source rows, a join with the whole target is cheaper than a condition for each. */
const conditionsMax = 32

/** Every row of the source, with the target's rows that match it. */
function joinedRows(
  version: TableVersion,
  alias: string,
  { source, on, position, having }: Source,
  context: BindContext,
): Joined {
  const whole = placedRelation(version, alias, context)
  const target = having === undefined ? whole : { ...whole, plan: withKeys(whole.plan, version, having, context) }
  const plain = { natural: false, using: [], merges: false, tolerance: null, window: null, horizon: null }
  const relation = bindJoin(target, { ...plain, position, kind: 'right', source, on }, context)
  return { version, rows: { relation }, width: target.plan.columns.length, context }
}

/** The table with the places of its rows as the first column, which has no name in SQL. */
export function placedRelation(version: TableVersion, alias: string, context: BindContext): Relation {
  const relation = tableRelation(version, alias, context)
  if (relation.plan.kind !== 'scan') throw new RangeError('a table is scanned')
  const plan: Plan = {
    ...relation.plan,
    columns: [{ name: '\u0000place', type: dataType('LONG') }, ...relation.plan.columns],
    columnIds: [rowIdColumn, ...relation.plan.columnIds],
    order: 'any',
  }
  const columns = relation.columns.map((column) => ({ ...column, index: column.index + 1 }))
  const timestampIndex = relation.timestampIndex < 0 ? -1 : relation.timestampIndex + 1
  return { ...relation, plan, columns, timestampIndex }
}

/** The target's rows with one of the keys, so that parts without them need not be read. A key with a NULL has no match. */
function withKeys(
  input: Plan,
  { schema }: TableVersion,
  { keyColumns, rows }: Required<Source>['having'],
  context: BindContext,
): Plan {
  if (rows.length > conditionsMax) return input
  const keys = liveColumns(schema).flatMap((column, place) =>
    keyColumns.includes(column.id) ? [{ column, place }] : [],
  )
  const keyed = rows.filter((row) => keys.every(({ place }) => row[place] !== null))
  const compared = (operator: string, { column, place }: (typeof keys)[number], value: Value): Expression => {
    const { type } = column
    // The row id is the first column.
    const own: Expression = { kind: 'column', index: place + 1, type, position: 0 }
    const constant = constantOf(value, type.name === 'SYMBOL' ? dataType('STRING') : type, 0)
    return scalarCall(operator, [own, constant], 0, context)
  }
  const joined = (operator: string, conditions: readonly Expression[], none: boolean): Expression =>
    conditions.length === 0
      ? constantOf(none, dataType('BOOLEAN'), 0)
      : conditions.reduce((left, right) => scalarCall(operator, [left, right], 0, context))
  const equal = (row: readonly Value[]): Expression => {
    const all = keys.map((key) => compared('=', key, row[key.place] ?? null))
    return joined('and', all, true)
  }
  const conditions = [joined('or', keyed.map(equal), false)]
  const time = keys.find(({ column }) => column.id === schema.timestampId)
  if (time !== undefined && keyed.length > 1) {
    const times = keyed.map((row) => row[time.place] ?? null).filter((value) => typeof value === 'bigint')
    times.sort((x, y) => (x < y ? -1 : 1))
    conditions.push(compared('>=', time, times[0] ?? null), compared('<=', time, times.at(-1) ?? null))
  }
  return { kind: 'filter', columns: input.columns, input, predicate: joined('and', conditions, true) }
}

// WHEN --------------------------------------------------------------------------------------------------------------

/** A WHEN clause: its condition, and the values of the table's columns in their order; null: nothing is changed. */
interface BoundClause {
  readonly condition: Expression
  readonly action: number
  readonly values: readonly Expression[] | null
}

function changesOf(joined: Joined, written: readonly ast.MergeClause[]): UpsertQuery {
  const { version, rows, context } = joined
  const clauses = written.map((clause) => boundClause(clause, joined))
  const live = liveColumns(version.schema)
  const input = rows.relation.plan
  const number = dataType('INT')
  const position = written[0]?.position ?? 0
  const numbered = chosen(
    clauses.map(({ condition }, index) => ({ when: condition, value: numberOf(index + 1) })),
    numberOf(0),
  )
  const all = input.columns.map(({ type }, index): Expression => ({ kind: 'column', index, type, position }))
  const columns = [...input.columns, { name: '\u0000clause', type: number }]
  const decided: Plan = { kind: 'project', columns, input, expressions: [...all, numbered] }
  const clause: Expression = { kind: 'column', index: input.columns.length, type: number, position }
  const isClause = (index: number): Expression => scalarCall('=', [clause, numberOf(index + 1)], position, context)
  const acting = clauses.flatMap(({ action, values }, index) =>
    values === null ? [] : [{ action, values, when: isClause(index) }],
  )
  const none: Expression = { kind: 'constant', value: false, type: dataType('BOOLEAN'), position }
  const predicate = acting
    .map(({ when }) => when)
    .reduceRight((or, when) => scalarCall('or', [when, or], position, context), none)
  const changed: Plan = { kind: 'filter', columns, input: decided, predicate }
  const action = chosen(
    acting.map((one) => ({ when: one.when, value: numberOf(one.action) })),
    numberOf(0),
  )
  const rowId: Expression = { kind: 'column', index: 0, type: dataType('LONG'), position }
  const values = live.map(({ type }, index) => {
    const choices = acting.map((one) => ({ when: one.when, value: { ...valueAt(one.values, index), type } }))
    return chosen(choices, constantOf(nullOf(type), type, position))
  })
  const targets: TargetColumn[] = [
    { columnId: actionColumnId, name: 'action', type: number },
    { columnId: rowIdColumn, name: 'row id', type: dataType('LONG') },
    ...live.map(targetOf),
  ]
  const plan: Plan = {
    ...{ kind: 'project', input: changed, expressions: [action, rowId, ...values] },
    columns: targets.map(({ name, type }) => ({ name, type })),
  }
  return { query: queryOf(plan, -1, context), columns: targets, schemaVersion: version.schema.version }
}

function valueAt(values: readonly Expression[], index: number): Expression {
  const value = values[index]
  if (value === undefined) throw new RangeError('a value for each column')
  return value
}

function numberOf(value: number): Expression {
  return { kind: 'constant', value, type: dataType('INT'), position: 0 }
}

/** The first value whose condition holds. */
function chosen(
  choices: readonly { readonly when: Expression; readonly value: Expression }[],
  otherwise: Expression,
): Expression {
  if (choices.length === 0) return otherwise
  const args = [...choices.flatMap(({ when, value }) => [when, value]), otherwise]
  return { kind: 'call', name: 'case', args, type: otherwise.type, position: otherwise.position }
}

function boundClause({ position, matched, condition, action }: ast.MergeClause, joined: Joined): BoundClause {
  const { rows, context, width } = joined
  const scope = scopeOf(rows, context)
  // Without a match, the target has no values.
  const own: ExpressionScope = matched
    ? scope
    : { ...scope, columns: scope.columns.filter(({ index }) => index >= width) }
  const rowId: Expression = { kind: 'column', index: 0, type: dataType('LONG'), position }
  const isMissing = scalarCall('=', [rowId, constantOf(null, dataType('LONG'), position)], position, context)
  const isMatched = matched ? scalarCall('not', [isMissing], position, context) : isMissing
  const bound = condition === null ? null : bindCondition(condition, own)
  const both = bound === null ? isMatched : scalarCall('and', [isMatched, bound], position, context)
  return { condition: both, ...boundAction(action, joined, own, position) }
}

function boundAction(
  action: ast.MergeAction,
  joined: Joined,
  scope: ExpressionScope,
  position: number,
): Pick<BoundClause, 'action' | 'values'> {
  const live = liveColumns(joined.version.schema)
  const old = live.map(({ type }, index): Expression => ({ kind: 'column', index: index + 1, type, position }))
  switch (action.kind) {
    case 'nothing':
      return { action: upsertActions.insert, values: null }
    case 'delete':
      return { action: upsertActions.delete, values: old }
    case 'update': {
      const set = assignedColumns(action.assignments, joined, scope)
      return {
        action: upsertActions.update,
        values: live.map(({ id }, index) => set.get(id) ?? valueAt(old, index)),
      }
    }
    case 'insert':
      return { action: upsertActions.insert, values: insertedColumns(action, joined, scope, position) }
  }
}

function assignedColumns(
  assignments: readonly ast.Assignment[],
  { version }: Joined,
  scope: ExpressionScope,
): Map<number, Expression> {
  return new Map(
    assignments.map(({ column, value }) => {
      const target = targetOf(requireColumn(version.schema, column))
      return [target.columnId, assigned(value, target, version, scope)] as const
    }),
  )
}

/** Values of all columns; those that the clause omits have their defaults. */
function insertedColumns(
  { columns, row }: Extract<ast.MergeAction, { kind: 'insert' }>,
  { version }: Joined,
  scope: ExpressionScope,
  position: number,
): Expression[] {
  const live = liveColumns(version.schema)
  const targets =
    columns.length === 0 ? live.map(targetOf) : columns.map((column) => targetOf(requireColumn(version.schema, column)))
  if (
    row !== null &&
    (row.values.length > targets.length || (columns.length > 0 && row.values.length < targets.length))
  )
    throw new SqlError(
      `row value count does not match column count [expected=${targets.length}, actual=${row.values.length}]`,
      row.position,
    )
  const written = new Map(
    row === null
      ? []
      : targets.flatMap(({ columnId }, index) => {
          const value = row.values[index]
          return value === undefined ? [] : [[columnId, value] as const]
        }),
  )
  requireTimestamp(
    targets.filter(({ columnId }) => written.has(columnId)),
    version,
  )
  return live.map((column) => {
    const target = targetOf(column)
    const value = written.get(column.id) ?? defaultOf(version, column.id) ?? { kind: 'null', position }
    if (isCounted({ target, written: value }))
      throw new SqlError(`MERGE cannot number rows: set the column from the source [column=${column.name}]`, position)
    return assigned(value, target, version, scope)
  })
}
