// Collects the rows of INSERT and COPY in the session and stores them as one transaction: at COMMIT or, without
// BEGIN, at Sync, at the end of a multi-statement query, and before most statements other than INSERT.
//
// Pipelined INSERTs, each with its own Sync, are answered together: their rows are stored when no further message is
// waiting, with one sync of the log.
//
// UPDATE, DELETE and schema changes are deferred until COMMIT, too (deferred-changes.ts, deferred-schemas.ts). A
// statement that takes effect at once and depends on pending changes runs them first and warns the client that ROLLBACK
// cannot undo them; after a pending schema change such a statement is rejected.

import { ResourceError } from '../../../engine/base/errors.js'
import type { ParsedStatement, RowTransaction } from '../../../engine/engine.js'
import { LazySignal } from '../../common/lazy-signal.js'
import type { DeferredChange, PgSession, Savepoint } from '../context.js'
import { noticeResponse, readyForQuery } from '../protocol/messages.js'
import { noticeOf, PgError } from '../protocol/sqlstate.js'
import { beginBlock, blockModes, endBlock } from './block-settings.js'
import { discardDeferred, gatherNames, hasDraft, ownRowsMax, requireNoDraft, showDeferred } from './deferred-state.js'
import { failureMessage } from './failure.js'
import { checkNoted, deliverNotifications, forgetNoted } from './notifications.js'
import { closeCursors, closePortals, endCursors, type Waiting } from './portals.js'
import { dropSnapshot } from './snapshots.js'

/** Comfortable size of one log frame. */
const transactionBytesMax = 32 * 1024 * 1024

/** Limit of one log frame; rows that cannot be written as parts must fit into one. */
const frameBytesMax = 56 * 1024 * 1024

type Transaction = Extract<ParsedStatement['statement'], { kind: 'transaction' }>

export function warn(pg: PgSession, code: string, message: string): void {
  pg.out.put(noticeResponse({ severity: 'WARNING', code, message, position: 0 }))
}

/** Stores the collected rows; null when there are none. */
export function storeIfAny(pg: PgSession): Waiting {
  if (pg.transaction.rows > 0) return storeRows(pg)
  pg.transaction.clear()
  return null
}

/** Stores the collected rows. */
export async function storeRows(pg: PgSession, transaction = pg.transaction): Promise<void> {
  const { connection, counters } = pg
  const { rows } = transaction
  if (rows === 0) {
    transaction.clear()
    return
  }
  try {
    await transaction.commit()
    connection.rowsCommitted += rows
    counters.rowsWritten += rows
  } catch (error) {
    connection.rowsRejected += rows
    throw error
  }
}

/** Runs the pending changes, each after the rows that came before it. */
async function storeHeld(pg: PgSession): Promise<void> {
  // Its subqueries must see what came before it, which is stored, and not the later pending rows and changes.
  const { transaction: _, pending: __, ...session } = pg.session
  pg.session = session
  try {
    for (let change = pg.held[0]; change !== undefined; change = pg.held[0]) {
      if (change.rows !== null) await storeRows(pg, change.rows)
      await change.run()
      pg.held.shift()
    }
  } finally {
    showDeferred(pg)
  }
}

/** Runs pending changes before a statement that may depend on them. */
export async function applyDeferred(pg: PgSession): Promise<void> {
  await splitAt(pg, 'changes of the transaction are carried out before this statement: ROLLBACK cannot take them back')
}

/** Stores the pending changes before COMMIT, with a warning. */
function splitAt(pg: PgSession, warning: string): Promise<void> {
  warn(pg, '01000', warning)
  pg.isSplit = true
  dropSnapshot(pg)
  pg.savepoints = []
  return storeHeld(pg)
}

const noBytes = Buffer.alloc(0)

