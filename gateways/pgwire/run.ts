// Running one statement: what the session does itself, what the engine does, and what the client is told.

import { demandRight } from '../../engine/base/rights.js'
import {
  type BoundParameters,
  type Description,
  decodeParameter,
  type ExecuteOptions,
  type ParsedStatement,
  type ResultColumn,
  type StatementResult,
} from '../../engine/engine.js'
import { type DataType, pgOidOf, storageOf, widthOf } from '../../engine/types/column-types.js'
import { LateSignal } from '../common/late-signal.js'
import type { PgSession } from './context.js'
import { copyIn } from './copy-in.js'
import { copyOut } from './copy-out.js'
import { adaptedStatement } from './create-table.js'
import { runCursorStatement } from './cursors.js'
import { commandComplete, type FieldDescription, rowDescription } from './messages.js'
import { RowCursor, type Rows } from './row-cursor.js'
import { runSessionStatement } from './session-statements.js'
import { boundBySql, type ExecuteStatement } from './sql-prepare.js'
import { PgError } from './sqlstate.js'
import { boundRows, settleRows } from './transaction.js'

type CopyStatement = Extract<ParsedStatement['statement'], { kind: 'copy' }>

export interface RunOptions {
  readonly bound: BoundParameters
  /** Of the parameters. */
  readonly types: Description['parameters']
  /** As PgEncoding has it. */
  readonly binary: readonly boolean[]
  /** Of the columns, when the statement has been described: planning it again must give the same. */
  readonly columns: readonly ResultColumn[] | null
}

/** Rows that are to be sent, or the tag of what is done. */
export type Outcome = Rows | string

