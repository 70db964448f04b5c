// Plans INSERT. Rows of VALUES are evaluated while planning, and the result has their values by column. For INSERT ..
// SELECT, the result is a plan whose output columns are cast to the types of the target columns.

import { SqlError } from '../../base/errors.js'
import type { RowsInput } from '../../storage/jobs/messages.js'
import { storedColumns, type TableVersion } from '../../storage/schema/schema.js'
import { typeText } from '../../types/column-types.js'
import { isTime } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { bindExpression, rowlessScope } from '../bind/expression.js'
import { bindQuery } from '../bind/query.js'
import { writableTable } from '../bind/show.js'
import { rowWidthError } from '../parse/rows.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { isConstant } from '../typing/make-call.js'
import { isNumeral } from '../typing/rounded.js'
import { checkConflict, conflictKeys, keepsRows } from './conflict.js'
import {
  counterCalled,
  type FilledColumns,
  filledColumns,
  isCounted,
  unnamedDefaults,
  withDefaults,
  writtenValue,
} from './defaults.js'
import type { ColumnDefault, PlannedStatement, TargetColumn } from './planned.js'
import { queryOf } from './query-statement.js'
import { returningOf } from './returning.js'
import { insertValue, isNullColumn, targetColumns, targetOf, targetProjection } from './target.js'

type PlannedInsert = Extract<PlannedStatement, { kind: 'insert' | 'insertSelect' }>

export function planInsert(statement: ast.Insert, context: BindContext): PlannedStatement {
  const version = writableTable(statement.table, context)
  const { returning, table: name } = statement
  const tableId = version.schema.id
  const all = planRows(statement, version, context)
  const keys = conflictKeys(statement, version)
  if (keys !== null) {
    const list = returning === null ? null : returningOf(name, returning, version, context)
    const source = { kind: 'rows', insert: all, statement, keys } as const
    return { kind: 'upsert', tableId, source, returning: list, tag: 'INSERT' }
  }
  const insert = keepsRows(statement, version)
    ? ({ kind: 'insertNew', insert: all, tableId, tag: 'INSERT' } as const)
    : all
  if (returning === null) return insert
  const list = returningOf(name, returning, version, context)
  return { kind: 'insertReturning', insert, tableId, returning: list, tag: 'INSERT' }
}

function planRows(statement: ast.Insert, version: TableVersion, context: BindContext): PlannedInsert {
  if (statement.source.kind === 'query') {
    const isRefresh = context.refreshes?.viewId === version.schema.id
    const targets = isRefresh ? storedColumns(version.schema).map(targetOf) : targetColumns(statement, version)
    checkConflict(statement, version, targets)
    return planInsertSelect(statement, statement.source, version, targets, context)
  }
  const filled = filledColumns(statement, version)
  requireTimestamp(filled.targets, version)
  return { kind: 'insert', rows: rowsOf(statement.source, version, filled, context), tag: 'INSERT' }
}

export function requireTimestamp(targets: readonly TargetColumn[], { schema }: TableVersion): void {
  const { timestampId } = schema
  if (timestampId >= 0 && !targets.some(({ columnId }) => columnId === timestampId)) {
    throw new SqlError('insert statement must populate timestamp', 0)
  }
}

/** `batch 1000` of INSERT and CREATE TABLE: rows per transaction. */
export function batchRowsOf(batch: ast.Expression | null, context: BindContext): number | null {
  if (batch === null) return null
  const value = bindExpression(batch, rowlessScope(context))
  const rows = isConstant(value) ? Number(value.value) : Number.NaN
  if (!Number.isInteger(rows) || rows < 1) throw new SqlError('batch size must be positive integer', batch.position)
  return rows
}

// VALUES ------------------------------------------------------------------------------------------------------------

function rowsOf(
  { rows }: ast.InsertRows,
  { schema }: TableVersion,
  filled: FilledColumns,
  context: BindContext,
): RowsInput {
  const { targets, named } = filled
  const scope = rowlessScope(context)
  const columns = targets.map(({ columnId, type }) => ({ columnId, type, values: new Array<Value>(rows.length) }))
  for (const [tuple, row] of rows.entries()) {
    checkWidth(row, named, tuple, context.sql)
    for (const [index, target] of targets.entries()) {
      const written = writtenValue(row, index, filled)
      const column = columns[index]
      if (column === undefined) continue
      const value = insertValue(written, target, tuple, scope)
      if (value === null && !isDescribed(context) && target.columnId === schema.timestampId) {
        throw new SqlError('designated timestamp column cannot be NULL', written.position)
      }
      if (target.columnId === schema.timestampId && typeof value === 'bigint' && value < 0n)
        throw new SqlError('designated timestamp before 1970-01-01 is not allowed', written.position)
      column.values[tuple] = value
    }
  }
  return { tableId: schema.id, rows: rows.length, columns }
}

/** While a statement is described, expressions over parameters are NULL. */
function isDescribed({ parameters }: BindContext): boolean {
  return parameters.some((parameter) => parameter?.slot !== undefined)
}

export function checkWidth({ values, position }: ast.ValueRow, expected: number, tuple: number, sql: string): void {
  if (values.length === expected) return
  throw rowWidthError(values.length, expected, tuple, closingParenthesis(sql, position))
}

/** Position of the parenthesis that closes the one at `open`, skipping quoted text. */
function closingParenthesis(sql: string, open: number): number {
  let depth = 0
  let quote = ''
  for (let index = open; index < sql.length; index++) {
    const character = sql[index] ?? ''
    if (quote !== '') quote = character === quote ? '' : quote
    else if (character === "'" || character === '"') quote = character
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) return index
  }
  return open
}

