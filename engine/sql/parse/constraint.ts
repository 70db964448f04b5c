// Constraints as other databases' clients write them, of a table or of a column: read over, since none holds here. Which
// kinds there were is told, so that the client is.

import { SqlError } from '../../base/errors.js'
import type { ConstraintKind } from './ast.js'
import { advance, at, type Cursor, moveTo, peekWord } from './cursor.js'
import { demand, parseAnyTableName, parseName, parseNamesInParentheses, take, takeTwo } from './expect.js'

export interface TableConstraint {
  readonly kind: ConstraintKind
  /** Of a primary key: columns that it makes NOT NULL. */
  readonly columns: readonly string[]
}

/** Between the columns of a table or behind ADD; null where a column begins. */
export function parseTableConstraint(cursor: Cursor): TableConstraint | null {
  const named = takeConstraintName(cursor)
  const constraint = parseKind(cursor)
  if (constraint !== null) skipTail(cursor)
  else if (named) throw new SqlError("'primary', 'unique', 'foreign' or 'check' expected", cursor.start)
  return constraint
}

/** Names begin with any word: only what cannot be a column is a constraint. */
function takeConstraintName(cursor: Cursor): boolean {
  if (cursor.word !== 'constraint') return false
  advance(cursor)
  parseName(cursor, 'constraint name expected')
  return true
}

function parseKind(cursor: Cursor): TableConstraint | null {
  const { word } = cursor
  const next = peekWord(cursor)
  if (word === 'primary' && next === 'key') {
    advance(cursor)
    advance(cursor)
    return { kind: 'key', columns: parseNamesInParentheses(cursor).map(({ name }) => name) }
  }
  if (word === 'unique' && (next === '(' || next === 'nulls')) {
    advance(cursor)
    skipNulls(cursor)
    parseNamesInParentheses(cursor)
    return { kind: 'key', columns: [] }
  }
  if (word === 'foreign' && next === 'key') {
    advance(cursor)
    advance(cursor)
    parseNamesInParentheses(cursor)
    parseReferences(cursor)
    return { kind: 'foreign key', columns: [] }
  }
  return word === 'check' && next === '(' ? parseCheck(cursor) : null
}

/** `unique nulls not distinct (a)` */
function skipNulls(cursor: Cursor): void {
  if (!take(cursor, 'nulls')) return
  take(cursor, 'not')
  demand(cursor, 'distinct')
}

function parseCheck(cursor: Cursor): TableConstraint {
  advance(cursor)
  skipParentheses(cursor)
  return { kind: 'check', columns: [] }
}

/** What is checked may be written with words that nothing here knows. */
function skipParentheses(cursor: Cursor): void {
  let depth = 0
  do {
    if (cursor.kind === 'end') throw new SqlError("')' expected", cursor.start)
    if (at(cursor, '(')) depth++
    if (at(cursor, ')')) depth--
    advance(cursor)
  } while (depth > 0)
}

/** `references t (a) match full on delete cascade on update set null` */
function parseReferences(cursor: Cursor): void {
  demand(cursor, 'references')
  parseAnyTableName(cursor)
  if (cursor.word === '(') parseNamesInParentheses(cursor)
  for (;;) {
    if (take(cursor, 'match')) parseName(cursor, "'full', 'partial' or 'simple' expected")
    else if (take(cursor, 'on')) parseReaction(cursor)
    else return
  }
}

function parseReaction(cursor: Cursor): void {
  if (!take(cursor, 'delete')) demand(cursor, 'update', "'delete' or 'update' expected")
  if (take(cursor, 'cascade') || take(cursor, 'restrict')) return
  if (take(cursor, 'no')) {
    demand(cursor, 'action')
    return
  }
  demand(cursor, 'set', "'cascade', 'restrict', 'no action' or 'set' expected")
  if (!take(cursor, 'null')) demand(cursor, 'default', "'null' or 'default' expected")
}

/** When it is checked. */
function skipTail(cursor: Cursor): void {
  for (;;) {
    const isNot = cursor.word === 'not' && (peekWord(cursor) === 'deferrable' || peekWord(cursor) === 'valid')
    if (isNot) advance(cursor)
    if (isNot || cursor.word === 'deferrable') advance(cursor)
    else if (!takeTwo(cursor, 'initially', 'deferred') && !takeTwo(cursor, 'initially', 'immediate')) return
  }
}

/** Behind a column's type: a foreign key or a check; null where something else stands. NOT NULL may have a name, too. */
export function parseColumnConstraint(cursor: Cursor): ConstraintKind | null {
  const { start } = cursor
  if (takeConstraintName(cursor) && !columnConstraints.has(cursor.word)) {
    moveTo(cursor, start)
    throw new SqlError('a constraint of the column expected', start)
  }
  if (cursor.word === 'references') {
    parseReferences(cursor)
    skipTail(cursor)
    return 'foreign key'
  }
  if (cursor.word !== 'check' || peekWord(cursor) !== '(') return null
  parseCheck(cursor)
  skipTail(cursor)
  return 'check'
}

const columnConstraints: ReadonlySet<string> = new Set([
  'references',
  'check',
  'not',
  'null',
  'primary',
  'unique',
  'default',
  'generated',
])
