// Executes INSERT .. VALUES of the PostgreSQL protocol without a query plan, for speed: parameters and literals are
// appended directly to the columns of uncommitted rows that the transaction collects; any other expression is bound and
// evaluated as usual.

import { assert, nonNull } from '../base/assert.js'
import { SqlError } from '../base/errors.js'
import type * as ast from '../sql/ast/ast.js'
import type { ExpressionScope } from '../sql/bind/expression.js'
import { type FilledColumns, filledColumns, writtenValue } from '../sql/statements/defaults.js'
import { checkWidth, requireTimestamp } from '../sql/statements/insert.js'
import { insertValue } from '../sql/statements/target.js'
import type { TableVersion } from '../storage/schema/schema.js'
import { type DataType, dataType } from '../types/column-types.js'
import type { AppenderColumn, ColumnAppender } from './column-appender.js'
import type { RowCollector } from './row-collector.js'

/** Parameters as received. */
export interface BoundParameters {
  readonly count: number
  readonly bytes: Buffer
  readonly starts: Int32Array
  /** Negative for NULL. */
  readonly ends: Int32Array
  isBinary(index: number): boolean
}

export interface WireType {
  readonly type: DataType
  readonly oid: number
}

/** The table of an INSERT and its columns; valid as long as the table's version. */
export interface InsertTargets extends FilledColumns {
  readonly version: TableVersion
  readonly columns: readonly AppenderColumn[]
  /** Identifies the columns within the table. */
  readonly key: string
}

export function insertTargets(statement: ast.Insert, version: TableVersion): InsertTargets {
  const filled = filledColumns(statement, version)
  const { targets } = filled
  requireTimestamp(targets, version)
  const { timestampId } = version.schema
  const columns = targets.map((target) => ({ ...target, required: target.columnId === timestampId }))
  return { ...filled, version, columns, key: targets.map(({ columnId }) => columnId).join() }
}

export interface InsertRequest {
  readonly rows: readonly ast.ValueRow[]
  readonly targets: InsertTargets
  /** Null: the statement has no parameters. */
  readonly bound: BoundParameters | null
  readonly types: readonly WireType[]
  readonly sql: string
  /** Created when an expression has to be bound. */
  readonly scope: () => ExpressionScope
}

/** Adds the rows of one statement, all or none; returns how many. Throws SqlError. */
export function collectInsert(request: InsertRequest, collector: RowCollector): number {
  assert(
    request.bound === null || request.bound.count <= request.bound.ends.length,
    'P2: every parameter has its place',
  )
  const { rows, targets, sql } = request
  const { columns, key, version, named } = targets
  const mark = rows.length > 1 ? collector.mark() : null
  let batch = collector.batch(version.schema.id, key, columns)
  assert(batch.columns.length === targets.targets.length, 'R1: a batch has a column for each target')
  try {
    for (let tuple = 0; tuple < rows.length; tuple++) {
      const row = nonNull(rows[tuple])
      if (row.values.length !== named) checkWidth(row, named, tuple, sql)
      if (tuple > 0) batch = collector.batch(version.schema.id, key, columns)
      for (let index = 0; index < columns.length; index++) {
        const appender = nonNull(batch.columns[index])
        appendValue(request, writtenValue(row, index, targets), appender, index, tuple)
      }
      batch.rows++
    }
  } catch (error) {
    for (const column of batch.columns) column.truncate(batch.rows)
    if (mark !== null) collector.backTo(mark)
    throw error
  }
  return rows.length
}

function appendValue(
  request: InsertRequest,
  written: ast.Expression,
  appender: ColumnAppender,
  index: number,
  tuple: number,
): void {
  if (written.kind === 'parameter') {
    if (appendParameter(request, written, appender)) return
  } else if (isPlain(written) && appendLiteral(written, appender)) return
  const target = nonNull(request.targets.targets[index])
  const value = insertValue(written, target, tuple, request.scope())
  if (value === null && appender.column.required) {
    throw new SqlError('designated timestamp column cannot be NULL', written.position)
  }
  appender.value(value)
}

function appendParameter(
  { bound, types }: InsertRequest,
  { index: number }: ast.Parameter,
  appender: ColumnAppender,
): boolean {
  const index = number - 1
  if (bound === null || index < 0 || index >= bound.count) return false
  const end = bound.ends[index]!
  if (end < 0) appender.missing()
  else {
    const start = bound.starts[index]!
    appender.parameter(bound.bytes, start, end, bound.isBinary(index), types[index] ?? textType, index)
  }
  return true
}

const textType: WireType = { type: dataType('STRING'), oid: 0 }

// LITERALS ----------------------------------------------------------------------------------------------------------

type Plain = Extract<ast.Expression, { kind: 'string' | 'integer' | 'float' | 'boolean' | 'unary' }>

function isPlain({ kind }: ast.Expression): boolean {
  return kind === 'string' || kind === 'integer' || kind === 'float' || kind === 'boolean' || kind === 'unary'
}

/** Longer strings take the general path. */
const scratch = Buffer.allocUnsafe(4096)

/** Returns false when the literal needs the general path. */
function appendLiteral(written: ast.Expression, appender: ColumnAppender): boolean {
  const literal = written as Plain
  switch (literal.kind) {
    case 'string': {
      if (literal.value.length * 3 > scratch.length) return false
      return appender.literal(scratch, 0, scratch.write(literal.value, 0, 'utf8'))
    }
    case 'integer':
      return literal.digits.length <= 15 && appender.plainNumber(Number(literal.digits))
    case 'float':
      return isPlainFloat(literal) && appender.plainDouble(literal.value)
    case 'boolean':
      return appender.plainBoolean(literal.value)
    case 'unary': {
      const { operand } = literal
      if (literal.operator !== '-') return false
      if (operand.kind === 'integer')
        return operand.digits.length <= 15 && appender.plainNumber(-Number(operand.digits))
      return operand.kind === 'float' && isPlainFloat(operand) && appender.plainDouble(-operand.value)
    }
  }
}

/** Excludes literals that underflow to zero (`1e-400`). */
function isPlainFloat({ single, value, digits }: Extract<ast.Expression, { kind: 'float' }>): boolean {
  return !single && (value !== 0 || !/^[^eE]*[1-9]/.test(digits))
}
