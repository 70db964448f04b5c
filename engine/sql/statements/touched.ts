// The rows that an UPDATE or DELETE is going to change, as a query: what a transaction tells of a change that waits for COMMIT.

import type { TableVersion } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { ownTable } from '../bind/from.js'
import { tableOf } from '../bind/show.js'
import { ownName } from '../parse/expect.js'
import type { BindContext } from '../scope/bind-context.js'
import type { PlannedStatement, Returning } from './planned.js'
import { planRelation } from './query-statement.js'
import { returningOf } from './returning.js'
import { boundAssignments, keepRows, scopeOf, withAssigned } from './rewrite.js'

export interface TouchedRows {
  /** Every column of the table, with its new value. */
  readonly query: Extract<PlannedStatement, { kind: 'query' }>
  readonly version: TableVersion
  readonly returning: Returning | null
  readonly tag: 'UPDATE' | 'DELETE'
}

/** Of statements about one table. */
export function planTouched(statement: ast.Update | ast.Delete, context: BindContext): TouchedRows {
  const { table, alias, where, returning } = statement
  const version = tableOf(table, context)
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
