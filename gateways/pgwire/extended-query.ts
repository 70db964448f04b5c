// The extended protocol: Parse, Bind, Describe, Execute, Close, Flush, Sync. After an error everything up to the next
// Sync is passed over.

import { decodeParameter, type ExecuteOptions, type ParsedStatement } from '../../engine/engine.js'
import type { BoundValues, PgSession, Portal, Prepared } from './context.js'
import { fail } from './failure.js'
import {
  bindComplete,
  closeComplete,
  commandComplete,
  emptyQueryResponse,
  noData,
  parameterDescription,
  parseComplete,
  portalSuspended,
  readyForQuery,
  rowDescription,
} from './messages.js'
import type { MessageReader } from './reader.js'
import { RowCursor } from './row-cursor.js'
import { fieldsOf, runStatement } from './run.js'
import { PgError } from './sqlstate.js'

const statementsMax = 10_000
const portalsMax = 10_000

// PARSE -------------------------------------------------------------------------------------------------------------

/** Parse => name query count:int16 oid:int32* */
export function parse(pg: PgSession, reader: MessageReader): void {
  const name = reader.text()
  const text = reader.text()
  const oids = Array.from({ length: reader.count() }, () => reader.int32())
  reader.done()
  if (name !== '' && pg.statements.has(name)) {
    throw new PgError('42P05', `prepared statement "${name}" already exists`)
  }
  if (pg.statements.size >= statementsMax) {
    throw new PgError('53400', `too many prepared statements [max=${statementsMax}]`)
  }
  const [statement, second] = pg.engine.parse(text)
  if (second !== undefined) throw new PgError('42601', 'cannot insert multiple commands into a prepared statement')
  pg.statements.set(name, { name, statement: statement ?? null, oids, description: null })
  pg.out.put(parseComplete)
}

/** What is known of the statement; types of parameters that nobody said are as the statement wants them. */
function described(
  pg: PgSession,
  prepared: Prepared,
  statement: ParsedStatement,
): NonNullable<Prepared['description']> {
  prepared.description ??= pg.engine.describe(statement, pg.session, prepared.oids)
  return prepared.description
}

// BIND --------------------------------------------------------------------------------------------------------------

/** Bind => portal statement count:int16 format:int16* count:int16 (bytes:int32 value)* count:int16 format:int16* */
export async function bind(pg: PgSession, reader: MessageReader): Promise<void> {
  const name = reader.text()
  const prepared = statementNamed(pg, reader.text())
  const values = boundValues(reader)
  const binary = Array.from({ length: reader.count() }, () => reader.int16() === 1)
  reader.done()
  if (name !== '' && pg.portals.has(name)) throw new PgError('42P03', `portal "${name}" already exists`)
  if (pg.portals.size >= portalsMax) throw new PgError('53400', `too many portals [max=${portalsMax}]`)
  await closePortal(pg, name)
  pg.portals.set(name, { name, prepared, values, binary, cursor: null, suspended: 0, done: null })
  pg.out.put(bindComplete)
}

function boundValues(reader: MessageReader): BoundValues {
  const formats = Array.from({ length: reader.count() }, () => reader.int16())
  if (formats.some((format) => format !== 0 && format !== 1)) {
    throw new PgError('08P01', 'a format code is neither text nor binary')
  }
  const values = Array.from({ length: reader.count() }, () => {
    const bytes = reader.int32()
    return bytes < 0 ? null : reader.bytes(bytes)
  })
  if (formats.length > 1 && formats.length !== values.length) {
    throw new PgError('08P01', `bind message has ${formats.length} parameter formats but ${values.length} parameters`)
  }
  return { values, formats }
}

function statementNamed(pg: PgSession, name: string): Prepared {
  const prepared = pg.statements.get(name)
  if (prepared === undefined) throw new PgError('26000', `prepared statement "${name}" does not exist`)
  return prepared
}

function portalNamed(pg: PgSession, name: string): Portal {
  const portal = pg.portals.get(name)
  if (portal === undefined) throw new PgError('34000', `portal "${name}" does not exist`)
  return portal
}

export async function closePortal(pg: PgSession, name: string): Promise<void> {
  const portal = pg.portals.get(name)
  pg.portals.delete(name)
  await portal?.cursor?.close()
}

