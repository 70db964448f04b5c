// Parses the clauses SAMPLE BY (aggregation by time buckets), LATEST ON (the last row for each key) and PIVOT.

import { SqlError } from '../../base/errors.js'
import type { FillItem, LatestOn, Pivot, PivotColumn, SampleAlign, SampleBy, SelectItem } from '../ast/ast.js'
import { advance, type Cursor, peekWord } from './cursor.js'
import { expect, lastTokenStart, parseList, parseNameOrString, shownToken, take } from './expect.js'
import { parseExpression } from './expression.js'
import { parseQuery, startsQuery } from './query.js'
import { parseGroupBy } from './select.js'
import { parseInterval, parseOrderBy } from './window.js'

/** The cursor is on `sample`. */
export function parseSampleBy(cursor: Cursor): SampleBy {
  const position = cursor.start
  advance(cursor)
  expect(cursor, 'by')
  if (cursor.kind === 'end') throw new SqlError('time interval unit expected', cursor.start)
  const interval = parseInterval(cursor)
  const from = cursor.word === 'from' ? parseTime(cursor) : null
  const to = cursor.word === 'to' ? parseTime(cursor) : null
  const fill = cursor.word === 'fill' ? parseFill(cursor) : []
  const align = take(cursor, 'align') ? parseAlign(cursor, from !== null || to !== null) : null
  return { position, interval, from, to, fill, align }
}

/** The timestamp after FROM or TO. If it is missing, the error is reported at that word. */
function parseTime(cursor: Cursor): ReturnType<typeof parseExpression> {
  const { start } = cursor
  advance(cursor)
  if (cursor.kind === 'end') throw new SqlError("'timestamp' expression expected", start)
  return parseExpression(cursor)
}

function parseFill(cursor: Cursor): FillItem[] {
  advance(cursor)
  expect(cursor, '(')
  const items = parseList(cursor, parseFillItem)
  expect(cursor, ')', cursor.kind === 'end' ? "',' or ')' expected" : undefined)
  return items
}

const fillExpected = "'none', 'prev', 'mid', 'null' or number expected"

function parseFillItem(cursor: Cursor): FillItem {
  const position = cursor.start
  const { word } = cursor
  if (cursor.kind === 'end') throw new SqlError(fillExpected, lastTokenStart(cursor))
  if (word === 'none' || word === 'null' || word === 'linear') {
    advance(cursor)
    return { kind: word, position }
  }
  if (word === 'prev') {
    advance(cursor)
    if (!take(cursor, '(')) return { kind: word, position, column: null }
    const column = parseNameOrString(cursor, 'column name expected')
    expect(cursor, ')')
    return { kind: word, position, column }
  }
  if (word === ')' || word === ',') throw new SqlError(fillExpected, position)
  return { kind: 'value', position, value: parseExpression(cursor, 0, fillExpected) }
}

function parseAlign(cursor: Cursor, ranged: boolean): SampleAlign {
  expect(cursor, 'to')
  const position = cursor.start
  if (take(cursor, 'first')) {
    expect(cursor, 'observation')
    if (ranged)
      throw new SqlError(
        'ALIGN TO FIRST OBSERVATION is incompatible with FROM-TO',
        cursor.previousEnd + (cursor.kind === 'end' ? 0 : 1),
      )
    return { kind: 'first observation', position }
  }
  expect(cursor, 'calendar', "'calendar' or 'first observation' expected")
  const timeZone = take(cursor, 'time') ? parseAfter(cursor, 'zone') : null
  const offset = take(cursor, 'with') ? parseAfter(cursor, 'offset') : null
  return { kind: 'calendar', position, timeZone, offset }
}

function parseAfter(cursor: Cursor, word: string): ReturnType<typeof parseExpression> {
  expect(cursor, word)
  return parseExpression(cursor)
}

/** `latest on ts partition by a`, or `latest by a`, which may precede WHERE. The cursor is on `latest`. */
export function parseLatest(cursor: Cursor): LatestOn {
  const position = cursor.start
  advance(cursor)
  if (take(cursor, 'by')) return { position, timestamp: null, partitionBy: parseList(cursor, parseKey) }
  if (!take(cursor, 'on')) throw new SqlError("'on' or 'by' expected", cursor.kind === 'end' ? position : cursor.start)
  const timestamp = parseKey(cursor)
  expect(cursor, 'partition')
  expect(cursor, 'by')
  const partitionBy = parseList(cursor, parseKey)
  if (cursor.word === 'where') throw new SqlError("unexpected where clause after 'latest on'", cursor.start)
  return { position, timestamp, partitionBy }
}

function parseKey(cursor: Cursor): ReturnType<typeof parseExpression> {
  if (cursor.kind === 'number') throw SqlError.columnMissing(shownToken(cursor), cursor.start)
  return parseExpression(cursor, 0, 'literal expected')
}

/** The cursor is on `pivot`. */
export function parsePivot(cursor: Cursor): Pivot {
  const position = cursor.start
  advance(cursor)
  expect(cursor, '(')
  const aggregates = parseList(cursor, (inner) => parseAliased(inner, 'for'))
  expect(cursor, 'for')
  const columns: PivotColumn[] = []
  do columns.push(parsePivotColumn(cursor))
  while (cursor.word !== 'group' && cursor.word !== ')')
  const groupBy = cursor.word === 'group' ? parseGroupBy(cursor) : []
  expect(cursor, ')')
  return { position, aggregates, columns, groupBy }
}

const containmentOperands = 60

function parsePivotColumn(cursor: Cursor): PivotColumn {
  const position = cursor.start
  const expression = parseExpression(cursor, containmentOperands)
  expect(cursor, 'in')
  const { start } = cursor
  if (take(cursor, 'any')) return { position, expression, values: { kind: 'any value', position: start, orderBy: [] } }
  expect(cursor, '(')
  const values = parsePivotValues(cursor)
  expect(cursor, ')')
  return { position, expression, values }
}

function parsePivotValues(cursor: Cursor): PivotColumn['values'] {
  const { start: position } = cursor
  if (startsQuery(cursor)) return parseQuery(cursor)
  const next = peekWord(cursor)
  if (cursor.word !== 'any' || (next !== ')' && next !== 'order'))
    return parseList(cursor, (inner) => parseAliased(inner, ''))
  advance(cursor)
  return { kind: 'any value', position, orderBy: next === 'order' ? parseOrderBy(cursor) : [] }
}

/** An expression with an optional alias. The word `stop` ends it. */
function parseAliased(cursor: Cursor, stop: string): SelectItem {
  const position = cursor.start
  const expression = parseExpression(cursor)
  if (take(cursor, 'as')) return { position, expression, alias: parseNameOrString(cursor, 'alias expected') }
  const named = (cursor.kind === 'word' && cursor.word !== stop) || cursor.kind === 'quoted' || cursor.kind === 'string'
  return { position, expression, alias: named ? parseNameOrString(cursor, 'alias expected') : null }
}
