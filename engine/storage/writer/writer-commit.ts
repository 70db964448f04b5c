// Commits one transaction: appends its staged (decoded, uncommitted) rows to the memtables, not yet visible, and then
// to the log as one frame (log record).
//
// The memtables come first because they may run out of memory. In that case nothing is in the log yet, and the
// transaction is tried again after a flush has freed memory. If the log refuses the frame, the rows are removed from
// the memtables again.

import { assert } from '../../base/assert.js'
import { ResourceError, SqlError } from '../../base/errors.js'
import { addMetric } from '../../memory/metrics.js'
import { noteTransaction } from '../../memory/transactions.js'
import { encodeRows, type NewSymbols, type TableRows } from '../../wal/frame-rows.js'
import { noSourcePosition, type SourcePosition } from '../../wal/source-position.js'
import { frameKinds, type Lsn } from '../../wal/types.js'
import type { Receipt } from '../jobs/messages.js'
import type { LoggedChange } from '../schema/logged-change.js'
import { dayColumns, type TableVersion } from '../schema/schema.js'
import { frameColumns, type RowChunk, settleChunk } from './writer-batch.js'
import type { LeavingRows } from './writer-keys.js'
import type { WriterState } from './writer-state.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

/** The staged rows of one table. */
export interface StagedTable {
  readonly table: WriterTable
  readonly chunks: readonly RowChunk[]
}

/** Additional actions of a transaction that changes schemas: writer-transaction.ts. */
export interface CommitExtra {
  /** Changes that precede the schemas in the frame. */
  readonly ddl: () => readonly LoggedChange[]
  /** Called before the rows are appended; `undone` is called if they are not committed. */
  readonly before: () => void
  readonly undone: () => void
  /** Called when the frame, which ends there, is in the log. */
  readonly logged: (endLsn: Lsn) => void
  /** Enforced keys were checked. */
  readonly isChecked?: true
  /** Rows that the transaction removes, so that others may have their keys. */
  readonly leaving?: ReadonlyMap<WriterTable, LeavingRows>
  /** Tables that need a new version besides those with changes in the catalog or new memtables. */
  readonly changed: readonly WriterTable[]
  readonly dropped: readonly number[]
  readonly after: () => void
}

const noExtra: CommitExtra = {
  ddl: () => [],
  before: () => {},
  undone: () => {},
  logged: () => {},
  changed: [],
  dropped: [],
  after: () => {},
}

/** For rows whose enforced keys were checked. */
export const keysChecked: CommitExtra = { ...noExtra, isChecked: true }

interface Appended {
  readonly staged: StagedTable
  readonly entry: MemtableEntry
  readonly rowsBefore: number
  readonly fresh: boolean
}

/**
 * Commits the rows, their source position and the request's additions to the catalog; without rows only the position.
 * Returns false if the memtables have no memory, and nothing has happened then. Throws SqlError if an enforced key
 * refuses a row, ResourceError if the log accepts nothing now; the caller then undoes the catalog.
 */
export function commitRows(
  state: WriterState,
  tables: readonly StagedTable[],
  receipts: (lsn: Lsn) => Receipt[],
  sourcePosition: SourcePosition = noSourcePosition,
  extra: CommitExtra = noExtra,
): boolean {
  for (const staged of tables) {
    settleRows(state, staged)
    requireNewKeys(state, staged, extra)
  }
  extra.before()
  const appended = appendAll(state, tables)
  if (appended === undefined) {
    extra.undone()
    return false
  }
  const firstLsn = state.wal.headLsn
  const changed = state.catalog.changed()
  let endLsn: Lsn
  try {
    endLsn = appendFrame(state, appended, extra.ddl(), changed, sourcePosition)
  } catch (thrown) {
    takeBack(appended)
    extra.undone()
    addMetric(state.options.memory, 'rollbacks', 1)
    throw thrown
  }
  assert(endLsn > firstLsn, 'L2: a frame moves the head of the log')
  if (appended.some(isLate)) addMetric(state.options.memory, 'lateCommits', 1)
  state.catalog.keep()
  state.sourcePositions.note(sourcePosition, firstLsn)
  state.lastEndLsn = endLsn
  extra.logged(endLsn)
  for (const table of changed) noteSchemaChange(table, firstLsn)
  const nowMicros = state.options.clock.nowMicros()
  for (const entry of appended) {
    noteRows(entry, firstLsn, endLsn)
    remember(state, entry, nowMicros)
  }
  const renewed = new Set([
    ...changed,
    ...extra.changed,
    ...appended.filter(({ fresh }) => fresh).map(({ staged }) => staged.table),
  ])
  const versions = [...renewed].map((table): TableVersion => table.nextVersion())
  const changesSchemas = changed.length + extra.changed.length + extra.dropped.length > 0
  state.pending.push({
    endLsn,
    taken: { ms: state.options.clock.monotonicMs(), rows: rowsOf(tables) },
    visible: appended.map(({ entry: { memtable } }) => ({ memtable, rows: memtable.rows })),
    versions,
    isShownWhole: appended.length > 0 && (changesSchemas || areKnownInPart(appended)),
    dropped: extra.dropped,
    receipts: receipts(endLsn),
    after: extra.after,
  })
  return true
}

