// Parses constraints of tables and columns. Keys are recorded in the syntax tree; a primary key is enforced if it says
// ENFORCED. Foreign keys and checks are skipped, and only their kind is returned, so that the client gets a notice.

import { SqlError } from '../../base/errors.js'
import type { ConstraintKind, KeyDefinition, KeyOption, Name } from '../ast/ast.js'
import { advance, at, type Cursor, moveTo, peekWord } from './cursor.js'
import { expect, parseAnyTableName, parseName, parseNamesInParentheses, take, takeTwo } from './expect.js'

export type TableConstraint = { readonly kind: 'key'; readonly key: KeyDefinition } | { readonly kind: ConstraintKind }

/** A constraint between the columns of a table or after ADD; null if a column begins here. */
export function parseTableConstraint(cursor: Cursor): TableConstraint | null {
  const name = takeConstraintName(cursor)
  const constraint = parseKind(cursor, name)
  if (constraint !== null) skipTail(cursor)
  else if (name !== null) throw new SqlError("'primary', 'unique', 'foreign' or 'check' expected", cursor.start)
  return constraint
}

/** CONSTRAINT and a name. Columns may be named with any word, so the caller decides whether a constraint follows. */
function takeConstraintName(cursor: Cursor): Name | null {
  if (cursor.word !== 'constraint') return null
  advance(cursor)
  return parseName(cursor, 'constraint name expected')
}

function parseKind(cursor: Cursor, name: Name | null): TableConstraint | null {
  const { word } = cursor
  const next = peekWord(cursor)
  if (word === 'unique' ? next === '(' || next === 'nulls' : word === 'primary' && next === 'key') {
    const key = takeKey(cursor, name)
    if (key === null) return null
    const columns = parseNamesInParentheses(cursor)
    return { kind: 'key', key: { ...key, columns, enforced: takeEnforced(cursor, key) } }
  }
  if (word === 'foreign' && next === 'key') {
    advance(cursor)
    advance(cursor)
    parseNamesInParentheses(cursor)
    parseReferences(cursor)
    return { kind: 'foreign key' }
  }
  return word === 'check' && next === '(' ? parseCheck(cursor) : null
}

/** A key after a column's type; null if there is none at the cursor. */
export function takeColumnKey(cursor: Cursor, name: Name | null): KeyOption | null {
  const key = takeKey(cursor, name)
  return key === null ? null : { ...key, enforced: takeEnforced(cursor, key) }
}

/** `primary key`, `unique nulls not distinct`; null if there is no key at the cursor. */
function takeKey(cursor: Cursor, name: Name | null): Omit<KeyOption, 'enforced'> | null {
  const { start: position } = cursor
  if (take(cursor, 'primary')) {
    expect(cursor, 'key')
    return { position, name, primary: true, nullsEqual: false }
  }
  return take(cursor, 'unique') ? { position, name, primary: false, nullsEqual: takeNulls(cursor) } : null
}

/** `enforced`; `not enforced` is what keys are without it. */
function takeEnforced(cursor: Cursor, { primary }: Pick<KeyOption, 'primary'>): boolean {
  const { start } = cursor
  if (takeTwo(cursor, 'not', 'enforced') || !take(cursor, 'enforced')) return false
  if (!primary) throw new SqlError('UNIQUE cannot be ENFORCED, a PRIMARY KEY can', start)
  return true
}

function takeNulls(cursor: Cursor): boolean {
  if (!take(cursor, 'nulls')) return false
  const nullsEqual = take(cursor, 'not')
  expect(cursor, 'distinct')
  return nullsEqual
}

function parseCheck(cursor: Cursor): TableConstraint {
  advance(cursor)
  skipParentheses(cursor)
  return { kind: 'check' }
}

/** The condition is skipped unparsed, because it may contain syntax that is unknown here. */
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
  expect(cursor, 'references')
  parseAnyTableName(cursor)
  if (cursor.word === '(') parseNamesInParentheses(cursor)
  for (;;) {
    if (take(cursor, 'match')) parseName(cursor, "'full', 'partial' or 'simple' expected")
    else if (take(cursor, 'on')) parseReaction(cursor)
    else return
  }
}

function parseReaction(cursor: Cursor): void {
  if (!take(cursor, 'delete')) expect(cursor, 'update', "'delete' or 'update' expected")
  if (take(cursor, 'cascade') || take(cursor, 'restrict')) return
  if (take(cursor, 'no')) {
    expect(cursor, 'action')
    return
  }
  expect(cursor, 'set', "'cascade', 'restrict', 'no action' or 'set' expected")
  if (!take(cursor, 'null')) expect(cursor, 'default', "'null' or 'default' expected")
}

/** Skips DEFERRABLE, INITIALLY and the like. */
function skipTail(cursor: Cursor): void {
  for (;;) {
    const isNot = cursor.word === 'not' && (peekWord(cursor) === 'deferrable' || peekWord(cursor) === 'valid')
    if (isNot) advance(cursor)
    if (isNot || cursor.word === 'deferrable') advance(cursor)
    else if (!takeTwo(cursor, 'initially', 'deferred') && !takeTwo(cursor, 'initially', 'immediate')) return
  }
}

/** The constraint name after a column's type; null if the word is something else. */
export function takeColumnConstraintName(cursor: Cursor): Name | null {
  const { start } = cursor
  const name = takeConstraintName(cursor)
  if (name === null || columnConstraints.has(cursor.word)) return name
  moveTo(cursor, start)
  throw new SqlError('a constraint of the column expected', start)
}

/** A foreign key or check; null if there is none at the cursor. */
export function parseColumnConstraint(cursor: Cursor): ConstraintKind | null {
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
