// Helpers that all parts of the parser use: accept an optional token, require a token, parse names and lists.

import { SqlError } from '../../base/errors.js'
import { sqlColumnsMax } from '../../base/limits.js'
import type { Name, TableName } from '../ast/ast.js'
import { advance, type Cursor, peekWord, quotedValue, tokenText } from './cursor.js'
import { refuseReserved } from './reserved.js'

/** Moves past the word or symbol if it is the current token. */
export function take(cursor: Cursor, word: string): boolean {
  if (cursor.word !== word) return false
  advance(cursor)
  return true
}

/** Moves past commas (repeated ones are tolerated); false if there is none. */
export function takeCommas(cursor: Cursor): boolean {
  const { start } = cursor
  while (take(cursor, ','));
  return cursor.start > start
}

/** Moves past both words if they follow each other. */
export function takeTwo(cursor: Cursor, first: string, second: string): boolean {
  if (cursor.word !== first || peekWord(cursor) !== second) return false
  advance(cursor)
  advance(cursor)
  return true
}

export function expect(cursor: Cursor, word: string, message = `'${word}' expected`, position = cursor.start): void {
  if (!take(cursor, word)) throw new SqlError(message, position)
}

/** Start of the token before the cursor, a word or a symbol of one character. */
export function lastTokenStart({ text, previousEnd }: Cursor): number {
  return previousEnd - (/(?:\w+|.)$/s.exec(text.slice(0, previousEnd))?.[0].length ?? 0)
}

/** Position for an error at the cursor. At the end of the text it is a trailing blank, or else the last token. */
export function nextPlace(cursor: Cursor): number {
  if (cursor.kind !== 'end') return cursor.start
  return cursor.previousEnd < cursor.text.length ? cursor.previousEnd : lastTokenStart(cursor)
}

export function unexpectedToken(cursor: Cursor): SqlError {
  if (cursor.kind === 'end') return new SqlError('unexpected end of statement', cursor.start)
  return new SqlError(`unexpected token [${shownToken(cursor)}]`, cursor.start)
}

/** An operator or similar form lacks operands. */
export function tooFew(name: string, found: number, expected: number, position: number): SqlError {
  return new SqlError(`too few arguments for '${name}' [found=${found},expected=${expected}]`, position)
}

/** The token for an error message, truncated. */
export function shownToken(cursor: Cursor): string {
  const text = tokenText(cursor)
  return text.length > 100 ? `${text.slice(0, 100)}..` : text
}

export function atEnd(cursor: Cursor): boolean {
  return cursor.kind === 'end' || cursor.word === ';'
}

/**
 * A word (also one that begins with digits) or a name in double quotes. Keywords are accepted; the caller excludes
 * those that are reserved.
 */
export function parseName(cursor: Cursor, message: string): Name {
  if (cursor.kind === 'word' || isNumberName(cursor)) {
    const name = { position: cursor.start, name: tokenText(cursor), quoted: false }
    advance(cursor)
    return name
  }
  return parseQuotedName(cursor, message, cursor.kind === 'quoted')
}

/** `1`, `12x`: a number is accepted as a name where only a name is allowed, unless it contains a dot or a sign. */
export function isNumberName(cursor: Cursor): boolean {
  return cursor.kind === 'number' && /^\w+$/.test(tokenText(cursor))
}

/** Also accepts a name in single quotes, as for aliases and table names. */
export function parseNameOrString(cursor: Cursor, message: string): Name {
  if (cursor.kind === 'string') return parseQuotedName(cursor, message, true)
  return parseName(cursor, message)
}

/** A name that is not a reserved word, unless quoted. */
export function parseFreeName(cursor: Cursor, message: string): Name {
  refuseReserved(cursor)
  return parseNameOrString(cursor, message)
}

function parseQuotedName(cursor: Cursor, message: string, quoted: boolean): Name {
  if (!quoted) throw new SqlError(message, cursor.start)
  const name = { position: cursor.start, name: quotedValue(cursor), quoted: true }
  advance(cursor)
  return name
}