/** Reserves places for the responses to `count` Syncs, each preceded by `head`. */
export function respondLater(pg: PgSession, count = 1, head: Uint8Array = noBytes): void {
  pg.synced = pg.transaction.mark()
  pg.pendingSyncs.push({ fill: pg.out.place((head.length + readyForQuery('I').length) * count), count, head })
}

/** Stores the rows of all unanswered Syncs and answers them. Never rejects. */
export async function respondToSyncs(pg: PgSession): Promise<void> {
  const syncs = pg.pendingSyncs.splice(0)
  if (syncs.length === 0) return
  pg.synced = null
  let response = readyForQuery('I')
  try {
    await storeRows(pg)
  } catch (error) {
    response = Buffer.concat([failureMessage(pg, error), response])
  }
  // Filling from last to first sends them in one write.
  for (const { fill, count, head } of syncs.reverse()) {
    fill(count === 1 && head.length === 0 ? response : repeated(Buffer.concat([head, response]), count))
  }
}

function repeated(bytes: Buffer, count: number): Buffer {
  return Buffer.allocUnsafe(bytes.length * count).fill(bytes)
}

/** Writes the collected rows as parts when there are too many. Null when there is nothing to wait for. */
export function boundRows(pg: PgSession): Promise<void> | null {
  if (pg.transaction.bytes < transactionBytesMax) return null
  if (pg.pendingSyncs.length > 0) return respondToSyncs(pg)
  return outgrown(pg)
}

/**
 * Writes rows as parts that stay invisible until COMMIT. A table may not support that: then a transaction that is too
 * large for the log is rejected, and rows outside of a transaction are stored in portions.
 */
async function outgrown(pg: PgSession): Promise<void> {
  const { transaction } = pg
  if (transaction.spillable) {
    // If writing fails, the rows are gone, so ROLLBACK TO must not go back to some of them.
    pg.lostSavepoints ||= pg.savepoints.length > 0
    pg.savepoints = []
    await transaction.spill()
    return
  }
  if (transaction.bytes < frameBytesMax) return
  if (hasDraft(pg) && pg.status === 'I') return settleHeld(pg)
  if (hasDraft(pg)) {
    const bytes = `[bytes=${transaction.bytes}, max=${frameBytesMax}]`
    throw new PgError(
      '54000',
      `the transaction is too large for one with schema changes: commit the schema changes first ${bytes}`,
    )
  }
  if (pg.status === 'T') {
    throw new PgError(
      '54000',
      `the transaction is too large for tables with DEDUP, arrays or BINARY [bytes=${transaction.bytes}, max=${frameBytesMax}]`,
    )
  }
  warn(
    pg,
    '01000',
    'rows for a table with DEDUP, arrays or BINARY are too many for one transaction: they are stored in pieces',
  )
  await storeRows(pg)
}

/** Prepares for a statement that is not an INSERT. Null when there is nothing to wait for. */
export function settleRows(pg: PgSession, parsed: ParsedStatement): Promise<void> | null {
  const { statement } = parsed
  const reads = statement.kind === 'query' || statement.kind === 'declare cursor'
  if (pg.status === 'I' && hasDraft(pg)) return readsTables.has(statement.kind) ? null : settle(pg)
  if (pg.status === 'I') return reads && isOwn(pg) ? null : settle(pg)
  if (pg.held.length > 0 && changesTables.has(statement.kind)) {
    requireNoDraft(pg)
    return applyDeferred(pg).then(() => settleRows(pg, parsed) ?? undefined)
  }
  const { rows, registered } = pg.transaction
  if (rows === 0) return null
  const isUnread = (registered > 0 || rows > ownRowsMax) && readsTables.has(statement.kind) && namesTable(pg, parsed)
  if (!isUnread && !changesTables.has(statement.kind)) return null
  requireNoDraft(pg)
  const warning = 'rows of the transaction are stored before this statement: ROLLBACK cannot take them back'
  return splitAt(pg, warning).then(() => storeRows(pg))
}