// SELECT ------------------------------------------------------------------------------------------------------------

function planInsertSelect(
  { table, columns: written, declarations, commonTables, batch, atomic }: ast.Insert,
  writtenSource: ast.Query,
  version: TableVersion,
  writtenTargets: readonly TargetColumn[],
  context: BindContext,
): PlannedInsert {
  const { schema } = version
  const { columns, source, targets, numbered } = withoutNumbers(written, writtenSource, writtenTargets)
  const query = {
    ...source,
    declarations: [...declarations, ...source.declarations],
    commonTables: [...commonTables, ...source.commonTables],
  }
  const relation = bindQuery(query, context)
  const width = relation.plan.columns.length
  const numberedTargets = numbered.map(({ target }) => target)
  const filled = columns.length === 0 ? targets.slice(0, width) : targets
  if (columns.length > 0 && width !== columns.length) throw new SqlError('column count mismatch', table.position)
  const defaults = unnamedDefaults(version, new Set([...filled, ...numberedTargets].map(({ columnId }) => columnId)))
  const all = [...filled, ...defaults.map(({ target }) => target)]
  if (schema.timestampId >= 0 && !all.some(({ columnId }) => columnId === schema.timestampId)) {
    throw new SqlError('select clause must provide timestamp column', table.position)
  }
  requireTimes(relation, filled, schema, table.position)
  if (width !== filled.length || (columns.length === 0 && width < targets.length && schema.timestampId < 0)) {
    throw new SqlError(
      width < targets.length ? 'not enough columns selected' : 'too many columns selected',
      source.position,
    )
  }
  const projected = targetProjection(
    relation,
    filled,
    columns.length === 0 ? itemPositions(source, width) : columns.map(({ position }) => position),
    context.dialect,
    numeralsOf(source),
  )
  // Numbers of counters are assigned later, since query threads have no counters.
  const planned = defaults.filter((column) => !isCounted(column))
  const plan = withDefaults(projected, planned, context)
  return {
    kind: 'insertSelect',
    tableId: schema.id,
    batchRows: batchRowsOf(batch, context),
    atomic,
    query: queryOf(plan, -1, context),
    columns: [...filled, ...planned.map(({ target }) => target)],
    numbered,
    tag: 'INSERT',
  }
}

/** Throws unless the designated timestamp is filled with timestamps or strings. */
function requireTimes(
  { plan, timestampIndex }: Relation,
  filled: readonly TargetColumn[],
  { timestampId }: TableVersion['schema'],
  position: number,
): void {
  const index = filled.findIndex(({ columnId }) => columnId === timestampId)
  const type = plan.columns[index]?.type
  if (type === undefined || isNullColumn(plan, index)) return
  if (!isTime(type) && type.name !== 'STRING' && type.name !== 'VARCHAR')
    throw new SqlError(`expected timestamp column but type is ${typeText(type)}`, position)
  if (timestampIndex >= 0 && timestampIndex !== index && plan.columns.length > filled.length) {
    const places = `(${index}) does not match designated timestamp in select query (${timestampIndex})`
    throw new SqlError(`designated timestamp of existing table ${places}`, position)
  }
}

/** Positions of the query's columns; those of a star have the star's position. */
function itemPositions({ body, position }: ast.Query, width: number): number[] {
  const first = leftmost(body)
  if (first.kind !== 'select') return [position]
  const hidden = width - first.items.length
  return first.items.flatMap(({ expression }) =>
    new Array<number>(expression.kind === 'star' ? Math.max(1, hidden + 1) : 1).fill(expression.position),
  )
}

/** Whether each item is written as a numeral; empty if there is a star. */
function numeralsOf({ body }: ast.Query): boolean[] {
  const first = leftmost(body)
  if (first.kind !== 'select' || first.items.some(({ expression }) => expression.kind === 'star')) return []
  return first.items.map(({ expression }) => isNumeral(expression))
}

function leftmost(body: ast.QueryBody): ast.QueryBody {
  return body.kind === 'set operation' ? leftmost(body.left) : body
}

// `insert into t (id, name) select nextval('s'), name from ..`: query threads have no counters. Such items are removed
// from the select list, and the rows get their numbers on the way to the writer, like those of a numbered column.

interface NumberedSelect {
  readonly columns: ast.Insert['columns']
  readonly source: ast.Query
  readonly targets: readonly TargetColumn[]
  readonly numbered: readonly ColumnDefault[]
}

/**
 * The INSERT without nextval() items; unchanged if removing them would change the meaning of positions in the query.
 */
function withoutNumbers(
  columns: ast.Insert['columns'],
  source: ast.Query,
  targets: readonly TargetColumn[],
): NumberedSelect {
  const same = { columns, source, targets, numbered: [] }
  const { body, orderBy } = source
  if (body.kind !== 'select' || body.from === null || body.distinct || body.distinctOn.length > 0) return same
  const isNumber = body.items.map(({ expression }) => counterCalled(expression) !== null)
  if (!isNumber.includes(true) || !isNumber.includes(false)) return same
  if (body.items.some(({ expression }) => expression.kind === 'star')) return same
  if (orderBy.some(({ expression }) => expression.kind === 'integer')) return same
  const isRetained = (_: unknown, index: number): boolean => isNumber[index] !== true
  const numbered = targets.flatMap((target, index) => {
    const written = body.items[index]?.expression
    return written === undefined || isRetained(target, index) ? [] : [{ target, written }]
  })
  return {
    columns: columns.filter(isRetained),
    source: { ...source, body: { ...body, items: body.items.filter(isRetained) } },
    targets: targets.filter(isRetained),
    numbered,
  }
}
