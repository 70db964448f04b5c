// Parses expressions with a Pratt parser (operator precedence parsing). This file handles infix operators; powers.ts
// defines their precedence, operand.ts parses operands.
//
// Chains of AND and OR become balanced trees. Chains of other operators are limited by `sqlChainMax`, so that code that
// recurses over a tree does not overflow the stack.

import { SqlError } from '../../base/errors.js'
import { sqlChainMax, sqlListMax } from '../../base/limits.js'
import type { BinaryOperator, Expression, InExpression, Slice, TypeName } from '../ast/ast.js'
import { callOf } from '../rewrite/make-query.js'
import { advance, at, type Cursor, countTerm, descend, moveTo, peekWord, quotedValue, tokenText } from './cursor.js'
import { expect, parseList, take, tooFew, unexpectedToken } from './expect.js'
import { parseOperand } from './operand.js'
import { containmentPower, equalityPower, operatorCalls, otherPower, powers, zonePower } from './powers.js'
import { parseQuery, startsQuery } from './query.js'
import { parseCastType, parseTypeName } from './type-name.js'

/**
 * An expression whose operators all bind more tightly than `power`. `missing` is the error message if there is no
 * operand.
 */
export function parseExpression(cursor: Cursor, power = 0, missing = 'Expression expected'): Expression {
  descend(cursor)
  const outerHeight = cursor.height
  const outerWaiting = cursor.waiting
  cursor.height = 0
  if (power === 0) cursor.waiting = null
  let left = parseOperand(cursor, missing)
  while (cursor.word !== ',' && cursor.word !== ')') {
    const next = powerHere(cursor)
    if (next <= power) break
    left = parseInfix(cursor, left, next)
  }
  if (cursor.height < outerHeight) cursor.height = outerHeight
  cursor.waiting = outerWaiting
  cursor.depth--
  return left
}

/** Whether the token can only be an infix operator, so it cannot begin an operand. */
export function isInfix(word: string): boolean {
  return powers.has(word) && word !== '[' && word !== 'collate' && word !== 'operator' && word !== 'within'
}

function powerHere(cursor: Cursor): number {
  const { word } = cursor
  if (word === '') return isQuestion(cursor) ? otherPower : 0
  const power = powers.get(word)
  if (power !== undefined) return power
  if (word === 'at') return peekWord(cursor) === 'time' ? zonePower : 0
  if (word === 'similar') return peekWord(cursor) === 'to' ? equalityPower : 0
  if (word === 'overlaps') return peekWord(cursor) === '(' || peekWord(cursor) === 'row' ? containmentPower : 0
  return word === 'not' ? negatedPower(cursor) : 0
}

/** A question mark after an operand is an operator and not a parameter. */
function isQuestion(cursor: Cursor): boolean {
  return cursor.kind === 'parameter' && tokenText(cursor) === '?'
}

/** Precedence of NOT after an operand, where it belongs to IN, LIKE and the like. */
function negatedPower(cursor: Cursor): number {
  const { start, previousEnd } = cursor
  advance(cursor)
  const { word } = cursor
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
  if (word === 'in' || word === 'between' || word === 'within') return containmentPower
  return word === 'like' || word === 'ilike' || word === 'similar' ? equalityPower : 0
}

function parseInfix(cursor: Cursor, left: Expression, power: number): Expression {
  const position = cursor.start
  const word = cursor.word === '' ? tokenText(cursor) : cursor.word
  advance(cursor)
  switch (word) {
    case 'or':
    case 'and':
      return parseLogical(cursor, left, word, power, position)
    case 'not':
      return parseNegated(cursor, left)
    case 'in':
      return parseIn(cursor, left, false, position)
    case 'between':
      return parseBetween(cursor, left, false, position)
    case 'is':
      return parseIs(cursor, left, position)
    case 'similar':
      return parseSimilar(cursor, left, '~', position)
    case 'overlaps':
      return parseOverlaps(cursor, left, position)
    case '::':
      link(cursor)
      if (endsExpression(cursor)) throw new SqlError("type expected after '::'", position)
      return { kind: 'cast', position, operand: left, type: doubleForFloat(parseCastType(cursor, 'type expected')) }
    case '[':
      return parseSubscript(cursor, left, position)
    case 'collate':
      parseTypeName(cursor, 'collation expected')
      return left
    case 'operator':
      return parseNamedOperator(cursor, left, position)
    case 'at':
      return parseAtTimeZone(cursor, left, position)
    default:
      return parseOperator(cursor, left, word, power, position)
  }
}

