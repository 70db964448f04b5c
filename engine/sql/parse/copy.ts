// Parses COPY, in the form of other servers of the native dialect and in that of PostgreSQL. Only clients of the
// PostgreSQL protocol can execute it (Dialect.copyStatements).
//
//   copy t from 'file.csv' with header true timestamp 'ts' format '..' on error skip_row
//   copy t to 'name' with format parquet        copy (select ..) to 'name' with format parquet
//   copy '<id>' cancel
//   copy t (a, b) from stdin with (format csv, header)        copy t to stdout csv header

import { SqlError } from '../../base/errors.js'
import type { Copy, CopyOption, Name } from '../ast/ast.js'
import { advance, type Cursor, peekWord, quotedValue, tokenText } from './cursor.js'
import { atEnd, expect, parseName, parseNamesInParentheses, parseTableName, take, unexpectedToken } from './expect.js'
import { parseQueryInParentheses } from './query.js'

/** The cursor is on `copy`. */
export function parseCopy(cursor: Cursor): Copy {
  const position = cursor.start
  advance(cursor)
  if (cursor.kind === 'string' && peekWord(cursor) === 'cancel') return parseCopyCancel(cursor, position)
  const source: Copy['source'] =
    cursor.word === '('
      ? parseQueryInParentheses(cursor)
      : { kind: 'table', table: parseTableName(cursor, 'table name expected') }
  const columns: Name[] = source.kind === 'table' && cursor.word === '(' ? parseNamesInParentheses(cursor) : []
  const direction = parseDirection(cursor)
  const target = parseTarget(cursor)
  return { kind: 'copy', position, source, columns, direction, target, options: parseOptions(cursor) }
}

function parseCopyCancel(cursor: Cursor, position: number): Copy {
  const source: Copy['source'] = { kind: 'job', position: cursor.start, id: quotedValue(cursor) }
  advance(cursor)
  const target: Copy['target'] = { kind: 'connection', position: cursor.start }
  advance(cursor)
  return { kind: 'copy', position, source, columns: [], direction: 'cancel', target, options: [] }
}

function parseDirection(cursor: Cursor): 'from' | 'to' {
  if (take(cursor, 'from')) return 'from'
  if (take(cursor, 'to')) return 'to'
  throw new SqlError("'from' or 'to' expected", cursor.start)
}

function parseTarget(cursor: Cursor): Copy['target'] {
  const position = cursor.start
  if (take(cursor, 'stdin') || take(cursor, 'stdout')) return { kind: 'connection', position }
  if (cursor.kind !== 'string') throw new SqlError('file name expected', position)
  const name = quotedValue(cursor)
  advance(cursor)
  return { kind: 'file', position, name }
}

function parseOptions(cursor: Cursor): CopyOption[] {
  const options: CopyOption[] = []
  take(cursor, 'with')
  const inParentheses = take(cursor, '(')
  if (inParentheses) {
    do options.push(parseOption(cursor, true))
    while (take(cursor, ','))
    expect(cursor, ')')
    return options
  }
  while (!atEnd(cursor)) {
    options.push(parseOption(cursor, false))
    take(cursor, ',')
  }
  return options
}

/** Format names that are written without FORMAT in PostgreSQL's old syntax. */
const flags: ReadonlySet<string> = new Set(['csv', 'binary', 'text'])

function parseOption(cursor: Cursor, inParentheses: boolean): CopyOption {
  const position = cursor.start
  if (cursor.word === 'where') throw new SqlError('COPY .. WHERE is not supported', position)
  take(cursor, 'using')
  const said = parseName(cursor, 'option expected').name.toLowerCase()
  const name = said === 'delimiters' ? 'delimiter' : said
  if (flags.has(name)) return option(position, 'format', [name])
  if (name === 'on') {
    expect(cursor, 'error')
    return option(position, 'on error', [parseOptionValue(cursor)])
  }
  if (name === 'partition') {
    expect(cursor, 'by')
    return option(position, 'partition by', [parseOptionValue(cursor)])
  }
  if (name === 'force') return parseForce(cursor, position)
  take(cursor, 'as')
  take(cursor, '=')
  if (cursor.word === '(') return option(position, name, parseValueList(cursor))
  if (startsValue(cursor, name, inParentheses)) return option(position, name, [parseOptionValue(cursor)])
  return { position, name, value: 'true', values: [] }
}

/** PostgreSQL's old syntax: FORCE QUOTE a, b and FORCE NOT NULL a. */
function parseForce(cursor: Cursor, position: number): CopyOption {
  const name = take(cursor, 'quote') ? 'force_quote' : take(cursor, 'not') ? 'force_not_null' : 'force_null'
  if (name !== 'force_quote') expect(cursor, 'null')
  const values = [parseOptionValue(cursor)]
  while (cursor.word === ',') {
    advance(cursor)
    values.push(parseOptionValue(cursor))
  }
  return option(position, name, values)
}

function option(position: number, name: string, values: readonly string[]): CopyOption {
  return { position, name, value: values[0] ?? '', values }
}

/** Whether the option has a value. Outside parentheses, HEADER and FREEZE have one only if a boolean follows. */
function startsValue(cursor: Cursor, name: string, inParentheses: boolean): boolean {
  if (atEnd(cursor) || cursor.word === ',' || cursor.word === ')') return false
  if (inParentheses || (name !== 'header' && name !== 'freeze')) return true
  return (
    ['true', 'false', 'on', 'off', 'match'].includes(cursor.word) ||
    cursor.kind === 'number' ||
    cursor.kind === 'string'
  )
}

function parseValueList(cursor: Cursor): string[] {
  advance(cursor)
  const values: string[] = []
  do values.push(parseOptionValue(cursor))
  while (take(cursor, ','))
  expect(cursor, ')')
  return values
}

function parseOptionValue(cursor: Cursor): string {
  const { kind } = cursor
  if (kind === 'end' || (kind === 'symbol' && cursor.word !== '*')) throw unexpectedToken(cursor)
  const value = kind === 'string' || kind === 'quoted' ? quotedValue(cursor) : tokenText(cursor)
  advance(cursor)
  return value
}
