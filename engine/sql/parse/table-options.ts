// What CREATE TABLE and ALTER TABLE share: partition units, time to live, and named options.

import { SqlError } from '../../base/errors.js'
import type { PartitionUnit, TableOption, TimeToLive } from './ast.js'
import { advance, type Cursor, tokenText } from './cursor.js'
import { demand, parseName, parseWholeNumber } from './expect.js'
import { parseExpression } from './expression.js'
import { intervalOfText } from './literal.js'
import { parseInterval } from './window.js'

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
  if (cursor.kind !== 'number' || match === null) throw new SqlError('missing or invalid TTL value', position)
  const short = match[2] ?? ''
  if (short === '') return parseLongTimeToLive(cursor, position)
  const unit = ttlUnits[short] ?? ttlUnits[short.toLowerCase()]
  if (unit === undefined)
    throw new SqlError(`invalid time unit, expecting 'H', 'D', 'W', 'M' or 'Y', but was '${short}'`, position)
  advance(cursor)
  return { position, count: Number(match[1]), unit }
}

function parseLongTimeToLive(cursor: Cursor, position: number): TimeToLive {
  const count = parseWholeNumber(cursor, 'missing or invalid TTL value')
  if (cursor.kind !== 'word') throw new SqlError(`missing unit, ${ttlExpected} expected`, cursor.start)
  const unit = partitionUnitOf(cursor.word.replace(/s$/, ''))
  if (unit === null || unit === 'none') {
    throw new SqlError(`invalid unit, expected ${ttlExpected}, but was '${tokenText(cursor)}'`, cursor.start)
  }
  advance(cursor)
  return { position, count, unit }
}

/** `maxUncommittedRows = 1000`, `o3MaxLag = 10s` */
export function parseTableOption(cursor: Cursor): TableOption {
  const { position, name } = parseName(cursor, 'parameter name expected')
  demand(cursor, '=')
  const isInterval = cursor.kind === 'number' && intervalOfText(tokenText(cursor)) !== null
  return { position, name, value: isInterval ? parseInterval(cursor) : parseExpression(cursor) }
}