/** PostgreSQL's symbols for operators that are words here. */
const operatorWords: ReadonlyMap<string, BinaryOperator> = new Map([
  ['~~', 'like'],
  ['!~~', 'not like'],
  ['~~*', 'ilike'],
  ['!~~*', 'not ilike'],
])

function parseOperator(cursor: Cursor, left: Expression, word: string, power: number, position: number): Expression {
  if (word === '~*' || word === '!~*') return parseRegardlessOfCase(cursor, left, word, position)
  const called = operatorCalls.get(word)
  if (called !== undefined) {
    link(cursor)
    const right = parseRight(cursor, word, power, position)
    return callOf(called.name, called.swapped ? [right, left] : [left, right], position)
  }
  return parseBinary(cursor, left, operatorWords.get(word) ?? (word as BinaryOperator), power, position)
}

/** `a ~* b` becomes `a ~ ('(?i)' || b)`. */
function parseRegardlessOfCase(cursor: Cursor, left: Expression, word: '~*' | '!~*', position: number): Expression {
  link(cursor)
  const pattern = parseRight(cursor, word, equalityPower, position)
  const flag: Expression = { kind: 'string', position, value: '(?i)' }
  const right: Expression = { kind: 'binary', position, operator: '||', left: flag, right: pattern }
  return { kind: 'binary', position, operator: word === '~*' ? '~' : '!~', left, right }
}

/** `ts at time zone 'Europe/Berlin'` becomes `to_timezone(ts, 'Europe/Berlin')`. */
function parseAtTimeZone(cursor: Cursor, operand: Expression, position: number): Expression {
  link(cursor)
  expect(cursor, 'time')
  expect(cursor, 'zone')
  const zone = parseExpression(cursor, zonePower, 'time zone expected')
  return {
    kind: 'call',
    position,
    schema: null,
    name: 'to_timezone',
    args: [operand, zone],
    distinct: false,
    orderBy: [],
    filter: null,
    ignoreNulls: false,
    over: null,
  }
}

/** FLOAT after `::` means PostgreSQL's 8-byte float. (In CAST and column definitions it is the native 4-byte one.) */
function doubleForFloat(type: TypeName): TypeName {
  return type.name === 'float' ? { ...type, name: 'double', text: 'DOUBLE' } : type
}

/** Counts a level of the tree that does not come from nesting in the text. */
export function link(cursor: Cursor): void {
  cursor.height++
  if (cursor.height > sqlChainMax) throw new SqlError(`expression is too long [operators=${sqlChainMax}]`, cursor.start)
}

function parseBinary(
  cursor: Cursor,
  left: Expression,
  operator: BinaryOperator,
  power: number,
  position: number,
): Expression {
  link(cursor)
  if (operator.endsWith('within') && cursor.word === '(' && peekWord(cursor) === ')')
    throw new SqlError("too few arguments for 'within'", position)
  if (power === equalityPower || power === 50) {
    const quantified = parseQuantified(cursor, left, operator, position)
    if (quantified !== null) return quantified
  }
  const right = parseRight(cursor, operator, power, position)
  if (cursor.word === 'escape' && operator.endsWith('like')) return escapedLike(cursor, left, operator, right, position)
  return { kind: 'binary', position, operator, left, right }
}

/** `like 'a!%' escape '!'`: like_escape() rewrites the pattern to use the backslash, the only escape of LIKE. */
function escapedLike(
  cursor: Cursor,
  left: Expression,
  operator: BinaryOperator,
  right: Expression,
  position: number,
): Expression {
  const character = parseEscape(cursor, position)
  return { kind: 'binary', position, operator, left, right: callOf('like_escape', [right, character], position) }
}

