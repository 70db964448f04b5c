// Parses GROUP BY: ALL, or a list of expressions, ROLLUP (..), CUBE (..) and GROUPING SETS (..). A list with any of the
// latter three is expanded to a list of grouping sets, by combining the sets of its items as a cross product.

import { SqlError } from '../../base/errors.js'
import { groupingSetsMax, sqlColumnsMax } from '../../base/limits.js'
import type { Expression, Select } from '../ast/ast.js'
import { advance, type Cursor, descend, peekWord } from './cursor.js'
import { expect, parseList, take } from './expect.js'
import { parseExpression } from './expression.js'

/** Indexes of grouping expressions. */
type GroupingSet = readonly number[]

/** The cursor is on `group`. */
export function parseGrouping(cursor: Cursor): Pick<Select, 'groupBy' | 'groupingSets' | 'groupAll'> {
  const { start } = cursor
  advance(cursor)
  expect(cursor, 'by')
  if (cursor.word === 'all' && startsWholeList(cursor)) {
    advance(cursor)
    return { groupBy: [], groupAll: true }
  }
  const groupBy: Expression[] = []
  let isPlain = true
  const parseItem = (inner: Cursor): GroupingSet[] => {
    const sets = parseSets(inner, groupBy)
    isPlain &&= sets === null
    return sets ?? [parseElement(inner, groupBy)]
  }
  const items = parseList(cursor, parseItem, sqlColumnsMax)
  if (isPlain && groupBy.length > 0) return { groupBy }
  return { groupBy, groupingSets: items.reduce((left, right) => combined(left, right, start)) }
}

/** Whether `all` is the word, and not the beginning of an expression over a column of that name. */
function startsWholeList(cursor: Cursor): boolean {
  const next = peekWord(cursor)
  return next === '' || /^[a-z;)]/.test(next)
}

function combined(left: GroupingSet[], right: GroupingSet[], position: number): GroupingSet[] {
  requireFew(left.length * right.length, position)
  return left.flatMap((set) => right.map((other) => [...set, ...other]))
}

function requireFew(count: number, position: number): void {
  if (count > groupingSetsMax) throw new SqlError(`too many grouping sets [max=${groupingSetsMax}]`, position)
}

/** The sets of ROLLUP, CUBE or GROUPING SETS; null if an expression begins here. */
function parseSets(cursor: Cursor, groupBy: Expression[]): GroupingSet[] | null {
  const { start, word } = cursor
  const next = peekWord(cursor)
  if (word === 'grouping' && next === 'sets') {
    advance(cursor)
    advance(cursor)
    return parseSetList(cursor, groupBy, start)
  }
  if ((word !== 'rollup' && word !== 'cube') || next !== '(') return null
  advance(cursor)
  advance(cursor)
  const elements = parseList(cursor, (inner) => parseElement(inner, groupBy), sqlColumnsMax)
  expect(cursor, ')')
  return word === 'rollup' ? rollup(elements, start) : cube(elements, start)
}

function parseSetList(cursor: Cursor, groupBy: Expression[], position: number): GroupingSet[] {
  descend(cursor)
  expect(cursor, '(')
  const parseItem = (inner: Cursor) => parseSets(inner, groupBy) ?? [parseElement(inner, groupBy)]
  const sets = parseList(cursor, parseItem, sqlColumnsMax).flat()
  expect(cursor, ')')
  cursor.depth--
  requireFew(sets.length, position)
  return sets
}

/** `a`, `(a, b)` or `()` */
function parseElement(cursor: Cursor, groupBy: Expression[]): GroupingSet {
  if (cursor.word === '(' && peekWord(cursor) === ')') {
    advance(cursor)
    take(cursor, ')')
    return []
  }
  const written = parseExpression(cursor, 0, 'literal expected')
  const elements = written.kind === 'list' ? written.elements : [written]
  return elements.map((element) => groupBy.push(element) - 1)
}

/** All elements, then one fewer each time. */
function rollup(elements: readonly GroupingSet[], position: number): GroupingSet[] {
  requireFew(elements.length + 1, position)
  return Array.from({ length: elements.length + 1 }, (_, less) => elements.slice(0, elements.length - less).flat())
}

/** All subsets of the elements. */
function cube(elements: readonly GroupingSet[], position: number): GroupingSet[] {
  requireFew(2 ** elements.length, position)
  const [first, ...rest] = elements
  if (first === undefined) return [[]]
  const others = cube(rest, position)
  return [...others.map((set) => [...first, ...set]), ...others]
}
