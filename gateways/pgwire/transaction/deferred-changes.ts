// Defers UPDATE and DELETE within BEGIN until COMMIT, so that ROLLBACK can discard them. The affected rows are counted
// at once, for the command tags. Schema changes are deferred, too (deferred-schemas.ts).
//
// At COMMIT, inserted rows that a deferred change affects are stored before it, and rows that were inserted after it
// are stored after it. A change that affects none of the inserted rows runs first, so that more rows can be stored in
// one request (joinRows() in transaction.ts).
//
// Queries of the transaction see the pending changes merged into the tables (engine/sql/statements/pending.ts). A
// statement that takes effect at once and may depend on pending changes (UPDATE with FROM, DELETE with USING) runs
// them first, with a warning that ROLLBACK can no longer undo them. Whether it depends on them is decided by the table
// names in the statement. After a pending schema change such a statement is rejected.
//
// MERGE and ON CONFLICT are deferred as well (deferred-upserts.ts). Queries cannot see their changes while these are
// pending. So if a query reads a table with such changes, they are executed before it.

import { whenReady } from '../../../engine/base/errors.js'
import { requireRight } from '../../../engine/base/rights.js'
import type { ChangePreview, ParsedStatement, Session } from '../../../engine/engine.js'
import { LazySignal } from '../../common/lazy-signal.js'
import type { DeferredChange, PgSession, RunOptions } from '../context.js'
import { isDeferrable } from './deferred-schemas.js'
import { deferredMax, gatherNames, hasDraft, ownRowsMax, requireNoDraft, showDeferred } from './deferred-state.js'
import { RowCursor, type Rows } from './row-cursor.js'
import { executeOptions, parametersOf, runInEngine, skipsRows, tagOf } from './run-engine.js'
import { applyDeferred, settle } from './transaction.js'

type Statement = ParsedStatement['statement']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>
type Changes = Of<'update' | 'delete'>

const tags = { update: 'UPDATE', delete: 'DELETE' } as const satisfies Record<Changes['kind'], string>
const heldBytesMax = 32 * 1024 * 1024

/** Statements about the session, or statements whose tables are examined when the statement that they name runs. */
const unrelated: ReadonlySet<Statement['kind']> = new Set([
  ...(['transaction', 'set', 'reset', 'deallocate', 'discard', 'prepare', 'execute', 'fetch', 'close'] as const),
  ...(['no operation', 'channel', 'empty'] as const),
])

/** Runs pending changes that may affect the statement. Null: there are none. */
export function applyDeferredBefore(pg: PgSession, { statement }: ParsedStatement): Promise<void> | null {
  if (pg.held.length === 0 || unrelated.has(statement.kind)) return null
  if ((seesPending(statement) || isDeferrable(pg, statement)) && pg.held.every(isReadable)) return null
  if (!isTouched(pg.held, statement)) return null
  if (pg.status === 'I') return settle(pg)
  requireNoDraft(pg)
  return applyDeferred(pg)
}

/** Whether the statement reads tables with pending changes merged in, or is deferred itself. */
function seesPending(statement: Statement): boolean {
  switch (statement.kind) {
    case 'query':
    case 'explain':
    case 'declare cursor':
      return true
    case 'update':
    case 'delete':
      return isPlainChange(statement)
    case 'copy':
      return statement.direction === 'to'
    case 'insert':
      return statement.source.kind === 'query' || skipsRows(statement)
    default:
      return false
  }
}

/** Whether a reader's plan can contain the change and the rows that it depends on. */
function isReadable({ rows, change }: DeferredChange): boolean {
  if (change.statement === null && change.draft === undefined) return false
  return rows === null || (rows.registered === 0 && rows.rows <= ownRowsMax)
}

function isTouched(held: readonly DeferredChange[], statement: Statement): boolean {
  // Its rows are stored after the change.
  if (statement.kind === 'insert' && statement.source.kind === 'rows' && !skipsRows(statement)) return false
  const names = new Set<string>()
  gatherNames(statement, names)
  return held.some(({ tables, change }) => change.draft !== undefined || [...tables].some((table) => names.has(table)))
}

