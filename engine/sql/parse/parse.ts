// The door of the SQL front end: text in, syntax tree out. Linear time; every limit ends in a SqlError.

import type { ScriptStatement, Statement } from '../ast/ast.js'
import { advance, type Cursor, openCursor } from './cursor.js'
import { atEnd, unexpectedToken } from './expect.js'
import { parseOneStatement } from './statement.js'

/** One statement, perhaps with `;` behind it. Blank text is the statement `empty`. */
export function parseStatement(text: string): Statement {
  const cursor = openCursor(text)
  skipSemicolons(cursor)
  if (cursor.kind === 'end') return { kind: 'empty', position: 0 }
  const statement = parseWhole(cursor)
  skipSemicolons(cursor)
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return statement
}

/** Any number of statements divided by `;`; empty ones are left out. Positions are offsets into the whole text. */
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
