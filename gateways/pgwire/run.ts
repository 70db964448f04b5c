// Runs one statement of a PostgreSQL client: in the session if it is about the session (such as BEGIN or SET),
// otherwise in the engine. Sends the rows, the command tag or the error to the client.

import { NotReadyError } from '../../engine/base/errors.js'
import { requireRight } from '../../engine/base/rights.js'
import type { ParsedStatement, ResultColumn } from '../../engine/engine.js'
import { type DataType, pgOidOf } from '../../engine/types/column-types.js'
import type { PgSession, RunOptions } from './context.js'
import { copyIn } from './copy/copy-in.js'
import { copyOut } from './copy/copy-out.js'
import { runCursorStatement } from './cursors.js'
import { commandComplete, type FieldDescription, rowDescription } from './protocol/messages.js'
import { PgError } from './protocol/sqlstate.js'
import { runSessionStatement } from './session-statements.js'
import { boundBySql, type ExecuteStatement } from './sql-prepare.js'
import { logStatement } from './statement-log.js'
import { adaptedStatement } from './transaction/create-table.js'
import { applyDeferredBefore, deferChange } from './transaction/deferred-changes.js'
import { deferSchemaChange } from './transaction/deferred-schemas.js'
import { hasDraft } from './transaction/deferred-state.js'
import { deferUpsert } from './transaction/deferred-upserts.js'
import type { Waiting } from './transaction/portals.js'
import { countedTag, type Rows } from './transaction/row-cursor.js'
import { isPlainInsert, isReturning, isUpsert, noteInserted, runInEngine } from './transaction/run-engine.js'
import { boundRows, settle, settleRows } from './transaction/transaction.js'

type CopyStatement = Extract<ParsedStatement['statement'], { kind: 'copy' }>

/** Rows to send, or the command tag of a completed statement. */
export type Outcome = Rows | string

