// RETURNING: its list is a query of the table whose only rows are those of the statement, as they are stored, or as they were
// that a DELETE removes.

import type { TableVersion } from '../../storage/schema.js'
import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { bindQuery } from '../bind/query.js'
import type { Query, TableName } from '../parse/ast.js'
import type { PlannedStatement, Returning } from './planned.js'
import { planRelation } from './query-statement.js'

type PlannedQuery = Extract<PlannedStatement, { kind: 'query' }>

/** `rows`: each column of the table in its order. */
export function planReturned(
  { name, returning }: Pick<Returning, 'name' | 'returning'>,
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  context: BindContext,
): PlannedQuery {
  context.returned = { name, version, rows }
  context.cacheable = false
  return planRelation(bindQuery(returning, context), context)
}

/** The list of a statement of the table, before there are rows. */
export function returningOf(name: TableName, returning: Query, version: TableVersion, context: BindContext): Returning {
  const { columns } = planReturned({ name, returning }, version, [], { ...context, tables: [], subqueries: [] })
  return { name, returning, columns }
}
