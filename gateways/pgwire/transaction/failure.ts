// What follows from a failed statement: the client is told, a transaction has failed, counters count.

import type { PgSession } from '../context.js'
import { errorResponse } from '../protocol/messages.js'
import { isInternal, noticeOf } from '../protocol/sqlstate.js'
import { forgetRows } from './held-state.js'
import { forgetNoted } from './notifications.js'

/** Throws what it is given when the session was ended from outside: that is what the client is told. */
export function fail(pg: PgSession, thrown: unknown): void {
  if (pg.inbound.closed) throw thrown
  // Rows of a transaction stay for a savepoint before them; without BEGIN the failure takes all since the last Sync.
  if (pg.status === 'T') pg.status = 'E'
  else if (pg.status === 'I') {
    forgetNoted(pg)
    if (pg.held.length > 0) forgetRows(pg)
    else if (pg.synced === null) pg.transaction.clear()
    else pg.transaction.backTo(pg.synced)
  }
  pg.out.put(failureMessage(pg, thrown))
}

/** Counts the error; what the client is told. */
export function failureMessage(pg: PgSession, thrown: unknown): Buffer {
  const fields = noticeOf(thrown, pg.text)
  pg.counters.queryErrors++
  if (isInternal(thrown)) {
    pg.counters.unhandledErrors++
    pg.log('E', 'pg', `statement failed: ${thrown instanceof Error ? thrown.stack : fields.message}`)
  }
  return errorResponse(fields)
}
