// Parses CREATE INDEX and ALTER INDEX, as migrations send them. CREATE INDEX builds no index, since every page of a
// stored Parquet file has minima and maxima (a zone map), so the columns and options are skipped. Of ALTER INDEX, only
// RENAME TO is read.

import { SqlError } from '../../base/errors.js'
import type { AlterIndex, CreateIndex } from '../ast/ast.js'
import { advance, at, type Cursor } from './cursor.js'
import { atEnd, expect, parseName, parseTableName, take, takeTwo } from './expect.js'
import { takeIfExists, takeIfNotExists } from './tables.js'

/** The cursor is after `create`. */
export function parseCreateIndex(cursor: Cursor, position: number): CreateIndex {
  const unique = take(cursor, 'unique')
  expect(cursor, 'index')
  take(cursor, 'concurrently')
  takeIfNotExists(cursor)
  if (!at(cursor, 'on')) parseName(cursor, 'index name expected')
  expect(cursor, 'on')
  take(cursor, 'only')
  const table = parseTableName(cursor)
  if (take(cursor, 'using')) parseName(cursor, 'index method expected')
  if (!at(cursor, '(')) throw new SqlError("'(' expected", cursor.start)
  while (!atEnd(cursor)) advance(cursor)
  return { kind: 'create index', position, unique, table }
}

/** `if exists a rename to b`, after `alter index`. Actions other than RENAME are skipped. */
export function parseAlterIndex(cursor: Cursor, position: number): AlterIndex {
  takeIfExists(cursor)
  const index = parseTableName(cursor, 'index name expected')
  const newName = takeTwo(cursor, 'rename', 'to') ? parseName(cursor, 'index name expected') : null
  while (!atEnd(cursor)) advance(cursor)
  return { kind: 'alter index', position, index, newName }
}