/** Whether there are several tables, and the main thread may not have the memtable of one. */
function areKnownInPart(appended: readonly Appended[]): boolean {
  // New memtables come with their versions, in one message.
  if (appended.length < 2 || appended.every(({ fresh }) => fresh)) return false
  return appended.some(({ staged: { table }, entry }) => table.knownVersion < table.firstVersionOf(entry))
}

/** Fills the missing values of the rows. */
export function settleRows({ options }: WriterState, { table, chunks }: StagedTable): void {
  const dayIds = dayColumns(table.schema)
  for (const chunk of chunks) settleChunk(options.memory, chunk, dayIds)
}

/** Throws SqlError if an enforced key refuses a row. */
function requireNewKeys(
  { keyChecks }: WriterState,
  { table, chunks }: StagedTable,
  { leaving, isChecked }: CommitExtra,
): void {
  if (isChecked === true) return
  const [refused] = keyChecks.refused(table, chunks, leaving?.get(table), 1)
  if (refused !== undefined) throw new SqlError(refused.message, 0)
}

function remember({ options }: WriterState, { staged, entry }: Appended, micros: number): void {
  const { table, chunks } = staged
  const { transaction } = table
  entry.memtable.mark(transaction, micros)
  const { minTimestamp: minTs, maxTimestamp: maxTs } = timesOf(table, chunks)
  noteTransaction(options.memory, {
    transaction,
    tableId: table.schema.id,
    rows: rowsOf([staged]),
    micros,
    minTs,
    maxTs,
  })
}

function rowsOf(tables: readonly StagedTable[]): number {
  return tables.reduce((sum, { chunks }) => chunks.reduce((rows, chunk) => rows + chunk.rows, sum), 0)
}

/** Whether some rows are older than the newest row of their table. Updates the newest. */
function isLate({ staged: { table, chunks } }: Appended): boolean {
  if (table.schema.timestampId < 0 || chunks.length === 0) return false
  const { minTimestamp, maxTimestamp } = timesOf(table, chunks)
  const late = minTimestamp < table.newestTs
  if (maxTimestamp > table.newestTs) table.newestTs = maxTimestamp
  return late
}

/** Records that the manifest lacks the schema, so that the log keeps the frame with it. */
export function noteSchemaChange(table: WriterTable, lsn: Lsn): void {
  table.schemaDirty = true
  table.dirtyLsn = Math.min(table.dirtyLsn, lsn)
}

function appendAll(state: WriterState, tables: readonly StagedTable[]): Appended[] | undefined {
  const appended: Appended[] = []
  for (const staged of tables) {
    const entry = appendTable(state, staged)
    if (entry === undefined) {
      takeBack(appended)
      return undefined
    }
    appended.push(entry)
  }
  return appended
}

function appendTable(state: WriterState, staged: StagedTable): Appended | undefined {
  const { table, chunks } = staged
  const fresh = table.open === undefined
  const entry = table.open ?? startMemtable(state, table)
  if (entry === undefined) return undefined
  assert(entry.dedup !== undefined || table.schema.dedupKeys.length === 0, 'T2: rows of DEDUP tables are compared')
  const rowsBefore = entry.memtable.rows
  const appended = entry.memtable.append(chunks, table.schema.timestampId)
  assert(!appended || entry.memtable.rows - rowsBefore === rowsOf([staged]), 'S2: every staged row is in the memtable')
  if (appended && indexRows(entry, rowsBefore)) return { staged, entry, rowsBefore, fresh }
  if (fresh) removeMemtable(table, entry)
  return undefined
}

