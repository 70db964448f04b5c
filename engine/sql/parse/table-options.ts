// Parses clauses that CREATE TABLE and ALTER TABLE share: partition units, TTL, FORMAT, and named options.

import { SqlError } from '../../base/errors.js'
import type { PartitionUnit, TableOption, TimeToLive } from '../ast/ast.js'
import { advance, at, type Cursor, quotedValue, tokenText } from './cursor.js'
import { atEnd, expect, parseName, parseWholeNumber, take, tooFew } from './expect.js'

const partitionUnits: ReadonlySet<string> = new Set<PartitionUnit>(['none', 'hour', 'day', 'week', 'month', 'year'])

export function partitionUnitOf(word: string): PartitionUnit | null {
  return partitionUnits.has(word) ? (word as PartitionUnit) : null
}

const ttlUnits: Readonly<Record<string, TimeToLive['unit']>> = {
  h: 'hour',
  d: 'day',
  w: 'week',
  M: 'month',
  m: 'month',
  y: 'year',
}

const ttlExpected = "'HOUR(S)', 'DAY(S)', 'WEEK(S)', 'MONTH(S)' or 'YEAR(S)'"

/** `3 days`, `2w`, `0h` */
export function parseTimeToLive(cursor: Cursor): TimeToLive {
  const position = cursor.start
  const match = /^(\d{1,9})([a-zA-Z]?)$/.exec(tokenText(cursor))
  if (cursor.kind !== 'number' || match === null) throw timeToLiveError(cursor)
  const short = match[2] ?? ''
  if (short === '') return parseLongTimeToLive(cursor, position)
  const unit = ttlUnits[short] ?? ttlUnits[short.toLowerCase()]
  if (unit === undefined)
    throw new SqlError(
      `invalid time unit, expecting 'H', 'D', 'W', 'M' or 'Y', but was '${short}'`,
      position + match[0].length - 1,
    )
  advance(cursor)
  return widest({ position, count: Number(match[1]), unit })
}

const widerUnits: Readonly<Partial<Record<TimeToLive['unit'], readonly [number, TimeToLive['unit']]>>> = {
  hour: [24, 'day'],
  day: [7, 'week'],
  month: [12, 'year'],
}

/** The TTL in the largest unit: 48 hours are shown as two days. */
function widest(ttl: TimeToLive): TimeToLive {
  const wider = widerUnits[ttl.unit]
  if (wider === undefined || ttl.count === 0 || ttl.count % wider[0] !== 0) return ttl
  return widest({ ...ttl, count: ttl.count / wider[0], unit: wider[1] })
}

function timeToLiveError(cursor: Cursor): SqlError {
  const { start } = cursor
  if (atEnd(cursor)) return new SqlError('missing argument, should be <number> <unit> or <number_with_unit>', start)
  const text = tokenText(cursor)
  const point = text.indexOf('.')
  if (point > 0) return new SqlError(`invalid unit, expected ${ttlExpected}, but was '.'`, start + point + 1)
  return /^[a-z]{2,}$/i.test(text)
    ? new SqlError('invalid argument, should be <number> <unit> or <number_with_unit>', start)
    : new SqlError(`invalid syntax, should be <number> <unit> but was ${text}`, start)
}

function parseLongTimeToLive(cursor: Cursor, position: number): TimeToLive {
  const count = parseWholeNumber(cursor, 'missing or invalid TTL value')
  if (cursor.kind !== 'word') throw new SqlError(`missing unit, ${ttlExpected} expected`, cursor.start)
  const unit = ttlUnits[tokenText(cursor)] ?? ttlUnits[cursor.word] ?? partitionUnitOf(cursor.word.replace(/s$/, ''))
  if (unit === null || unit === 'none') {
    throw new SqlError(`invalid unit, expected ${ttlExpected}, but was '${tokenText(cursor)}'`, cursor.start)
  }
  advance(cursor)
  return widest({ position, count, unit })
}

/**
 * Parses `format parquet` or `format native` and returns the format, or null without moving. Partitions are Parquet
 * files whatever the format, so the clause changes nothing.
 */
export function takeFormat(cursor: Cursor): 'parquet' | 'native' | null {
  if (!take(cursor, 'format')) return null
  if (take(cursor, 'parquet')) return 'parquet'
  expect(cursor, 'native', "'parquet' or 'native' expected")
  return 'native'
}

/** `maxUncommittedRows = 1000`, `o3MaxLag = 10s`. The value is one token, or missing. */
export function parseTableOption(cursor: Cursor, missing = 'parameter name expected', inWith = false): TableOption {
  const { position, name } = parseName(cursor, missing)
  const { start } = cursor
  if (inWith && !at(cursor, '=')) throw new SqlError(' expected parameter after WITH', start)
  expect(cursor, '=')
  if (atEnd(cursor) && (inWith || position + name.length === start)) throw tooFew('=', 1, 2, start)
  const value = atEnd(cursor) ? '' : cursor.kind === 'string' ? quotedValue(cursor) : tokenText(cursor)
  let { end } = cursor
  if (value !== '') advance(cursor)
  if (value === '-' && cursor.kind === 'number') {
    end = cursor.end
    advance(cursor)
  }
  return { position, name, value, end }
}
