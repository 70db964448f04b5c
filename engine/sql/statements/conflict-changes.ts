// Prepares INSERT .. ON CONFLICT DO UPDATE of a few rows for execution without a query. Statements with the same table,
// key and SET list are of one kind; only their values to insert differ. For each kind used recently, a bound function
// is kept that computes from a stored row and a new row what DO UPDATE stores. So the next execution neither binds the
// SET list again nor plans a query.

import type { ExecuteOptions } from '../../api/statements.js'
import { assert } from '../../base/assert.js'
import type { RowsInput } from '../../storage/jobs/messages.js'
import { liveColumns, requireColumn, type TableVersion } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import { intMin, longMin } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import type * as ast from '../ast/ast.js'
import { compileExpression } from '../functions/registry/evaluate.js'
import type { BindContext } from '../scope/bind-context.js'
import { boundConflict } from './upsert.js'

type Row = readonly Value[]

/** What DO UPDATE makes of a stored row; null: it leaves it as it is. Throws SqlError. */
export type ConflictChange = (stored: Row, excluded: Row) => readonly Value[] | null

/** The expressions whose values depend only on the row and the new row. */
const plainKinds: ReadonlySet<unknown> = new Set([
  ...(['column', 'null', 'boolean', 'integer', 'float', 'decimal', 'hex', 'string', 'unary', 'binary'] as const),
  ...(['in', 'list', 'between', 'is null', 'case'] as const),
])

const changesMax = 256

interface Kind {
  readonly version: number
  readonly dialect: string
  readonly zone: string | null
  readonly kind: string | null
}

export class ConflictChanges {
  /** Of the last execution of a statement. */
  private readonly kinds = new WeakMap<ast.Insert, Kind>()
  /** By kind, the least recently used first. */
  private readonly changes = new Map<string, ConflictChange>()

  /**
   * What statements of the same kind have in common: table, key and SET list, of which the values depend only on the
   * stored and the new row. null: the statement has to be executed by a query.
   */
  kindOf(
    statement: ast.Insert,
    key: readonly number[],
    { schema }: TableVersion,
    { session }: Pick<ExecuteOptions, 'session'>,
  ): string | null {
    const { version } = schema
    const zone = session.settings?.get('timezone') ?? null
    const dialect = session.dialect.name
    const known = this.kinds.get(statement)
    if (known?.version === version && known.dialect === dialect && known.zone === zone) return known.kind
    const kind = plainKind(statement, key, schema, `${dialect} ${zone}`)
    this.kinds.set(statement, { version, dialect, zone, kind })
    return kind
  }

  changeOf(kind: string, bind: () => ConflictChange): ConflictChange {
    const change = this.changes.get(kind) ?? bind()
    this.changes.delete(kind)
    this.changes.set(kind, change)
    const [oldest] = this.changes.keys()
    if (this.changes.size > changesMax && oldest !== undefined) this.changes.delete(oldest)
    return change
  }
}

function plainKind(
  { table, alias, conflict, declarations, commonTables }: ast.Insert,
  key: readonly number[],
  schema: TableVersion['schema'],
  where: string,
): string | null {
  const { assignments = null, where: condition = null } = conflict ?? {}
  if (assignments === null || declarations.length + commonTables.length > 0) return null
  // Another statement might have the new key.
  if (assignments.some(({ column }) => key.includes(requireColumn(schema, column).id))) return null
  let isPlain = true
  const parts = { assignments, condition, table: table.name, alias: alias?.name, key, version: schema.version }
  const text = JSON.stringify(parts, (name, value: unknown) => {
    if (name === 'kind' && !plainKinds.has(value)) isPlain = false
    return name === 'position' ? undefined : typeof value === 'bigint' ? `${value}n` : value
  })
  return isPlain ? `${where} ${schema.id} ${text}` : null
}

/** Binds DO UPDATE. */
export function boundChange(
  statement: ast.Insert,
  key: readonly number[],
  version: TableVersion,
  context: BindContext,
): ConflictChange {
  const bound = boundConflict(statement, key, version, context)
  const evaluation = { ...context.evaluation, subqueries: [] }
  const applies = compileExpression(bound.condition, evaluation)
  const values = bound.values.map((value) => compileExpression(value, evaluation))
  const live = liveColumns(version.schema).length
  return (stored, excluded) => {
    assert(stored.length === live && excluded.length === live, 'R1: rows have the values of all columns')
    // The place of the row is the first column of the joined rows.
    const joined = [0n, ...stored, ...excluded]
    return applies(joined) === true ? values.map((value) => value(joined)) : null
  }
}

/** The indexes of the key's columns in rows of the table. */
export function placesOf({ schema }: TableVersion, key: readonly number[]): number[] {
  const live = liveColumns(schema)
  return key.map((id) => live.findIndex((column) => column.id === id))
}

/** The values of the key as text; null if one is NULL: such a key equals no other. */
export function keyText(places: readonly number[], row: readonly Value[]): string | null {
  const values = places.map((place) => row[place] ?? null)
  return values.includes(null) ? null : JSON.stringify(values.map(String))
}

/** The rows of VALUES, if they are few and would be read as they are written; null: others. */
export function writtenRows({ rows, columns }: RowsInput, { schema }: TableVersion): Value[][] | null {
  if (rows > writtenRowsMax) return null
  const byId = new Map(columns.map(({ columnId, values }) => [columnId, values]))
  const live = liveColumns(schema).map(({ id, type }) => ({ values: byId.get(id), type, absent: nullOf(type) }))
  if (live.some(({ values, type }) => values?.some((value) => !isReadAsWritten(value, type)) === true)) return null
  return Array.from({ length: rows }, (_, row) => live.map(({ values, absent }) => values?.[row] ?? absent))
}

const writtenRowsMax = 256
const unpaired = /[\ud800-\udfff]/

function isReadAsWritten(value: Value, { name }: DataType): boolean {
  if (value === null) return true
  switch (name) {
    case 'LONG':
    case 'DATE':
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
      return typeof value === 'bigint' && value !== longMin
    case 'INT':
      return typeof value === 'number' && value !== intMin
    case 'DOUBLE':
      return typeof value === 'number' && Number.isFinite(value)
    case 'STRING':
    case 'VARCHAR':
    case 'SYMBOL':
      return typeof value === 'string' && !unpaired.test(value)
    default:
      return false
  }
}
