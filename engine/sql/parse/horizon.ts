// Parses the offsets of HORIZON JOIN: `range from -1h to 1h step 30m as h`, `list (0, 1m, 5m) as h`.

import { SqlError } from '../../base/errors.js'
import type { Horizon, HorizonOffset } from '../ast/ast.js'
import { advance, type Cursor, tokenText } from './cursor.js'
import { demand, parseFreeName, take } from './expect.js'
import { timeUnitOf } from './literal.js'

export function parseHorizon(cursor: Cursor): Horizon {
  const range = take(cursor, 'range') ? parseRange(cursor) : null
  if (range === null) demand(cursor, 'list', "'range' or 'list' expected")
  const list = range === null ? parseOffsets(cursor) : []
  demand(cursor, 'as')
  return { range, list, alias: parseFreeName(cursor, 'alias expected') }
}

function parseRange(cursor: Cursor): Horizon['range'] {
  demand(cursor, 'from')
  const from = parseOffset(cursor)
  demand(cursor, 'to')
  const to = parseOffset(cursor)
  demand(cursor, 'step')
  return { from, to, step: parseOffset(cursor) }
}

function parseOffsets(cursor: Cursor): HorizonOffset[] {
  demand(cursor, '(')
  if (cursor.word === ')') throw new SqlError('at least one offset expression expected', cursor.start)
  const offsets = [parseOffset(cursor)]
  while (take(cursor, ',')) offsets.push(parseOffset(cursor))
  demand(cursor, ')', "',' or ')' expected")
  return offsets
}

/** `-90s`. Zero needs no unit. Months and years are refused, because they have no fixed length. */
function parseOffset(cursor: Cursor): HorizonOffset {
  const position = cursor.start
  const negative = take(cursor, '-')
  const [, digits, suffix = ''] = /^(\d+)([a-z]*)$/i.exec(tokenText(cursor)) ?? []
  if (digits === undefined) throw new SqlError('expected numeric value', position)
  const unit = timeUnitOf(suffix) ?? null
  if (suffix !== '' && (unit === null || unit === 'M' || unit === 'y'))
    throw new SqlError(`unsupported HORIZON time unit [unit=${suffix}]`, position)
  if (suffix === '' && !/^0+$/.test(digits)) throw new SqlError('expected interval qualifier', cursor.end)
  const count = Number(digits)
  if (!Number.isSafeInteger(count)) throw new SqlError('HORIZON JOIN offset is too large', position)
  advance(cursor)
  return { position, count: negative ? -count : count, unit }
}
