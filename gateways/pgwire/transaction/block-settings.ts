// Settings and transactions: ROLLBACK takes back what SET has set since BEGIN, what SET LOCAL has set ends with the
// transaction, and one that only reads refuses changes.

import type { TransactionModes } from '../../../engine/engine.js'
import type { PgSession } from '../context.js'
import { clientEncoding } from '../protocol/client-encoding.js'
import { PgError, readOnlyReason } from '../protocol/sqlstate.js'
import { leaveMoments } from './moments.js'
import { reportSetting, settingValue } from './settings.js'

const readOnlySetting = 'transaction_read_only'

/** Modes of a transaction of which nothing is said. */
const plainModes: TransactionModes = new Map([
  ['isolation', 'read committed'],
  ['read_only', 'off'],
  ['deferrable', 'off'],
])

/** What is not in `modes` is as the session's transactions are, and stays so whatever is said of these later. */
export function beginBlock(pg: PgSession, modes: TransactionModes): void {
  beginTextBlock(pg)
  setBlockModes(pg, new Map([...modesOf(pg, 'default_transaction_'), ...modes]))
}

/** Statements of one text are a transaction, which BEGIN among them goes on with. */
export function beginTextBlock(pg: PgSession): void {
  pg.block ??= { before: new Map(pg.settings), local: new Map() }
}

/** Those of the transaction that ends, for the one that begins in its place. */
export function blockModes(pg: PgSession): TransactionModes {
  return modesOf(pg, 'transaction_')
}

function modesOf({ settings }: PgSession, prefix: 'transaction_' | 'default_transaction_'): TransactionModes {
  return new Map([...plainModes].map(([name, plain]) => [name, settings.get(prefix + name) ?? plain]))
}

/** `kept`: what SET has set stays. */
export function endBlock(pg: PgSession, kept: boolean): void {
  const { block } = pg
  pg.block = null
  leaveMoments(pg)
  if (block !== null) {
    const names = kept ? block.local.keys() : new Set([...block.before.keys(), ...pg.settings.keys()])
    for (const name of names) restore(pg, name, kept ? block.local.get(name) : block.before.get(name))
  }
  followSettings(pg)
}

function restore(pg: PgSession, name: string, value: string | undefined): void {
  const shown = settingValue(pg, name)
  if (value === undefined) pg.settings.delete(name)
  else pg.settings.set(name, value)
  reportSetting(pg, name, shown)
}

/** The setting is about to be changed for the transaction alone. */
export function noteLocal({ block, settings }: PgSession, name: string): void {
  if (block !== null && !block.local.has(name)) block.local.set(name, settings.get(name))
}

/** SET TRANSACTION, and the like of BEGIN. */
export function setBlockModes(pg: PgSession, modes: TransactionModes): void {
  if (modes.has('isolation') && pg.session.moment !== undefined)
    throw new PgError('25001', 'SET TRANSACTION ISOLATION LEVEL must be called before any query')
  for (const [name, value] of modes) {
    noteLocal(pg, `transaction_${name}`)
    pg.settings.set(`transaction_${name}`, value)
  }
  followSettings(pg)
}

/** Statements are refused, and texts encoded, as the settings say. */
export function followSettings(pg: PgSession): void {
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
