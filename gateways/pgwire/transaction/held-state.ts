// What a session holds back until its transaction ends, and what its own statements see of that.

import type { PgSession } from '../context.js'
import { PgError } from '../protocol/sqlstate.js'
import { forgetNoted } from './notifications.js'

/** More rows than this are not read by the transaction's own statements: they are stored before. */
export const ownRowsMax = 200_000

const syncType = 83
/** Changes that wait in one transaction. */
export const heldMax = 1000

/** The statements of the session see its rows and what it holds. */
export function showHeld(pg: PgSession): void {
  const pending = pg.held.map(({ change, rows }) => ({ ...change, rows }))
  pg.transaction.see(pg.held.findLast(({ change }) => change.draft !== undefined)?.change.draft ?? null)
  pg.session = { ...pg.session, transaction: pg.transaction, pending }
}

/** Whether a change of schemas waits for the end of a transaction: also of one that Sync or the end of a text ends. */
export function isOpen({
  status,
  isWithinText,
  held,
  isResting,
  inbound,
  transaction,
  unanswered,
}: PgSession): boolean {
  if (status !== 'I') return status === 'T'
  if (isWithinText || held.length > 0) return true
  // A statement that is alone is carried out at once.
  const isFirst = unanswered.length > 0 || transaction.rows === 0
  return !isResting && !(isFirst && inbound.nextType === syncType)
}

/** The transaction has changed schemas. */
export function hasDraft({ held }: PgSession): boolean {
  return held.some(({ change }) => change.draft !== undefined)
}

/** Forgets all rows and changes that have not been stored. */
export function forgetRows(pg: PgSession): void {
  for (const { rows } of pg.held.splice(0)) rows?.clear()
  forgetNoted(pg)
  pg.transaction.clear()
  pg.transaction.see(null)
  if (pg.session.pending !== undefined) pg.session = { ...pg.session, pending: [] }
}

/** A statement that reads what has not been stored, or takes effect at once. Throws PgError behind changes of schemas. */
export function demandNoDraft(pg: PgSession): void {
  if (!hasDraft(pg)) return
  throw new PgError(
    '0A000',
    'the statement needs what the transaction has changed to be stored, and it has changed schemas: commit these first',
  )
}

/** Every text in a piece of the syntax tree: names are among them. */
export function gatherNames(node: unknown, names: Set<string>): void {
  if (typeof node === 'string') names.add(node.toLowerCase())
  else if (typeof node === 'object' && node !== null) for (const part of Object.values(node)) gatherNames(part, names)
}
