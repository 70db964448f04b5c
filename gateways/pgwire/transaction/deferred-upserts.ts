// Defers MERGE, INSERT .. ON CONFLICT and data changes in WITH within BEGIN until COMMIT, so that ROLLBACK can discard them.
// Each is also executed at once without effect, to report its errors and the row count of its command tag.
//
// The count must equal that of the deferred execution. DO UPDATE without a condition changes as many rows as VALUES
// has, whatever the transaction has done before. Other statements are counted against the stored rows: if the
// transaction has pending rows or changes of their tables, these are stored first, with a warning that ROLLBACK can no
// longer undo them.

import { requireRight } from '../../../engine/base/rights.js'
import type { ParsedStatement } from '../../../engine/engine.js'
import { LazySignal } from '../../common/lazy-signal.js'
import type { PgSession, RunOptions } from '../context.js'
import { PgError } from '../protocol/sqlstate.js'
import { mayDefer, requireBinds } from './deferred-changes.js'
import { gatherNames, requireNoDraft, showDeferred } from './deferred-state.js'
import { executeOptions, parametersOf, runInEngine, tagOf } from './run-engine.js'
import { applyDeferred, storeRows } from './transaction.js'

/** Returns the tag. Throws PgError for what cannot be deferred. */
export async function deferUpsert(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<string> {
  const { statement } = parsed
  if (statement.kind !== 'insert' && statement.kind !== 'merge' && statement.kind !== 'with changes')
    throw new PgError('XX000', 'the statement is not an upsert')
  requireNoDraft(pg)
  requireRight(pg.session, 'write', statement.position)
  requireNoResult(statement)
  const names = new Set<string>()
  gatherNames(statement, names)
  const isNamed = (tables: Iterable<string>): boolean => [...tables].some((table) => names.has(table))
  const depends = isNamed(pg.transaction.tables) || pg.held.some(({ tables }) => isNamed(tables))
  if (!mayDefer(pg) || (depends && !hasCertainCount(parsed))) {
    await applyDeferred(pg)
    await storeRows(pg)
  }
  const tag = await preview(pg, parsed, options)
  const oids = options.types.map(({ oid }) => oid)
  const own = isNamed(pg.transaction.tables) ? pg.transaction : null
  pg.held.push({
    rows: own,
    change: { sql: parsed.text, parameters: parametersOf(options), statement: null },
    tables: new Set([...targetsOf(statement), ...(own?.tables ?? [])]),
    names,
    deferred: false,
    check: () => requireBinds(pg, parsed, oids),
    run: async () => runInEngine(pg, parsed, { ...options, columns: null }),
  })
  if (own !== null) pg.transaction = pg.engine.begin()
  showDeferred(pg)
  return tag
}

type Upsert = Extract<ParsedStatement['statement'], { kind: 'insert' | 'merge' | 'with changes' }>

/** Throws PgError for statements with a result: generated values of the rows would be others at COMMIT. */
function requireNoResult(statement: Upsert): void {
  const outer = statement.kind === 'with changes' ? statement.statement : statement
  if (outer.kind !== 'query' && outer.returning === null) return
  if (statement.kind === 'with changes')
    throw new PgError(
      '0A000',
      'the result of data changes in WITH is not supported within a transaction block: run it without BEGIN',
    )
  const what = statement.kind === 'merge' ? 'MERGE' : 'ON CONFLICT'
  throw new PgError('0A000', `RETURNING of ${what} is not supported within a transaction block: run it without BEGIN`)
}

/** The names of the changed tables. */
function targetsOf(statement: Upsert): string[] {
  if (statement.kind !== 'with changes') return [statement.table.name.toLowerCase()]
  const changes = [
    ...statement.tables.map((table) => ('query' in table ? table.query : table.statement)),
    statement.statement,
  ]
  return changes.flatMap((change) => (change.kind === 'query' ? [] : [change.table.name.toLowerCase()]))
}

/** Whether the count does not depend on the rows of the table. */
function hasCertainCount({ statement }: ParsedStatement): boolean {
  if (statement.kind !== 'insert' || statement.source.kind !== 'rows' || statement.conflict === null) return false
  const { assignments, where } = statement.conflict
  return assignments !== null && where === null
}

async function preview(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<string> {
  const running = new LazySignal()
  pg.running = running
  // It is counted against the stored rows.
  const { transaction: _, pending: __, ...session } = pg.session
  const base = executeOptions(pg, options, running, session)
  const result = await pg.engine.execute(parsed.text, { ...base, parsed, isPreview: true })
  if (result.kind !== 'done') throw new PgError('XX000', 'unexpected rows as the result')
  return tagOf(result.tag, result.rows)
}
