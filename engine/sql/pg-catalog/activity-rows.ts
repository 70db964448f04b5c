// pg_stat_activity: every session of the wire protocol, as sys.connections knows them, with what it runs now; and statements
// that came another way.

import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import type { QueryFigures } from '../catalog.js'
import type { RowRecord } from './catalog.js'
import { databaseName, databaseOid, ownerOid } from './database.js'

export function activityRecords({ catalog }: BindContext): RowRecord[] {
  const running = catalog.activity()
  const sessions = sessionsOf(catalog.relation('sys.connections'))
  const known = new Set(sessions.map(({ pid }) => pid))
  return [
    ...sessions.map((session) => ({
      ...session,
      ...statementOf(running.find((one) => one.processId === session.pid)),
    })),
    ...running
      .filter(({ processId }) => !known.has(processId))
      .map((one) => ({ ...everybody, ...statementOf(one), pid: one.queryId, usename: one.user })),
  ]
}

const everybody = {
  datid: databaseOid,
  datname: databaseName,
  leader_pid: null,
  usesysid: ownerOid,
  backend_type: 'client backend',
}

function sessionsOf(
  connections: ReturnType<BindContext['catalog']['relation']>,
): (RowRecord & { readonly pid: number; readonly ssl: Value })[] {
  if (connections === undefined) return []
  const names = connections.columns.map(({ name }) => name)
  return connections.rows().flatMap((row) => {
    const of = (name: string) => row[names.indexOf(name)] ?? null
    if (of('protocol') !== 'pg' || of('principal') === null) return []
    const address = String(of('remote_address'))
    const colon = address.lastIndexOf(':')
    const state = String(of('state'))
    return {
      ...everybody,
      pid: Number(of('id')),
      usename: of('principal'),
      application_name: of('application'),
      client_addr: address.slice(0, colon).replace(/^\[|\]$/g, ''),
      client_port: Number(address.slice(colon + 1)),
      backend_start: of('connected_at'),
      state_change: of('last_active_at'),
      state: state === 'querying' ? 'active' : state,
      query: '',
      ssl: of('tls'),
    }
  })
}

/** Rows of pg_stat_ssl. */
export function sslRecords({ catalog }: BindContext): RowRecord[] {
  return sessionsOf(catalog.relation('sys.connections')).map(({ pid, ssl }) => ({ pid, ssl }))
}

function statementOf(figures: QueryFigures | undefined): RowRecord {
  if (figures === undefined) return {}
  const { queryId, startMicros, sql } = figures
  const start = BigInt(startMicros)
  return { query_start: start, state_change: start, state: 'active', query_id: BigInt(queryId), query: sql }
}