/** `t`, `s.t`, `"db"."s"."t"`, `'t'`. */
export function parseTableName(cursor: Cursor, message = 'table name expected'): TableName {
  refuseReserved(cursor)
  return parseAnyTableName(cursor, message)
}

/** Like parseTableName, but accepts reserved words. */
export function parseAnyTableName(cursor: Cursor, message = 'table name expected'): TableName {
  const first = parseNameOrString(cursor, message)
  const path = [first.name]
  let { quoted, position: last } = first
  while (cursor.word === '.') {
    advance(cursor)
    const part = parseNameOrString(cursor, message)
    quoted ||= part.quoted
    last = part.position
    path.push(part.name)
  }
  if (path.length > 3) throw new SqlError('too many parts in table name', first.position)
  return tableNameOf(path, [first.position, last], quoted)
}

/** Schemas whose relations belong to the server. */
const systemSchemas: ReadonlySet<string> = new Set(['pg_catalog', 'information_schema', 'pg_toast', 'sys'])

/**
 * The name of a table from its path. In schema `public` its position is that of the table's own name, otherwise that of
 * the schema. Other schemas do not exist: `a.t` is the name of the table.
 */
export function tableNameOf(
  path: readonly string[],
  [first, last]: readonly [number, number],
  quoted: boolean,
): TableName {
  const schema = path.length > 1 ? (path.at(-2) as string) : 'public'
  const name = path.at(-1) as string
  const known = schema.toLowerCase()
  // Temporary tables are ordinary tables, and loaders qualify them with pg_temp.
  if (known === 'public' || known === 'pg_temp') return { position: last, schema: null, name, quoted }
  if (systemSchemas.has(known)) return { position: first, schema, name, quoted }
  return { position: first, schema: null, name: `${schema}.${name}`, own: name, quoted }
}

/** The name that qualifies the table's columns if it has no alias. */
export function ownName({ name, own }: TableName): string {
  return own ?? name
}

/** `item, item, ...` with a limit on their number. */
export function parseList<Item>(cursor: Cursor, parseItem: (cursor: Cursor) => Item, max = sqlColumnsMax): Item[] {
  const items = [parseItem(cursor)]
  while (cursor.word === ',') {
    advance(cursor)
    if (items.length === max) throw new SqlError(`list is too long [max=${max}]`, cursor.start)
    items.push(parseItem(cursor))
  }
  return items
}

/** `(name, name, ...)` */
export function parseNamesInParentheses(cursor: Cursor, message = 'column name expected'): Name[] {
  expect(cursor, '(')
  const names = parseList(cursor, (inner) => parseNameOrString(inner, message))
  expect(cursor, ')')
  return names
}

/** An integer of at most 15 digits, which a double represents exactly. */
export function parseWholeNumber(cursor: Cursor, message: string): number {
  const digits = tokenText(cursor).replaceAll('_', '')
  if (cursor.kind !== 'number' || !/^\d{1,15}$/.test(digits)) throw new SqlError(message, cursor.start)
  advance(cursor)
  return Number(digits)
}

export function parseString(cursor: Cursor, message: string): { position: number; name: string } {
  if (cursor.kind !== 'string') throw new SqlError(message, cursor.start)
  const value = { position: cursor.start, name: quotedValue(cursor) }
  advance(cursor)
  return value
}

/** Throws at the second of two equal names, ignoring case. */
export function requireDistinct(names: readonly { position: number; name: string }[], context = ''): void {
  const seen = new Set<string>()
  for (const { name, position } of names) {
    const key = name.toLowerCase()
    if (seen.has(key)) throw new SqlError(`Duplicate column [name=${name}]${context}`, position)
    seen.add(key)
  }
}

const lockWords: ReadonlySet<string> = new Set(['update', 'share', 'no', 'key', 'read'])

/** Whether `for update` or the like begins here, which ends a query. */
export function startsLocking(cursor: Cursor): boolean {
  return cursor.word === 'for' && lockWords.has(peekWord(cursor))
}
