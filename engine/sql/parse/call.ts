// Parses function calls: arguments, DISTINCT, ORDER BY, WITHIN GROUP, FILTER, IGNORE NULLS, OVER. Calls with special
// syntax (CAST, EXTRACT, SUBSTRING .. FROM, TRIM .. FROM, POSITION .. IN, OVERLAY, typed strings) are turned into
// ordinary calls or casts.

import { SqlError } from '../../base/errors.js'
import type { Call, Expression, JsonColumn, OrderItem } from '../ast/ast.js'
import { advance, type Cursor, peekWord, quotedValue, tokenText } from './cursor.js'
import { expect, lastTokenStart, parseList, parseName, take, takeTwo, tooFew } from './expect.js'
import { closingError, parseArgumentList, parseExpression, requireInside } from './expression.js'
import { parseCast } from './operand.js'
import { parseQuery, startsQuery } from './query.js'
import { keywordError } from './reserved.js'
import { parseCastType } from './type-name.js'
import { parseOrderBy, parseOver } from './window.js'

/** The cursor is on the parenthesis after the name. */
export function parseCall(cursor: Cursor, path: readonly string[], position: number): Call {
  const open = cursor.start
  const name = path.at(-1) as string
  advance(cursor)
  requireInside(cursor, open)
  const { start } = cursor
  const distinct = take(cursor, 'distinct')
  if (distinct && cursor.word === ')') throw keywordError('distinct', start)
  if (distinct && cursor.word === '*') throw distinctStar(cursor, name, start)
  const args = parseArguments(cursor, name, open)
  const orderBy = cursor.word === 'order' ? parseOrderBy(cursor) : []
  const isJson = cursor.word === 'columns' && name.toLowerCase() === 'unnest' && args.length > 0
  const json = isJson ? { jsonColumns: parseJsonColumns(cursor) } : {}
  if (cursor.word !== ')') throw closingError(cursor, open)
  advance(cursor)
  return parseCallTail(cursor, { schema: path.at(-2) ?? null, name, position, distinct, args, orderBy, ...json })
}

/** `columns (a int, b text)`. */
function parseJsonColumns(cursor: Cursor): readonly JsonColumn[] {
  advance(cursor)
  expect(cursor, '(')
  const columns = parseList(cursor, (inner) => {
    const name = parseName(inner, 'column name expected')
    if (inner.word === '.')
      throw new SqlError('a path is not allowed here: use json_extract() on the argument', inner.start)
    return { name, type: parseCastType(inner, 'type expected') }
  })
  expect(cursor, ')')
  return columns
}

/** DISTINCT cannot be applied to `*`. */
function distinctStar(cursor: Cursor, name: string, distinct: number): SqlError {
  if (name.toLowerCase() === 'count') return new SqlError('count(distinct *) is not supported', distinct)
  return tooFew('*', 1, 2, cursor.start)
}

function parseArguments(cursor: Cursor, name: string, open: number): Expression[] {
  if (cursor.word === ')') return []
  if (cursor.word === '*' && peekWord(cursor) === 'from') {
    advance(cursor)
    advance(cursor)
    throw new SqlError('dangling literal', cursor.start)
  }
  if (cursor.word === '*' && peekWord(cursor) === ')') {
    if (name.toLowerCase() !== 'count') throw tooFew('*', 0, 2, cursor.start)
    const star: Expression = { kind: 'star', position: cursor.start, table: null, exclude: [] }
    advance(cursor)
    return [star]
  }
  if (startsQuery(cursor)) return [{ kind: 'subquery', position: cursor.start, query: parseQuery(cursor) }]
  return name.toLowerCase() === 'make_interval' ? parseIntervalArguments(cursor) : parseArgumentList(cursor, open)
}

/** Arguments of make_interval(), in their order. */
export const intervalArguments = ['years', 'months', 'weeks', 'days', 'hours', 'mins', 'secs'] as const

