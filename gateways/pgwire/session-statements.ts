// Statements about the session that the gateway carries out itself: transactions, settings, prepared statements.

import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { parameterStatus } from './messages.js'
import { applySetting, reportedSettings, resetSettings } from './settings.js'
import { prepareBySql } from './sql-prepare.js'
import { PgError } from './sqlstate.js'
import { runTransaction } from './transaction.js'

type Statement = ParsedStatement['statement']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>

/** The tag when it was one; null when the engine has to run it. */
export function runSessionStatement(pg: PgSession, statement: Statement): Promise<string> | string | null {
  switch (statement.kind) {
    case 'transaction':
      return runTransaction(pg, statement)
    case 'set':
      return runSet(pg, statement)
    case 'reset':
      resetSettings(pg, statement.name)
      return 'RESET'
    case 'deallocate':
      return deallocate(pg, statement)
    case 'discard':
      return discard(pg, statement)
    case 'prepare':
      return prepareBySql(pg, statement)
    case 'no operation':
      return statement.command.toUpperCase()
    default:
      return null
  }
}

function runSet(pg: PgSession, { name, values }: Of<'set'>): string | null {
  // `set query.trace` and the like are the engine's.
  if (name.includes('.')) return null
  const changed = applySetting(pg, name, values)
  if (changed !== null && reportedSettings.has(changed.name)) {
    pg.out.put(parameterStatus(reportedSettings.get(changed.name) ?? changed.name, changed.value))
  }
  return 'SET'
}

function deallocate(pg: PgSession, { name }: Of<'deallocate'>): string {
  if (name === null) {
    pg.statements.clear()
    return 'DEALLOCATE ALL'
  }
  if (!pg.statements.delete(name)) throw new PgError('26000', `prepared statement "${name}" does not exist`)
  return 'DEALLOCATE'
}

function discard(pg: PgSession, { what }: Of<'discard'>): string {
  const word = what.toLowerCase()
  if (word === 'all') {
    if (pg.status !== 'I') throw new PgError('25001', 'DISCARD ALL cannot run inside a transaction block')
    pg.statements.clear()
    resetSettings(pg, 'all')
  }
  return `DISCARD ${word.toUpperCase()}`
}
