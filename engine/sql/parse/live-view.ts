// Parses CREATE LIVE VIEW, and ALTER and REFRESH LIVE VIEW.

import { SqlError } from '../../base/errors.js'
import type {
  AlterMaterialized,
  AlterTable,
  CreateLive,
  LiveLength,
  LiveStart,
  RefreshMaterialized,
} from '../ast/ast.js'
import { advance, type Cursor, peekWord, tokenText } from './cursor.js'
import { atEnd, expect, parseString, parseTableName, take, takeTwo, unexpectedToken } from './expect.js'
import { type ParseQuery, parsePartition, requireAliases } from './mat-view.js'
import { takeIfNotExists } from './tables.js'

export function isLiveView(cursor: Cursor): boolean {
  return cursor.word === 'live' && peekWord(cursor) === 'view'
}

/** The cursor is on `live`. */
export function parseCreateLive(cursor: Cursor, position: number, parseViewQuery: ParseQuery): CreateLive {
  advance(cursor)
  advance(cursor)
  const ifNotExists = takeIfNotExists(cursor)
  const view = parseTableName(cursor, atEnd(cursor) ? "view name or 'if' expected" : 'view name expected')
  if (!takeTwo(cursor, 'flush', 'every')) throw new SqlError("'flush every' expected", cursor.start)
  const flushEvery = parseLength(cursor)
  const clauses = parseClauses(cursor)
  if (clauses.start === null) throw new SqlError("'start from' expected", cursor.start)
  expect(cursor, 'as', "'in memory' or 'partition by' or 'start from' or 'as' expected")
  const query = parseViewQuery(cursor)
  requireAliases(query)
  if (cursor.word === 'ttl')
    throw new SqlError('TTL is not supported in live views: set one for the table', cursor.start)
  if (cursor.word === 'owned') throw new SqlError('OWNED BY is not supported: views have no owners', cursor.start)
  const { inMemory, partitionBy, start } = clauses
  return {
    ...{ kind: 'create live view', position, ifNotExists, view, flushEvery, inMemory, partitionBy, start },
    ...query,
  }
}

/** IN MEMORY, PARTITION BY and START FROM come in any order. */
function parseClauses(cursor: Cursor): Pick<CreateLive, 'inMemory' | 'partitionBy'> & { start: LiveStart | null } {
  let [inMemory, partitionBy, start]: [LiveLength | null, CreateLive['partitionBy'], LiveStart | null] = [
    null,
    null,
    null,
  ]
  for (;;) {
    const { start: position } = cursor
    if (inMemory === null && takeTwo(cursor, 'in', 'memory')) inMemory = parseLength(cursor)
    else if (partitionBy === null && takeTwo(cursor, 'partition', 'by')) partitionBy = parsePartition(cursor)
    else if (start === null && takeTwo(cursor, 'start', 'from')) start = parseStart(cursor, position)
    else return { inMemory, partitionBy, start }
  }
}

function parseStart(cursor: Cursor, position: number): LiveStart {
  if (take(cursor, 'now')) return { position, kind: 'now', timestamp: null }
  if (take(cursor, 'beginning')) return { position, kind: 'beginning', timestamp: null }
  return { position, kind: 'timestamp', timestamp: parseString(cursor, "'now' or 'beginning' or timestamp expected") }
}

function parseLength(cursor: Cursor): LiveLength {
  const { start: position } = cursor
  const text = tokenText(cursor)
  if (cursor.kind !== 'number' || !/^\d{1,9}(ms|s|m|h|d)$/.test(text))
    throw new SqlError('duration expected, such as 100ms, 5s or 1m', position)
  advance(cursor)
  return { position, text }
}

/** The cursor is on `live`. */
export function parseAlterLive(
  cursor: Cursor,
  position: number,
  parseAction: (cursor: Cursor) => AlterTable['actions'][number],
): AlterMaterialized {
  advance(cursor)
  advance(cursor)
  const view = parseTableName(cursor, 'view name expected')
  return {
    ...{ kind: 'alter materialized view', position, live: true, view },
    action: { kind: 'table action', action: parseAction(cursor) },
  }
}

/** The cursor is on `live`. */
export function parseRefreshLive(cursor: Cursor, position: number): RefreshMaterialized {
  advance(cursor)
  expect(cursor, 'view')
  const view = parseTableName(cursor, 'live view name expected')
  const mode = take(cursor, 'full') ? 'full' : 'incremental'
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return { kind: 'refresh materialized view', position, live: true, view, range: null, mode }
}
