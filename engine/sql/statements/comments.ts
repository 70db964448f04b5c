// COMMENT ON TABLE and COLUMN: kept in the table's definition, for clients of PostgreSQL.

import { SqlError } from '../../base/errors.js'
import { findColumn, type TableSchema } from '../../storage/schema.js'
import type { BindContext } from '../bind/bind-context.js'
import type * as ast from '../parse/ast.js'
import type { PlannedStatement } from './planned.js'

type Changes = Extract<PlannedStatement, { kind: 'change' }>['changes']

const tag = 'COMMENT'

/** Of views and of the catalog's own relations nothing is kept. */
export function planComment({ table, column, text }: ast.Comment, { catalog }: BindContext): PlannedStatement {
  const schema = catalog.table(table.name)?.schema
  if (schema !== undefined) return { kind: 'change', changes: changesOf(schema, column, text), tag }
  if (table.schema === null && catalog.view(table.name) === undefined)
    throw SqlError.tableMissing(table.name, table.position)
  return { kind: 'none', tag }
}

/** An empty one is none. */
function changesOf(schema: TableSchema, name: ast.Name | null, text: string): Changes {
  const { id: tableId } = schema
  if (name === null) return [{ kind: 'alterTable', tableId, changes: { comment: text } }]
  const column = findColumn(schema, name.name)
  if (column === undefined) throw SqlError.columnMissing(name.name, name.position)
  const { comment: _, ...declared } = column.declared ?? {}
  const kept = text === '' ? declared : { ...declared, comment: text }
  return [{ kind: 'alterColumn', tableId, columnId: column.id, declared: kept }]
}
