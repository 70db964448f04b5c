// Parses CREATE, ALTER and REFRESH MATERIALIZED VIEW, with the clauses for the time of refreshes: IMMEDIATE, EVERY,
// MANUAL and PERIOD.

import { SqlError } from '../../base/errors.js'
import type {
  AlterMaterialized,
  AlterTable,
  CreateMaterialized,
  CreateView,
  PeriodClause,
  RefreshClause,
  RefreshMaterialized,
  TimeLength,
} from '../ast/ast.js'
import { advance, type Cursor, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  parseNameOrString,
  parseString,
  parseTableName,
  parseWholeNumber,
  take,
  takeTwo,
  unexpectedToken,
} from './expect.js'
import { parseTimeToLive, partitionUnitOf } from './table-options.js'
import { takeIfNotExists } from './tables.js'
import { expressionText } from './text.js'

export type ParseQuery = (cursor: Cursor) => Pick<CreateView, 'query' | 'queryText'>

/** The cursor is on `materialized`. `parseViewQuery` parses the query, with or without parentheses. */
export function parseCreateMaterialized(
  cursor: Cursor,
  position: number,
  parseViewQuery: ParseQuery,
): CreateMaterialized {
  advance(cursor)
  expect(cursor, 'view')
  const ifNotExists = takeIfNotExists(cursor)
  const view = parseTableName(cursor, atEnd(cursor) ? "view name or 'if' expected" : 'view name expected')
  const base = takeTwo(cursor, 'with', 'base') ? parseTableName(cursor, 'base table name expected') : null
  const refreshAt = cursor.start
  const refresh = take(cursor, 'refresh') ? parseRefresh(cursor, refreshAt) : immediately(refreshAt)
  expect(cursor, 'as', "'as' or 'with' or 'refresh' expected")
  const query = parseViewQuery(cursor)
  requireAliases(query)
  const timestamp = take(cursor, 'timestamp') ? parseTimestamp(cursor) : null
  const partitionBy = takeTwo(cursor, 'partition', 'by') ? parsePartition(cursor) : null
  const ttl = take(cursor, 'ttl') ? parseTimeToLive(cursor) : null
  if (cursor.word === 'owned') throw new SqlError('OWNED BY is not supported: views have no owners', cursor.start)
  return {
    ...{ kind: 'create materialized view', position, ifNotExists, view, base, refresh, ...query },
    ...{ timestamp, partitionBy, ttl },
  }
}

function immediately(position: number): RefreshClause {
  return { position, kind: 'immediate', deferred: false, every: null, start: null, timeZone: null, period: null }
}

/** Columns of the stored view need names. */
export function requireAliases({ query: { body } }: Pick<CreateView, 'query'>): void {
  for (const { expression, alias } of body.kind === 'select' ? body.items : []) {
    if (alias !== null || expression.kind === 'column' || expression.kind === 'star') continue
    const text = expressionText(expression)
    throw new SqlError(
      `column '${text}' requires an explicit alias. Use: ${text} AS your_column_name`,
      expression.position,
    )
  }
}

function parseTimestamp(cursor: Cursor): CreateMaterialized['timestamp'] {
  expect(cursor, '(')
  const name = parseNameOrString(cursor, 'literal expected')
  expect(cursor, ')')
  return name
}

export function parsePartition(cursor: Cursor): CreateMaterialized['partitionBy'] {
  const position = cursor.start
  const unit = partitionUnitOf(cursor.word)
  if (unit === null || unit === 'none')
    throw new SqlError("'HOUR', 'DAY', 'WEEK', 'MONTH' or 'YEAR' expected", position)
  advance(cursor)
  return { position, unit }
}

// REFRESH -----------------------------------------------------------------------------------------------------------

/** The cursor is after `refresh`. DEFERRED, START and TIME ZONE may come in any order. */
function parseRefresh(cursor: Cursor, position: number): RefreshClause {
  const { start: at } = cursor
  const kind = take(cursor, 'manual') ? 'manual' : take(cursor, 'every') ? 'timer' : 'immediate'
  if (kind === 'immediate' && !take(cursor, 'immediate') && cursor.word !== 'period')
    throw new SqlError("'immediate' or 'manual' or 'period' or 'every' expected", at)
  const every = kind === 'timer' ? parseLength(cursor) : null
  let clause: RefreshClause = { ...immediately(position), kind, every }
  for (;;) {
    if (!clause.deferred && take(cursor, 'deferred')) clause = { ...clause, deferred: true }
    else if (every !== null && clause.start === null && take(cursor, 'start'))
      clause = { ...clause, start: parseString(cursor, 'START timestamp expected') }
    else if (every !== null && clause.timeZone === null && takeTwo(cursor, 'time', 'zone'))
      clause = { ...clause, timeZone: parseString(cursor, 'TIME ZONE name expected') }
    else break
  }
  return cursor.word === 'period' ? { ...clause, period: parsePeriod(cursor) } : clause
}