function parseEscape(cursor: Cursor, position: number): Expression {
  advance(cursor)
  const mark = cursor.kind === 'string' ? quotedValue(cursor) : null
  if (mark === null || [...mark].length > 1) throw new SqlError('ESCAPE takes a string of one character', cursor.start)
  advance(cursor)
  return { kind: 'string', position, value: mark }
}

/** `a similar to b` becomes `a ~ similar_to_escape(b)`. */
function parseSimilar(cursor: Cursor, left: Expression, operator: '~' | '!~', position: number): Expression {
  link(cursor)
  expect(cursor, 'to')
  const pattern = parseRight(cursor, 'similar', equalityPower, position)
  const args = cursor.word === 'escape' ? [pattern, parseEscape(cursor, position)] : [pattern]
  return { kind: 'binary', position, operator, left, right: callOf('similar_to_escape', args, position) }
}

/** `(a, b) overlaps (c, d)` becomes `overlaps(a, b, c, d)`. */
function parseOverlaps(cursor: Cursor, left: Expression, position: number): Expression {
  link(cursor)
  const right = parseRight(cursor, 'overlaps', containmentPower, position)
  const ends = [left, right].flatMap((side) =>
    side.kind === 'list' && side.elements.length === 2 ? side.elements : [],
  )
  if (ends.length < 4) throw new SqlError('OVERLAPS takes two pairs of times', position)
  return callOf('overlaps', ends, position)
}

/** The right operand. If it is missing, the error is reported at the outermost operator that lacks one. */
function parseRight(cursor: Cursor, operator: string, power: number, position: number): Expression {
  const outer = cursor.waiting
  const lacking = outer ?? { operator: asWritten(cursor, operator.replace('not ', ''), position), position }
  if (endsExpression(cursor) || startsBinary(cursor) || endsCaseOperand(cursor))
    throw tooFew(lacking.operator, 1, 2, lacking.position)
  cursor.waiting = lacking
  const right = parseExpression(cursor, power)
  cursor.waiting = outer
  return right
}

/** The spelling of the operator for error messages: `!=` is parsed as `<>`. */
export function asWritten({ text }: Cursor, operator: string, position: number): string {
  return operator === '<>' && text.startsWith('!=', position) ? '!=' : operator
}

/** Whether the token is an operator that cannot be a prefix. */
function startsBinary({ word }: Cursor): boolean {
  return isInfix(word) && word !== '-' && word !== '+' && word !== '~' && word !== 'is'
}

/** A keyword that ends a part of CASE. */
function endsCaseOperand({ word }: Cursor): boolean {
  return word === 'then' || word === 'when' || word === 'else' || word === 'end'
}

export function endsExpression(cursor: Cursor): boolean {
  const { word } = cursor
  return cursor.kind === 'end' || word === ')' || word === ',' || word === ';' || word === ']'
}

/** Parses a whole chain of AND or of OR, and balances it if it is long. */
function parseLogical(
  cursor: Cursor,
  first: Expression,
  word: 'and' | 'or',
  power: number,
  position: number,
): Expression {
  const operands = [first, parseRight(cursor, word, power, position)]
  const positions = [position]
  while (cursor.word === word) {
    positions.push(cursor.start)
    const at = cursor.start
    countTerm(cursor)
    advance(cursor)
    operands.push(parseRight(cursor, word, power, at))
  }
  return operands.length > 8 ? balance(operands, positions, word, 0, operands.length) : chain(operands, positions, word)
}

function chain(operands: readonly Expression[], positions: readonly number[], operator: 'and' | 'or'): Expression {
  let left = operands[0] as Expression
  for (let i = 1; i < operands.length; i++) {
    left = { kind: 'binary', position: positions[i - 1] as number, operator, left, right: operands[i] as Expression }
  }
  return left
}

/**
 * The tree of operands `from` (inclusive) to `to` (exclusive). positions[i] is the operator between operands i and i +
 * 1.
 */
