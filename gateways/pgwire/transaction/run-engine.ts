// A statement in the engine: its session, its deadline, what its answer counts for.

import {
  decodeParameter,
  type ExecuteOptions,
  type PackedPiece,
  type ParsedStatement,
  type PgEncoding,
  type ResultColumn,
} from '../../../engine/engine.js'
import { pgOidOf } from '../../../engine/types/column-types.js'
import { countStatement } from '../../common/count-statement.js'
import { LateSignal } from '../../common/late-signal.js'
import type { PgSession, RunOptions } from '../context.js'
import { noticeResponse } from '../protocol/messages.js'
import { PgError, stalePlan } from '../protocol/sqlstate.js'
import { hasDraft } from './held-state.js'
import { leaveMoment, takeMoment } from './moments.js'
import { RowCursor } from './row-cursor.js'
import { settingValue } from './settings.js'
import { boundRows } from './transaction.js'

/** IntervalStyle: of the forms besides PostgreSQL's own that of ISO 8601, which ActiveRecord asks for, is known. */
export function pgEncoding(pg: PgSession, binary: readonly boolean[]): PgEncoding {
  return settingValue(pg, 'intervalstyle') === 'iso_8601'
    ? { kind: 'pg', binary, isoSpans: true }
    : { kind: 'pg', binary }
}

export async function runInEngine(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<RowCursor | string> {
  const running = new LateSignal()
  pg.running = running
  takeMoment(pg)
  const inParts = options.inParts === true && parsed.statement.kind === 'query'
  const part = inParts ? () => beginPart(pg, running) : null
  const { binary } = options
  // Rows of INSERT .. SELECT wait for COMMIT like those of INSERT .. VALUES.
  const waits = pg.status === 'T' || hasDraft(pg)
  const gathers = parsed.statement.kind === 'insert' && (waits || isReturning(parsed))
  const parameters = parametersOf(options)
  const endPart = part?.()
  const executed = pg.engine.execute(parsed.text, {
    session: pg.session,
    parsed,
    encoding: pgEncoding(pg, binary),
    parameters,
    skip: 0,
    rowsMax: Number.POSITIVE_INFINITY,
    countAll: false,
    columns: null,
    timeoutMs: inParts ? 0 : timeoutOf(pg),
    signal: running,
    explain: false,
    ...(gathers ? { into: (tableId, piece) => gather(pg, tableId, piece) } : {}),
  })
  const result = await (endPart === undefined ? executed : executed.finally(endPart))
  if (gathers && result.kind === 'done') {
    noteInserted(pg, result.rows)
    return tagOf(result.tag, result.rows)
  }
  if (result.kind === 'rows' && result.inserted !== undefined) noteInserted(pg, result.inserted)
  else countStatement(pg.counters, result)
  if (result.kind === 'rows') {
    const cursor = new RowCursor(result, binary, part, uncountedTag(parsed))
    if (options.columns === null || sameColumns(result.columns, options.columns)) return cursor
    await cursor.close()
    throw stalePlan()
  }
  if (result.kind === 'plan') throw new PgError('XX000', 'a plan was not asked for')
  if (pg.status === 'T' && parsed.statement.kind !== 'no operation') {
    pg.tookEffect = true
    leaveMoment(pg)
  }
  tellNotes(pg, result.notes)
  return tagOf(result.tag, result.rows)
}

/** What a statement has altered, and the client should know. */
export function tellNotes(pg: PgSession, notes: readonly string[] = []): void {
  for (const message of notes) pg.out.put(noticeResponse({ severity: 'WARNING', code: '01000', message, position: 0 }))
}

/** Of what PostgreSQL tells of itself; the rows of SHOW that are about tables are counted, as clients of the dialect know it. */
function uncountedTag({ statement }: ParsedStatement): 'SHOW' | 'EXPLAIN' | null {
  if (statement.kind === 'explain') return 'EXPLAIN'
  if (statement.kind !== 'query' || statement.body.kind !== 'show') return null
  const { what } = statement.body
  return what === 'option' || what === 'all' ? 'SHOW' : null
}

/** A cancel request and the deadline end the query from now on until what is answered is called. */
function beginPart(pg: PgSession, running: LateSignal): () => void {
  pg.running = running
  const timeoutMs = timeoutOf(pg)
  if (timeoutMs === 0) return () => {}
  const timer = setTimeout(() => running.abort('canceling statement due to statement timeout'), timeoutMs)
  return () => clearTimeout(timer)
}

/** INSERT .. VALUES that reads nothing: its rows go into the transaction as they come. */
export function isPlainInsert({ statement }: ParsedStatement): boolean {
  if (statement.kind !== 'insert' || statement.source.kind !== 'rows') return false
  return statement.returning === null && !skipsRows(statement)
}

/** ON CONFLICT DO NOTHING looks for keys in the table. */
export function skipsRows({ conflict }: { readonly conflict: { readonly assignments: unknown } | null }): boolean {
  return conflict !== null && conflict.assignments === null
}

/** Its rows wait for COMMIT or Sync like those of other INSERTs, although it answers rows. */
export function isReturning({ statement }: ParsedStatement): boolean {
  return statement.kind === 'insert' && statement.returning !== null
}

export async function gather(pg: PgSession, tableId: number, { packed, bytes }: PackedPiece): Promise<void> {
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
  return saidTimeout(pg) ?? pg.options.queryTimeoutMs
}

/** Of the session; null: it has said none. */
export function saidTimeout({ settings }: PgSession): number | null {
  const said = settings.get('statement_timeout')
  return said === undefined ? null : Number(said)
}

/** Counts behind the tag as PostgreSQL has them. */
export function tagOf(tag: string, rows: number): string {
  if (tag === 'INSERT') return `INSERT 0 ${rows}`
  if (tag === 'CREATE TABLE AS') return `SELECT ${rows}`
  return tag === 'UPDATE' || tag === 'DELETE' || tag === 'COPY' ? `${tag} ${rows}` : tag
}

/** The wire's types count: a parameter's value may change how many digits a DECIMAL has. */
function sameColumns(left: readonly ResultColumn[], right: readonly ResultColumn[]): boolean {
  const oid = ({ type }: ResultColumn): number => pgOidOf(type)
  return left.length === right.length && left.every((column, index) => oid(column) === oid(right[index] ?? column))
}