/** Throws the error to report. A result that is not a promise is complete already. */
export function runStatement(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Outcome> | Outcome {
  if (!pg.options.logQueries) return run(pg, parsed, options)
  const begunMs = pg.clock.monotonicMs()
  const outcome = run(pg, parsed, options)
  if (outcome instanceof Promise) {
    return outcome.then((settled) => {
      logStatement(pg, parsed, begunMs)
      return settled
    })
  }
  logStatement(pg, parsed, begunMs)
  return outcome
}

function run(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Outcome> | Outcome {
  try {
    return runNow(pg, parsed, options)
  } catch (error) {
    if (!(error instanceof NotReadyError)) throw error
    return whenFetched(pg, error, () => run(pg, parsed, options))
  }
}

/** Does the work again, with what its first attempt has begun to plan. */
export async function whenFetched<T>(
  pg: PgSession,
  { ready, planning }: NotReadyError,
  work: () => Promise<T> | T,
): Promise<T> {
  await ready
  pg.session = { ...pg.session, planning }
  try {
    return await work()
  } finally {
    const { planning: _, ...session } = pg.session
    pg.session = session
  }
}

/** Throws NotReadyError if a description of the statement needs what is yet to be fetched; nothing has happened then. */
function runNow(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Outcome> | Outcome {
  const { statement } = parsed
  pg.text = parsed.text
  requireSound(pg, parsed)
  const before = applyDeferredBefore(pg, parsed)
  if (before !== null) return before.then(() => run(pg, parsed, options))
  if (isUpsert(pg, parsed)) return upsert(pg, parsed, options)
  if (isPlainInsert(parsed)) return insertRows(pg, parsed, options)
  const unread = statement.kind === 'declare cursor' ? settleRows(pg, parsed) : null
  if (unread !== null) return unread.then(() => run(pg, parsed, options))
  const own = runSessionStatement(pg, parsed) ?? runCursorStatement(pg, parsed, options)
  if (own !== null) return own
  if (statement.kind === 'execute') return runPrepared(pg, statement, options)
  if (statement.kind === 'copy' && statement.target.kind === 'connection') return copy(pg, parsed, statement)
  const held = deferSchemaChange(pg, parsed, options) ?? deferChange(pg, parsed, options)
  if (held !== null) return held
  const settled = isReturning(parsed) ? null : settleRows(pg, parsed)
  const adapted = adaptedStatement(pg, parsed)
  return settled === null ? runInEngine(pg, adapted, options) : settled.then(() => runInEngine(pg, adapted, options))
}

async function copy(pg: PgSession, parsed: ParsedStatement, statement: CopyStatement): Promise<string> {
  if (pg.status === 'I' || statement.direction === 'to') await settleRows(pg, parsed)
  if (statement.direction === 'to') return copyOut(pg, parsed, statement)
  requireRight(pg.session, 'write', statement.position)
  return copyIn(pg, statement)
}

/** Runs SQL EXECUTE. */
function runPrepared(pg: PgSession, statement: ExecuteStatement, options: RunOptions): Promise<Outcome> | Outcome {
  const { parsed, bound, types } = boundBySql(pg, statement)
  return run(pg, parsed, { ...options, bound, types })
}

/** The rows that the session has not stored yet are stored first, since the statement reads the table. */
async function upsert(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<Outcome> {
  if (pg.status === 'T' || hasDraft(pg)) return deferUpsert(pg, parsed, options)
  await settle(pg)
  return runInEngine(pg, adaptedStatement(pg, parsed), options)
}

function insertRows(pg: PgSession, parsed: ParsedStatement, options: RunOptions): Promise<string> | string {
  const rows = pg.transaction.insert(parsed, pg.session, options.bound, options.types)
  noteInserted(pg, rows)
  const tag = rows === 1 ? 'INSERT 0 1' : `INSERT 0 ${rows}`
  const stored = boundRows(pg)
  return stored === null ? tag : stored.then(() => tag)
}

const wantsSound: ReadonlySet<string> = new Set(['begin', 'savepoint', 'release'])

/** Throws PgError in a failed transaction, which accepts only statements that end it. */
export function requireSound(pg: PgSession, { statement }: ParsedStatement): void {
  if (pg.status !== 'E') return
  if (statement.kind === 'transaction' && !wantsSound.has(statement.action)) return
  throw new PgError('25P02', 'current transaction is aborted, commands ignored until end of transaction block')
}

// RESPONSES
// ---------------------------------------------------------------------------------------------------------

/**
 * Sends rows and their tag, or the tag. `describe`: sends the row description first, as the simple protocol
 * requires.
 */
export function respond(pg: PgSession, outcome: Outcome, describe: boolean): Waiting {
  if (typeof outcome === 'string') {
    pg.out.put(commandComplete(outcome))
    return null
  }
  if (describe) pg.out.put(columnsMessage(outcome.columns, outcome.binary))
  const whole = outcome.sendWhole?.(pg.out) ?? -1
  if (whole < 0) return respondInBlocks(pg, outcome)
  pg.out.put(commandComplete(countedTag(outcome.tag, whole)))
  return null
}

async function respondInBlocks(pg: PgSession, outcome: Rows): Promise<void> {
  try {
    const { rows } = await outcome.send(pg.out, Number.POSITIVE_INFINITY)
    pg.out.put(commandComplete(countedTag(outcome.tag, rows)))
  } finally {
    await outcome.close()
  }
}

/** Descriptions of columns in text format. Executions of a cached plan have the same list. */
const described = new WeakMap<readonly ResultColumn[], Buffer>()

/** RowDescription of columns with these formats. */
export function columnsMessage(columns: readonly ResultColumn[], binary: readonly boolean[]): Buffer {
  if (binary.length > 0) return rowDescription(fieldsOf(columns, binary))
  const known = described.get(columns)
  if (known !== undefined) return known
  const message = rowDescription(fieldsOf(columns, binary))
  described.set(columns, message)
  return message
}

function fieldsOf(columns: readonly ResultColumn[], binary: readonly boolean[]): FieldDescription[] {
  return columns.map(({ name, type, baseColumn }, index) => ({
    name,
    oid: pgOidOf(type),
    size: sizes[pgOidOf(type)] ?? -1,
    modifier: baseColumn?.modifier ?? modifierOf(type),
    binary: isBinary(binary, index),
    relation: baseColumn?.relation ?? 0,
    attribute: baseColumn?.attribute ?? 0,
  }))
}

/** One format per column; a single one applies to all columns, an empty list means text. */
function isBinary(binary: readonly boolean[], index: number): boolean {
  return (binary.length === 1 ? binary[0] : binary[index]) === true
}

/**
 * Type sizes in PostgreSQL by OID: bool, int2, int4, oid, int8, float4, float8, then date, time, timestamp,
 * timestamptz, interval and uuid; all other types are variable-length.
 */
const sizes: Readonly<Record<number, number>> = {
  ...{ 16: 1, 21: 2, 23: 4, 26: 4, 20: 8, 700: 4, 701: 8 },
  ...{ 1082: 4, 1083: 8, 1114: 8, 1184: 8, 1186: 16, 2950: 16 },
}

/** Type modifier: precision and scale of DECIMAL, length 1 of CHAR. */
function modifierOf(type: DataType): number {
  if (type.name === 'DECIMAL') return ((type.a << 16) | type.b) + 4
  return type.name === 'CHAR' ? 5 : -1
}