function balance(
  operands: readonly Expression[],
  positions: readonly number[],
  operator: 'and' | 'or',
  from: number,
  to: number,
): Expression {
  if (to - from === 1) return operands[from] as Expression
  const middle = (from + to) >>> 1
  const left = balance(operands, positions, operator, from, middle)
  const right = balance(operands, positions, operator, middle, to)
  return { kind: 'binary', position: positions[middle - 1] as number, operator, left, right }
}

function parseNegated(cursor: Cursor, left: Expression): Expression {
  const position = cursor.start
  const { word } = cursor
  advance(cursor)
  if (word === 'in') return parseIn(cursor, left, true, position)
  if (word === 'between') return parseBetween(cursor, left, true, position)
  if (word === 'within') return parseBinary(cursor, left, 'not within', containmentPower, position)
  if (word === 'similar') return parseSimilar(cursor, left, '!~', position)
  return parseBinary(cursor, left, word === 'like' ? 'not like' : 'not ilike', equalityPower, position)
}

function parseIn(cursor: Cursor, operand: Expression, negated: boolean, position: number): Expression {
  link(cursor)
  const lacking = cursor.waiting ?? { operator: 'in', position }
  if (endsExpression(cursor) || startsBinary(cursor)) throw tooFew(lacking.operator, 1, 2, lacking.position)
  if (cursor.word !== '(') {
    const set = [parseExpression(cursor, containmentPower)]
    return { kind: 'in', position, negated, operand, set, bare: true }
  }
  const open = cursor.start
  advance(cursor)
  requireInside(cursor, open)
  const set = parseSet(cursor, position, open)
  if (!at(cursor, ')')) throw closingError(cursor, open)
  advance(cursor)
  return { kind: 'in', position, negated, operand, set, bare: false }
}

function parseSet(cursor: Cursor, position: number, open: number): InExpression['set'] {
  if (cursor.word === ')') throw new SqlError("too few arguments for 'in'", position)
  return startsQuery(cursor) ? parseQuery(cursor) : parseList(cursor, (inner) => parseMember(inner, open), sqlListMax)
}

/** A member that is computed for each row counts as a condition, as does each value of a row. */
function parseMember(cursor: Cursor, open: number): Expression {
  const member = parseArgument(cursor, open)
  if (computedKinds.has(member.kind)) countTerm(cursor)
  if (member.kind === 'list') countTerm(cursor, member.elements.length)
  return member
}

const computedKinds: ReadonlySet<Expression['kind']> = new Set([
  'column',
  'binary',
  'call',
  'case',
  'subscript',
  'field',
])

/** Arguments in the parenthesis at `open`. */
export function parseArgumentList(cursor: Cursor, open: number): Expression[] {
  return parseList(cursor, (inner) => parseArgument(inner, open))
}

function parseArgument(cursor: Cursor, open: number): Expression {
  requireInside(cursor, open)
  return parseExpression(cursor, 0, 'argument')
}

/** For callbacks that pass further arguments. */
export function parseExpression0(cursor: Cursor): Expression {
  return parseExpression(cursor)
}

/** The error about a missing closing parenthesis: the text ended, or an unexpected token follows. */
export function closingError(cursor: Cursor, open: number): SqlError {
  if (cursor.kind === 'end' || cursor.word === ';') return new SqlError('unbalanced (', open)
  if (cursor.word === ']') return unexpectedToken(cursor)
  return new SqlError(isConstantToken(cursor) ? 'dangling expression' : 'dangling literal', cursor.start)
}

const constantWords: ReadonlySet<string> = new Set(['null', 'true', 'false'])

/** Whether the token alone is a constant. */
export function isConstantToken({ kind, word }: Cursor): boolean {
  return kind === 'string' || kind === 'number' || constantWords.has(word)
}

/** Throws if the text ends after the parenthesis at `open`. */
export function requireInside(cursor: Cursor, open: number): void {
  if (cursor.kind === 'end') throw closingError(cursor, open)
}