/** `days => 3`, `days := 3`: missing arguments are 0. */
function parseIntervalArguments(cursor: Cursor): Expression[] {
  const { start: position } = cursor
  const zero: Expression = { kind: 'integer', position, text: '0', digits: '0', long: false }
  const args = new Array<Expression>(intervalArguments.length).fill(zero)
  for (const [index, { place, value }] of parseList(cursor, parseIntervalArgument).entries())
    args[place ?? index] = value
  return args
}

function parseIntervalArgument(cursor: Cursor): { readonly place: number | null; readonly value: Expression } {
  const place = (intervalArguments as readonly string[]).indexOf(cursor.word)
  const assigns = peekWord(cursor)
  if (cursor.kind !== 'word' || (assigns !== '=' && assigns !== ':='))
    return { place: null, value: parseExpression(cursor, 0, 'argument') }
  if (place < 0) throw new SqlError(`make_interval() has no such argument [name=${cursor.word}]`, cursor.start)
  advance(cursor)
  advance(cursor)
  if (assigns === '=') expect(cursor, '>')
  return { place, value: parseExpression(cursor, 0, 'argument') }
}

interface CallHead {
  readonly schema: string | null
  readonly name: string
  readonly position: number
  readonly distinct: boolean
  readonly args: readonly Expression[]
  readonly orderBy: readonly OrderItem[]
  readonly jsonColumns?: readonly JsonColumn[]
}

function parseCallTail(cursor: Cursor, head: CallHead): Call {
  const within = takeTwo(cursor, 'within', 'group')
  const ordered = within ? ofOrderedSet({ ...head, orderBy: parseWithinGroup(cursor) }) : head
  const filter = cursor.word === 'filter' ? parseFilter(cursor) : null
  const ignoreNulls = takeTwo(cursor, 'ignore', 'nulls')
  const saysNulls = ignoreNulls || takeTwo(cursor, 'respect', 'nulls')
  if (!saysNulls && (cursor.word === 'ignore' || cursor.word === 'respect') && peekWord(cursor) === 'over')
    throw lacksNulls(cursor)
  if (saysNulls && cursor.word !== 'over')
    throw new SqlError("'over' expected after 'nulls'", cursor.kind === 'end' ? lastTokenStart(cursor) : cursor.start)
  const over = cursor.word === 'over' ? parseOver(cursor) : null
  return { kind: 'call', ...ordered, filter, ignoreNulls, over }
}

function lacksNulls(cursor: Cursor): SqlError {
  const { word } = cursor
  advance(cursor)
  return new SqlError(`'nulls' expected after '${word}'`, cursor.start)
}

const percentiles: ReadonlySet<string> = new Set(['percentile_cont', 'percentile_disc'])

/**
 * Ordered-set aggregates as plain calls: `percentile_cont(0.9) within group (order by x)` becomes `percentile_cont(x,
 * 0.9)`, and `mode() within group (order by x)` becomes `mode(x)`.
 */
function ofOrderedSet(head: CallHead): CallHead {
  const name = head.name.toLowerCase()
  const [item, ...more] = head.orderBy
  if (item === undefined || more.length > 0) return head
  if (name === 'mode' && head.args.length === 0) return { ...head, args: [item.expression], orderBy: [] }
  const [share] = head.args
  if (!percentiles.has(name) || share === undefined || head.args.length > 1) return head
  const from = item.descending ? fromTheEnd(share) : share
  return { ...head, args: [item.expression, from], orderBy: [] }
}

/** The percentile for descending order: 1 - share, for each element of an array. */
function fromTheEnd(share: Expression): Expression {
  const { position } = share
  if (share.kind === 'array') return { ...share, elements: share.elements.map(fromTheEnd) }
  const one: Expression = { kind: 'decimal', position, text: '1.0', digits: '1.0' }
  return { kind: 'binary', operator: '-', left: one, right: share, position }
}

function parseWithinGroup(cursor: Cursor): OrderItem[] {
  expect(cursor, '(')
  const orderBy = parseOrderBy(cursor)
  expect(cursor, ')')
  return orderBy
}

