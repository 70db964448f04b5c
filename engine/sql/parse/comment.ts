// Parses COMMENT ON a table or column. For other objects it returns null, and the caller skips the statement.

import { SqlError } from '../../base/errors.js'
import type { Comment } from '../ast/ast.js'
import { advance, type Cursor } from './cursor.js'
import { atEnd, expect, parseName, parseString, parseTableName, tableNameOf, take } from './expect.js'

/** The cursor is after `comment`. Null: the object is neither a table nor a column. */
export function parseComment(cursor: Cursor, position: number): Comment | null {
  expect(cursor, 'on')
  const isColumn = cursor.word === 'column'
  if (!isColumn && cursor.word !== 'table') return null
  advance(cursor)
  const named = isColumn ? parseColumn(cursor) : { table: parseTableName(cursor), column: null }
  expect(cursor, 'is')
  const text = take(cursor, 'null') ? '' : parseString(cursor, 'text of the comment expected').name
  if (!atEnd(cursor)) throw new SqlError('end of the statement expected', cursor.start)
  return { kind: 'comment', position, ...named, text }
}

/** `t.c`, `public.t.c` */
function parseColumn(cursor: Cursor): Pick<Comment, 'table' | 'column'> {
  const parts = [parseName(cursor, 'column name expected')]
  while (take(cursor, '.')) parts.push(parseName(cursor, 'column name expected'))
  const column = parts.pop()
  const [first] = parts
  const last = parts.at(-1)
  if (column === undefined || first === undefined || last === undefined || parts.length > 3)
    throw new SqlError('column name must be qualified', cursor.start)
  const path = parts.map(({ name }) => name)
  const quoted = parts.some((part) => part.quoted)
  return { table: tableNameOf(path, [first.position, last.position], quoted), column }
}
