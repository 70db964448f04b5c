// Parses statements about the session, as clients of PostgreSQL send them: SET and RESET, transactions, cursors,
// DEALLOCATE, DISCARD, LISTEN, UNLISTEN and NOTIFY. Also parses COMMENT, LOCK and ANALYZE (the latter two have no
// effect), and passes REFRESH on to the parsers of views.

import { SqlError } from '../../base/errors.js'
import type {
  ChannelStatement,
  Comment,
  DeclareCursor,
  FetchCursor,
  SetOption,
  Statement,
  TableName,
  TransactionModes,
  TransactionStatement,
} from '../ast/ast.js'
import { advance, type Cursor, peekWord, quotedValue, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  parseList,
  parseName,
  parseNamesInParentheses,
  parseString,
  parseTableName,
  parseWholeNumber,
  tableNameOf,
  take,
  unexpectedToken,
} from './expect.js'
import { parseRefreshLive } from './live-view.js'
import { parseRefreshMaterialized } from './mat-view.js'
import { parseQuery } from './query.js'
import { parseOptionName } from './show.js'

const noOperations: ReadonlySet<string> = new Set(['lock', 'comment', 'analyze', 'refresh'])

export const sessionWords: ReadonlySet<string> = new Set([
  'set',
  'reset',
  'begin',
  'start',
  'commit',
  'end',
  'rollback',
  'abort',
  'savepoint',
  'release',
  'deallocate',
  'discard',
  'fetch',
  'move',
  'close',
  'listen',
  'unlisten',
  'notify',
  ...noOperations,
])

/** The cursor is on one of the session words, or on the `declare` of a cursor. */
export function parseSession(cursor: Cursor): Statement {
  const position = cursor.start
  const { word } = cursor
  advance(cursor)
  switch (word) {
    case 'set':
      return parseSet(cursor, position)
    case 'reset':
      return { kind: 'reset', position, name: parseOptionName(cursor, 'argument expected').name }
    case 'deallocate':
      take(cursor, 'prepare')
      return { kind: 'deallocate', position, name: parseNameOrAll(cursor, 'statement name expected') }
    case 'close':
      return { kind: 'close', position, name: parseNameOrAll(cursor, 'cursor name expected') }
    case 'discard':
      return { kind: 'discard', position, what: parseName(cursor, "'all' expected").name.toLowerCase() }
    case 'declare':
      return parseDeclareCursor(cursor, position)
    case 'listen':
    case 'unlisten':
    case 'notify':
      return parseChannel(cursor, position, word)
    case 'fetch':
    case 'move':
      return parseFetch(cursor, position, word === 'move')
    case 'lock':
      return parseLock(cursor, position)
    case 'analyze':
      return parseAnalyze(cursor, position)
    case 'comment':
      return parseComment(cursor, position) ?? parseNoOperation(cursor, position, word)
    default:
      return noOperations.has(word)
        ? parseNoOperation(cursor, position, word)
        : parseTransaction(cursor, position, word)
  }
}

/** `listen c`, `unlisten *`, `notify c, 'payload'` */
function parseChannel(cursor: Cursor, position: number, action: ChannelStatement['action']): Statement {
  const isAll = action === 'unlisten' && take(cursor, '*')
  const name = isAll ? null : parseName(cursor, 'channel name expected')
  // Unquoted names are folded to lower case, as in PostgreSQL.
  const channel = name === null || name.quoted ? (name?.name ?? null) : name.name.toLowerCase()
  const payload =
    action === 'notify' && take(cursor, ',') ? parseString(cursor, 'text of the payload expected').name : ''
  return { kind: 'channel', position, action, channel, payload }
}

/** `lock table only t *, u in share mode nowait` */
function parseLock(cursor: Cursor, position: number): Statement {
  take(cursor, 'table')
  const tables = parseList(cursor, (inner) => {
    take(inner, 'only')
    const table = parseTableName(inner)
    take(inner, '*')
    return table
  })
  if (take(cursor, 'in')) while (!atEnd(cursor) && !take(cursor, 'mode')) advance(cursor)
  take(cursor, 'nowait')
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return { kind: 'no operation', position, command: 'lock', tables }
}

