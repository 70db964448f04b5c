// What follows from a failed statement: the client is told, a transaction has failed, counters count.

import type { PgSession } from './context.js'
import { errorResponse } from './messages.js'
import { isInternal, noticeOf } from './sqlstate.js'

export function fail(pg: PgSession, thrown: unknown): void {
  const fields = noticeOf(thrown)
  pg.counters.queryErrors++
  if (isInternal(thrown)) {
    pg.counters.unhandledErrors++
    pg.log('E', 'pg', `statement failed: ${thrown instanceof Error ? thrown.stack : fields.message}`)
  }
  if (pg.status === 'T') pg.status = 'E'
  pg.out.put(errorResponse(fields))
}
