// Runs a statement in the engine: applies the session's context and deadline, and counts its result.

import { andThen } from '../../../engine/base/and-then.js'
import {
  decodeParameter,
  type ExecuteOptions,
  type PackedBatch,
  type ParsedStatement,
  type PgEncoding,
  type ResultColumn,
  type StatementResult,
} from '../../../engine/engine.js'
import { pgOidOf } from '../../../engine/types/column-types.js'
import { countStatement } from '../../common/count-statement.js'
import { LazySignal } from '../../common/lazy-signal.js'
import type { PgSession, RunOptions } from '../context.js'
import { noticeResponse } from '../protocol/messages.js'
import { PgError, stalePlan } from '../protocol/sqlstate.js'
import { hasDraft } from './deferred-state.js'
import { RowCursor } from './row-cursor.js'
import { settingValue } from './settings.js'
import { dropSnapshot, takeSnapshot } from './snapshots.js'
import { boundRows } from './transaction.js'

/**
 * Result encoding of the session. IntervalStyle supports PostgreSQL's own format and ISO 8601, which ActiveRecord
 * uses.
 */
export function pgEncoding(pg: PgSession, binary: readonly boolean[]): PgEncoding {
  return settingValue(pg, 'intervalstyle') === 'iso_8601'
    ? { kind: 'pg', binary, isoSpans: true }
    : { kind: 'pg', binary }
}

/** Returns a promise only when the statement is not complete at once. */
export function runInEngine(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): RowCursor | string | Promise<RowCursor | string> {
  const running = new LazySignal()
  pg.running = running
  takeSnapshot(pg)
  const inParts = options.inParts === true && parsed.statement.kind === 'query'
  const part = inParts ? () => beginPart(pg, running) : null
  // Rows of INSERT .. SELECT are deferred until COMMIT like those of INSERT .. VALUES.
  const waits = pg.status === 'T' || hasDraft(pg)
  const gathers = parsed.statement.kind === 'insert' && (waits || isReturning(parsed)) && !isUpsert(pg, parsed)
  const whole: ExecuteOptions = { ...executeOptions(pg, options, running), parsed }
  const requested: ExecuteOptions = gathers
    ? { ...whole, into: (tableId, batch) => gather(pg, tableId, batch) }
    : inParts
      ? { ...whole, timeoutMs: 0 }
      : whole
  const outcome = (result: StatementResult): RowCursor | string | Promise<never> =>
    outcomeOf(pg, parsed, options, { result, gathers, part })
  if (part === null) return andThen(pg.engine.run(parsed.text, requested), outcome)
  const endPart = part()
  return pg.engine.execute(parsed.text, requested).finally(endPart).then(outcome)
}

interface Ran {
  readonly result: StatementResult
  /** Its rows were added to the transaction. */
  readonly gathers: boolean
  readonly part: (() => () => void) | null
}

function outcomeOf(
  pg: PgSession,
  parsed: ParsedStatement,
  { binary, columns }: RunOptions,
  { result, gathers, part }: Ran,
): RowCursor | string | Promise<never> {
  if (gathers && result.kind === 'done') {
    noteInserted(pg, result.rows)
    return tagOf(result.tag, result.rows)
  }
  if (result.kind === 'rows' && result.inserted !== undefined) noteInserted(pg, result.inserted)
  else countStatement(pg.counters, result)
  if (result.kind === 'rows') {
    const cursor = new RowCursor(result, binary, part, uncountedTag(parsed))
    if (columns === null || sameColumns(result.columns, columns)) return cursor
    return cursor.close().then(() => {
      throw stalePlan()
    })
  }
  if (result.kind === 'plan') throw new PgError('XX000', 'unexpected plan as the result')
  if (pg.status === 'T' && parsed.statement.kind !== 'no operation') {
    pg.tookEffect = true
    dropSnapshot(pg)
  }
  sendNotes(pg, result.notes)
  return tagOf(result.tag, result.rows)
}

/** How the session's statements are executed: whole results, with its context, encoding and deadline. */
export function executeOptions(
  pg: PgSession,
  options: RunOptions,
  signal: LazySignal,
  session = pg.session,
): Omit<ExecuteOptions, 'encoding'> & { readonly encoding: PgEncoding } {
  return {
    session,
    encoding: pgEncoding(pg, options.binary),
    parameters: parametersOf(options),
    skip: 0,
    rowsMax: Number.POSITIVE_INFINITY,
    countAll: false,
    columns: null,
    timeoutMs: timeoutOf(pg),
    signal,
    explain: false,
  }
}