/** `analyze (verbose, skip_locked) t (a, b), u` */
function parseAnalyze(cursor: Cursor, position: number): Statement {
  if (take(cursor, '(')) while (!atEnd(cursor) && !take(cursor, ')')) advance(cursor)
  take(cursor, 'verbose')
  take(cursor, 'table')
  const one = (inner: Cursor): TableName => {
    take(inner, 'only')
    const table = parseTableName(inner)
    if (inner.word === '(') parseNamesInParentheses(inner)
    return table
  }
  const tables = atEnd(cursor) ? [] : parseList(cursor, one)
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return { kind: 'no operation', position, command: 'analyze', tables }
}

/** Skips all tokens up to the end of the statement. */
function parseNoOperation(cursor: Cursor, position: number, command: string): Statement {
  if (command === 'refresh' && cursor.word === 'live') return parseRefreshLive(cursor, position)
  if (command === 'refresh') return parseRefreshMaterialized(cursor, position)
  while (!atEnd(cursor)) advance(cursor)
  return { kind: 'no operation', position, command }
}

function parseNameOrAll(cursor: Cursor, missing: string): string | null {
  if (take(cursor, 'all')) return null
  return parseName(cursor, missing).name
}

/** `set x = 1`, `set x to 'a', 'b'`, `set time zone 'UTC'`, `set session characteristics as transaction ..` */
function parseSet(cursor: Cursor, position: number): SetOption {
  if (cursor.word === 'session' && peekWord(cursor) !== '=' && peekWord(cursor) !== 'to') {
    if (peekWord(cursor) !== 'characteristics' && peekWord(cursor) !== 'authorization') advance(cursor)
  }
  const local = cursor.word === 'local' && peekWord(cursor) !== '=' && peekWord(cursor) !== 'to'
  if (local) advance(cursor)
  const name = parseSetName(cursor)
  if (!take(cursor, '=') && !take(cursor, 'to')) {
    if (atEnd(cursor)) throw new SqlError("'=' or 'TO' expected", cursor.start)
    take(cursor, 'as')
  }
  if (name === 'session characteristics') expect(cursor, 'transaction')
  if (atEnd(cursor)) throw new SqlError('value expected', cursor.start)
  if (name === 'transaction' && take(cursor, 'snapshot')) {
    const { name: id } = parseString(cursor, 'identifier of a snapshot expected')
    return { kind: 'set', position, name: 'transaction snapshot', values: [id], local, modes: null }
  }
  if (name === 'session characteristics' || name === 'transaction') {
    return { kind: 'set', position, name, values: [], local, modes: parseModes(cursor) }
  }
  const values: string[] = []
  while (!atEnd(cursor)) {
    if (cursor.word !== ',')
      values.push(cursor.kind === 'string' || cursor.kind === 'quoted' ? quotedValue(cursor) : tokenText(cursor))
    advance(cursor)
  }
  return { kind: 'set', position, name, values, local, modes: null }
}

function parseSetName(cursor: Cursor): string {
  if (cursor.word !== 'transaction') return parseOptionName(cursor, 'parameter name expected').name
  advance(cursor)
  return 'transaction'
}

/** The cursor is after the first word. */
export function parseTransaction(cursor: Cursor, position: number, word: string): TransactionStatement {
  const statement = (action: TransactionStatement['action'], name: string | null = null): TransactionStatement => ({
    kind: 'transaction',
    position,
    action,
    name,
    modes: new Map(),
    chain: false,
  })
  if (word === 'savepoint') return statement('savepoint', parseName(cursor, 'savepoint name expected').name)
  if (word === 'release') {
    take(cursor, 'savepoint')
    return statement('release', parseName(cursor, 'savepoint name expected').name)
  }
  if (word === 'prepare') {
    expect(cursor, 'transaction')
    return statement('prepare', parseString(cursor, 'name of a transaction expected').name)
  }
  if ((word === 'commit' || word === 'rollback') && take(cursor, 'prepared'))
    return statement(`${word} prepared`, parseString(cursor, 'name of a transaction expected').name)
  if (word === 'start') expect(cursor, 'transaction')
  else if (!take(cursor, 'transaction')) take(cursor, 'work')
  if ((word === 'rollback' || word === 'abort') && take(cursor, 'to')) {
    take(cursor, 'savepoint')
    return statement('rollback to', parseName(cursor, 'savepoint name expected').name)
  }
  if (word === 'begin') return { ...statement('begin'), modes: parseModes(cursor) }
  if (word === 'start') return { ...statement('begin', 'start'), modes: parseModes(cursor) }
  const ends = take(cursor, 'and')
  const chain = ends && !take(cursor, 'no')
  if (ends) expect(cursor, 'chain')
  if (!atEnd(cursor)) throw unexpectedToken(cursor)
  return { ...statement(word === 'commit' || word === 'end' ? 'commit' : 'rollback'), chain }
}

