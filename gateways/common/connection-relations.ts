// Virtual tables about connections: sys.connections, sys.connection_log, and the rows of pg_stat_activity. Their data
// come from the registry of connections (connections.ts).

import type { Backend, VirtualRelation } from '../../engine/engine.js'
import type { ColumnType } from '../../engine/types/column-types.js'
import type { Value } from '../../engine/types/value.js'
import type { Connection, ConnectionEvent, ConnectionRegistry } from './connections.js'

/** A column's name, type and value for a row. */
type Column<Row> = readonly [name: string, type: ColumnType, value: (row: Row) => Value]

const connectionColumns: readonly Column<Connection>[] = [
  ['id', 'LONG', (row) => BigInt(row.id)],
  ['protocol', 'SYMBOL', (row) => row.protocol],
  ['remote_address', 'STRING', (row) => row.remoteAddress],
  ['principal', 'STRING', (row) => row.principal],
  ['connected_at', 'TIMESTAMP', (row) => BigInt(row.connectedAtMicros)],
  ['last_active_at', 'TIMESTAMP', (row) => BigInt(row.lastActiveAtMicros)],
  ['bytes_in', 'LONG', (row) => BigInt(row.bytesIn())],
  ['bytes_out', 'LONG', (row) => BigInt(row.bytesOut())],
  ['rows_received', 'LONG', (row) => BigInt(row.rowsReceived)],
  ['rows_committed', 'LONG', (row) => BigInt(row.rowsCommitted)],
  ['rows_rejected', 'LONG', (row) => BigInt(row.rowsRejected)],
  ['tls', 'BOOLEAN', (row) => row.tls],
  ['state', 'SYMBOL', (row) => row.state],
  ['application', 'STRING', (row) => row.application()],
]

const logColumns: readonly Column<ConnectionEvent>[] = [
  ['ts', 'TIMESTAMP', (row) => BigInt(row.atMicros)],
  ['id', 'LONG', (row) => BigInt(row.connection.id)],
  ['protocol', 'SYMBOL', (row) => row.connection.protocol],
  ['remote_address', 'STRING', (row) => row.connection.remoteAddress],
  ['principal', 'STRING', (row) => row.connection.principal],
  ['event', 'SYMBOL', (row) => row.event],
  ['reason', 'STRING', (row) => row.reason],
  ['duration_ms', 'LONG', (row) => (row.durationMs === null ? null : BigInt(row.durationMs))],
  ['bytes_in', 'LONG', (row) => BigInt(row.bytesIn)],
  ['bytes_out', 'LONG', (row) => BigInt(row.bytesOut)],
  ['rows_received', 'LONG', (row) => eventCount(row, row.connection.rowsReceived)],
  ['rows_committed', 'LONG', (row) => eventCount(row, row.connection.rowsCommitted)],
  ['rows_rejected', 'LONG', (row) => eventCount(row, row.connection.rowsRejected)],
]

export function connectionRelations(registry: ConnectionRegistry): VirtualRelation[] {
  return [
    relation('sys.connections', connectionColumns, () => [...registry.connections()]),
    relation('sys.connection_log', logColumns, () => registry.events()),
  ]
}

/** Sessions of the PostgreSQL wire protocol, once their user is known. */
export function backendsOf(registry: ConnectionRegistry): Backend[] {
  return [...registry.connections()].flatMap((connection) => {
    const { id, protocol, principal, application, remoteAddress, connectedAtMicros, lastActiveAtMicros } = connection
    if (protocol !== 'pg' || principal === null) return []
    const { state, tls } = connection
    const times = { connectedAtMicros, lastActiveAtMicros }
    return [{ processId: id, user: principal, application: application(), remoteAddress, ...times, state, tls }]
  })
}

/** Row counts are known when the connection closes; the event of its opening has none. */
function eventCount(row: ConnectionEvent, count: number): bigint {
  return row.event === 'CLOSE' ? BigInt(count) : 0n
}

function relation<Row>(name: string, columns: readonly Column<Row>[], rows: () => readonly Row[]): VirtualRelation {
  return {
    name,
    columns: columns.map(([column, type]) => ({ name: column, type })),
    rows: () => rows().map((row) => columns.map(([, , value]) => value(row))),
  }
}
