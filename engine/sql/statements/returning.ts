// RETURNING of an INSERT: its list is a query of the table whose only rows are those of the statement, as they are stored.

import type { TableVersion } from '../../storage/schema.js'
import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { bindQuery } from '../bind/query.js'
import type { PlannedStatement } from './planned.js'
import { planRelation } from './query-statement.js'

type Planned<Kind extends PlannedStatement['kind']> = Extract<PlannedStatement, { kind: Kind }>

/** `rows`: each column of the table in its order. */
export function planReturned(
  { name, returning }: Pick<Planned<'insertReturning'>, 'name' | 'returning'>,
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  context: BindContext,
): Planned<'query'> {
  context.returned = { name, version, rows }
  context.cacheable = false
  return planRelation(bindQuery(returning, context), context)
}
