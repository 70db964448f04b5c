// Handles the extended query protocol: Parse, Bind, Describe, Execute, Close, Sync. A handler returns a promise only
// when it has to wait, so that thousands of small statements in one flush need no event-loop turn each.

import { AccessError } from '../../engine/base/errors.js'
import type { Description, ParsedStatement } from '../../engine/engine.js'
import { shapeOf } from './bind-run.js'
import type { PgSession, Portal, Prepared } from './context.js'
import { describeOwn } from './cursors.js'
import { BindMemory, readBound } from './protocol/bound-parameters.js'
import { recodedBound } from './protocol/client-encoding.js'
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
} from './protocol/messages.js'
import type { MessageReader } from './protocol/reader.js'
import { PgError } from './protocol/sqlstate.js'
import { columnsMessage, type Outcome, requireSound, runStatement } from './run.js'
import { fail } from './transaction/failure.js'
import { checkNoted, deliverNotifications, sendInbox } from './transaction/notifications.js'
import { closeCursors, closePortals, type Waiting } from './transaction/portals.js'
import { countedTag, type Rows } from './transaction/row-cursor.js'
import { respondLater, settle } from './transaction/transaction.js'

const statementsMax = 10_000
const portalsMax = 10_000

// PARSE -------------------------------------------------------------------------------------------------------------

/** Parse => name query count:int16 oid:int32* */
export function parse(pg: PgSession, reader: MessageReader): Waiting {
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
  pg.text = text
  const [statement, second] = pg.engine.parse(text)
  if (second !== undefined) throw new PgError('42601', 'cannot insert multiple commands into a prepared statement')
  if (statement !== undefined) requireSound(pg, statement)
  const prepared: Prepared = {
    name,
    statement: statement ?? null,
    text,
    micros: pg.clock.nowMicros(),
    bySql: false,
    oids,
    description: null,
    memory: new BindMemory(),
    shape: null,
    responses: null,
    isRepeated: false,
  }
  // A named statement reports errors now; for an unnamed one the response to Describe or Execute follows
  // immediately.
  if (name !== '' && statement !== undefined) requireSense(pg, prepared, statement)
  pg.statements.set(name, prepared)
  pg.out.put(parseComplete)
  return null
}

/** Checks that the statement is valid. Rights are checked when it runs, since they may change until then. */
function requireSense(pg: PgSession, prepared: Prepared, statement: ParsedStatement): void {
  try {
    described(pg, prepared, statement)
  } catch (error) {
    if (!(error instanceof AccessError)) throw error
  }
}

/** Describes the statement; the statement determines the types of parameters that the client left unspecified. */
function described(pg: PgSession, prepared: Prepared, statement: ParsedStatement): Description {
  if (prepared.description !== null) return prepared.description
  pg.text = statement.text
  const own = describeOwn(pg, statement, prepared.oids)
  if (own !== null) return own
  prepared.description = pg.engine.describe(statement, pg.session, prepared.oids)
  return prepared.description
}

// BIND --------------------------------------------------------------------------------------------------------------

/** Bind => portal statement parameters (bound-parameters.ts) */
export function bind(pg: PgSession, reader: MessageReader): Waiting {
  const start = reader.at
  const name = reader.text()
  const prepared = boundStatement(pg, reader)
  const before = pg.portals.get(name)
  if (name !== '' && before !== undefined) throw new PgError('42P03', `portal "${name}" already exists`)
  // Execute reads the rows of an INSERT immediately, so the parameters of the previous Bind are no longer needed.
  const reuse = name === '' && prepared.statement?.statement.kind === 'insert'
  const { bound: sent, binary } = readBound(reader.source, reader.at, reader.end, prepared.memory, reuse)
  const types = typesOf(pg, prepared, sent.count)
  const bound = pg.out.encoding === null ? sent : recodedBound(sent, types, pg.out.encoding)
  if (binary.length > 1) requireFormats(pg, prepared, binary.length)
  // This is the second Bind of its form, so more are likely.
  if (reuse && prepared.isRepeated) prepared.shape = shapeOf(prepared, sent, types, start, reader.end)
  prepared.isRepeated = true
  if (before?.prepared === prepared && before.cursor === null) {
    Object.assign(before, { bound, types, binary, done: null })
    pg.out.put(bindComplete)
    return null
  }
  if (pg.portals.size >= portalsMax) throw new PgError('53400', `too many portals [max=${portalsMax}]`)
  pg.portals.set(name, { name, prepared, bound, types, binary, cursor: null, done: null })
  pg.out.put(bindComplete)
  return before?.cursor?.close() ?? null
}

