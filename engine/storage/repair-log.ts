// What the log tells a repair of tables: their newest schemas, which were dropped or truncated, and which transactions a
// start will replay.

import type { Files } from '../base/files.js'
import { decodeJson, decodeRows } from '../wal/frame-rows.js'
import { replayWal } from '../wal/replay.js'
import type { Marks } from '../wal/types.js'
import { frameKinds } from '../wal/types.js'
import type { LoggedChange } from './logged-change.js'
import { readOnly } from './read-only.js'
import type { TableSchema } from './schema.js'
import { finishedSchema } from './schema.js'

interface LoggedRows {
  /** The first transaction whose rows are in the log. */
  firstTxn: number
  /** Transactions at which all rows that were in no part were appended again. */
  readonly carried: number[]
  truncatedTxn: number
}

export interface LoggedTables {
  readonly schemas: ReadonlyMap<number, TableSchema>
  readonly dropped: ReadonlySet<number>
  readonly rows: ReadonlyMap<number, LoggedRows>
}

export function readLoggedTables(files: Files, directory: string, marks: Marks | undefined): LoggedTables {
  const schemas = new Map<number, TableSchema>()
  const dropped = new Set<number>()
  const rows = new Map<number, LoggedRows>()
  const wal = `${directory}/wal`
  if (!files.exists(wal)) return { schemas, dropped, rows }
  const rowsOf = (tableId: number): LoggedRows => {
    const known = rows.get(tableId) ?? { firstTxn: Number.POSITIVE_INFINITY, carried: [], truncatedTxn: -1 }
    rows.set(tableId, known)
    return known
  }
  const note = (change: LoggedChange): void => {
    if (change.kind === 'schema') {
      const known = schemas.get(change.schema.id)
      if (known === undefined || known.version < change.schema.version) schemas.set(change.schema.id, change.schema)
    } else if (change.kind === 'drop') dropped.add(change.tableId)
    else if (change.kind === 'truncate') rowsOf(change.tableId).truncatedTxn = change.transaction
    else {
      const known = schemas.get(change.tableId)
      if (known !== undefined) schemas.set(change.tableId, finishedSchema(known))
    }
  }
  replayWal(
    readOnly(files),
    wal,
    ({ kind, payload }) => {
      if (kind === frameKinds.ddl) note(decodeJson(payload) as LoggedChange)
      if (kind !== frameKinds.rows && kind !== frameKinds.carry) return
      const { ddl, tables } = decodeRows(payload)
      for (const change of ddl) note(change as LoggedChange)
      for (const { tableId, transaction } of tables) {
        const known = rowsOf(tableId)
        if (kind === frameKinds.carry) known.carried.push(transaction)
        else known.firstTxn = Math.min(known.firstTxn, transaction)
      }
    },
    { marks },
  )
  return { schemas, dropped, rows }
}
