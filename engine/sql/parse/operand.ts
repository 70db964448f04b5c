// Parses operands of expressions: literals, names, calls, CASE, CAST, arrays, parentheses and sub-queries.

import { SqlError } from '../../base/errors.js'
import { sqlListMax } from '../../base/limits.js'
import type { CaseExpression, Expression, UnaryOperator } from '../ast/ast.js'
import { parseCall, parseSpecialCall, startsSpecialCall } from './call.js'
import { advance, type Cursor, countTerm, descend, moveTo, peekWord, quotedValue, tokenText } from './cursor.js'
import { atEnd, expect, nextPlace, parseList, parseNameOrString, take, tooFew, unexpectedToken } from './expect.js'
import {
  asWritten,
  closingError,
  endsExpression,
  isConstantToken,
  isInfix,
  link,
  parseExpression,
  parseExpression0,
  requireInside,
} from './expression.js'
import { geohashLiteral, numberLiteral } from './literal.js'
import { containmentPower, notPower, signPower } from './powers.js'
import { continueQuery, continuesQuery, parseQuery, startsQuery } from './query.js'
import { isReserved, keywordError } from './reserved.js'
import { parseCastType } from './type-name.js'

/** Reserved words, which end an expression unless quoted. */
const reserved: ReadonlySet<string> = new Set([
  'select',
  'from',
  'where',
  'group',
  'order',
  'having',
  'limit',
  'union',
  'except',
  'intersect',
  'join',
  'on',
  'as',
  'when',
  'then',
  'else',
  'end',
  'into',
  'with',
  'set',
  'fill',
  'align',
])

/** `missing` is the error message if no operand begins here. */
export function parseOperand(cursor: Cursor, missing: string): Expression {
  switch (cursor.kind) {
    case 'word':
      return parseWord(cursor, missing)
    case 'number':
      return literal(cursor, numberLiteral(cursor))
    case 'string':
      return literal(cursor, { kind: 'string', position: cursor.start, value: quotedValue(cursor) })
    case 'quoted':
      return parsePath(cursor)
    case 'parameter':
      return parseParameter(cursor)
    case 'variable':
      return parseVariable(cursor)
    case 'geohash':
      return literal(cursor, geohashLiteral(cursor))
    default:
      return parseSymbol(cursor, missing)
  }
}

function literal(cursor: Cursor, expression: Expression): Expression {
  advance(cursor)
  return expression
}

/** The spelling of a word with capitals, such as `TRUE`, which becomes the column's name. */
function spelling(cursor: Cursor): { text?: string } {
  const text = tokenText(cursor)
  return text === cursor.word ? {} : { text }
}

function parseWord(cursor: Cursor, missing: string): Expression {
  const { word, start } = cursor
  switch (word) {
    case 'null':
      return literal(cursor, { kind: 'null', position: start, ...spelling(cursor) })
    case 'true':
    case 'false':
      return literal(cursor, { kind: 'boolean', position: start, value: word === 'true', ...spelling(cursor) })
    case 'nan':
      return literal(cursor, {
        kind: 'float',
        position: start,
        text: tokenText(cursor),
        digits: 'NaN',
        value: Number.NaN,
        single: false,
      })
    case 'not':
      return parseUnary(cursor, 'not', notPower)
    case 'case':
      return parseCase(cursor)
    case 'exists':
      return parseExists(cursor)
    case 'array':
      return parseArrayWord(cursor)
    case 'row':
      if (peekWord(cursor) === '(') return parseRow(cursor)
  }
  if (startsSpecialCall(word)) {
    const call = parseSpecialCall(cursor)
    if (call !== null) return call
  }
  if (reserved.has(word) && !isName(cursor, missing)) throw missingOperand(cursor, missing)
  if (isInfix(word)) throw tooFewArguments(cursor)
  return parsePath(cursor)
}

/** The error for an infix operator without a left operand. The cursor is on the operator. */
export function tooFewArguments(cursor: Cursor): SqlError {
  const { word, start } = cursor
  if (word === 'is') return new SqlError('IS [NOT] not allowed here', start)
  advance(cursor)
  if (word === 'between') return tooFew(word, boundsHere(cursor), 3, start)
  if (isReserved(cursor.word) && !isConstantToken(cursor)) throw keywordError(cursor.word, cursor.start)
  const found = endsExpression(cursor) || reserved.has(cursor.word) || isInfix(cursor.word) ? 0 : 1
  return tooFew(asWritten(cursor, word, start), found, 2, start)
}

