// Transaction-scoped settings: ROLLBACK reverts SET since BEGIN, SET LOCAL ends with the transaction, and a read-only
// transaction rejects changes.

import type { TransactionModes } from '../../../engine/engine.js'
import type { PgSession } from '../context.js'
import { clientEncoding } from '../protocol/client-encoding.js'
import { PgError, readOnlyReason } from '../protocol/sqlstate.js'
import { reportSetting, settingValue } from './settings.js'
import { releaseSnapshots } from './snapshots.js'

const readOnlySetting = 'transaction_read_only'

/** Default transaction modes. */
const plainModes: TransactionModes = new Map([
  ['isolation', 'read committed'],
  ['read_only', 'off'],
  ['deferrable', 'off'],
])

/** Begins a transaction. Modes not in `modes` take the session's current defaults and keep them. */
export function beginBlock(pg: PgSession, modes: TransactionModes): void {
  beginTextBlock(pg)
  setBlockModes(pg, new Map([...modesOf(pg, 'default_transaction_'), ...modes]))
}

/** Begins the implicit transaction of a multi-statement query; a BEGIN within it continues it. */
export function beginTextBlock(pg: PgSession): void {
  pg.block ??= { before: new Map(pg.settings), local: new Map() }
}

/** Modes of the ending transaction, for AND CHAIN. */
export function blockModes(pg: PgSession): TransactionModes {
  return modesOf(pg, 'transaction_')
}

function modesOf({ settings }: PgSession, prefix: 'transaction_' | 'default_transaction_'): TransactionModes {
  return new Map([...plainModes].map(([name, plain]) => [name, settings.get(prefix + name) ?? plain]))
}

/** `retained`: changes by SET persist. */
export function endBlock(pg: PgSession, retained: boolean): void {
  const { block } = pg
  pg.block = null
  releaseSnapshots(pg)
  if (block !== null) {
    const names = retained ? block.local.keys() : new Set([...block.before.keys(), ...pg.settings.keys()])
    for (const name of names) restore(pg, name, retained ? block.local.get(name) : block.before.get(name))
  }
  applySessionSettings(pg)
}

function restore(pg: PgSession, name: string, value: string | undefined): void {
  const shown = settingValue(pg, name)
  if (value === undefined) pg.settings.delete(name)
  else pg.settings.set(name, value)
  reportSetting(pg, name, shown)
}

/** Call before SET LOCAL changes the setting. */
export function noteLocal({ block, settings }: PgSession, name: string): void {
  if (block !== null && !block.local.has(name)) block.local.set(name, settings.get(name))
}

/** Applies the modes of SET TRANSACTION or BEGIN. */
export function setBlockModes(pg: PgSession, modes: TransactionModes): void {
  if (modes.has('isolation') && pg.session.snapshot !== undefined)
    throw new PgError('25001', 'SET TRANSACTION ISOLATION LEVEL must be called before any query')
  for (const [name, value] of modes) {
    noteLocal(pg, `transaction_${name}`)
    pg.settings.set(`transaction_${name}`, value)
  }
  applySessionSettings(pg)
}

/** Applies the settings that affect the session: read-only mode and client encoding. */
export function applySessionSettings(pg: PgSession): void {
  const { session, settings, options } = pg
  pg.out.encoding = clientEncoding(settings.get('client_encoding'))
  const said = settings.get(readOnlySetting) ?? settings.get('default_transaction_read_only')
  const readOnly = said === 'on'
  if (session.readOnly === (options.readOnly || readOnly)) return
  const { readOnlyReason: _, ...open } = session
  pg.session =
    readOnly && !options.readOnly
      ? { ...open, readOnly: true, readOnlyReason }
      : { ...open, readOnly: options.readOnly }
}