/** Adds the rows to the DEDUP index. False if the memory for marks is exhausted; the rows are removed then. */
function indexRows(entry: MemtableEntry, rowsBefore: number): boolean {
  try {
    entry.dedup?.add(rowsBefore, entry.memtable.rows)
    return true
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    cutRows(entry, rowsBefore)
    return false
  }
}

/** Removes rows. Since an index of keys cannot remove them, its memtable accepts no more rows. */
function cutRows(entry: MemtableEntry, rows: number): void {
  entry.memtable.cut(rows)
  if (entry.dedup !== undefined && rows > 0) entry.state = 'frozen'
}

function takeBack(appended: readonly Appended[]): void {
  for (const { staged, entry, rowsBefore, fresh } of appended) {
    cutRows(entry, rowsBefore)
    if (fresh) removeMemtable(staged.table, entry)
  }
}

/** Removes a memtable that was never published. */
function removeMemtable(table: WriterTable, entry: MemtableEntry): void {
  table.memtables = table.memtables.filter((other) => other !== entry)
  entry.memtable.free()
}

/** Creates an open memtable; undefined if the memory is exhausted. */
function startMemtable(state: WriterState, table: WriterTable): MemtableEntry | undefined {
  try {
    const entry = table.addMemtable(state.nextMemtableId, state.options.clock)
    state.nextMemtableId++
    return entry
  } catch (thrown) {
    if (thrown instanceof ResourceError) return undefined
    throw thrown
  }
}

function appendFrame(
  state: WriterState,
  appended: readonly Appended[],
  before: readonly LoggedChange[],
  changed: readonly WriterTable[],
  sourcePosition: SourcePosition,
): Lsn {
  const packed: number[] = []
  const tools = { ...state.options, packed }
  try {
    const tables = appended.map(({ staged: { table, chunks } }): TableRows => {
      const rowCount = chunks.reduce((sum, chunk) => sum + chunk.rows, 0)
      return {
        tableId: table.id,
        transaction: table.transaction + 1,
        structureVersion: table.schema.version,
        rowCount,
        ...timesOf(table, chunks),
        symbols: newSymbols(table, table.loggedSymbols),
        columns: frameColumns(tools, chunks),
      }
    })
    const ddl = [...before, ...changed.map(({ schema }): LoggedChange => ({ kind: 'schema', schema }))]
    return state.wal.append(frameKinds.rows, encodeRows({ sourcePosition, ddl, tables }))
  } finally {
    for (const address of packed) state.options.allocator.free(address)
  }
}

function timesOf(table: WriterTable, chunks: readonly RowChunk[]): { minTimestamp: bigint; maxTimestamp: bigint } {
  const [first] = chunks
  if (table.schema.timestampId < 0 || first === undefined) return { minTimestamp: 0n, maxTimestamp: 0n }
  let { minTs, maxTs } = first
  for (const chunk of chunks) {
    if (chunk.minTs < minTs) minTs = chunk.minTs
    if (chunk.maxTs > maxTs) maxTs = chunk.maxTs
  }
  return { minTimestamp: minTs, maxTimestamp: maxTs }
}

/** Entries of the table's dictionaries after the given counts. */
export function newSymbols(table: WriterTable, known: ReadonlyMap<number, number>): NewSymbols[] {
  const symbols: NewSymbols[] = []
  for (const [columnId, dictionary] of table.dictionaries) {
    const firstId = known.get(columnId) ?? 0
    const { count } = dictionary
    if (count === firstId) continue
    assert(count > firstId, 'R2: a dictionary only grows')
    symbols.push({ columnId, firstId, count: count - firstId, ...dictionary.packed(firstId, count) })
  }
  return symbols
}

function noteRows({ staged: { table }, entry }: Appended, firstLsn: Lsn, endLsn: Lsn): void {
  table.transaction++
  entry.maxTxn = table.transaction
  entry.firstLsn = Math.min(entry.firstLsn, firstLsn)
  entry.lastLsn = endLsn
  for (const [columnId, dictionary] of table.dictionaries) {
    if (dictionary.count > (table.loggedSymbols.get(columnId) ?? 0)) {
      table.symbolsLsn = Math.min(table.symbolsLsn, firstLsn)
    }
    table.loggedSymbols.set(columnId, dictionary.count)
  }
}