/** Number of bounds of a BETWEEN that has no left operand. */
function boundsHere(cursor: Cursor): number {
  if (endsExpression(cursor) || cursor.word === 'and' || reserved.has(cursor.word)) return 0
  parseExpression(cursor, containmentPower)
  return take(cursor, 'and') && !endsExpression(cursor) ? 2 : 1
}

/** Whether a reserved word is a column name here: `group` without BY, and words of CASE outside of CASE. */
function isName(cursor: Cursor, missing: string): boolean {
  if (cursor.word === 'group') return peekWord(cursor) !== 'by'
  return missing === 'missing expression' && caseWords.has(cursor.word)
}

const caseWords: ReadonlySet<string> = new Set(['when', 'then', 'else'])

/**
 * The error about a missing operand. In an argument, a reserved word followed by another word means a missing
 * parenthesis: `sum( from t`.
 */
function missingOperand(cursor: Cursor, missing: string): SqlError {
  const { start, word } = cursor
  if (missing === 'argument') {
    advance(cursor)
    return new SqlError('dangling literal', cursor.start)
  }
  return isReserved(word) && missing !== 'missing arguments' ? keywordError(word, start) : new SqlError(missing, start)
}

function parseSymbol(cursor: Cursor, missing: string): Expression {
  const { word, start } = cursor
  switch (word) {
    case '-':
    case '+':
    case '~':
      return parseUnary(cursor, word, signPower)
    case '(':
      return parseParentheses(cursor, missing)
  }
  if (word === '.') throw loneDot(cursor, missing)
  if (word === '!') throw SqlError.columnMissing(/^!\w*/.exec(cursor.text.slice(start))?.[0] ?? word, start)
  if (word === '[') throw loneBracket(cursor)
  if (isInfix(word)) throw tooFewArguments(cursor)
  if (missing === 'argument' && (word === ',' || word === ')')) throw new SqlError('missing arguments', start)
  throw new SqlError(missing === 'argument' ? 'Expression expected' : missing, start)
}

function loneDot(cursor: Cursor, missing: string): SqlError {
  const { end, start } = cursor
  advance(cursor)
  if (cursor.kind === 'end') return new SqlError(missing, start)
  if (cursor.word === '.') return new SqlError('too many dots', end)
  return new SqlError('qualifier expected', Math.max(cursor.start, end))
}

/** The error for a bracket without an operand before it. */
function loneBracket(cursor: Cursor): SqlError {
  const { start } = cursor
  advance(cursor)
  if (atEnd(cursor)) return new SqlError('unbalanced [', start)
  if (cursor.word !== ']') parseExpression(cursor)
  return cursor.word === ']' ? tooFew('[]', 1, 2, start) : new SqlError('unbalanced [', start)
}

function parseUnary(cursor: Cursor, operator: UnaryOperator, power: number): Expression {
  const position = cursor.start
  advance(cursor)
  if (cursor.kind === 'end' || cursor.word === ')' || cursor.word === ',') {
    throw tooFew(operator, 0, 1, position)
  }
  return { kind: 'unary', position, operator, operand: parseExpression(cursor, power) }
}

/** A sub-query, a row value, or an expression in parentheses, which leave no trace in the tree. */
function parseParentheses(cursor: Cursor, missing: string): Expression {
  const position = cursor.start
  advance(cursor)
  requireInside(cursor, position)
  if (cursor.word === ')' && missing !== 'argument') throw nothingInside(cursor, missing)
  if (startsQuery(cursor)) {
    const query = parseQuery(cursor)
    closeParenthesis(cursor, position)
    return parseFields(cursor, { kind: 'subquery', position, query })
  }
  const elements = parseList(cursor, parseExpression0, sqlListMax)
  const [first] = elements
  if (first?.kind === 'subquery' && elements.length === 1 && continuesQuery(cursor)) {
    const query = continueQuery(
      cursor,
      { kind: 'nested', position: first.position, query: first.query },
      first.position,
    )
    closeParenthesis(cursor, position)
    return parseFields(cursor, { kind: 'subquery', position, query })
  }
  closeParenthesis(cursor, position)
  if (first !== undefined && elements.length === 1) return parseFields(cursor, first)
  return { kind: 'list', position, elements }
}

/** `row(a, b)` becomes `(a, b)`. */
function parseRow(cursor: Cursor): Expression {
  const position = cursor.start
  advance(cursor)
  const open = cursor.start
  advance(cursor)
  requireInside(cursor, open)
  const elements = parseList(cursor, parseExpression0, sqlListMax)
  closeParenthesis(cursor, open)
  return { kind: 'list', position, elements }
}

