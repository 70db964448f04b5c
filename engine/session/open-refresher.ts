// Creates the refresher of materialized views (engine/views/view-refresher.ts) on the main thread, and provides the
// engine's functions that it calls: snapshots, statements, flushes, and the record of stored buckets.

import type { Session } from '../api/session.js'
import type { ExecuteOptions, StopSignal } from '../api/statements.js'
import type { Catalog } from '../sql/catalog.js'
import type { WriterRequests } from '../threads/writer-requests.js'
import { ViewRefresher } from '../views/view-refresher.js'
import type { LocalEngineOptions } from './local-options.js'
import { allRows } from './plan-helpers.js'

/** Options of a statement without rows that the server itself executes. */
export const internalStatement: Omit<ExecuteOptions, 'session' | 'signal'> = {
  ...allRows,
  encoding: { kind: 'count' },
  parameters: [],
  columns: null,
  timeoutMs: 0,
  explain: false,
}

export function openRefresher(
  { view, memory, clock, log, durable = false }: LocalEngineOptions,
  catalog: Catalog,
  requests: WriterRequests,
  execute: (sql: string, session: Session, signal: StopSignal | null) => Promise<unknown>,
): ViewRefresher {
  return new ViewRefresher({
    ...{ memory, catalog, log, durable, execute },
    nowMicros: () => clock.nowMicros(),
    monotonicMs: () => clock.monotonicMs(),
    holdSnapshot: () => view.holdSnapshot(),
    byId: (tableId) => view.byId(tableId),
    tables: () => view.tables(),
    transaction: (version) => view.visibleTransaction(version),
    flush: (tableId) => requests.send((requestId) => ({ kind: 'checkpoint', requestId, tableId })),
    change: (change) => requests.change(change),
    record: (tableId, stored) => requests.change({ kind: 'alterTable', tableId, changes: { stored } }),
  })
}
