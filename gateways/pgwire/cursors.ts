// Cursors of SQL: DECLARE, FETCH, MOVE, CLOSE. A cursor's query begins at its first FETCH, which says whether values are
// text or binary; going backwards begins it again. It ends with its transaction, unless it was declared WITH HOLD.

import type { Description, ParsedStatement } from '../../engine/engine.js'
import type { PgSession, SqlCursor } from './context.js'
import type { Outbound } from './outbound.js'
import type { RowCursor, Rows, SentRows } from './row-cursor.js'
import { type RunOptions, runInEngine } from './run.js'
import { PgError } from './sqlstate.js'

type Statement = ParsedStatement['statement']
type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>

/** Null: the statement is not about cursors. */
export function runCursorStatement(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<Rows | string> | string | null {
  const { statement } = parsed
  switch (statement.kind) {
    case 'declare cursor':
      return declare(pg, parsed, statement, options)
    case 'fetch':
      return fetch(pg, statement, options)
    case 'close':
      return close(pg, statement)
    default:
      return null
  }
}

/** What is known of a statement that the engine does not know; null: it does. */
export function describeOwn(pg: PgSession, parsed: ParsedStatement, oids: readonly number[]): Description | null {
  const { statement } = parsed
  switch (statement.kind) {
    case 'fetch': {
      const { query } = cursorNamed(pg, statement.name)
      const { columns } = pg.engine.describe(query, pg.session, [])
      return { tag: 'FETCH', columns: statement.move ? null : columns, timestampIndex: -1, parameters: [] }
    }
    case 'declare cursor': {
      const query = { ...parsed, statement: statement.query }
      return { ...pg.engine.describe(query, pg.session, oids), columns: null }
    }
    case 'execute': {
      const prepared = pg.statements.get(statement.name)
      if (prepared?.statement == null) return nothing
      return { ...pg.engine.describe(prepared.statement, pg.session, prepared.oids), parameters: [] }
    }
    case 'close':
    case 'copy':
    case 'prepare':
    case 'transaction':
    case 'deallocate':
    case 'discard':
    case 'set':
    case 'reset':
    case 'no operation':
      return nothing
    default:
      return null
  }
}

const nothing: Description = { tag: '', columns: null, timestampIndex: -1, parameters: [] }

function declare(pg: PgSession, parsed: ParsedStatement, statement: Of<'declare cursor'>, options: RunOptions): string {
  const { name, scroll, hold, query } = statement
  if (pg.status === 'I' && !hold) {
    throw new PgError('25P01', 'DECLARE CURSOR can only be used in transaction blocks')
  }
  if (pg.cursors.has(name)) throw new PgError('42P03', `cursor "${name}" already exists`)
  const { bound, types } = options
  const own = { ...parsed, statement: query }
  pg.engine.describe(own, pg.session, [])
  pg.cursors.set(name, { name, query: own, bound, types, scroll, hold, rows: null, at: 0, ended: false })
  return 'DECLARE CURSOR'
}

function cursorNamed(pg: PgSession, name: string): SqlCursor {
  const cursor = pg.cursors.get(name)
  if (cursor === undefined) throw new PgError('34000', `cursor "${name}" does not exist`)
  return cursor
}

async function close(pg: PgSession, { name }: Of<'close'>): Promise<string> {
  if (name === null) await closeCursors(pg, () => true)
  else {
    const cursor = cursorNamed(pg, name)
    pg.cursors.delete(name)
    await cursor.rows?.close()
  }
  return name === null ? 'CLOSE CURSOR ALL' : 'CLOSE CURSOR'
}

export async function closeCursors(pg: PgSession, which: (cursor: SqlCursor) => boolean): Promise<void> {
  for (const cursor of [...pg.cursors.values()]) {
    if (!which(cursor)) continue
    pg.cursors.delete(cursor.name)
    await cursor.rows?.close()
  }
}

// FETCH -------------------------------------------------------------------------------------------------------------

async function fetch(pg: PgSession, statement: Of<'fetch'>, { binary }: RunOptions): Promise<Rows | string> {
  const cursor = cursorNamed(pg, statement.name)
  const { from, count } = placeOf(cursor, statement)
  if (from < cursor.at) {
    if (!cursor.scroll) throw new PgError('55000', 'cursor can only scan forward')
    await cursor.rows?.close()
    Object.assign(cursor, { rows: null, at: 0, ended: false })
  }
  const rows = cursor.rows ?? (await open(pg, cursor, binary))
  if (from > cursor.at) await advance(cursor, rows, null, from - cursor.at)
  if (!statement.move) return new FetchedRows(cursor, rows, count)
  const moved = await advance(cursor, rows, null, count)
  return `MOVE ${moved}`
}

async function open(pg: PgSession, cursor: SqlCursor, binary: readonly boolean[]): Promise<RowCursor> {
  const { bound, types, query } = cursor
  const opened = await runInEngine(pg, query, { bound, types, binary, columns: null })
  if (typeof opened === 'string') throw new PgError('42P11', 'a cursor needs a query')
  cursor.rows = opened
  return opened
}

/** Rows to pass over from the beginning, and to send. */
function placeOf(
  { at }: SqlCursor,
  { direction, rows }: Of<'fetch'>,
): { readonly from: number; readonly count: number } {
  const count = rows ?? Number.POSITIVE_INFINITY
  switch (direction) {
    case 'forward':
      if (count < 0) throw new PgError('0A000', 'FETCH of several rows backward is not supported')
      // FETCH 0 is the current row again.
      return count === 0 ? { from: Math.max(0, at - 1), count: Math.min(1, at) } : { from: at, count }
    case 'absolute':
      if (count < 0) throw new PgError('0A000', 'FETCH from the end is not supported')
      return count === 0 ? { from: 0, count: 0 } : { from: count - 1, count: 1 }
    case 'relative':
      return { from: Math.max(0, at - 1 + count), count: at - 1 + count < 0 ? 0 : 1 }
    case 'backward':
      if (count !== 1) throw new PgError('0A000', 'FETCH of several rows backward is not supported')
      return at < 2 ? { from: 0, count: 0 } : { from: at - 2, count: 1 }
  }
}

async function advance(cursor: SqlCursor, rows: RowCursor, out: Outbound | null, count: number): Promise<number> {
  if (cursor.ended || count === 0) return 0
  const sent = await rows.send(out, count)
  cursor.at += sent.rows
  cursor.ended = sent.exhausted
  return sent.rows
}

/** As many rows of a cursor as one FETCH wants. */
class FetchedRows implements Rows {
  readonly tag = 'FETCH'
  readonly #cursor: SqlCursor
  readonly #rows: RowCursor
  #left: number

  constructor(cursor: SqlCursor, rows: RowCursor, count: number) {
    this.#cursor = cursor
    this.#rows = rows
    this.#left = count
  }

  get columns(): Rows['columns'] {
    return this.#rows.columns
  }

  get binary(): Rows['binary'] {
    return this.#rows.binary
  }

  async send(out: Outbound | null, rowsMax: number): Promise<SentRows> {
    const rows = await advance(this.#cursor, this.#rows, out, Math.min(rowsMax, this.#left))
    this.#left -= rows
    return { rows, exhausted: this.#cursor.ended || this.#left === 0 }
  }

  /** The cursor stays. */
  async close(): Promise<void> {}
}
