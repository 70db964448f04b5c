// Runs FETCH and MOVE. A cursor is before the first row, on a row, or after the last one. Its query can only be read
// forward: moving backward runs it again from the start. Rows fetched backward are collected first and then sent in
// reverse order.

import type { ParsedStatement } from '../../engine/engine.js'
import type { PgSession, Portal, RunOptions, SqlCursor } from './context.js'
import type { Outbound } from './protocol/outbound.js'
import { PgError } from './protocol/sqlstate.js'
import { type RowCursor, type Rows, type RowTarget, rowsFor, type SentRows } from './transaction/row-cursor.js'
import { runInEngine } from './transaction/run-engine.js'

type Fetch = Extract<ParsedStatement['statement'], { kind: 'fetch' }>

/** Limit for rows collected to be sent in reverse. */
const gatheredBytesMax = 64 * 1024 * 1024

/** Where to move and how many rows to read from there. */
interface Route {
  /** Number of rows before the first one to read. */
  readonly from: number
  readonly count: number
  /** Set for a backward fetch: where the cursor is afterwards. */
  readonly backwardTo: number | null
}

export async function fetch(
  pg: PgSession,
  cursor: SqlCursor,
  statement: Fetch,
  options: RunOptions,
): Promise<Rows | string> {
  const binary = cursor.binary && options.binary.length === 0 ? [true] : options.binary
  const context: FetchContext = { pg, cursor, binary }
  const { from, count, backwardTo } = await routeOf(context, statement)
  if (statement.move && backwardTo !== null) {
    if (count > 0 && !cursor.scroll) throw onlyForward()
    Object.assign(cursor, { at: backwardTo, ended: false })
    return `MOVE ${count}`
  }
  const rows = await seek(context, from)
  const taken =
    backwardTo === null ? new ForwardRows(context, rows, count) : await gather(context, rows, count, backwardTo)
  if (!statement.move) return taken
  return `MOVE ${(await taken.send(null, Number.POSITIVE_INFINITY)).rows}`
}

/** Runs MOVE on a portal of Bind, before and between its Executes (as asyncpg does). */
export async function moveInPortal(pg: PgSession, portal: Portal, { direction, rows }: Fetch): Promise<string> {
  const count = rows ?? Number.POSITIVE_INFINITY
  const { bound, types, binary, prepared } = portal
  if (direction !== 'forward' || count < 0) throw onlyForward()
  if (prepared.statement?.statement.kind !== 'query') throw new PgError('42P11', 'a cursor needs a query')
  if (portal.done !== null) return 'MOVE 0'
  portal.cursor ??= await open(pg, { bound, types, query: prepared.statement }, binary)
  const moved = await portal.cursor.send(null, count)
  if (moved.exhausted) {
    await portal.cursor.close()
    Object.assign(portal, { cursor: null, done: 'SELECT 0' })
  }
  return `MOVE ${moved.rows}`
}

interface FetchContext {
  readonly pg: PgSession
  readonly cursor: SqlCursor
  readonly binary: readonly boolean[]
}

async function routeOf(context: FetchContext, { direction, rows }: Fetch): Promise<Route> {
  const { cursor } = context
  const count = rows ?? Number.POSITIVE_INFINITY
  // "After the last row" is one position further.
  const place = cursor.at + (cursor.ended ? 1 : 0)
  if (direction === 'absolute') {
    if (count >= 0) return oneRow(count)
    await seek(context, Number.POSITIVE_INFINITY)
    return oneRow(cursor.at + 1 + count)
  }
  if (count === 0) return cursor.ended ? { from: cursor.at, count: 0, backwardTo: null } : oneRow(cursor.at)
  if (direction === 'relative') return oneRow(place + count)
  if (direction === 'forward' ? count > 0 : count < 0) {
    return { from: cursor.at, count: Math.abs(count), backwardTo: null }
  }
  const first = Math.max(1, place - Math.abs(count))
  return { from: first - 1, count: Math.max(0, place - first), backwardTo: Math.max(0, place - Math.abs(count)) }
}

/** Reads the row with that number; no row for numbers below 1. */
function oneRow(number: number): Route {
  return { from: Math.max(0, number - 1), count: number < 1 ? 0 : 1, backwardTo: null }
}

