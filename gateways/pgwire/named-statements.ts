// What a session has prepared and declared, for pg_prepared_statements and pg_cursors.

import { SqlError } from '../../engine/base/errors.js'
import type { NamedStatements } from '../../engine/engine.js'
import type { PgSession, Prepared } from './context.js'

export function namedStatements(pg: PgSession): NamedStatements {
  const named = [...pg.statements.values()].filter(({ name }) => name !== '')
  return {
    prepared: named.map((prepared) => {
      const { name, text, micros, bySql } = prepared
      return { name, text, micros, bySql, oids: oidsOf(pg, prepared) }
    }),
    cursors: [...pg.cursors.values()].map(({ name, query, micros, hold, binary, scroll }) => {
      return { name, text: query.text, micros, hold, binary, scroll }
    }),
  }
}

/** Of the parameters; those that the client has said where the statement's tables are gone. */
function oidsOf(pg: PgSession, { statement, description, oids }: Prepared): readonly number[] {
  if (description !== null) return description.parameters.map(({ oid }) => oid)
  if (statement === null) return oids
  try {
    return pg.engine.describe(statement, pg.session, oids).parameters.map(({ oid }) => oid)
  } catch (error) {
    if (error instanceof SqlError) return oids
    throw error
  }
}
