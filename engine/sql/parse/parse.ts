// Entry points of the parser: SQL text in, syntax tree out. Parsing takes linear time. Syntax errors and exceeded
// limits are SqlErrors with a position.

import { SqlError } from '../../base/errors.js'
import type { Query, ScriptStatement, Statement } from '../ast/ast.js'
import { advance, type Cursor, openCursor } from './cursor.js'
import { atEnd, unexpectedToken } from './expect.js'
import { parseOneStatement } from './statement.js'

/** Parses one statement with optional `;`. Blank text is the statement `empty`. */
export function parseStatement(text: string): Statement {
  const cursor = openCursor(text)
  skipSemicolons(cursor)
  if (cursor.kind === 'end') return { kind: 'empty', position: 0 }
  const statement = parseWhole(cursor)
  skipSemicolons(cursor)
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return statement
}

/** The query of a view. */
export function parseViewQuery(text: string): Query {
  const statement = parseStatement(text)
  if (statement.kind !== 'query') throw new SqlError('a view must be a query', 0)
  return statement
}

/** Parses statements separated by `;`, without empty ones. Positions are offsets into the whole text. */
export function parseScript(text: string): ScriptStatement[] {
  const cursor = openCursor(text)
  const statements: ScriptStatement[] = []
  for (;;) {
    skipSemicolons(cursor)
    if (cursor.kind === 'end') return statements
    const { start } = cursor
    cursor.parameters = 0
    const statement = parseWhole(cursor)
    statements.push({ start, end: cursor.previousEnd, statement })
  }
}

function parseWhole(cursor: Cursor): Statement {
  const statement = parseOneStatement(cursor)
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return statement
}

function skipSemicolons(cursor: Cursor): void {
  while (cursor.word === ';') advance(cursor)
}
