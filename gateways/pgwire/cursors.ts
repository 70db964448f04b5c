// Runs DECLARE and CLOSE of SQL cursors; FETCH and MOVE are in fetch.ts. The query of a cursor starts at the first
// FETCH, which determines whether values are text or binary. A cursor ends with its transaction, explicit or
// implicit, unless it was declared WITH HOLD. Also describes all statements that the engine does not run.

import type { Description, ParsedStatement } from '../../engine/engine.js'
import type { PgSession, RunOptions, SqlCursor } from './context.js'
import { fetch, moveInPortal } from './fetch.js'
import { PgError } from './protocol/sqlstate.js'
import { closeCursors } from './transaction/portals.js'
import type { Rows } from './transaction/row-cursor.js'

type Statement = ParsedStatement['statement']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>

/** Returns null when the statement does not concern cursors. */
export function runCursorStatement(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<Rows | string> | string | null {
  const { statement } = parsed
  switch (statement.kind) {
    case 'declare cursor':
      return declare(pg, parsed, statement, options)
    case 'fetch': {
      const portal = pg.cursors.has(statement.name) ? undefined : pg.portals.get(statement.name)
      if (portal !== undefined && statement.move) return moveInPortal(pg, portal, statement)
      return fetch(pg, cursorNamed(pg, statement.name), statement, options)
    }
    case 'close':
      return close(pg, statement)
    default:
      return null
  }
}

/** Describes a statement that the gateway runs itself; null: the engine describes it. */
export function describeOwn(pg: PgSession, parsed: ParsedStatement, oids: readonly number[]): Description | null {
  const { statement } = parsed
  switch (statement.kind) {
    case 'fetch': {
      if (statement.move) return { ...nothing, tag: 'MOVE' }
      const cursor = pg.cursors.get(statement.name)
      // The cursor may be declared before the statement runs.
      if (cursor === undefined) return nothing
      const { columns } = pg.engine.describe(cursor.query, pg.session, [])
      return { tag: 'FETCH', columns, timestampIndex: -1, parameters: [] }
    }
    case 'declare cursor': {
      const query = { ...parsed, statement: statement.query }
      return { ...pg.engine.describe(query, pg.session, oids), columns: null }
    }
    case 'create table':
      // Whether the table exists is checked when the statement runs: a DROP of the transaction may be pending.
      return statement.source.kind === 'as' ? null : nothing
    case 'execute': {
      const prepared = pg.statements.get(statement.name)
      if (prepared?.statement == null) return nothing
      return { ...pg.engine.describe(prepared.statement, pg.session, prepared.oids), parameters: [] }
    }
    case 'close':
    case 'copy':
    case 'prepare':
    case 'transaction':
    case 'deallocate':
    case 'discard':
    case 'set':
    case 'reset':
    case 'no operation':
    case 'channel':
      return nothing
    default:
      return null
  }
}

const nothing: Description = { tag: '', columns: null, timestampIndex: -1, parameters: [] }

function declare(pg: PgSession, parsed: ParsedStatement, statement: Of<'declare cursor'>, options: RunOptions): string {
  const { name, scroll, hold, binary, query } = statement
  const isNew = pg.status !== 'I' || pg.isWithinText
  if (!isNew && !hold) {
    throw new PgError('25P01', 'DECLARE CURSOR can only be used in transaction blocks')
  }
  if (pg.cursors.has(name)) throw new PgError('42P03', `cursor "${name}" already exists`)
  const { bound, types } = options
  const own = { ...parsed, statement: query }
  pg.engine.describe(own, pg.session, [])
  const place = { isNew, rows: null, passed: 0, at: 0, ended: false }
  pg.cursors.set(name, { name, query: own, bound, types, micros: pg.clock.nowMicros(), scroll, hold, binary, ...place })
  return 'DECLARE CURSOR'
}

function cursorNamed(pg: PgSession, name: string): SqlCursor {
  const cursor = pg.cursors.get(name)
  if (cursor === undefined) throw new PgError('34000', `cursor "${name}" does not exist`)
  return cursor
}

async function close(pg: PgSession, { name }: Of<'close'>): Promise<string> {
  if (name === null) await closeCursors(pg, () => true)
  else {
    const cursor = cursorNamed(pg, name)
    pg.cursors.delete(name)
    await cursor.rows?.close()
  }
  return name === null ? 'CLOSE CURSOR ALL' : 'CLOSE CURSOR'
}