function parseBetween(cursor: Cursor, operand: Expression, negated: boolean, position: number): Expression {
  link(cursor)
  const symmetric = take(cursor, 'symmetric')
  if (!symmetric) take(cursor, 'asymmetric')
  if (endsExpression(cursor)) throw tooFew('between', 1, 3, position)
  if (cursor.word === 'and') throw tooFew('between', 2, 3, position)
  const low = parseExpression(cursor, containmentPower)
  if (isConstantToken(cursor)) throw new SqlError('dangling expression', cursor.start)
  if (!take(cursor, 'and') || endsExpression(cursor)) throw tooFew('between', 2, 3, position)
  const high = parseExpression(cursor, containmentPower)
  return { kind: 'between', position, negated, symmetric, operand, low, high }
}

/**
 * IS [NOT] NULL, TRUE, FALSE, DISTINCT FROM. The last three are comparisons, because NULL equals NULL in this dialect.
 */
function parseIs(cursor: Cursor, operand: Expression, position: number): Expression {
  link(cursor)
  const negated = take(cursor, 'not')
  const literalPosition = cursor.start
  if (take(cursor, 'null')) return { kind: 'is null', position, negated, operand }
  if (cursor.word === 'true' || cursor.word === 'false') {
    const right: Expression = { kind: 'boolean', position: literalPosition, value: cursor.word === 'true' }
    advance(cursor)
    return { kind: 'binary', position, operator: negated ? '<>' : '=', left: operand, right }
  }
  if (take(cursor, 'distinct')) {
    expect(cursor, 'from')
    const right = parseRight(cursor, 'is distinct from', equalityPower, position)
    return { kind: 'binary', position, operator: negated ? '=' : '<>', left: operand, right }
  }
  const ended = cursor.kind === 'end' && !negated
  throw new SqlError(
    `IS ${negated ? 'NOT ' : ''}must be followed by ${ended ? '[NOT] ' : ''}NULL, TRUE or FALSE`,
    position,
  )
}

function parseQuantified(
  cursor: Cursor,
  left: Expression,
  operator: BinaryOperator,
  position: number,
): Expression | null {
  const { word, start, previousEnd } = cursor
  if (word !== 'any' && word !== 'all' && word !== 'some') return null
  advance(cursor)
  if (cursor.word !== '(') {
    moveTo(cursor, start)
    cursor.previousEnd = previousEnd
    return null
  }
  const right = parseOperand(cursor, 'Expression expected')
  return { kind: 'quantified', position, operator, quantifier: word === 'all' ? 'all' : 'any', left, right }
}

/** `operator(pg_catalog.~)`, as catalog queries of PostgreSQL's tools write it. */
function parseNamedOperator(cursor: Cursor, left: Expression, position: number): Expression {
  expect(cursor, '(')
  while (cursor.kind === 'word') {
    advance(cursor)
    expect(cursor, '.')
  }
  const operator = cursor.word
  if (powers.get(operator) === undefined || cursor.kind !== 'symbol') throw unexpectedToken(cursor)
  advance(cursor)
  expect(cursor, ')')
  return parseOperator(cursor, left, operator, equalityPower, position)
}

function parseSubscript(cursor: Cursor, operand: Expression, position: number): Expression {
  link(cursor)
  const requireMore = () => {
    if (cursor.kind === 'end') throw new SqlError('unbalanced [', position)
  }
  const indexes = parseList(cursor, () => {
    requireMore()
    return parseIndex(cursor, requireMore)
  })
  requireMore()
  expect(cursor, ']')
  return { kind: 'subscript', position, operand, indexes }
}

/** `3`, `2:3`, `2:`, `:3`, `:`. The lexer reads `:n` as a parameter; after a lower bound it is the upper bound. */
function parseIndex(cursor: Cursor, requireMore: () => void): Expression | Slice {
  const position = cursor.start
  if (cursor.word === ']') throw new SqlError('empty brackets', position)
  const low = cursor.word === ':' ? null : parseExpression(cursor)
  if (cursor.kind === 'parameter' && tokenText(cursor).startsWith(':')) moveTo(cursor, cursor.start + 1)
  else if (!take(cursor, ':')) return low as Expression
  requireMore()
  const open = cursor.word === ']' || cursor.word === ','
  return { kind: 'slice', position, low, high: open ? null : parseExpression(cursor) }
}