/** The error for empty parentheses. */
function nothingInside(cursor: Cursor, missing: string): SqlError {
  if (missing === 'missing expression') advance(cursor)
  return new SqlError(missing, nextPlace(cursor))
}

function closeParenthesis(cursor: Cursor, open: number): void {
  if (cursor.word !== ')') throw closingError(cursor, open)
  advance(cursor)
}

/** `(f(x)).n`, `(t).*` */
function parseFields(cursor: Cursor, operand: Expression): Expression {
  let result = operand
  while (cursor.word === '.') {
    const position = cursor.start
    advance(cursor)
    const name = take(cursor, '*') ? '*' : parseNameOrString(cursor, 'field name expected').name
    link(cursor)
    result = { kind: 'field', position, operand: result, name }
  }
  return result
}

/** Database, schema, table and column, and one more for a better error message. */
const partsMax = 5

/** `a`, `t.a`, `t.*`, or a call if a parenthesis follows. */
function parsePath(cursor: Cursor): Expression {
  const position = cursor.start
  const path = [parsePart(cursor)]
  let quoted = cursor.text.charCodeAt(position) === 34
  while (cursor.word === '.') {
    advance(cursor)
    if (take(cursor, '*')) return { kind: 'star', position, table: path.at(-1) ?? null, exclude: [] }
    quoted ||= cursor.kind === 'quoted'
    if (path.length === partsMax) throw new SqlError(`too many parts in name [max=${partsMax}]`, position)
    path.push(parseField(cursor))
  }
  if (cursor.word === '(') return parseCall(cursor, path, position)
  if (cursor.kind === 'string') return parseTypedText(cursor, path, position)
  return { kind: 'column', position, path, quoted }
}

/** `int '5'` becomes `'5'::int`. After any other name a string is an error. */
function parseTypedText(cursor: Cursor, path: readonly string[], position: number): Expression {
  const name = (path[0] as string).toLowerCase()
  const operand: Expression = { kind: 'string', position: cursor.start, value: quotedValue(cursor) }
  const isTyped = textTypes.has(name) || (name === 'time' && /^\d\d?:\d\d/.test(operand.value))
  if (path.length > 1 || !isTyped) throw new SqlError('impossible type cast, invalid type', position)
  advance(cursor)
  const type = { position, name, text: name, parameters: [], unit: null, dimensions: 0 }
  return { kind: 'cast', position, operand, type }
}

const textTypes: ReadonlySet<string> = new Set(
  'boolean byte short char int long float double string varchar symbol uuid ipv4 long256 timestamp_ns'.split(' '),
)

function parsePart(cursor: Cursor): string {
  const { start, word } = cursor
  if (word.startsWith('{') || word.startsWith('\\')) throw SqlError.columnMissing(word, start)
  return parseNameOrString(cursor, 'column name expected').name
}

/** The name after a dot. */
function parseField(cursor: Cursor): string {
  if (cursor.word === '.') throw new SqlError('too many dots', cursor.start)
  const isApart = cursor.start > cursor.previousEnd
  if (endsExpression(cursor) || (isApart && reserved.has(cursor.word)))
    throw new SqlError("'*' or column name expected", cursor.previousEnd)
  return parsePart(cursor)
}

function parseParameter(cursor: Cursor): Expression {
  const position = cursor.start
  const name = tokenText(cursor).slice(1)
  const mark = cursor.text[position]
  advance(cursor)
  if (mark === ':') return { kind: 'parameter', position, index: 0, name }
  if (mark === '?') {
    cursor.parameters++
    return { kind: 'parameter', position, index: cursor.parameters, name: null }
  }
  if (!/^\d/.test(name)) throw SqlError.columnMissing(`$${name}`, position)
  if (!/^[1-9]\d{0,4}$/.test(name)) throw new SqlError(`invalid bind variable index [value=${name}]`, position)
  return { kind: 'parameter', position, index: Number(name), name: null }
}

function parseVariable(cursor: Cursor): Expression {
  const position = cursor.start
  const name = tokenText(cursor).slice(1)
  if (name === '') throw SqlError.columnMissing(/^@[@\w]*/.exec(cursor.text.slice(position))?.[0] ?? '@', position)
  advance(cursor)
  return { kind: 'variable', position, name }
}