/** False for statements such as `SELECT 1` and SHOW, which drivers and pools send on their own. */
function namesTable({ engine, session }: PgSession, { statement }: ParsedStatement): boolean {
  const names = new Set<string>()
  gatherNames(statement, names)
  return [...names].some((name) => engine.tableExists(name, session))
}

/**
 * Whether all rows came since the last Sync: then a query reads them and an error discards them, as within BEGIN.
 */
function isOwn({ pendingSyncs, transaction: { rows, registered } }: PgSession): boolean {
  return pendingSyncs.length === 0 && rows > 0 && registered === 0 && rows <= ownRowsMax
}

/** Outside of a transaction: stores and answers everything pending. Null when nothing is. */
export function settle(pg: PgSession): Promise<void> | null {
  if (pg.pendingSyncs.length > 0) return respondToSyncs(pg).then(() => pg.out.settled())
  if (pg.held.length > 0) return settleHeld(pg)
  if (pg.transaction.rows > 0) return storeRows(pg)
  return pg.out.isSettled ? null : pg.out.settled()
}

/** Ends an implicit transaction that has changed schemas. */
function settleHeld(pg: PgSession): Promise<void> {
  return storeAll(pg).finally(() => discardDeferred(pg))
}

const changesTables: ReadonlySet<ParsedStatement['statement']['kind']> = new Set(['update', 'delete'])

const readsTables: ReadonlySet<ParsedStatement['statement']['kind']> = new Set([
  ...(['query', 'insert', 'copy', 'explain', 'declare cursor'] as const),
])

export async function runTransaction(pg: PgSession, statement: Transaction): Promise<string> {
  const { action, name } = statement
  switch (action) {
    case 'begin':
      if (pg.status !== 'I') warn(pg, '25001', 'there is already a transaction in progress')
      else {
        await settle(pg)
        beginBlock(pg, statement.modes)
      }
      pg.status = 'T'
      return name === 'start' ? 'START TRANSACTION' : 'BEGIN'
    case 'commit':
      return commit(pg, statement)
    case 'rollback':
      if (pg.status === 'I') warn(pg, '25P01', 'there is no transaction in progress')
      if (pg.isSplit) warn(pg, '01000', 'what of the transaction was stored before stays')
      if (pg.tookEffect) warn(pg, '01000', 'statements of the transaction that took effect at once are not rolled back')
      await end(pg, false, statement)
      discardDeferred(pg)
      return 'ROLLBACK'
    case 'prepare':
      return prepareTransaction(pg, statement)
    case 'commit prepared':
    case 'rollback prepared':
      if (pg.status !== 'I') throw new PgError('25001', `${action.toUpperCase()} cannot run inside a transaction block`)
      throw new PgError('42704', `prepared transaction with identifier "${name}" does not exist`)
    case 'savepoint':
      requireBlock(pg, 'SAVEPOINT')
      pg.savepoints.push(savepointOf(pg, name ?? ''))
      return 'SAVEPOINT'
    case 'release':
      requireBlock(pg, 'RELEASE SAVEPOINT')
      pg.savepoints = pg.savepoints.slice(0, savepointIndex(pg, name ?? ''))
      return 'RELEASE'
    case 'rollback to': {
      requireBlock(pg, 'ROLLBACK TO SAVEPOINT')
      const index = savepointIndex(pg, name ?? '')
      pg.savepoints = pg.savepoints.slice(0, index + 1)
      await backTo(pg, pg.savepoints[index] as Savepoint)
      pg.status = 'T'
      return 'ROLLBACK'
    }
  }
}

/**
 * Rejects PREPARE TRANSACTION like a PostgreSQL server with max_prepared_transactions = 0, which ends the
 * transaction.
 */
async function prepareTransaction(pg: PgSession, statement: Transaction): Promise<string> {
  if (pg.status === 'I') warn(pg, '25P01', 'there is no transaction in progress')
  const isOpen = pg.status === 'T'
  await end(pg, false, statement)
  discardDeferred(pg)
  if (isOpen) throw new PgError('55000', 'prepared transactions are disabled')
  return 'ROLLBACK'
}

