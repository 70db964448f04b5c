// The changes and rows that a transaction of a PostgreSQL session has deferred to COMMIT: makes them visible to the
// session's own statements, discards them, and tests whether there are any.

import type { PgSession } from '../context.js'
import { PgError } from '../protocol/sqlstate.js'
import { forgetNoted } from './notifications.js'

/** Above this number, pending rows are stored before the transaction's own statements read them. */
export const ownRowsMax = 200_000

const syncType = 83
/** Limit of pending changes per transaction. */
export const deferredMax = 1000

/** Makes pending rows and changes visible to the session's own statements. */
export function showDeferred(pg: PgSession): void {
  const pending = pg.held.map(({ change, rows }) => ({ ...change, rows }))
  pg.transaction.see(pg.held.findLast(({ change }) => change.draft !== undefined)?.change.draft ?? null)
  pg.session = { ...pg.session, transaction: pg.transaction, pending }
}

/**
 * Whether schema changes are deferred: in a transaction, explicit or ended by Sync or the end of a multi-statement
 * query.
 */
export function isOpen({ status, isWithinText, held, isIdle, inbound, transaction, pendingSyncs }: PgSession): boolean {
  if (status !== 'I') return status === 'T'
  if (isWithinText || held.length > 0) return true
  // A single statement runs at once.
  const isFirst = pendingSyncs.length > 0 || transaction.rows === 0
  return !isIdle && !(isFirst && inbound.nextType === syncType)
}

/** Whether the transaction has changed schemas. */
export function hasDraft({ held }: PgSession): boolean {
  return held.some(({ change }) => change.draft !== undefined)
}

/** Discards all pending rows and changes. */
export function discardDeferred(pg: PgSession): void {
  for (const { rows } of pg.held.splice(0)) rows?.clear()
  forgetNoted(pg)
  pg.transaction.clear()
  pg.transaction.see(null)
  if (pg.session.pending !== undefined) pg.session = { ...pg.session, pending: [] }
}

/**
 * For a statement that reads stored data only or takes effect at once: throws PgError after pending schema changes.
 */
export function requireNoDraft(pg: PgSession): void {
  if (!hasDraft(pg)) return
  throw new PgError(
    '0A000',
    'the statement requires that the changes of the transaction are stored, but the transaction has changed schemas: commit the schema changes first',
  )
}

/** Collects every string in a syntax tree; the names are among them. */
export function gatherNames(node: unknown, names: Set<string>): void {
  if (typeof node === 'string') names.add(node.toLowerCase())
  else if (typeof node === 'object' && node !== null) for (const part of Object.values(node)) gatherNames(part, names)
}
