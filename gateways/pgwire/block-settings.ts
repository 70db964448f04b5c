// Settings and transactions: ROLLBACK takes back what SET has set since BEGIN, what SET LOCAL has set ends with the
// transaction, and one that only reads refuses changes.

import type { PgSession } from './context.js'
import { reportSetting, settingValue } from './settings.js'
import { readOnlyReason } from './sqlstate.js'

const readOnlySetting = 'transaction_read_only'

export function beginBlock(pg: PgSession, readOnly: boolean | null): void {
  pg.block = { before: new Map(pg.settings), local: new Map() }
  if (readOnly !== null) onlyReads(pg, readOnly)
}

/** `kept`: what SET has set stays. */
export function endBlock(pg: PgSession, kept: boolean): void {
  const { block } = pg
  pg.block = null
  if (block !== null) {
    const names = kept ? block.local.keys() : new Set([...block.before.keys(), ...pg.settings.keys()])
    for (const name of names) restore(pg, name, kept ? block.local.get(name) : block.before.get(name))
  }
  followReadOnly(pg)
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

/** SET TRANSACTION READ ONLY, READ WRITE, and the like of BEGIN. */
export function onlyReads(pg: PgSession, readOnly: boolean): void {
  noteLocal(pg, readOnlySetting)
  pg.settings.set(readOnlySetting, readOnly ? 'on' : 'off')
  followReadOnly(pg)
}

/** Statements are refused as the settings say. */
export function followReadOnly(pg: PgSession): void {
  const { session, settings, options } = pg
  const said = settings.get(readOnlySetting) ?? settings.get('default_transaction_read_only')
  const readOnly = said === 'on'
  if (session.readOnly === (options.readOnly || readOnly)) return
  const { readOnlyReason: _, ...open } = session
  pg.session =
    readOnly && !options.readOnly
      ? { ...open, readOnly: true, readOnlyReason }
      : { ...open, readOnly: options.readOnly }
}
