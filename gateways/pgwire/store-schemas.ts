// COMMIT of a transaction that has changed schemas: one request for all of it. An UPDATE or DELETE of a table with too many
// rows to be written anew is carried out behind it, which is one more step that can fail by itself.

import { LateSignal } from '../common/late-signal.js'
import type { HeldChange, PgSession } from './context.js'
import { showHeld } from './held-state.js'
import { noticeOf, PgError } from './sqlstate.js'

/** Stores what has waited, with the rows of the transaction. */
export async function storeSchemas(pg: PgSession): Promise<void> {
  const [only, second] = pg.held
  const isAlone = second === undefined && pg.transaction.rows === 0
  if (only?.late === true && isAlone && only.rows === null) return runLate(pg, [only])
  const late = pg.held.filter(({ late: isLate, change }) => isLate && change.statement !== null)
  demandCommuting(pg, late)
  await storeTogether(pg, late)
  try {
    await runLate(pg, late)
  } catch (error) {
    const message = `the transaction is stored but for what it does to tables of many rows: ${noticeOf(error).message}`
    throw new PgError('40003', message)
  }
}

async function storeTogether(pg: PgSession, late: readonly HeldChange[]): Promise<void> {
  const { connection, counters } = pg
  const own = [...pg.held.flatMap(({ rows }) => rows ?? []), pg.transaction]
  const rows = own.reduce((sum, part) => sum + part.rows, 0)
  // Rows that came before a late change are there when it is carried out.
  const pending = pg.held.map((held) => ({
    ...held.change,
    rows: held.rows,
    statement: late.includes(held) ? null : held.change.statement,
  }))
  const running = new LateSignal()
  pg.running = running
  try {
    await pg.engine.commitDraft({
      ...{ session: { ...pg.session, pending }, encoding: { kind: 'count' }, parameters: [], skip: 0 },
      ...{ rowsMax: Number.POSITIVE_INFINITY, countAll: false, columns: null, timeoutMs: 0 },
      ...{ signal: running, explain: false },
    })
    connection.rowsCommitted += rows
    counters.rowsWritten += rows
  } catch (error) {
    connection.rowsRejected += rows
    throw error
  }
}

/** Each is a change of its own, and they see what is stored. */
async function runLate(pg: PgSession, late: readonly HeldChange[]): Promise<void> {
  if (late.length === 0) return
  const { transaction: _, pending: __, ...session } = pg.session
  pg.session = session
  try {
    for (const change of late) await change.run()
  } finally {
    showHeld(pg)
  }
}

/** Throws PgError when late changes would come out otherwise behind the rest. */
function demandCommuting(pg: PgSession, late: readonly HeldChange[]): void {
  for (const change of late) {
    const behind = pg.held.slice(pg.held.indexOf(change) + 1)
    const rows = [...behind.flatMap(({ rows: own }) => own?.tables ?? []), ...pg.transaction.tables]
    const names = new Set([...rows, ...behind.flatMap((other) => (other.late ? [] : [...other.names]))])
    const both = [...change.tables].find((table) => names.has(table)) ?? rows.find((table) => change.names.has(table))
    if (both === undefined) continue
    throw new PgError(
      '0A000',
      `a table of many rows is changed and then changed otherwise by a transaction that changes schemas: commit in between [table=${both}]`,
    )
  }
}
