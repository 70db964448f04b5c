// Plans a query that returns the rows which an UPDATE or DELETE is going to change, with their new values. In a
// transaction the change itself waits for COMMIT, so this query supplies the row count and the RETURNING result of the
// statement.

import type { TableVersion } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { ownTable } from '../bind/from.js'
import { writableTable } from '../bind/show.js'
import { ownName } from '../parse/expect.js'
import type { BindContext } from '../scope/bind-context.js'
import type { PlannedStatement, Returning } from './planned.js'
import { planRelation } from './query-statement.js'
import { returningOf } from './returning.js'
import { boundAssignments, keepRows, scopeOf, withAssigned } from './rewrite.js'

export interface AffectedRows {
  /** All columns of the table, with their new values. */
  readonly query: Extract<PlannedStatement, { kind: 'query' }>
  readonly version: TableVersion
  readonly returning: Returning | null
  readonly tag: 'UPDATE' | 'DELETE'
}

/** For statements that involve one table. */
export function planAffected(statement: ast.Update | ast.Delete, context: BindContext): AffectedRows {
  const { table, alias, where, returning } = statement
  const version = writableTable(table, context)
  const relation = ownTable(version, alias?.name ?? ownName(table), context)
  const rows = { relation }
  const scope = scopeOf(rows, context)
  keepRows(rows, where, scope)
  const assignments = boundAssignments(statement, version, scope)
  const changed = withAssigned(rows.relation.plan, version, assignments, (value) => value)
  const query = planRelation({ ...relation, plan: changed, timestampIndex: -1, order: 'none' }, context)
  const list = returning === null ? null : returningOf(table, returning, version, context)
  return { query, version, returning: list, tag: statement.kind === 'update' ? 'UPDATE' : 'DELETE' }
}
