// Parses a column definition of CREATE TABLE or ALTER TABLE: name, type, SYMBOL options, default, identity, constraints
// and storage.

import { SqlError } from '../../base/errors.js'
import type {
  ColumnDefault,
  ColumnDefinition,
  ColumnStorageClause,
  ConstraintKind,
  Counted,
  IndexOption,
  KeyOption,
  Name,
  SymbolOptions,
  TypeName,
} from '../ast/ast.js'
import { parseColumnConstraint, takeColumnConstraintName, takeColumnKey } from './constraint.js'
import { advance, type Cursor, shownTokenError } from './cursor.js'
import {
  atEnd,
  expect,
  parseName,
  parseNameOrString,
  parseNamesInParentheses,
  parseWholeNumber,
  take,
} from './expect.js'
import { parseExpression } from './expression.js'
import { parseIdentityOptions } from './sequence.js'
import { parseColumnType } from './type-name.js'

/** The statement that contains the definition; error messages depend on it. */
export type ColumnContext = 'create' | 'alter'

export function parseColumn(cursor: Cursor, context: ColumnContext): ColumnDefinition {
  return parseColumnAfterName(cursor, parseNewName(cursor, context), context)
}

export function parseNewName(cursor: Cursor, context: ColumnContext): Name {
  if (cursor.word === ')' || cursor.word === ',') throw shownTokenError(cursor, 'missing column definition')
  const column = parseColumnName(cursor, cursor.kind === 'end' ? "')' or ',' expected" : 'column name expected')
  if (context === 'create' && cursor.kind === 'end') throw new SqlError("')' or ',' expected", cursor.start)
  if (context === 'create' && (cursor.word === ')' || cursor.word === ','))
    throw shownTokenError(cursor, 'missing column definition')
  return column
}

/** The definition after the name. */
export function parseColumnAfterName(cursor: Cursor, column: Name, context: ColumnContext): ColumnDefinition {
  const tail = parseColumnTail(cursor, context)
  if (cursor.word === ']')
    throw new SqlError(`${column.name} has an unmatched \`]\` - were you trying to define an array?`, column.position)
  return { ...column, ...tail }
}

/** `a as int` of CREATE TABLE AS. */
export function parseCastColumn(cursor: Cursor): ColumnDefinition {
  const column = parseColumnName(cursor, 'literal expected')
  expect(cursor, 'as')
  if (cursor.word === ')') throw new SqlError('literal expected', cursor.start)
  return { ...column, ...parseColumnTail(cursor, 'create') }
}

function parseColumnName(cursor: Cursor, missing: string): Name {
  const column = parseNameOrString(cursor, missing)
  if (column.quoted) requireColumnName(column.name, column.position)
  return column
}