/** Usually the statement of the previous Bind. */
function boundStatement(pg: PgSession, reader: MessageReader): Prepared {
  const last = pg.lastBound
  if (last !== null && pg.statements.get(last.name) === last && reader.skips(last.name)) return last
  const prepared = statementNamed(pg, reader.text())
  pg.lastBound = prepared
  return prepared
}

const noTypes: Description['parameters'] = []
/** A statement without parameters needs no description. */
const parameterMark = /\$\d/

function typesOf(pg: PgSession, prepared: Prepared, count: number): Description['parameters'] {
  const { statement, oids, name } = prepared
  const isKnown = oids.length > 0 || prepared.description !== null
  if (count === 0 && !isKnown && !parameterMark.test(prepared.text)) return noTypes
  const types = statement === null ? noTypes : described(pg, prepared, statement).parameters
  if (count === types.length) return types
  throw new PgError(
    '08P01',
    `bind message supplies ${count} parameters, but prepared statement "${name}" requires ${types.length}`,
  )
}

/** Requires one format per column. */
function requireFormats(pg: PgSession, prepared: Prepared, count: number): void {
  const { statement } = prepared
  const columns = statement === null ? null : described(pg, prepared, statement).columns
  if (columns === null || columns.length === count) return
  throw new PgError('08P01', `bind message has ${count} result formats but query has ${columns.length} columns`)
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

function closePortal(pg: PgSession, name: string): Waiting {
  const portal = pg.portals.get(name)
  pg.portals.delete(name)
  return portal?.cursor?.close() ?? null
}

// DESCRIBE ----------------------------------------------------------------------------------------------------------

/** Describe => 'S' or 'P', name */
export function describe(pg: PgSession, reader: MessageReader): Waiting {
  const kind = reader.byte()
  const name = reader.text()
  reader.done()
  if (kind === 83) describePrepared(pg, statementNamed(pg, name))
  else if (kind === 80) {
    // A SQL cursor is also a portal.
    const cursor = pg.cursors.get(name)
    if (cursor !== undefined && !pg.portals.has(name)) {
      const { columns } = pg.engine.describe(cursor.query, pg.session, [])
      pg.out.put(columns === null ? noData : columnsMessage(columns, []))
      return null
    }
    const { prepared, binary } = portalNamed(pg, name)
    describeColumns(pg, prepared, binary)
  } else throw new PgError('08P01', 'Describe names neither a statement nor a portal')
  return null
}

function describePrepared(pg: PgSession, prepared: Prepared): void {
  const { statement } = prepared
  const types = statement === null ? noTypes : described(pg, prepared, statement).parameters
  pg.out.put(parameterDescription(types.map(({ oid }) => oid)))
  describeColumns(pg, prepared, [])
}

function describeColumns(pg: PgSession, prepared: Prepared, binary: readonly boolean[]): void {
  const { statement } = prepared
  const columns = statement === null ? null : described(pg, prepared, statement).columns
  pg.out.put(columns === null ? noData : columnsMessage(columns, binary))
}

// EXECUTE -----------------------------------------------------------------------------------------------------------

/** Execute => portal rows:int32 (0 = all) */
export function execute(pg: PgSession, reader: MessageReader): Waiting {
  const portal = portalNamed(pg, reader.text())
  const rowsMax = reader.int32()
  reader.done()
  const { bound, types, binary, cursor, done, prepared } = portal
  const { statement, description } = prepared
  if (statement === null) {
    pg.out.put(emptyQueryResponse)
    return null
  }
  if (done !== null) {
    pg.out.put(commandComplete(done))
    return null
  }
  const limit = rowsMax > 0 ? rowsMax : Number.POSITIVE_INFINITY
  if (cursor !== null) return sendRows(pg, portal, cursor, limit)
  const columns = description?.columns ?? null
  const outcome = runStatement(pg, statement, { bound, types, binary, columns, inParts: rowsMax > 0 })
  if (outcome instanceof Promise)
    return outcome.then(async (settled) => {
      await proceed(pg, portal, settled, limit)
    })
  return proceed(pg, portal, outcome, limit)
}

const oneInserted = commandComplete('INSERT 0 1')

function proceed(pg: PgSession, portal: Portal, outcome: Outcome, limit: number): Waiting {
  if (typeof outcome !== 'string') {
    const whole = limit === Number.POSITIVE_INFINITY ? (outcome.sendWhole?.(pg.out) ?? -1) : -1
    if (whole >= 0) {
      portal.done = countedTag(outcome.tag, 0)
      pg.out.put(commandComplete(countedTag(outcome.tag, whole)))
      return null
    }
    portal.cursor = outcome
    return sendRows(pg, portal, outcome, limit)
  }
  portal.done = outcome
  pg.out.put(outcome === 'INSERT 0 1' ? oneInserted : commandComplete(outcome))
  return null
}

async function sendRows(pg: PgSession, portal: Portal, rows: Rows, rowsMax: number): Promise<void> {
  const sent = await rows.send(pg.out, rowsMax)
  if (!sent.exhausted) {
    pg.out.put(portalSuspended)
    return
  }
  portal.done = countedTag(rows.tag, 0)
  portal.cursor = null
  await rows.close()
  pg.out.put(commandComplete(countedTag(rows.tag, sent.rows)))
}

// CLOSE, SYNC -------------------------------------------------------------------------------------------------------

/** Close => 'S' or 'P', name */
export function close(pg: PgSession, reader: MessageReader): Waiting {
  const kind = reader.byte()
  const name = reader.text()
  reader.done()
  const waiting = kind === 80 ? closePortal(pg, name) : null
  if (kind === 80 && pg.cursors.has(name))
    return closeCursors(pg, (cursor) => cursor.name === name).then(() => closed(pg))
  if (kind === 83) pg.statements.delete(name)
  else if (kind !== 80) throw new PgError('08P01', 'Close names neither a statement nor a portal')
  closed(pg)
  return waiting
}

function closed(pg: PgSession): void {
  pg.out.put(closeComplete)
}

/** Ends an implicit transaction: closes its portals and schedules its rows to be stored (transaction.ts). */
export function sync(pg: PgSession): Waiting {
  pg.skipping = false
  const closed = pg.status === 'I' && pg.portals.size > 0 ? closePortals(pg) : null
  if (pg.status === 'I' && (pg.noted.size > 0 || pg.held.length > 0)) return endPipeline(pg, closed)
  if (pg.status === 'I' && pg.transaction.rows > 0) respondLater(pg)
  else {
    sendInbox(pg)
    pg.out.put(readyForQuery(pg.status))
  }
  return closed
}

/** Stores pending rows and changes before the notifications that came with them are delivered. */
async function endPipeline(pg: PgSession, closed: Waiting): Promise<void> {
  try {
    await closed
    checkNoted(pg)
    await settle(pg)
    deliverNotifications(pg)
  } catch (error) {
    fail(pg, error)
  }
  sendInbox(pg)
  pg.out.put(readyForQuery(pg.status))
}