/** Moves to just after `place` rows, or after all of them. */
async function seek({ pg, cursor, binary }: FetchContext, place: number): Promise<RowCursor> {
  const otherForm = cursor.rows !== null && !sameForm(cursor.rows.binary, binary)
  const back = place < cursor.passed
  if (back && !cursor.scroll) throw onlyForward()
  if (back || otherForm) {
    await cursor.rows?.close()
    cursor.rows = null
  }
  if (cursor.rows === null) {
    cursor.rows = await open(pg, cursor, binary)
    cursor.passed = 0
  }
  const { rows } = cursor
  if (place < cursor.at || place > cursor.at) cursor.ended = false
  cursor.at = place
  if (place > cursor.passed) {
    const sent = await rows.send(null, place - cursor.passed)
    cursor.passed += sent.rows
    if (sent.exhausted) cursor.ended = true
    cursor.at = cursor.passed
  }
  return rows
}

function onlyForward(): PgError {
  return new PgError('55000', 'cursor can only scan forward')
}

function sameForm(left: readonly boolean[], right: readonly boolean[]): boolean {
  return left.length === right.length && left.every((binary, index) => binary === right[index])
}

type Opened = Pick<SqlCursor, 'bound' | 'types' | 'query'>

async function open(pg: PgSession, { bound, types, query }: Opened, binary: readonly boolean[]): Promise<RowCursor> {
  const opened = await runInEngine(pg, query, { bound, types, binary, columns: null, inParts: true })
  if (typeof opened === 'string') throw new PgError('42P11', 'a cursor needs a query')
  return opened
}

/** The rows of a cursor that one FETCH requests. */
class ForwardRows implements Rows {
  readonly tag = 'FETCH'
  readonly columns: Rows['columns']
  readonly binary: Rows['binary']
  readonly #cursor: SqlCursor
  readonly #rows: RowCursor
  #left: number

  constructor({ cursor }: FetchContext, rows: RowCursor, count: number) {
    this.columns = rows.columns
    this.binary = rows.binary
    this.#cursor = cursor
    this.#rows = rows
    this.#left = count
  }

  async send(out: Outbound | null, rowsMax: number): Promise<SentRows> {
    const cursor = this.#cursor
    const count = Math.min(rowsMax, this.#left)
    if (cursor.ended || count === 0) return { rows: 0, exhausted: cursor.ended || this.#left === 0 }
    const { rows, exhausted } = await this.#rows.send(out, count)
    cursor.passed += rows
    cursor.at = cursor.passed
    cursor.ended = exhausted
    this.#left -= rows
    return { rows, exhausted: exhausted || this.#left === 0 }
  }

  /** The cursor stays open. */
  async close(): Promise<void> {}
}

async function gather(
  { cursor }: FetchContext,
  rows: RowCursor,
  count: number,
  backwardTo: number,
): Promise<BackwardRows> {
  if (count > 0 && !cursor.scroll) throw onlyForward()
  const gathered = new GatheredRows()
  if (count > 0) cursor.passed += (await rows.send(gathered, count)).rows
  cursor.at = backwardTo
  cursor.ended = false
  return new BackwardRows(rows, gathered.blocks)
}

class GatheredRows implements RowTarget {
  /** They are converted to the client's encoding when they are sent. */
  readonly encoding = null
  readonly blocks: Buffer[] = []
  #bytes = 0

  put(rows: Uint8Array): void {
    this.#bytes += rows.length
    if (this.#bytes > gatheredBytesMax) throw new PgError('54000', 'too many rows in one backward fetch')
    this.blocks.push(Buffer.from(rows))
  }

  async block(rows: Uint8Array): Promise<void> {
    this.put(rows)
  }
}

/** Collected DataRow messages, last one first. */
class BackwardRows implements Rows {
  readonly tag = 'FETCH'
  readonly columns: Rows['columns']
  readonly binary: Rows['binary']
  readonly #blocks: Buffer[]
  /** Messages of the last block, in order. */
  #messages: Buffer[] = []

  constructor({ columns, binary }: RowCursor, blocks: Buffer[]) {
    this.columns = columns
    this.binary = binary
    this.#blocks = blocks
  }

  async send(out: Outbound | null, rowsMax: number): Promise<SentRows> {
    let rows = 0
    for (; rows < rowsMax; rows++) {
      if (this.#messages.length === 0) this.#messages = messagesOf(this.#blocks.pop())
      const message = this.#messages.pop()
      if (message === undefined) return { rows, exhausted: true }
      out?.put(rowsFor(out, message, this))
      if (out?.full === true) await out.flush()
    }
    return { rows, exhausted: this.#messages.length === 0 && this.#blocks.length === 0 }
  }

  async close(): Promise<void> {}
}

function messagesOf(block: Buffer | undefined): Buffer[] {
  const messages: Buffer[] = []
  if (block === undefined) return messages
  for (let at = 0; at < block.length; ) {
    const end = at + 1 + block.readInt32BE(at + 1)
    messages.push(block.subarray(at, end))
    at = end
  }
  return messages
}
