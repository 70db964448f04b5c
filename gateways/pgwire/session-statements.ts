// Runs statements about the session, which the engine does not run: transactions, settings, prepared statements,
// LISTEN/NOTIFY.

import type { ParsedStatement, TransactionModes } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { noticeResponse, parameterStatus } from './protocol/messages.js'
import { PgError } from './protocol/sqlstate.js'
import { prepareBySql } from './sql-prepare.js'
import { applySessionSettings, noteLocal, setBlockModes } from './transaction/block-settings.js'
import { noteListening, noteNotification } from './transaction/notifications.js'
import { closeCursors } from './transaction/portals.js'
import { applySetting, checkSetting, reportedSettings, resetSettings, settingName } from './transaction/settings.js'
import { importSnapshot } from './transaction/snapshots.js'
import { runTransaction, warn } from './transaction/transaction.js'

type Statement = ParsedStatement['statement']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>

/** Returns the command tag; null when the engine has to run the statement. */
export function runSessionStatement(
  pg: PgSession,
  { statement, text }: ParsedStatement,
): Promise<string> | string | null {
  switch (statement.kind) {
    case 'transaction':
      return runTransaction(pg, statement)
    case 'set':
      return runSet(pg, statement)
    case 'reset':
      resetSettings(pg, statement.name)
      applySessionSettings(pg)
      return 'RESET'
    case 'deallocate':
      return deallocate(pg, statement)
    case 'discard':
      return discard(pg, statement)
    case 'prepare':
      return prepareBySql(pg, statement, text)
    case 'channel':
      return runChannel(pg, statement)
    case 'no operation':
      // The engine looks the tables up; a table that this transaction creates exists only among its pending
      // changes.
      if (statement.tables?.some(({ name }) => !isPending(pg, name)) === true) return null
      if (statement.command === 'create schema') pg.out.put(schemaNotice)
      return statement.command.toUpperCase()
    default:
      return null
  }
}

function isPending({ held }: PgSession, name: string): boolean {
  return held.some(({ names }) => names.has(name.toLowerCase()))
}

const schemaNotice = noticeResponse({
  severity: 'NOTICE',
  code: '00000',
  message: 'there is one schema, public: the table t of another one, a, has the name "a.t" in it',
  position: 0,
})

function runChannel(pg: PgSession, { action, channel, payload }: Of<'channel'>): string {
  if (action === 'notify') noteNotification(pg, channel ?? '', payload)
  else noteListening(pg, action, channel)
  return action.toUpperCase()
}

/** Runs set_config(). */
export function configure(pg: PgSession, written: string, value: string, local: boolean): void {
  const name = settingName(written)
  if (!local || pg.block !== null) change(pg, name, [value], local)
}

/** Every other name with a dot is a custom setting of the client, as PostgreSQL allows. */
const ofEngine: ReadonlySet<string> = new Set(['query.trace'])

function runSet(pg: PgSession, { name: written, values, local, modes }: Of<'set'>): string | null {
  if (ofEngine.has(written)) return null
  if (modes !== null) return setModes(pg, written === 'transaction', modes)
  if (written === 'transaction snapshot') return setSnapshot(pg, values[0] ?? '')
  const name = settingName(written)
  if (local && pg.block === null) {
    warn(pg, '25P01', 'SET LOCAL can only be used in transaction blocks')
    return 'SET'
  }
  change(pg, name, values, local)
  return 'SET'
}

function change(pg: PgSession, name: string, values: readonly string[], local: boolean): void {
  const ofBlock = name.startsWith('transaction_')
  if (local || ofBlock) noteLocal(pg, name)
  // Without BEGIN the statement is its own transaction.
  if (ofBlock && pg.block === null) {
    checkSetting(name, values)
    return
  }
  const changed = applySetting(pg, name, values)
  if (reportedSettings.has(changed.name)) {
    pg.out.put(parameterStatus(reportedSettings.get(changed.name) ?? changed.name, changed.value))
  }
  applySessionSettings(pg)
}

/** Runs SET TRANSACTION and SET SESSION CHARACTERISTICS, which applies to future transactions. */
function setModes(pg: PgSession, isBlock: boolean, modes: TransactionModes): string {
  if (isBlock && pg.block === null) warn(pg, '25P01', 'SET TRANSACTION can only be used in transaction blocks')
  else if (isBlock) setBlockModes(pg, modes)
  else for (const [name, value] of modes) change(pg, `default_transaction_${name}`, [value], false)
  return 'SET'
}

function setSnapshot(pg: PgSession, id: string): string {
  if (pg.status === 'I') warn(pg, '25P01', 'SET TRANSACTION can only be used in transaction blocks')
  else importSnapshot(pg, id)
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

async function discard(pg: PgSession, { what }: Of<'discard'>): Promise<string> {
  const word = what.toLowerCase()
  if (word === 'all') {
    if (pg.status !== 'I') throw new PgError('25001', 'DISCARD ALL cannot run inside a transaction block')
    pg.statements.clear()
    pg.channels.leave(pg, null)
    await closeCursors(pg, () => true)
    resetSettings(pg, 'all')
    applySessionSettings(pg)
  }
  return `DISCARD ${word.toUpperCase()}`
}