export function requireColumnName(name: string, position: number): void {
  if (name === '' || /[?.,'"\\/:)(+*%~\-\0\r\n\ufeff]/.test(name)) {
    throw new SqlError(' new column name contains invalid characters', position)
  }
}

type ColumnTail = Omit<ColumnDefinition, 'position' | 'name' | 'quoted'>

/** The type and everything after it. `hasStorage`: whether PARQUET(..) may follow. */
export function parseColumnTail(cursor: Cursor, context: ColumnContext, hasStorage = true): ColumnTail {
  const type = parseColumnType(cursor, context)
  const symbol = isSymbol(type) ? parseSymbolOptions(cursor, context) : { capacity: null, cache: null }
  const tail = {
    type,
    symbol,
    index: null as IndexOption | null,
    notNull: false,
    keys: [] as KeyOption[],
    constraints: [] as ConstraintKind[],
    counted: null as Counted | null,
    defaultValue: null as ColumnTail['defaultValue'],
  }
  let storage: ColumnStorageClause | null = null
  const counter = countedTypes.get(type.name)
  if (counter !== undefined) Object.assign(tail, { type: { ...type, name: counter }, counted: serial })
  for (;;) {
    const { start } = cursor
    const name = takeColumnConstraintName(cursor)
    const key = takeColumnKey(cursor, name)
    if (key !== null) tail.keys.push(key)
    else if (cursor.word === 'index' && isSymbol(type)) {
      advance(cursor)
      tail.index = parseIndex(cursor, start, context)
    } else if (take(cursor, 'not')) {
      expect(cursor, 'null')
      tail.notNull = true
    } else if (take(cursor, 'default')) tail.defaultValue = parseDefault(cursor)
    else if (hasStorage && take(cursor, 'parquet')) storage = parseColumnStorage(cursor)
    else if (take(cursor, 'generated')) tail.counted = parseIdentity(cursor)
    else if (!takeConstraint(cursor, tail.constraints)) return { ...tail, storage }
  }
}

/** A constraint, which is recorded, or an option without effect. */
function takeConstraint(cursor: Cursor, constraints: ConstraintKind[]): boolean {
  const constraint = parseColumnConstraint(cursor)
  if (constraint === null) return take(cursor, 'null')
  constraints.push(constraint)
  return true
}

/** PostgreSQL's serial types, whose columns INSERT numbers, with the type that they have here. */
const countedTypes: ReadonlyMap<string, string> = new Map([
  ...([
    ['serial', 'int'],
    ['serial4', 'int'],
    ['bigserial', 'long'],
    ['serial8', 'long'],
  ] as const),
  ...([
    ['smallserial', 'short'],
    ['serial2', 'short'],
  ] as const),
])

const serial: Counted = { kind: 'counted', identity: null, counter: null }

/** `by default as identity (start with 1)`, after GENERATED. */
export function parseIdentity(cursor: Cursor): Counted {
  const identity = parseGenerated(cursor)
  expect(cursor, 'as')
  if (cursor.word !== 'identity') throw new SqlError('computed columns are not supported', cursor.start)
  advance(cursor)
  let counter: string | null = null
  if (take(cursor, '(')) {
    counter = parseIdentityOptions(cursor)
    expect(cursor, ')')
  }
  return { kind: 'counted', identity, counter }
}

/** `identity if exists` */
export function takeIdentity(cursor: Cursor): boolean {
  if (!take(cursor, 'identity')) return false
  if (take(cursor, 'if')) expect(cursor, 'exists')
  return true
}

/** `always`, `by default` */
function parseGenerated(cursor: Cursor): NonNullable<Counted['identity']> {
  if (take(cursor, 'always')) return 'always'
  expect(cursor, 'by')
  expect(cursor, 'default')
  return 'by default'
}

export function parseDefault(cursor: Cursor): ColumnDefault {
  const { start } = cursor
  const expression = parseExpression(cursor)
  return { expression, text: cursor.text.slice(start, cursor.previousEnd) }
}

function isSymbol(type: TypeName): boolean {
  return type.name === 'symbol'
}

/** `capacity 256 nocache`. ALTER TABLE also allows the opposite order. */
function parseSymbolOptions(cursor: Cursor, context: ColumnContext): SymbolOptions {
  let capacity = take(cursor, 'capacity') ? parseCapacity(cursor, context) : null
  const cache = cursor.word === 'cache' || cursor.word === 'nocache' ? cursor.word === 'cache' : null
  if (cache !== null) advance(cursor)
  if (context === 'alter' && capacity === null && take(cursor, 'capacity')) capacity = parseCapacity(cursor, context)
  if (context === 'create' && cursor.kind === 'word' && !symbolTails.has(cursor.word))
    throw new SqlError("'index' expected", cursor.start)
  return { capacity, cache }
}

/** Words that may follow the options of a symbol column. */
const symbolTails: ReadonlySet<string> = new Set(
  'index not primary default null unique parquet references check constraint'.split(' '),
)

const symbolCapacityMax = 33_554_432

export function parseCapacity(cursor: Cursor, context: ColumnContext): { position: number; value: number } {
  const position = cursor.start
  if (cursor.word === '-') throw new SqlError('min symbol capacity is 2', position)
  if (cursor.kind !== 'number') throw integerError(cursor, context, 'symbol capacity expected')
  const value = parseWholeNumber(cursor, 'numeric capacity expected')
  if (value < 2) throw new SqlError('min symbol capacity is 2', position)
  if (value > 2 ** 30) throw new SqlError('max symbol capacity is 1073741824', position)
  if (value > symbolCapacityMax)
    throw new SqlError(`max cached symbol capacity is ${symbolCapacityMax}`, cursor.previousEnd)
  return { position, value }
}

function integerError(cursor: Cursor, context: ColumnContext, missing: string): SqlError {
  if (context === 'alter')
    return new SqlError(cursor.kind === 'end' ? missing : 'numeric capacity expected', cursor.start)
  return cursor.kind === 'end' ? new SqlError('integer expected', cursor.start) : shownTokenError(cursor, 'bad integer')
}

/** Parses what follows INDEX: `capacity 512`, `type posting include (a)`, or nothing. */
export function parseIndex(cursor: Cursor, position: number, context: ColumnContext): IndexOption {
  const typed = parseIndexType(cursor, position)
  if (typed !== null) return typed
  if (!take(cursor, 'capacity')) {
    if (context === 'create' && cursor.kind === 'word' && !symbolTails.has(cursor.word))
      throw new SqlError("'capacity' expected", cursor.start)
    return { position, capacity: null, included: [] }
  }
  if (cursor.kind !== 'number') throw integerError(cursor, context, 'symbol index capacity expected')
  const { start } = cursor
  const capacity = parseWholeNumber(cursor, 'index capacity expected')
  if (capacity < 2 && context === 'create') throw new SqlError('min index block capacity is 2', start)
  return { position, capacity, included: [] }
}

/** Parses the index of ALTER COLUMN .. ADD INDEX. */
export function parseAddedIndex(cursor: Cursor, position: number): IndexOption {
  const typed = parseIndexType(cursor, position)
  if (typed !== null) return typed
  if (!take(cursor, 'capacity')) {
    if (!atEnd(cursor)) throw new SqlError("'capacity' expected", cursor.start)
    return { position, capacity: null, included: [] }
  }
  const { start } = cursor
  if (cursor.kind === 'end') throw new SqlError('capacity value expected', start)
  const capacity = parseWholeNumber(cursor, addedCapacity)
  if (capacity === 0) throw new SqlError(addedCapacity, start)
  return { position, capacity, included: [] }
}

const addedCapacity = 'positive integer literal expected as index capacity'

/**
 * Parses `type bitmap capacity 512`, `type posting ef include (a, b)`, or `include (a)`, which is a posting index.
 * Returns null, without moving, when none of these follows. No index of either type is stored: page bounds and
 * dictionaries serve the same queries.
 */
function parseIndexType(cursor: Cursor, position: number): IndexOption | null {
  const isTyped = take(cursor, 'type')
  const isBitmap = isTyped && !take(cursor, 'posting')
  if (!isTyped && cursor.word !== 'include') return null
  if (isBitmap) expect(cursor, 'bitmap', "'posting' or 'bitmap' expected")
  else if (!take(cursor, 'ef')) take(cursor, 'delta')
  const capacity = isBitmap && take(cursor, 'capacity') ? parseWholeNumber(cursor, addedCapacity) : null
  if (cursor.word !== 'include') return { position, capacity, included: [] }
  if (isBitmap) throw new SqlError('INCLUDE is only supported for POSTING indexes', cursor.start)
  advance(cursor)
  return { position, capacity, included: parseNamesInParentheses(cursor) }
}

/** `using a::text`: accepted if it is the conversion that the statement makes anyway. */
export function parseUsing(cursor: Cursor, { name }: Name): void {
  advance(cursor)
  const written = parseExpression(cursor)
  const { kind, position } = written
  const outer = kind === 'cast' ? written.operand : written
  // `a::text::mood`: any type may be cast to text first.
  const value = outer.kind === 'cast' && outer.type.name === 'text' ? outer.operand : outer
  const isOwn =
    value.kind === 'column' && value.path.length === 1 && value.path[0]?.toLowerCase() === name.toLowerCase()
  if (!isOwn) throw new SqlError('USING can only be a cast of the column itself', position)
}

/** `(rle_dictionary, zstd(3), bloom_filter)`, `(default, lz4_raw)`, `(bloom_filter)` after PARQUET. */
export function parseColumnStorage(cursor: Cursor): ColumnStorageClause {
  expect(cursor, '(')
  let bloomFilter = takeBloomFilter(cursor)
  const encoding = bloomFilter ? null : parseEncoding(cursor)
  if (encoding !== null && cursor.word === '(')
    throw new SqlError(
      'an encoding has no level: the codec comes second, as in PARQUET(default, zstd(9))',
      encoding.position,
    )
  let codec: ColumnStorageClause['codec'] = null
  if (!bloomFilter && take(cursor, ',')) {
    bloomFilter = takeBloomFilter(cursor)
    if (!bloomFilter) codec = parseCodec(cursor)
    if (codec !== null && take(cursor, ',')) {
      if (!takeBloomFilter(cursor)) throw new SqlError("'bloom_filter' expected", cursor.start)
      bloomFilter = true
    }
  }
  expect(cursor, ')')
  return { encoding, codec, bloomFilter }
}

function takeBloomFilter(cursor: Cursor): boolean {
  return take(cursor, 'bloom_filter')
}

/** null: DEFAULT, a reserved word. */
function parseEncoding(cursor: Cursor): Name | null {
  return take(cursor, 'default') ? null : parseName(cursor, "encoding, 'default' or 'bloom_filter' expected")
}

function parseCodec(cursor: Cursor): NonNullable<ColumnStorageClause['codec']> {
  const name = parseName(cursor, "compression codec or 'bloom_filter' expected")
  if (cursor.word !== '(') return { name, level: null }
  advance(cursor)
  const position = cursor.start
  const value = parseWholeNumber(cursor, 'compression level expected')
  expect(cursor, ')')
  return { name, level: { position, value } }
}