/** Values of the parameters, in the types that were said or found. */
function parametersOf(pg: PgSession, { prepared, values: { values, formats } }: Portal): ExecuteOptions['parameters'] {
  const { statement, oids } = prepared
  if (statement === null || (values.length === 0 && oids.length === 0)) return []
  const types = described(pg, prepared, statement).parameters
  if (values.length !== types.length) {
    throw new PgError(
      '08P01',
      `bind message supplies ${values.length} parameters, but prepared statement "${prepared.name}" requires ${types.length}`,
    )
  }
  return values.map((bytes, index) => {
    const binary = (formats.length === 1 ? formats[0] : formats[index]) === 1
    return decodeParameter(bytes, binary, types[index] as (typeof types)[number], index)
  })
}

// DESCRIBE ----------------------------------------------------------------------------------------------------------

/** Describe => 'S' or 'P', name */
export function describe(pg: PgSession, reader: MessageReader): void {
  const kind = reader.byte()
  const name = reader.text()
  reader.done()
  if (kind === 83) describePrepared(pg, statementNamed(pg, name))
  else if (kind === 80) {
    const { prepared, binary } = portalNamed(pg, name)
    describeColumns(pg, prepared, binary)
  } else throw new PgError('08P01', 'what is to be described is neither a statement nor a portal')
}

function describePrepared(pg: PgSession, prepared: Prepared): void {
  const { statement } = prepared
  const types = statement === null ? [] : described(pg, prepared, statement).parameters
  pg.out.put(parameterDescription(types.map(({ oid }) => oid)))
  describeColumns(pg, prepared, [])
}

function describeColumns(pg: PgSession, prepared: Prepared, binary: readonly boolean[]): void {
  const { statement } = prepared
  const columns = statement === null ? null : described(pg, prepared, statement).columns
  pg.out.put(columns === null ? noData : rowDescription(fieldsOf(columns, binary)))
}

// EXECUTE -----------------------------------------------------------------------------------------------------------

/** Execute => portal rows:int32 (0 = all) */
export async function execute(pg: PgSession, reader: MessageReader): Promise<void> {
  const portal = portalNamed(pg, reader.text())
  const rowsMax = reader.int32()
  reader.done()
  const { statement, description } = portal.prepared
  if (statement === null) {
    pg.out.put(emptyQueryResponse)
    return
  }
  if (portal.done !== null) {
    pg.out.put(commandComplete(portal.done))
    return
  }
  if (portal.cursor === null) {
    const parameters = parametersOf(pg, portal)
    const columns = description?.columns ?? null
    const outcome = await runStatement(pg, statement, { parameters, binary: portal.binary, columns })
    if (!(outcome instanceof RowCursor)) {
      portal.done = outcome
      pg.out.put(commandComplete(outcome))
      return
    }
    portal.cursor = outcome
  }
  await sendRows(pg, portal, portal.cursor, rowsMax > 0 ? rowsMax : Number.POSITIVE_INFINITY)
}

async function sendRows(pg: PgSession, portal: Portal, cursor: RowCursor, rowsMax: number): Promise<void> {
  const sent = await cursor.send(pg.out, rowsMax)
  if (!sent.exhausted) {
    portal.suspended += sent.rows
    pg.out.put(portalSuspended)
    return
  }
  const rows = rowsMax === Number.POSITIVE_INFINITY && portal.suspended === 0 ? await cursor.total() : sent.rows
  portal.done = 'SELECT 0'
  await cursor.close()
  portal.cursor = null
  pg.out.put(commandComplete(`SELECT ${rows}`))
}

// CLOSE, SYNC -------------------------------------------------------------------------------------------------------

/** Close => 'S' or 'P', name */
export async function close(pg: PgSession, reader: MessageReader): Promise<void> {
  const kind = reader.byte()
  const name = reader.text()
  reader.done()
  if (kind === 83) pg.statements.delete(name)
  else if (kind === 80) await closePortal(pg, name)
  else throw new PgError('08P01', 'what is to be closed is neither a statement nor a portal')
  pg.out.put(closeComplete)
}

/** Ends what is outside of a transaction. */
export async function sync(pg: PgSession): Promise<void> {
  pg.skipping = false
  if (pg.status === 'I') await closePortals(pg)
  pg.out.put(readyForQuery(pg.status))
}

export async function closePortals(pg: PgSession): Promise<void> {
  for (const name of [...pg.portals.keys()]) await closePortal(pg, name)
}

/** An error of the extended protocol. */
export function failExtended(pg: PgSession, thrown: unknown): void {
  pg.skipping = true
  fail(pg, thrown)
}