function parseFilter(cursor: Cursor): Expression | null {
  if (peekWord(cursor) !== '(') return null
  advance(cursor)
  advance(cursor)
  expect(cursor, 'where')
  const filter = parseExpression(cursor)
  expect(cursor, ')')
  return filter
}

const specialCalls: ReadonlySet<string> = new Set([
  'cast',
  'extract',
  'substring',
  'trim',
  'position',
  'overlay',
  'date',
  'timestamp',
  'timestamptz',
  'interval',
])

export function startsSpecialCall(word: string): boolean {
  return specialCalls.has(word)
}

/** null: the word is an ordinary name here, and the cursor has not moved. */
export function parseSpecialCall(cursor: Cursor): Expression | null {
  const { word } = cursor
  if (word === 'date' || word === 'timestamp' || word === 'timestamptz' || word === 'interval')
    return parseTypedString(cursor)
  if (peekWord(cursor) !== '(') {
    if (word === 'cast') throw keywordError(word, cursor.start)
    return null
  }
  switch (word) {
    case 'cast':
      return parseCast(cursor)
    case 'extract':
      return parseExtract(cursor)
    case 'position':
      return parsePosition(cursor)
    case 'overlay':
      return parseOverlay(cursor)
    default:
      return parseFromCall(cursor)
  }
}

/** `timestamp '2024-01-01'` becomes `'2024-01-01'::timestamp`. */
function parseTypedString(cursor: Cursor): Expression | null {
  const { start, previousEnd, word } = cursor
  advance(cursor)
  const zoned = cursor.word === 'with' && takeTwo(cursor, 'with', 'time') && take(cursor, 'zone')
  if (cursor.kind !== 'string') {
    cursor.end = start
    advance(cursor)
    cursor.previousEnd = previousEnd
    return null
  }
  const operand = { kind: 'string', position: cursor.start, value: quotedValue(cursor) } as const
  advance(cursor)
  if (word === 'interval' && /^\s*[+-]?\d+(\.\d+)?\s*$/.test(operand.value) && intervalUnits.has(cursor.word)) {
    const unit = cursor.word
    advance(cursor)
    return castOf(start, { ...operand, value: `${operand.value} ${unit}` }, word)
  }
  const name = zoned ? 'timestamptz' : word
  return castOf(start, operand, name)
}

/** Units of `interval '90' minute`. */
const intervalUnits: ReadonlySet<string> = new Set(['year', 'month', 'day', 'hour', 'minute', 'second'])

function castOf(position: number, operand: Expression, name: string): Expression {
  const type = { position, name, text: name, parameters: [], unit: null, dimensions: 0 }
  return { kind: 'cast', position, operand, type }
}

function plainCall(position: number, name: string, args: readonly Expression[]): Call {
  return {
    kind: 'call',
    position,
    schema: null,
    name,
    args,
    distinct: false,
    orderBy: [],
    filter: null,
    ignoreNulls: false,
    over: null,
  }
}

/** `extract(hour from ts)` becomes `extract('hour', ts)`. */
function parseExtract(cursor: Cursor): Expression {
  const position = cursor.start
  const name = tokenText(cursor)
  advance(cursor)
  const open = cursor.start
  advance(cursor)
  requireInside(cursor, open)
  if (cursor.word === 'from') throw new SqlError('Huh? What would you like to extract?', cursor.start)
  // Without arguments it is parsed as an ordinary call.
  if (cursor.word === ')') return parseCallTail(advanced(cursor), { ...plainHead(name, position), args: [] })
  if (cursor.kind !== 'word' && cursor.kind !== 'string')
    throw new SqlError('we expect expression type here', cursor.start)
  const field: Expression =
    cursor.kind === 'string'
      ? { kind: 'string', position: cursor.start, value: quotedValue(cursor) }
      : { kind: 'string', position: cursor.start, value: tokenText(cursor), word: true }
  advance(cursor)
  if (!take(cursor, 'from') && !take(cursor, ',')) throw closingError(cursor, open)
  requireInside(cursor, open)
  const operand = parseExpression(cursor, 0, 'argument')
  if (!take(cursor, ')')) throw closingError(cursor, open)
  return plainCall(position, name, [field, operand])
}