function savepointOf({ transaction, held, noted, cursors }: PgSession, name: string): Savepoint {
  return { name, mark: transaction.mark(), held: held.length, noted: noted.size, cursors: new Set(cursors.values()) }
}

/** Discards rows, changes and cursors after the savepoint. */
async function backTo(pg: PgSession, { mark, held, noted, cursors }: Savepoint): Promise<void> {
  await closeCursors(pg, (cursor) => !cursors.has(cursor))
  forgetNoted(pg, noted)
  const [first, ...later] = pg.held.splice(held).flatMap(({ rows }) => (rows === null ? [] : [rows]))
  for (const rows of later) rows.clear()
  if (first !== undefined) {
    pg.transaction.clear()
    pg.transaction = first
  }
  pg.transaction.backTo(mark)
  showDeferred(pg)
}

async function commit(pg: PgSession, statement: Transaction): Promise<string> {
  if (pg.status === 'I') warn(pg, '25P01', 'there is no transaction in progress')
  const failed = pg.status === 'E'
  await end(pg, !failed, statement)
  try {
    if (!failed) {
      checkNoted(pg)
      await storeAll(pg)
      deliverNotifications(pg)
    }
  } finally {
    discardDeferred(pg)
  }
  return failed ? 'ROLLBACK' : 'COMMIT'
}

/** Checks all changes before running the first one. An error states what has been stored. */
async function storeAll(pg: PgSession): Promise<void> {
  const { held, connection } = pg
  if (hasDraft(pg)) return storeSchemas(pg)
  const changes = held.length
  const rowsBefore = connection.rowsCommitted
  for (const { check } of held) await check()
  joinRows(pg, frameBytesMax)
  try {
    await storeHeld(pg)
    await storeRows(pg)
  } catch (error) {
    const done = changes - held.length
    const rows = connection.rowsCommitted - rowsBefore
    if (done === 0 && rows === 0) throw error
    const what = `changes=${done} of ${changes}, rows=${rows}`
    throw new PgError('40003', `the transaction was stored in part [${what}]: ${noticeOf(error).message}`)
  }
}

/** `chain`: begins another transaction with the same modes. */
async function end(pg: PgSession, retained: boolean, { chain }: Transaction): Promise<void> {
  if (chain && pg.status === 'I') {
    throw new PgError('25P01', 'COMMIT AND CHAIN and ROLLBACK AND CHAIN can only be used in transaction blocks')
  }
  const modes = blockModes(pg)
  pg.status = chain ? 'T' : 'I'
  endBlock(pg, retained)
  if (chain) beginBlock(pg, modes)
  pg.savepoints = []
  pg.isSplit = false
  pg.lostSavepoints = false
  pg.tookEffect = false
  await endCursors(pg, retained)
  await closePortals(pg)
}

function requireBlock(pg: PgSession, what: string): void {
  if (pg.status === 'I') throw new PgError('25P01', `${what} can only be used in transaction blocks`)
}

function savepointIndex({ savepoints, isSplit, lostSavepoints }: PgSession, name: string): number {
  const index = savepoints.findLastIndex((savepoint) => savepoint.name === name)
  if (index >= 0) return index
  if (isSplit) throw new ResourceError(`the rows after the savepoint are already stored [savepoint=${name}]`)
  if (lostSavepoints) throw new ResourceError(`too many rows follow the savepoint [savepoint=${name}]`)
  throw new PgError('3B001', `savepoint "${name}" does not exist`)
}

// Pending changes divide the rows of a transaction (deferred-changes.ts). The rows are still stored as one log
// transaction if the result is the same: if no row after a change belongs to a table that an earlier change names.