/** `isolation level repeatable read, read only not deferrable`, up to the end. */
function parseModes(cursor: Cursor): TransactionModes {
  const modes = new Map<'isolation' | 'read_only' | 'deferrable', string>()
  while (!atEnd(cursor)) {
    if (modes.size > 0) take(cursor, ',')
    if (take(cursor, 'isolation')) modes.set('isolation', parseLevel(cursor))
    else if (take(cursor, 'read')) modes.set('read_only', take(cursor, 'only') ? 'on' : readWrite(cursor))
    else if (take(cursor, 'deferrable')) modes.set('deferrable', 'on')
    else if (take(cursor, 'not')) {
      expect(cursor, 'deferrable')
      modes.set('deferrable', 'off')
    } else throw unexpectedToken(cursor)
  }
  return modes
}

function readWrite(cursor: Cursor): string {
  expect(cursor, 'write')
  return 'off'
}

function parseLevel(cursor: Cursor): string {
  expect(cursor, 'level')
  if (take(cursor, 'serializable')) return 'serializable'
  if (take(cursor, 'repeatable')) {
    expect(cursor, 'read')
    return 'repeatable read'
  }
  if (!take(cursor, 'read')) throw unexpectedToken(cursor)
  if (take(cursor, 'uncommitted')) return 'read uncommitted'
  expect(cursor, 'committed')
  return 'read committed'
}

/** `declare c [binary] [insensitive] [no] scroll cursor [with hold] for select ..` */
function parseDeclareCursor(cursor: Cursor, position: number): DeclareCursor {
  const { name } = parseName(cursor, 'cursor or variable name expected')
  const binary = take(cursor, 'binary')
  if (!take(cursor, 'insensitive')) take(cursor, 'asensitive')
  const scroll = !take(cursor, 'no')
  if (!take(cursor, 'scroll') && !scroll) throw new SqlError('scroll expected', cursor.start)
  expect(cursor, 'cursor')
  const hold = take(cursor, 'with')
  if (hold || take(cursor, 'without')) expect(cursor, 'hold')
  expect(cursor, 'for')
  return { kind: 'declare cursor', position, name, scroll, hold, binary, query: parseQuery(cursor) }
}

/** `fetch c`, `fetch 10 from c`, `fetch forward all in c`, `fetch next from c` */
function parseFetch(cursor: Cursor, position: number, move: boolean): FetchCursor {
  const { direction, rows } = parseFetchDirection(cursor)
  if (!take(cursor, 'from')) take(cursor, 'in')
  return { kind: 'fetch', position, name: parseName(cursor, 'cursor name expected').name, direction, rows, move }
}

type FetchDirection = Pick<FetchCursor, 'direction' | 'rows'>

function parseFetchDirection(cursor: Cursor): FetchDirection {
  if (take(cursor, 'next')) return { direction: 'forward', rows: 1 }
  if (take(cursor, 'prior')) return { direction: 'backward', rows: 1 }
  if (take(cursor, 'first')) return { direction: 'absolute', rows: 1 }
  if (take(cursor, 'last')) return { direction: 'absolute', rows: -1 }
  if (take(cursor, 'absolute')) return { direction: 'absolute', rows: parseFetchCount(cursor) }
  if (take(cursor, 'relative')) return { direction: 'relative', rows: parseFetchCount(cursor) }
  if (take(cursor, 'backward')) return { direction: 'backward', rows: parseFetchCount(cursor) }
  take(cursor, 'forward')
  return { direction: 'forward', rows: parseFetchCount(cursor) }
}

/** A number, ALL (null), or nothing (1). */
function parseFetchCount(cursor: Cursor): number | null {
  if (take(cursor, 'all')) return null
  const negative = take(cursor, '-')
  if (cursor.kind !== 'number') {
    if (negative) throw new SqlError('number expected', cursor.start)
    return 1
  }
  const count = parseWholeNumber(cursor, 'number expected')
  return negative ? -count : count
}

/** COMMENT ON; the cursor is after `comment`. Null: the object is neither a table nor a column. */
function parseComment(cursor: Cursor, position: number): Comment | null {
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
