// Plans UPDATE, DELETE and changes of column types: a query over the table's rows that returns the row number of each
// affected row, the new values of the assigned columns, and the values for RETURNING. A job of the writer, which a
// query thread executes, runs the query over one part (Parquet file) after the other (storage/jobs/rewrite.ts).

import { SqlError } from '../../base/errors.js'
import type { NewType, RewriteProgram } from '../../storage/jobs/messages.js'
import { rowNumberId } from '../../storage/jobs/rewrite.js'
import { liveColumns, requireColumn, type TableVersion } from '../../storage/schema/schema.js'
import { type DataType, dataType, isDay, sameType } from '../../types/column-types.js'
import { isText, nullOf } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import type { CorrelatedRows } from '../bind/correlated.js'
import { conditions, conditionsOf, holdsQuery } from '../bind/correlated-conditions.js'
import { bindCondition, bindExpression, type ExpressionScope } from '../bind/expression.js'
import { tableRelation } from '../bind/from.js'
import { bindJoin } from '../bind/join.js'
import { writableTable } from '../bind/show.js'
import { nativeDialect } from '../dialect.js'
import { ownName } from '../parse/expect.js'
import type { Expression, Plan } from '../plan/plan.js'
import { mapInputs } from '../plan/walk-plan.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { declaredValues, declaredWithin, replaceVariables } from '../scope/substitute.js'
import { storedDay } from '../typing/days.js'
import { isConstant } from '../typing/make-call.js'
import { isNumeral } from '../typing/rounded.js'
import { castTo, checkedCastTo, constantOf, isUntypedNull, learnType, nullAs } from '../typing/types.js'
import { defaultOf, isByDefault } from './defaults.js'
import type { PlannedStatement, TargetColumn } from './planned.js'
import { queryOf } from './query-statement.js'
import { returningOf } from './returning.js'
import {
  columnValue,
  convertedTo,
  convertTo,
  exactFor,
  inconvertibleTypes,
  isStoredAsIs,
  isTaken,
  targetOf,
} from './target.js'

type Planned = Extract<PlannedStatement, { kind: 'rewrite' }>

export function planUpdate(written: ast.Update, context: BindContext): Planned {
  const { statement, version, rows, where } = begun(written, context)
  const scope = scopeOf(rows, context)
  const joinsLater = statement.assignments.some(({ value }) => holdsQuery(value))
  const early = joinsLater ? null : assignmentsOf(statement, version, where, scope)
  keepRows(rows, where, scope)
  const { targets, values } = early ?? assignmentsOf(statement, version, null, scope)
  const assigns = targets.map(({ columnId }) => columnId)
  const returns = statement.returning === null ? null : changedColumns(version, assigns)
  const program = programOf('update', rows.relation, values, context, returns)
  return planned(statement, version, { ...program, assigned: assigns }, context)
}

export function planDelete(written: ast.Delete, context: BindContext): Planned {
  const { statement, version, rows, where } = begun(written, context)
  keepRows(rows, where, scopeOf(rows, context))
  const returns = statement.returning === null ? null : changedColumns(version, [])
  const program = programOf('delete', rows.relation, [], context, returns)
  return planned(statement, version, { ...program, assigned: [] }, context)
}

/** Binds the target with the sources of FROM or USING; returns the conditions that must be applied after the join. */
export function begun<Change extends ast.Update | ast.Delete>(
  written: Change,
  context: BindContext,
  bindTarget = targetRelation,
): { statement: Change; version: TableVersion; rows: CorrelatedRows; where: ast.Expression | null } {
  const values = declaredValues(written.declarations)
  const statement = values.size === 0 ? written : replaceVariables(written, values)
  const { table, alias, from, joins, where } = statement
  context.declared = declaredWithin(written, context.declared)
  context.commonTables.push(...statement.commonTables)
  const version = writableTable(table, context)
  const target = bindTarget(version, alias?.name ?? ownName(table), context)
  if (from === null) return { statement, version, rows: { relation: target }, where }
  // With several joins, WHERE may refer to all of them, so it is applied after them, as are conditions with
  // sub-queries.
  const all = where === null ? [] : conditions(where)
  const inJoin = joins.length > 0 ? [] : all.filter((condition) => !holdsQuery(condition))
  const sources = [joinOf(from, conditionsOf(inJoin)), ...joins]
  const relation = sources.reduce((left, join) => bindJoin(left, join, context), target)
  const after = conditionsOf(all.filter((condition) => !inJoin.includes(condition)))
  return { statement, version, rows: { relation }, where: after }
}

export function keepRows(rows: CorrelatedRows, where: ast.Expression | null, scope: ExpressionScope): void {
  if (where === null) return
  const predicate = bindCondition(where, scope)
  const { plan } = rows.relation
  rows.relation = { ...rows.relation, plan: { kind: 'filter', columns: plan.columns, input: plan, predicate } }
}