function isPlainChange(statement: Statement): statement is Of<'update' | 'delete'> {
  if (statement.kind !== 'update' && statement.kind !== 'delete') return false
  const { from, joins, commonTables, declarations } = statement
  return from === null && joins.length + commonTables.length + declarations.length === 0
}

/** Defers the change until COMMIT; returns its tag, or its rows with RETURNING. Null: it cannot be deferred. */
export function deferChange(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<string | Rows> | null {
  const { statement } = parsed
  if (!(pg.status === 'T' || hasDraft(pg)) || !isPlainChange(statement) || !mayDefer(pg)) return null
  const { name } = statement.table
  if (pg.engine.table(name, pg.session) === undefined) return null
  const deferred = pg.engine.isLarge(name, pg.session)
  // Outside of a transaction a large change runs at once.
  return deferred && pg.status === 'I' ? null : holding(pg, parsed, statement, { ...options, deferred })
}

export function mayDefer({ held, transaction }: PgSession): boolean {
  if (held.length >= deferredMax || transaction.registered > 0) return false
  return held.reduce((sum, { rows }) => sum + (rows?.bytes ?? 0), transaction.bytes) <= heldBytesMax
}

async function holding(
  pg: PgSession,
  parsed: ParsedStatement,
  statement: Changes,
  options: RunOptions & { readonly deferred: boolean },
): Promise<string | Rows> {
  requireRight(pg.session, 'write', statement.position)
  const oids = options.types.map(({ oid }) => oid)
  // Binds the statement to report its errors now; COMMIT checks again, since tables may have changed by then.
  const check = (): Promise<void> | void => requireBinds(pg, parsed, oids)
  await check()
  const preview = await previewOf(pg, pg.session, parsed, options)
  const { rows } = preview
  const names = new Set<string>()
  gatherNames(statement, names)
  const own = (await isAboutRows(pg, parsed, { statement, names, rows, options })) ? pg.transaction : null
  // Its RETURNING rows have already been sent when it runs.
  const silent = { ...parsed, statement: { ...statement, returning: null } }
  pg.held.push({
    rows: own,
    change: { sql: parsed.text, parameters: parametersOf(options), statement: silent.statement },
    tables: new Set([statement.table.name.toLowerCase(), ...(own?.tables ?? [])]),
    names,
    deferred: options.deferred,
    check,
    run: async () => runInEngine(pg, silent, { ...options, columns: null }),
  })
  if (own !== null) pg.transaction = pg.engine.begin()
  showDeferred(pg)
  return preview.result === null
    ? tagOf(tags[statement.kind], rows)
    : new RowCursor(preview.result, options.binary, null)
}

/** Throws the errors that binding the statement finds. */
export function requireBinds(pg: PgSession, parsed: ParsedStatement, oids: readonly number[]): Promise<void> | void {
  return whenReady((planning) => void pg.engine.describe(parsed, { ...pg.session, planning }, oids))
}

interface Counted {
  readonly statement: Changes
  readonly names: ReadonlySet<string>
  readonly rows: number
  readonly options: RunOptions
}

/** Whether the change would have another result if the pending rows were stored after it. */
async function isAboutRows(
  pg: PgSession,
  parsed: ParsedStatement,
  { statement, names, rows, options }: Counted,
): Promise<boolean> {
  const named = pg.transaction.tables.filter((table) => names.has(table))
  if (named.length === 0) return false
  if (names.has('select')) return true
  if (named.length > 1 || named[0] !== statement.table.name.toLowerCase()) return true
  const { transaction: _, ...session } = pg.session
  const counted = { ...parsed, statement: { ...statement, returning: null } }
  return (await previewOf(pg, session, counted, options)).rows !== rows
}

/** Queries the rows that the change affects, including the transaction's own. */
function previewOf(
  pg: PgSession,
  session: Session,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<ChangePreview> {
  const running = new LazySignal()
  pg.running = running
  return pg.engine.preview(parsed, executeOptions(pg, options, running, session))
}