function parseCase(cursor: Cursor): Expression {
  const position = cursor.start
  advance(cursor)
  const unbalanced = () => new SqlError("unbalanced 'case'", position)
  const parseCaseOperand = () => {
    if (endsCase(cursor)) throw unbalanced()
    const expression = parseExpression(cursor, 0, 'missing arguments')
    if (isConstantToken(cursor)) throw new SqlError('dangling expression', cursor.start)
    return expression
  }
  if (cursor.word === 'end' || cursor.word === 'else' || cursor.word === 'then')
    throw new SqlError("'when' expected", cursor.start)
  const operand = cursor.word === 'when' ? null : parseCaseOperand()
  const branches: CaseExpression['branches'][number][] = []
  while (take(cursor, 'when')) {
    countTerm(cursor, 2)
    const when = parseCaseOperand()
    if (endsCase(cursor)) throw unbalanced()
    expect(cursor, 'then', "'then' expected")
    branches.push({ when, result: parseCaseOperand() })
  }
  if (branches.length === 0) throw cursor.kind === 'end' ? unbalanced() : new SqlError("'when' expected", cursor.start)
  if (cursor.word === 'then') throw new SqlError("'when' expected", cursor.start)
  const otherwise = take(cursor, 'else') ? parseCaseOperand() : null
  if (cursor.word === 'else') throw new SqlError("'then' expected", cursor.start)
  if (!take(cursor, 'end')) throw unbalanced()
  return { kind: 'case', position, operand, branches, otherwise }
}

/** Whether CASE ends without END. */
function endsCase(cursor: Cursor): boolean {
  return atEnd(cursor) || cursor.word === 'from'
}

function parseExists(cursor: Cursor): Expression {
  const position = cursor.start
  if (peekWord(cursor) !== '(') throw keywordError('exists', position)
  advance(cursor)
  const open = cursor.start
  advance(cursor)
  requireInside(cursor, open)
  if (cursor.word === ')') throw new SqlError('unknown function name: exists()', position)
  cursor.bareSelect = cursor.start
  const query = parseQuery(cursor)
  closeParenthesis(cursor, open)
  return { kind: 'exists', position, query }
}

/** `array[1, 2]`, `array(select ..)`, or else a column named array. */
function parseArrayWord(cursor: Cursor): Expression {
  const next = peekWord(cursor)
  if (next === '') {
    const { start, previousEnd } = cursor
    advance(cursor)
    if (cursor.kind === 'end') throw new SqlError("ARRAY not followed by '['", start)
    moveTo(cursor, start)
    cursor.previousEnd = previousEnd
  }
  if (next !== '[') return parsePath(cursor)
  advance(cursor)
  return parseArray(cursor)
}

/** The cursor is on the bracket, whose position the array gets. */
function parseArray(cursor: Cursor): Expression {
  const position = cursor.start
  advance(cursor)
  const unbalanced = () => new SqlError('unbalanced [', position)
  if (atEnd(cursor)) throw unbalanced()
  const parseNext = (inner: Cursor): Expression => {
    if (atEnd(inner)) throw unbalanced()
    return parseElement(inner)
  }
  const elements = cursor.word === ']' ? [] : parseList(cursor, parseNext, sqlListMax)
  if (cursor.word !== ']') throw cursor.kind === 'end' ? unbalanced() : unexpectedToken(cursor)
  advance(cursor)
  return { kind: 'array', position, elements }
}

/** Inner arrays need no ARRAY: `array[[1, 2], [3, 4]]`. */
function parseElement(cursor: Cursor): Expression {
  if (cursor.word !== '[') return parseExpression(cursor)
  descend(cursor)
  const array = parseArray(cursor)
  cursor.depth--
  return array
}

/** `cast(a as int)`. The cursor is on `cast`, and a parenthesis follows. */
export function parseCast(cursor: Cursor): Expression {
  const position = cursor.start
  advance(cursor)
  const open = cursor.start
  advance(cursor)
  requireInside(cursor, open)
  if (cursor.word === ')') throw new SqlError("'as' missing", cursor.start)
  if (cursor.word === 'as') throw tooFew('cast', 1, 2, position)
  const operand = parseExpression(cursor)
  if (cursor.kind === 'end') throw new SqlError('unbalanced (', open)
  if (cursor.word === ',') throw new SqlError("',' is not expected here", cursor.start)
  if (!take(cursor, 'as'))
    throw cursor.word === ')' ? new SqlError("'as' missing", cursor.start) : closingError(cursor, open)
  if (cursor.word === ')') throw new SqlError("type expected after 'as'", position)
  if (atEnd(cursor)) throw new SqlError('unbalanced (', open)
  if (cursor.kind === 'string' || cursor.kind === 'number') throw new SqlError('unsupported cast', cursor.start)
  const type = parseCastType(cursor, 'type expected', 'unsupported cast')
  if (cursor.word === ',') throw new SqlError("',' is not expected here", cursor.start)
  closeParenthesis(cursor, open)
  return { kind: 'cast', position, operand, type }
}