/** Binds the new values and the condition first, because their errors precede those about the assigned columns. */
export function assignmentsOf(
  statement: ast.Update,
  version: TableVersion,
  where: ast.Expression | null,
  scope: ExpressionScope,
): ReturnType<typeof boundAssignments> {
  try {
    return boundAssignments(statement, version, scope)
  } catch (mistake) {
    if (!(mistake instanceof SqlError)) throw mistake
    for (const { value } of statement.assignments) bindExpression(value, scope)
    if (where !== null) bindCondition(where, scope)
    throw mistake
  }
}

/**
 * For each column of the table, the program's output with its value after the change. Columns of the target follow the
 * row number.
 */
type ChangedColumns = readonly { readonly assigned: number; readonly target: number; readonly type: DataType }[]

function changedColumns({ schema }: TableVersion, assigned: readonly number[]): ChangedColumns {
  return liveColumns(schema).map(({ id, type }, index) => ({ assigned: assigned.indexOf(id), target: index + 1, type }))
}

type Program = Omit<RewriteProgram, 'snapshots' | 'assigned'>

function planned(
  { kind, table, returning }: ast.Update | ast.Delete,
  version: TableVersion,
  program: Program & { assigned: number[] },
  context: BindContext,
): Planned {
  // Table 0 is the target: the writer supplies its rows, not a snapshot.
  const tables = program.query.tables.slice(1)
  const list = returning === null ? null : returningOf(table, returning, version, context)
  const tag = kind === 'update' ? 'UPDATE' : 'DELETE'
  return { kind: 'rewrite', tableId: version.schema.id, program, tables, returning: list, tag }
}

/** FROM as an inner join with the condition of WHERE, so that equations become join keys. */
function joinOf(source: ast.TableSource, where: ast.Expression | null): ast.Join {
  const { position } = source
  const plain = { position, natural: false, using: [], merges: false, tolerance: null, window: null, horizon: null }
  return { ...plain, kind: where === null ? 'cross' : 'inner', source, on: where }
}

/** A scope in which correlated sub-queries are joined to the rows. */
export function scopeOf(rows: CorrelatedRows, context: BindContext): ExpressionScope {
  return { context, columns: rows.relation.columns, aggregates: null, windows: null, rows }
}

/**
 * The table with its row numbers as the first column, under a name that SQL cannot express. It has its own id in the
 * query, so that other references to the table read a snapshot.
 */
function targetRelation(version: TableVersion, alias: string, context: BindContext): Relation {
  const own: TableVersion = { ...version, schema: { ...version.schema, id: -version.schema.id } }
  const relation = tableRelation(own, alias, context)
  if (relation.plan.kind !== 'scan') throw new RangeError('a table is scanned')
  const plan: Plan = {
    ...relation.plan,
    columns: [{ name: '\u0000row', type: dataType('LONG') }, ...relation.plan.columns],
    columnIds: [rowNumberId, ...relation.plan.columnIds],
  }
  const columns = relation.columns.map((column) => ({ ...column, index: column.index + 1 }))
  const timestampIndex = relation.timestampIndex < 0 ? -1 : relation.timestampIndex + 1
  return { ...relation, plan, columns, timestampIndex }
}

function programOf(
  action: Program['action'],
  { plan }: Relation,
  values: readonly Expression[],
  context: BindContext,
  returns: ChangedColumns | null = null,
): Program {
  const retained = returns?.filter((column) => column.assigned < 0) ?? []
  const changed = projected(plan, [columnAt(0, dataType('LONG')), ...values, ...retained.map(targetColumn)])
  const query = queryOf(returns === null ? changed : withReturned(changed, values.length, returns), -1, context)
  const nowMicros = Number(context.evaluation.nowMicros)
  return { action, query: { ...query, plan: inAnyOrder(query.plan) }, returned: returns?.length ?? 0, nowMicros }
}

function targetColumn({ target, type }: ChangedColumns[number]): Expression {
  return columnAt(target, type)
}

/** Appends every column of the table after row number and new values, so that each value is computed once. */
function withReturned(changed: Plan, values: number, returns: ChangedColumns): Plan {
  let retained = values
  const outputs = returns.map(({ assigned: index, type }) => columnAt(index < 0 ? ++retained : index + 1, type))
  const own = changed.columns.slice(0, values + 1).map(({ type }, index) => columnAt(index, type))
  return projected(changed, [...own, ...outputs])
}

function columnAt(index: number, type: DataType): Expression {
  return { kind: 'column', index, type, position: 0 }
}

function projected(input: Plan, expressions: readonly Expression[]): Plan {
  const columns = expressions.map(({ type }, index) => ({ name: `c${index}`, type }))
  return { kind: 'project', columns, input, expressions }
}

/**
 * Scans may return rows in any order, since changes are sorted later. Time-series joins keep the order that they need.
 */
function inAnyOrder(plan: Plan): Plan {
  if (plan.kind === 'scan') return { ...plan, order: 'any' }
  return plan.kind === 'join' ? plan : mapInputs(plan, inAnyOrder)
}

