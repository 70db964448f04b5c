// Read snapshots of REPEATABLE READ and SERIALIZABLE transactions: all queries see the tables as of the first query,
// plus the transaction's own rows and changes. pg_export_snapshot() shares a snapshot with other sessions, as
// `pg_dump -j` needs.
//
// Invariant: a snapshot is released when its transaction or session ends. Until then it retains disk space and
// memory.

import type { PgSession } from '../context.js'
import { PgError } from '../protocol/sqlstate.js'

/** Takes the snapshot, if needed, before a statement that may read. */
export function takeSnapshot(pg: PgSession): void {
  const { status, session, engine } = pg
  if (status === 'I' || session.snapshot !== undefined || !repeatsReads(pg)) return
  pg.session = { ...session, snapshot: engine.holdSnapshot() }
}

function repeatsReads({ settings }: PgSession): boolean {
  const level = settings.get('transaction_isolation') ?? settings.get('default_transaction_isolation')
  return level === 'repeatable read' || level === 'serializable'
}

/** Drops the snapshot because the transaction has changed something that its next statement must see. */
export function dropSnapshot(pg: PgSession): void {
  const { snapshot, ...session } = pg.session
  if (snapshot === undefined) return
  snapshot.release()
  pg.session = session
}

/** Releases all snapshots at the end of the transaction. */
export function releaseSnapshots(pg: PgSession): void {
  dropSnapshot(pg)
  for (const id of pg.exported) {
    pg.snapshots.get(id)?.release()
    pg.snapshots.delete(id)
  }
  pg.exported.length = 0
}

/** Runs pg_export_snapshot(): returns an id in PostgreSQL's format, usable only while the transaction is open. */
export function exportSnapshot(pg: PgSession): string {
  const { connection, engine, session, snapshots, exported } = pg
  const hex = (value: number): string => value.toString(16).toUpperCase().padStart(8, '0')
  const id = `${hex(connection.id)}-${hex(exported.length + 1)}-1`
  if (pg.status === 'I') return id
  snapshots.set(id, engine.holdSnapshot(session.snapshot))
  exported.push(id)
  return id
}

/** Runs SET TRANSACTION SNAPSHOT. */
export function importSnapshot(pg: PgSession, id: string): void {
  const { engine, session, snapshots } = pg
  if (!repeatsReads(pg)) {
    const levels = 'SERIALIZABLE or REPEATABLE READ'
    throw new PgError('0A000', `a snapshot-importing transaction must have isolation level ${levels}`)
  }
  if (session.snapshot !== undefined)
    throw new PgError('25001', 'SET TRANSACTION SNAPSHOT must be called before any query')
  const snapshot = snapshots.get(id)
  if (snapshot === undefined) throw new PgError('22023', `invalid snapshot identifier: "${id}"`)
  pg.session = { ...session, snapshot: engine.holdSnapshot(snapshot) }
}
