// Tables as sinks and migrations of other databases make them: keys and indexes mean nothing here, which the client is told;
// by setting, the first TIMESTAMP column that is NOT NULL becomes the designated timestamp of a table that names none.

import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession } from './context.js'
import { noticeResponse } from './messages.js'

type CreateTable = Extract<ParsedStatement['statement'], { kind: 'create table' }>

const timestampTypes: ReadonlySet<string> = new Set(['timestamp', 'timestamptz', 'timestamp_ns'])

const keysIgnored = 'keys are ignored: rows are not unique; DEDUP UPSERT KEYS makes them so'
const defaultsIgnored = 'defaults are ignored: a column that INSERT does not name is NULL'
const indexesIgnored = 'indexes are not needed, none is made: pages of parts keep their bounds'

/** The statement as it is carried out. */
export function adaptedStatement(pg: PgSession, parsed: ParsedStatement): ParsedStatement {
  const { statement } = parsed
  if (statement.kind === 'create index') notice(pg, statement.unique ? keysIgnored : indexesIgnored)
  else if (statement.kind === 'alter table' && statement.action.kind === 'add key') notice(pg, keysIgnored)
  if (statement.kind !== 'create table' || statement.source.kind !== 'columns') return parsed
  const { columns, hasKeys } = statement.source
  if (hasKeys || columns.some(({ primaryKey }) => primaryKey)) notice(pg, keysIgnored)
  if (columns.some(({ defaultValue }) => defaultValue !== null)) notice(pg, defaultsIgnored)
  return pg.options.firstTimestamp ? { ...parsed, statement: withTimestamp(pg, statement, columns) } : parsed
}

function withTimestamp(
  pg: PgSession,
  statement: CreateTable,
  columns: Extract<CreateTable['source'], { kind: 'columns' }>['columns'],
): CreateTable {
  if (statement.timestamp !== null) return statement
  const found = columns.find(({ notNull, type }) => notNull && timestampTypes.has(type.name))
  if (found === undefined) return statement
  notice(pg, `the designated timestamp is "${found.name}"`)
  const { name, quoted, position } = found
  const partitionBy = statement.partitionBy ?? { position, unit: 'day' as const }
  return { ...statement, timestamp: { name, quoted, position }, partitionBy }
}

function notice(pg: PgSession, message: string): void {
  pg.out.put(noticeResponse({ severity: 'NOTICE', code: '00000', message, position: 0 }))
}