/** Casts a column to a new type. `ts::symbol` would be a number, so timestamps are cast to strings first. */
export function castColumn(column: Expression, type: DataType): Expression {
  if (isDay(type)) return storedDay(castColumn(column, dataType('TIMESTAMP')))
  // In BOOLEAN and CHAR a string that does not parse would read as false and as the empty character.
  if (isText(column.type) && (type.name === 'BOOLEAN' || type.name === 'CHAR') && column.type.name !== type.name)
    return convertTo(column, type, nativeDialect)
  return checkedCastTo(type.name === 'SYMBOL' ? castTo(column, dataType('STRING')) : column, type)
}

/**
 * A program that casts columns to new types. A value that does not convert is NULL (lost-values.ts counts them), or an
 * error if the type has no NULL.
 */
export function castProgram(version: TableVersion, types: readonly NewType[], context: BindContext): RewriteProgram {
  const relation = targetRelation(version, version.schema.name, context)
  const scope = scopeOf({ relation }, context)
  const values = types.map(({ columnId, type }) => {
    const path = [version.schema.columns[columnId]?.name ?? '']
    const column = bindExpression({ kind: 'column', path, quoted: true, position: 0 }, scope)
    return castColumn(column, type)
  })
  return { ...programOf('update', relation, values, context), snapshots: [], assigned: [] }
}

// SET ---------------------------------------------------------------------------------------------------------------

/** The assignments of SET; empty for DELETE. */
export function boundAssignments(
  statement: ast.Update | ast.Delete,
  version: TableVersion,
  scope: ExpressionScope,
): { readonly targets: readonly TargetColumn[]; readonly values: readonly Expression[] } {
  const assignments = statement.kind === 'update' ? statement.assignments : []
  const targets = assignments.map((assignment, index) =>
    assignedColumn(assignment, assignments.slice(0, index), version),
  )
  return {
    targets,
    values: assignments.map(({ value }, index) => assigned(value, targets[index] as TargetColumn, version, scope)),
  }
}

/** The table's columns after the assignments. `choose` combines the new and the old value of an assigned column. */
export function withAssigned(
  input: Plan,
  { schema }: TableVersion,
  { targets, values }: ReturnType<typeof boundAssignments>,
  choose: (value: Expression, old: Expression) => Expression,
): Plan {
  const live = liveColumns(schema)
  const expressions = live.map(({ id }, index): Expression => {
    const old = columnAt(index, (input.columns[index] as Plan['columns'][number]).type)
    const value = values[targets.findIndex(({ columnId }) => columnId === id)]
    return value === undefined ? old : typedAs(choose(value, old), old.type)
  })
  const own = input.columns.slice(0, live.length)
  const columns = own.map(({ name }, index) => ({ name, type: (expressions[index] as Expression).type }))
  return { kind: 'project', columns, input, expressions }
}

/** Gives the value the kind of the column's type (list, JSON, time zone), which results show. */
function typedAs(value: Expression, type: DataType): Expression {
  return sameType(value.type, type) ? { ...value, type } : value
}

function assignedColumn(
  { column }: ast.Assignment,
  before: readonly ast.Assignment[],
  version: TableVersion,
): TargetColumn {
  const { name, position } = column
  const found = requireColumn(version.schema, column)
  if (found.id === version.schema.timestampId) {
    throw new SqlError('Designated timestamp column cannot be updated', position)
  }
  if (before.some((other) => other.column.name.toLowerCase() === name.toLowerCase())) {
    throw new SqlError(`Duplicate column [name=${name}] in SET clause`, position)
  }
  return targetOf(found)
}

/** The value converted to the column's type, with the checks of INSERT. */
export function assigned(
  value: ast.Expression,
  target: TargetColumn,
  version: TableVersion,
  scope: ExpressionScope,
): Expression {
  const written = (isByDefault(value) ? defaultOf(version, target.columnId) : null) ?? value
  const bound = exactFor(target, bindExpression(written, scope), scope.context.dialect)
  const { position } = written
  const { type } = target
  learnType(bound, target.wanted ?? type)
  if (isUntypedNull(bound)) return nullAs(bound, type, nullOf(type))
  if (isConstant(bound)) {
    const isParameter = written.kind === 'parameter'
    const { dialect } = scope.context
    const how = { shown: '', position, isParameter, isNumeral: isNumeral(written), dialect }
    const known = { value: bound.value, type: bound.type, ...how }
    return constantOf(columnValue(known, target, 0), type, position)
  }
  return converted(bound, target, position, scope)
}

function converted(
  value: Expression,
  target: TargetColumn,
  position: number,
  { context }: ExpressionScope,
): Expression {
  const [from, { type, name }] = [value.type, target]
  if (isStoredAsIs(from, target)) return value
  if (!isTaken(from, target, context.dialect)) throw inconvertibleTypes(from, type, '', name, position)
  return convertedTo(value, target, context.dialect)
}
