// Handles a failed statement: reports the error and updates the counters. In a transaction it marks the transaction as
// failed; without BEGIN it discards the rows since the last Sync.

import type { PgSession } from '../context.js'
import { errorResponse } from '../protocol/messages.js'
import { isInternal, noticeOf } from '../protocol/sqlstate.js'
import { discardDeferred } from './deferred-state.js'
import { forgetNoted } from './notifications.js'

/** Rethrows the error when the server has ended the session: the client gets that reason instead. */
export function fail(pg: PgSession, thrown: unknown): void {
  if (pg.inbound.closed) throw thrown
  // Rows of a transaction stay for a possible savepoint; without BEGIN the failure discards all rows since the last
  // Sync.
  if (pg.status === 'T') pg.status = 'E'
  else if (pg.status === 'I') {
    forgetNoted(pg)
    if (pg.held.length > 0) discardDeferred(pg)
    else if (pg.synced === null) pg.transaction.clear()
    else pg.transaction.backTo(pg.synced)
  }
  pg.out.put(failureMessage(pg, thrown))
}

/** Counts the error and builds the ErrorResponse. */
export function failureMessage(pg: PgSession, thrown: unknown): Buffer {
  const fields = noticeOf(thrown, pg.text)
  pg.counters.queryErrors++
  if (isInternal(thrown)) {
    pg.counters.unhandledErrors++
    pg.log('E', 'pg', `statement failed: ${thrown instanceof Error ? thrown.stack : fields.message}`)
  }
  return errorResponse(fields)
}