/** Reports a statement's side effects to the client as notices. */
export function sendNotes(pg: PgSession, notes: readonly string[] = []): void {
  for (const message of notes) pg.out.put(noticeResponse({ severity: 'WARNING', code: '01000', message, position: 0 }))
}

/**
 * Tag without row count, for statements about the server; SHOW of tables has a count, as clients of the dialect
 * expect.
 */
function uncountedTag({ statement, text, start }: ParsedStatement): 'SHOW' | 'EXPLAIN' | null {
  if (statement.kind === 'explain') return 'EXPLAIN'
  // The syntax tree of a query may not be there yet.
  if (statement.kind !== 'query' || text.slice(start, start + 6).toLowerCase() === 'select') return null
  if (statement.body.kind !== 'show') return null
  const { what } = statement.body
  return what === 'option' || what === 'all' ? 'SHOW' : null
}

/** Lets cancel requests and the deadline abort the query until the returned function is called. */
function beginPart(pg: PgSession, running: LazySignal): () => void {
  pg.running = running
  const timeoutMs = timeoutOf(pg)
  if (timeoutMs === 0) return () => {}
  const timer = setTimeout(() => running.abort('canceling statement due to statement timeout'), timeoutMs)
  return () => clearTimeout(timer)
}

/** An INSERT .. VALUES that reads no table: its rows are added to the transaction directly. */
export function isPlainInsert({ statement }: ParsedStatement): boolean {
  if (statement.kind !== 'insert' || statement.source.kind !== 'rows') return false
  return statement.returning === null && !skipsRows(statement)
}

/** MERGE, INSERT .. ON CONFLICT for a table with declared keys, or data changes in WITH. */
export function isUpsert({ engine, session }: PgSession, { statement }: ParsedStatement): boolean {
  if (statement.kind === 'merge' || statement.kind === 'with changes') return true
  if (statement.kind !== 'insert' || statement.conflict === null) return false
  const table = engine.table(statement.table.name, session)
  return table !== undefined && !table.dedup && table.keys.length > 0
}

/** ON CONFLICT DO NOTHING looks keys up in the table. */
export function skipsRows({ conflict }: { readonly conflict: { readonly assignments: unknown } | null }): boolean {
  return conflict !== null && conflict.assignments === null
}

/** An INSERT .. RETURNING: its rows are deferred like those of other INSERTs, although it returns rows. */
export function isReturning({ statement }: ParsedStatement): boolean {
  return statement.kind === 'insert' && statement.returning !== null
}

export async function gather(pg: PgSession, tableId: number, { packed, bytes }: PackedBatch): Promise<void> {
  pg.transaction.add(tableId, packed, bytes)
  await boundRows(pg)
}

export function parametersOf({ bound, types }: RunOptions): ExecuteOptions['parameters'] {
  return types.map((type, index) => {
    const end = bound.ends[index] ?? -1
    const bytes = end < 0 ? null : bound.bytes.subarray(bound.starts[index], end)
    return decodeParameter(bytes, bound.isBinary(index), type, index)
  })
}

export function noteInserted({ connection, counters }: PgSession, rows: number): void {
  connection.rowsReceived += rows
  counters.queries.insert++
}

export function timeoutOf(pg: PgSession): number {
  return declaredTimeout(pg) ?? pg.options.queryTimeoutMs
}

/** The session's statement_timeout; null: not set. */
export function declaredTimeout({ settings }: PgSession): number | null {
  const said = settings.get('statement_timeout')
  return said === undefined ? null : Number(said)
}

const counted: ReadonlySet<string> = new Set(['UPDATE', 'DELETE', 'MERGE', 'COPY'])

/** Appends the row count to a tag as PostgreSQL does. */
export function tagOf(tag: string, rows: number): string {
  if (tag === 'INSERT') return `INSERT 0 ${rows}`
  if (tag === 'CREATE TABLE AS') return `SELECT ${rows}`
  return counted.has(tag) ? `${tag} ${rows}` : tag
}

/** Compares wire types only, since a parameter's value may change the digits of a DECIMAL. */
function sameColumns(left: readonly ResultColumn[], right: readonly ResultColumn[]): boolean {
  const oid = ({ type }: ResultColumn): number => pgOidOf(type)
  return left.length === right.length && left.every((column, index) => oid(column) === oid(right[index] ?? column))
}