/** Throws what the client is told. What is not a promise is done already. */
export function runStatement(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Outcome> | Outcome {
  const { statement } = parsed
  if (pg.status === 'E' && !endsTransaction(parsed)) {
    throw new PgError('25P02', 'current transaction is aborted, commands ignored until end of transaction block')
  }
  if (statement.kind === 'insert' && statement.source.kind === 'rows') return insertRows(pg, parsed, options)
  const unread = statement.kind === 'declare cursor' && pg.status === 'T' ? settleRows(pg, parsed) : null
  if (unread !== null) return unread.then(() => runStatement(pg, parsed, options))
  const own = runSessionStatement(pg, statement) ?? runCursorStatement(pg, parsed, options)
  if (own !== null) return own
  if (statement.kind === 'execute') return runPrepared(pg, statement, options)
  if (statement.kind === 'copy' && statement.target.kind === 'connection') return copy(pg, parsed, statement)
  const settled = settleRows(pg, parsed)
  const adapted = adaptedStatement(pg, parsed)
  return settled === null ? runInEngine(pg, adapted, options) : settled.then(() => runInEngine(pg, adapted, options))
}

async function copy(pg: PgSession, parsed: ParsedStatement, statement: CopyStatement): Promise<string> {
  if (pg.status === 'I' || statement.direction === 'to') await settleRows(pg, parsed)
  if (statement.direction === 'to') return copyOut(pg, parsed, statement)
  demandRight(pg.session, 'write', statement.position)
  return copyIn(pg, statement)
}

/** EXECUTE of SQL. */
function runPrepared(pg: PgSession, statement: ExecuteStatement, options: RunOptions): Promise<Outcome> | Outcome {
  const { parsed, bound, types } = boundBySql(pg, statement)
  return runStatement(pg, parsed, { ...options, bound, types })
}

function insertRows(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<string> | string {
  const rows = pg.transaction.insert(parsed, pg.session, options.bound, options.types)
  noteInserted(pg, rows)
  const tag = rows === 1 ? 'INSERT 0 1' : `INSERT 0 ${rows}`
  const stored = boundRows(pg)
  return stored === null ? tag : stored.then(() => tag)
}

export function noteInserted({ connection, counters }: PgSession, rows: number): void {
  connection.rowsReceived += rows
  counters.queries.insert++
}

function endsTransaction({ statement }: ParsedStatement): boolean {
  return statement.kind === 'transaction' && statement.action !== 'begin' && statement.action !== 'savepoint'
}

export async function runInEngine(
  pg: PgSession,
  parsed: ParsedStatement,
  options: RunOptions,
): Promise<RowCursor | string> {
  const running = new LateSignal()
  pg.running = running
  const begunMs = pg.clock.monotonicMs()
  const { binary } = options
  // Rows of INSERT .. SELECT wait for COMMIT like those of INSERT .. VALUES.
  const gathers = pg.status === 'T' && parsed.statement.kind === 'insert'
  const result = await pg.engine.execute(parsed.text, {
    session: pg.session,
    parsed,
    encoding: { kind: 'pg', binary },
    parameters: parametersOf(options),
    skip: 0,
    rowsMax: Number.POSITIVE_INFINITY,
    countAll: false,
    columns: null,
    timeoutMs: timeoutOf(pg),
    get signal() {
      return running.signal
    },
    explain: false,
    ...(gathers ? { into: (rows) => gather(pg, rows) } : {}),
  })
  if (gathers && result.kind === 'done') {
    noteInserted(pg, result.rows)
    return tagOf(result.tag, result.rows)
  }
  count(pg, result)
  if (result.kind === 'rows') {
    const cursor = new RowCursor(result, binary)
    if (options.columns === null || sameColumns(result.columns, options.columns)) return cursor
    await cursor.close()
    throw new PgError('0A000', 'cached plan must not change result type')
  }
  if (result.kind === 'plan') throw new PgError('XX000', 'a plan was not asked for')
  pg.tookEffect = pg.status === 'T'
  log(pg, parsed, begunMs)
  return tagOf(result.tag, result.rows)
}

async function gather(pg: PgSession, rows: Parameters<PgSession['transaction']['gather']>[0]): Promise<void> {
  pg.transaction.gather(rows)
  await boundRows(pg)
}

function parametersOf({ bound, types }: RunOptions): ExecuteOptions['parameters'] {
  return types.map((type, index) => {
    const end = bound.ends[index] ?? -1
    const bytes = end < 0 ? null : bound.bytes.subarray(bound.starts[index], end)
    return decodeParameter(bytes, bound.isBinary(index), type, index)
  })
}

/** Counts behind the tag as PostgreSQL has them. */
export function tagOf(tag: string, rows: number): string {
  if (tag === 'INSERT') return `INSERT 0 ${rows}`
  return tag === 'UPDATE' || tag === 'DELETE' || tag === 'COPY' ? `${tag} ${rows}` : tag
}

/** The wire's types count: a parameter's value may change how many digits a DECIMAL has. */
function sameColumns(left: readonly ResultColumn[], right: readonly ResultColumn[]): boolean {
  const oid = ({ type }: ResultColumn): number => pgOidOf(type)
  return left.length === right.length && left.every((column, index) => oid(column) === oid(right[index] ?? column))
}

export function timeoutOf({ settings, options }: PgSession): number {
  const said = settings.get('statement_timeout')
  return said === undefined ? options.queryTimeoutMs : Number(said)
}

function count({ counters }: PgSession, result: StatementResult): void {
  if (result.kind === 'rows') {
    counters.queries.select++
    if (result.cached) counters.queryCacheHits++
    else counters.queryCacheMisses++
  } else if (result.kind === 'done' && result.tag === 'INSERT') {
    counters.queries.insert++
    counters.rowsWritten += result.rows
  } else if (result.kind === 'done' && result.tag === 'UPDATE') counters.queries.update++
  else counters.queries.other++
}

export function log({ options, log: write, clock }: PgSession, parsed: ParsedStatement, begunMs: number): void {
  if (!options.logQueries) return
  const timeMs = Math.round((clock.monotonicMs() - begunMs) * 1000) / 1000
  write('I', 'pg', `[exe] ${parsed.text.slice(parsed.start, parsed.end)} [cached=false, time=${timeMs}ms]`)
}

// ANSWERS -----------------------------------------------------------------------------------------------------------

/** Sends rows and their tag, or the tag. `describe`: the description first, as the simple protocol has it. */
export async function answer(pg: PgSession, outcome: Outcome, describe: boolean): Promise<void> {
  if (typeof outcome === 'string') {
    pg.out.put(commandComplete(outcome))
    return
  }
  try {
    if (describe) pg.out.put(rowDescription(fieldsOf(outcome.columns, outcome.binary)))
    const { rows } = await outcome.send(pg.out, Number.POSITIVE_INFINITY)
    pg.out.put(commandComplete(`${outcome.tag} ${rows}`))
  } finally {
    await outcome.close()
  }
}

export function fieldsOf(columns: readonly ResultColumn[], binary: readonly boolean[]): FieldDescription[] {
  return columns.map(({ name, type }, index) => ({
    name,
    oid: pgOidOf(type),
    size: sizeOf(type),
    modifier: modifierOf(type),
    binary: isBinary(binary, index),
  }))
}

/** Of each column, of all when there is one, of none when there are none. */
function isBinary(binary: readonly boolean[], index: number): boolean {
  return (binary.length === 1 ? binary[0] : binary[index]) === true
}

/** Bytes in PostgreSQL's memory. */
function sizeOf(type: DataType): number {
  if (type.name === 'BYTE') return 2
  if (type.name === 'UUID') return 16
  const storage = storageOf(type)
  const fixed = ['BOOLEAN', 'SHORT', 'INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'FLOAT', 'DOUBLE']
  return storage !== 'entry' && fixed.includes(type.name) ? widthOf(type) : -1
}

/** Of DECIMAL precision and scale, of CHAR its one character. */
function modifierOf(type: DataType): number {
  if (type.name === 'DECIMAL') return ((type.a << 16) | type.b) + 4
  return type.name === 'CHAR' ? 5 : -1
}