/** `period (length 1d time zone 'Europe/London' delay 2h)`, `period (sample by interval)` */
function parsePeriod(cursor: Cursor): PeriodClause {
  const position = cursor.start
  advance(cursor)
  expect(cursor, '(')
  if (takeTwo(cursor, 'sample', 'by')) {
    expect(cursor, 'interval')
    expect(cursor, ')')
    return { position, length: null, timeZone: null, delay: null }
  }
  expect(cursor, 'length', "'length' or 'sample by interval' expected")
  const length = parseLength(cursor)
  const timeZone = takeTwo(cursor, 'time', 'zone') ? parseString(cursor, 'TIME ZONE name expected') : null
  const delay = take(cursor, 'delay') ? parseLength(cursor) : null
  expect(cursor, ')', "'time zone' or 'delay' or ')' expected")
  return { position, length, timeZone, delay }
}

const lengthUnits: Readonly<Record<string, TimeLength['unit']>> = {
  ...{ s: 's', m: 'm', h: 'h', d: 'd', w: 'w', M: 'M', y: 'y' },
  ...{ second: 's', minute: 'm', hour: 'h', day: 'd', week: 'w', month: 'M', year: 'y' },
}

/** `10m`, `2 hours` */
function parseLength(cursor: Cursor): TimeLength {
  const position = cursor.start
  const text = tokenText(cursor)
  const [, digits, letter = ''] = /^(\d{1,9})([smhdwMy])$/.exec(text) ?? []
  const short = lengthUnits[letter]
  if (cursor.kind === 'number' && short !== undefined) {
    advance(cursor)
    return checkedLength({ position, count: Number(digits), unit: short })
  }
  const count = parseWholeNumber(cursor, 'interval expected, such as 10m, 1h or 1d')
  const word = tokenText(cursor)
  const unit = lengthUnits[word] ?? lengthUnits[word.toLowerCase().replace(/(?<=.)s$/, '')]
  if (cursor.kind !== 'word' || unit === undefined)
    throw new SqlError('unit of the interval expected: s, m, h, d, w, M or y', cursor.start)
  advance(cursor)
  return checkedLength({ position, count, unit })
}

function checkedLength(length: TimeLength): TimeLength {
  if (length.count < 1 || length.count > 1_000_000)
    throw new SqlError('the interval must be between 1 and 1000000 units', length.position)
  return length
}

// ALTER and REFRESH -------------------------------------------------------------------------------------------------

/** The cursor is after `alter materialized`. `parseAction` parses an action of ALTER TABLE. */
export function parseAlterMaterialized(
  cursor: Cursor,
  position: number,
  parseAction: (cursor: Cursor) => AlterTable['actions'][number],
): AlterMaterialized {
  expect(cursor, 'view', "'view' expected", atEnd(cursor) ? cursor.start : undefined)
  const view = parseTableName(cursor, 'view name expected')
  const statement = { kind: 'alter materialized view', position, view } as const
  const refreshAt = cursor.start
  if (!takeTwo(cursor, 'set', 'refresh'))
    return { ...statement, action: { kind: 'table action', action: parseAction(cursor) } }
  if (take(cursor, 'limit'))
    return { ...statement, action: { kind: 'set refresh limit', limit: parseTimeToLive(cursor) } }
  return { ...statement, action: { kind: 'set refresh', refresh: parseRefresh(cursor, refreshAt) } }
}

/** The cursor is after `refresh`. Without a mode, only what has changed is refreshed, as in PostgreSQL's statement. */
export function parseRefreshMaterialized(cursor: Cursor, position: number): RefreshMaterialized {
  expect(cursor, 'materialized')
  expect(cursor, 'view')
  take(cursor, 'concurrently')
  const view = parseTableName(cursor, 'materialized view name expected')
  const statement = { kind: 'refresh materialized view', position, view, range: null } as const
  if (take(cursor, 'full')) return { ...statement, mode: 'full' }
  if (take(cursor, 'incremental') || atEnd(cursor)) return { ...statement, mode: 'incremental' }
  if (!take(cursor, 'range')) throw unexpectedToken(cursor)
  expect(cursor, 'from')
  const from = parseString(cursor, 'timestamp expected')
  expect(cursor, 'to')
  return { ...statement, mode: 'range', range: { from, to: parseString(cursor, 'timestamp expected') } }
}