function advanced(cursor: Cursor): Cursor {
  advance(cursor)
  return cursor
}

function plainHead(name: string, position: number): Omit<CallHead, 'args'> {
  return { schema: null, name, position, distinct: false, orderBy: [] }
}

/** `position('b' in 'abc')` becomes `strpos('abc', 'b')`. */
function parsePosition(cursor: Cursor): Expression {
  const position = cursor.start
  const name = tokenText(cursor)
  advance(cursor)
  const call = parseCall(cursor, [name], position)
  const [only] = call.args
  if (call.args.length !== 1 || only?.kind !== 'in' || !only.bare) return call
  return plainCall(position, 'strpos', [...(only.set as readonly Expression[]), only.operand])
}

/** `overlay(s placing t from 2 for 3)` becomes `overlay(s, t, 2, 3)`. */
function parseOverlay(cursor: Cursor): Expression {
  const position = cursor.start
  const name = tokenText(cursor)
  advance(cursor)
  const { start: open } = cursor
  advance(cursor)
  requireInside(cursor, open)
  const args = [parseExpression(cursor, 0, 'argument')]
  for (const word of ['placing', 'from', 'for'])
    if (take(cursor, word) || take(cursor, ',')) args.push(parseExpression(cursor, 0, 'argument'))
  if (!take(cursor, ')')) throw closingError(cursor, open)
  return plainCall(position, name, args)
}

/**
 * `substring(s from 2 for 3)` becomes `substring(s, 2, 3)`, starting at 1 without FROM; `trim(both 'x' from s)` becomes
 * `trim(s, 'x')`.
 */
function parseFromCall(cursor: Cursor): Expression {
  const position = cursor.start
  const name = tokenText(cursor)
  const isTrim = cursor.word === 'trim'
  advance(cursor)
  const { start: open } = cursor
  advance(cursor)
  requireInside(cursor, open)
  const side = isTrim ? trimSide(cursor) : null
  const first = cursor.word === 'from' || cursor.word === ')' ? [] : [parseExpression(cursor, 0, 'argument')]
  if (cursor.word === 'similar') throw sqlPattern(cursor.start)
  const args = take(cursor, 'from') ? parseFromArguments(cursor, first, isTrim) : first
  if (!isTrim && args.length === 1 && take(cursor, 'for'))
    args.push({ kind: 'integer', position, text: '1', digits: '1', long: false }, parseExpression(cursor))
  while (take(cursor, ',')) {
    requireInside(cursor, open)
    args.push(parseExpression(cursor, 0, 'argument'))
  }
  if (!take(cursor, ')')) throw closingError(cursor, open)
  return parseCallTail(cursor, { schema: null, name: side ?? name, position, distinct: false, args, orderBy: [] })
}

/** The function that trims one side; null for both. */
function trimSide(cursor: Cursor): string | null {
  const side = cursor.word
  if (side !== 'both' && side !== 'leading' && side !== 'trailing') return null
  advance(cursor)
  return side === 'both' ? null : side === 'leading' ? 'ltrim' : 'rtrim'
}

function parseFromArguments(cursor: Cursor, first: Expression[], isTrim: boolean): Expression[] {
  const second = parseExpression(cursor, 0, 'argument')
  if (isTrim) return [second, ...first]
  if (!take(cursor, 'for')) return [...first, second]
  // `from '#"a%#"' for '#'`
  if (second.kind === 'string' && cursor.kind === 'string') throw sqlPattern(second.position)
  return [...first, second, parseExpression(cursor)]
}

/** The error about SQL regular expressions, which are not supported. */
function sqlPattern(position: number): SqlError {
  return new SqlError(
    'SQL regular expressions are not supported: substring(x from pattern) takes a POSIX pattern',
    position,
  )
}
