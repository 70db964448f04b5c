// One column of CREATE TABLE or ALTER TABLE: name, type, options of symbols, and the constraints other databases' clients write.

import { SqlError } from '../../base/errors.js'
import type { ColumnDefinition, IndexOption, SymbolOptions, TypeName } from './ast.js'
import { advance, type Cursor, shownTokenError, tokenText } from './cursor.js'
import { demand, parseNameOrString, parseWholeNumber, take } from './expect.js'
import { parseExpression } from './expression.js'
import { parseTypeName } from './type-name.js'

/** `isCast`: the form `a as int` of CREATE TABLE AS. */
export function parseColumn(cursor: Cursor, isCast = false): ColumnDefinition {
  if (cursor.word === ')' || cursor.word === ',') throw shownTokenError(cursor, 'missing column definition')
  const { position, name, quoted } = parseNameOrString(
    cursor,
    cursor.kind === 'end' ? "')' or ',' expected" : 'column name expected',
  )
  if (quoted) demandColumnName(name, position)
  if (isCast) demand(cursor, 'as')
  return { position, name, quoted, ...parseColumnTail(cursor) }
}

export function demandColumnName(name: string, position: number): void {
  if (name === '' || /[?.,'"\\/:)(+*%~\-\0\r\n\ufeff]/.test(name)) {
    throw new SqlError(' new column name contains invalid characters', position)
  }
}

type ColumnTail = Omit<ColumnDefinition, 'position' | 'name' | 'quoted'>

/** The type and everything behind it. */
export function parseColumnTail(cursor: Cursor): ColumnTail {
  const type = parseTypeName(cursor)
  const symbol = isSymbol(type) ? parseSymbolOptions(cursor) : { capacity: null, cache: null }
  const tail = {
    type,
    symbol,
    index: null as IndexOption | null,
    notNull: false,
    primaryKey: false,
    defaultValue: null as ColumnTail['defaultValue'],
  }
  for (;;) {
    const { start } = cursor
    if (cursor.word === 'index') {
      advance(cursor)
      tail.index = parseIndex(cursor, start)
    } else if (take(cursor, 'not')) {
      demand(cursor, 'null')
      tail.notNull = true
    } else if (take(cursor, 'primary')) {
      demand(cursor, 'key')
      tail.primaryKey = true
    } else if (take(cursor, 'default')) tail.defaultValue = parseExpression(cursor)
    else if (!take(cursor, 'null') && !take(cursor, 'unique') && !take(cursor, 'parquet')) return tail
  }
}

function isSymbol(type: TypeName): boolean {
  return type.name === 'symbol'
}

/** `capacity 256 nocache` */
function parseSymbolOptions(cursor: Cursor): SymbolOptions {
  const capacity = take(cursor, 'capacity') ? parseCapacity(cursor) : null
  const cache = cursor.word === 'cache' || cursor.word === 'nocache' ? cursor.word === 'cache' : null
  if (cache !== null) advance(cursor)
  if (cache !== null && symbolOptions.has(cursor.word)) throw new SqlError("'index' expected", cursor.start)
  return { capacity, cache }
}

const symbolOptions: ReadonlySet<string> = new Set(['capacity', 'cache', 'nocache'])

const symbolCapacityMax = 33_554_432

export function parseCapacity(cursor: Cursor): { position: number; value: number } {
  const position = cursor.start
  if (cursor.word === '-') throw new SqlError('min symbol capacity is 2', position)
  const value = parseWholeNumber(cursor, 'numeric capacity expected')
  if (value < 2) throw new SqlError('min symbol capacity is 2', position)
  if (value > symbolCapacityMax)
    throw new SqlError(`max cached symbol capacity is ${symbolCapacityMax}`, cursor.previousEnd)
  return { position, value }
}

/** Behind INDEX: `capacity 512` or nothing. */
export function parseIndex(cursor: Cursor, position: number): IndexOption {
  if (!take(cursor, 'capacity')) return { position, capacity: null }
  if (cursor.kind !== 'number') throw new SqlError(`bad integer [value=${tokenText(cursor)}]`, cursor.start)
  const { start } = cursor
  const capacity = parseWholeNumber(cursor, 'index capacity expected')
  if (capacity < 2) throw new SqlError('min index block capacity is 2', start)
  return { position, capacity }
}