/** Moves all rows to the first group to be stored, or none. */
function joinRows({ held, transaction }: PgSession, bytesMax: number): void {
  const first = held.findIndex(({ rows }) => rows !== null)
  const joint = held[first]?.rows ?? null
  if (joint === null) return
  const names = new Set<string>()
  let { bytes } = joint
  const isOther = (rows: RowTransaction): boolean => {
    bytes += rows.bytes
    return rows.registered === 0 && bytes <= bytesMax && !rows.tables.some((table) => names.has(table))
  }
  for (const change of held.slice(first)) {
    if (change.rows !== null && change.rows !== joint && !isOther(change.rows)) return
    for (const name of change.names) names.add(name)
  }
  if (!isOther(transaction)) return
  for (const change of held.slice(first + 1)) {
    if (change.rows !== null) joint.join(change.rows)
    change.rows = null
  }
  joint.join(transaction)
}

// COMMIT of a transaction with schema changes sends one request for all of it. An UPDATE or DELETE of a table that is
// too large to rewrite within that request runs afterwards, as a separate step that can fail on its own.

/** Stores the pending changes with the rows of the transaction. */
async function storeSchemas(pg: PgSession): Promise<void> {
  const [only, second] = pg.held
  const isAlone = second === undefined && pg.transaction.rows === 0
  if (only?.deferred === true && isAlone && only.rows === null) return runDeferred(pg, [only])
  const deferred = pg.held.filter(({ deferred: isDeferred, change }) => isDeferred && change.statement !== null)
  requireCommuting(pg, deferred)
  await storeTogether(pg, deferred)
  try {
    await runDeferred(pg, deferred)
  } catch (error) {
    const message = `the transaction was stored, except for its changes of large tables: ${noticeOf(error).message}`
    throw new PgError('40003', message)
  }
}

async function storeTogether(pg: PgSession, deferred: readonly DeferredChange[]): Promise<void> {
  const { connection, counters } = pg
  const own = [...pg.held.flatMap(({ rows }) => rows ?? []), pg.transaction]
  const rows = own.reduce((sum, part) => sum + part.rows, 0)
  // Rows that came before a late change are stored when it runs.
  const pending = pg.held.map((held) => ({
    ...held.change,
    rows: held.rows,
    statement: deferred.includes(held) ? null : held.change.statement,
  }))
  const running = new LazySignal()
  pg.running = running
  try {
    await pg.engine.commitDraft({
      ...{ session: { ...pg.session, pending }, encoding: { kind: 'count' }, parameters: [], skip: 0 },
      ...{ rowsMax: Number.POSITIVE_INFINITY, countAll: false, columns: null, timeoutMs: 0 },
      ...{ signal: running, explain: false },
    })
    connection.rowsCommitted += rows
    counters.rowsWritten += rows
  } catch (error) {
    connection.rowsRejected += rows
    throw error
  }
}

/** Runs each as a change of its own; they see stored data. */
async function runDeferred(pg: PgSession, deferred: readonly DeferredChange[]): Promise<void> {
  if (deferred.length === 0) return
  const { transaction: _, pending: __, ...session } = pg.session
  pg.session = session
  try {
    for (const change of deferred) await change.run()
  } finally {
    showDeferred(pg)
  }
}

/** Throws PgError when running late changes last would change the result. */
function requireCommuting(pg: PgSession, deferred: readonly DeferredChange[]): void {
  for (const change of deferred) {
    const after = pg.held.slice(pg.held.indexOf(change) + 1)
    const rows = [...after.flatMap(({ rows: own }) => own?.tables ?? []), ...pg.transaction.tables]
    const names = new Set([...rows, ...after.flatMap((other) => (other.deferred ? [] : [...other.names]))])
    const both = [...change.tables].find((table) => names.has(table)) ?? rows.find((table) => change.names.has(table))
    if (both === undefined) continue
    throw new PgError(
      '0A000',
      `a transaction that changes schemas changes a large table twice in different ways: commit between the two changes [table=${both}]`,
    )
  }
}
