// Defers schema changes within a transaction until COMMIT: each modifies the transaction's draft of the catalog
// (engine/storage/schema/draft.ts), which only its own statements see. COMMIT stores the draft and all rows and other
// changes of the transaction atomically, except for UPDATE and DELETE of large tables, which run afterwards
// (transaction.ts). ROLLBACK discards the draft.
//
// Statements that cannot be deferred are rejected within a transaction: COPY FROM files, changes of users, changes of
// partitions, BACKUP, ALTER CONNECTOR, and CREATE, ALTER and REFRESH of a MATERIALIZED or LIVE VIEW.

import type { ExecuteOptions, ParsedStatement } from '../../../engine/engine.js'
import { LazySignal } from '../../common/lazy-signal.js'
import type { PgSession, RunOptions } from '../context.js'
import { PgError } from '../protocol/sqlstate.js'
import { adaptedStatement } from './create-table.js'
import { deferredMax, gatherNames, hasDraft, isOpen, showDeferred } from './deferred-state.js'
import type { Rows } from './row-cursor.js'
import {
  gather,
  noteInserted,
  parametersOf,
  pgEncoding,
  runInEngine,
  sendNotes,
  tagOf,
  timeoutOf,
} from './run-engine.js'
import { takeSnapshot } from './snapshots.js'
import { settle } from './transaction.js'

type Statement = ParsedStatement['statement']

const kinds: ReadonlySet<Statement['kind']> = new Set([
  ...(['create table', 'alter table', 'rename table', 'drop table', 'truncate', 'drop all tables'] as const),
  ...(['create view', 'alter view', 'drop view', 'create type', 'alter type', 'drop type', 'drop schema'] as const),
  ...(['create sequence', 'alter sequence', 'drop sequence', 'comment', 'create index', 'alter index'] as const),
])

/** Defers the change until COMMIT and returns its tag. Null: not a schema change, or it takes effect at once. */
export function deferSchemaChange(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<Rows | string> | null {
  const { statement } = parsed
  const what = impossible(statement)
  if (what !== null && pg.status === 'T')
    throw new PgError('25001', `${what} cannot run inside a transaction block`, statement.position)
  if (what !== null || !isOpen(pg) || !kinds.has(statement.kind)) return null
  if (pg.pendingSyncs.length > 0 || !mayWait(pg)) return settledBefore(pg, parsed, options)
  return holding(pg, adaptedStatement(pg, parsed), options)
}

async function settledBefore(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Rows | string> {
  await settle(pg)
  return holding(pg, adaptedStatement(pg, parsed), options)
}

/** Whether the statement or its rows are deferred. */
export function isDeferrable(pg: PgSession, statement: Statement): boolean {
  if (!isOpen(pg)) return false
  return (
    kinds.has(statement.kind) || (statement.kind === 'copy' && statement.target.kind === 'connection' && hasDraft(pg))
  )
}

/** Describes a statement that cannot run in a transaction; null: it can. */
function impossible(statement: Statement): string | null {
  switch (statement.kind) {
    case 'user':
      return 'a change of users or of their rights'
    case 'alter connector':
      return 'ALTER CONNECTOR'
    case 'backup':
      return 'BACKUP'
    case 'create materialized view':
    case 'create live view':
      return statement.kind.toUpperCase()
    case 'alter materialized view':
    case 'refresh materialized view':
      return statement.kind.toUpperCase().replace('MATERIALIZED', statement.live === true ? 'LIVE' : 'MATERIALIZED')
    case 'copy':
      return statement.direction === 'from' && statement.target.kind !== 'connection' ? 'COPY FROM a file' : null
    case 'alter table':
      return statement.actions.some(({ kind }) => kind === 'partitions')
        ? 'DROP, DETACH, ATTACH and CONVERT PARTITION'
        : null
    default:
      return null
  }
}

/**
 * Returns false when earlier rows must be stored first, which is fine because they are not one transaction with it.
 */
function mayWait(pg: PgSession): boolean {
  const isRegistered = pg.transaction.registered > 0 || pg.held.some(({ rows }) => (rows?.registered ?? 0) > 0)
  if (!isRegistered && pg.held.length < deferredMax) return true
  if (pg.status === 'I') return false
  if (!isRegistered) throw new PgError('54000', `too many changes in one transaction [max=${deferredMax}]`)
  throw new PgError('0A000', 'the transaction has too many rows to change schemas now: commit the rows first')
}

async function holding(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Rows | string> {
  takeSnapshot(pg)
  const running = new LazySignal()
  pg.running = running
  const requested = requestedBy(pg, parsed, options, running)
  const { tag, draft, emptied, large, notes, fill } = await pg.engine.draft(parsed, requested)
  if (large && pg.status === 'I') {
    await settle(pg)
    return runInEngine(pg, parsed, options)
  }
  const names = new Set<string>()
  gatherNames(parsed.statement, names)
  // Earlier rows may belong to a table that it truncates, or to a column whose type it changes.
  const rows = pg.transaction.rows > 0 ? pg.transaction : null
  pg.held.push({
    rows,
    change: { sql: '', parameters: [], statement: null, draft, emptied },
    ...{ tables: new Set<string>(), names, deferred: large, check: () => {} },
    run: async () => runInEngine(pg, parsed, { ...options, columns: null }),
  })
  if (rows !== null) pg.transaction = pg.engine.begin()
  showDeferred(pg)
  sendNotes(pg, notes)
  if (fill === null) return tagOf(tag, 0)
  const filled = await fill((tableId, batch) => gather(pg, tableId, batch))
  noteInserted(pg, filled)
  return tagOf(tag, filled)
}

function requestedBy(pg: PgSession, parsed: ParsedStatement, options: RunOptions, signal: LazySignal): ExecuteOptions {
  return {
    ...{ session: pg.session, parsed, encoding: pgEncoding(pg, options.binary), parameters: parametersOf(options) },
    ...{ skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false, columns: null, timeoutMs: timeoutOf(pg) },
    ...{ signal, explain: false },
  }
}
