// Commits upserts (INSERT .. ON CONFLICT, MERGE) and the data changes of a WITH: one transaction that removes rows of
// some tables and adds others. The statement has found the rows by a query of a snapshot, and identifies each by its
// part (Parquet file) or memtable and its row number. The removals and the new rows are one frame (record) of the log.
//
//   rows of the open memtable   marked as superseded, like rows of DEDUP tables with equal keys
//   rows of parts               marked in an array beside the part (memtable/removed-rows.ts), which a flush stores in
//                               the manifest and a compaction absorbs
//
// The request is refused as stale, and the session executes the statement again, if
//   - another upsert of the table was committed after the snapshot, so that no update is lost,
//   - a row has moved: its part was replaced, or its memtable is being flushed or was flushed,
//   - the schema of the table has changed, or memory is short and a flush must free some,
//   - sealed buckets of a view lack rows that would be removed; the receipt then says `isLate`, and they are added first,
//   - rows of the base of a view are added to sealed buckets, and the base has no longer the parts with these rows,
//   - a compaction or rewrite reads a part with such rows, because it would not see the removal,
//   - the newest version of the table does not tell readers that rows may be removed. A version that does is published
//     together with the refusal.
//
// Invariants:
//   1. Marks are set when the log has accepted the frame, and are visible with the rows of the frame.
//   2. While a memtable or part is read by a job, none of its rows is marked.
//   3. Before the first such frame is in the log, the manifest has a format that servers without upserts refuse.

import { assert } from '../../base/assert.js'
import { errorRecord, ResourceError, SqlError } from '../../base/errors.js'
import type { Lsn } from '../../wal/types.js'
import type { Removal, RowsInput, TableReplacement, ToWriter } from '../jobs/messages.js'
import { formats } from '../manifest/manifest-format.js'
import { encodeRowNumbers, type PartMarks } from '../memtable/removed-rows.js'
import type { LoggedChange } from '../schema/logged-change.js'
import { requireTable } from '../schema/schema.js'
import { type CommitExtra, commitRows } from './writer-commit.js'
import type { LeavingRows } from './writer-keys.js'
import { requireFormat } from './writer-manifest.js'
import { type StagedRows, stageRows } from './writer-rows.js'
import { removesLate } from './writer-seal.js'
import { enqueue, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

type Replace = Extract<ToWriter, { kind: 'replace' }>

/** The removed rows of a table, found in the writer's state. */
interface FoundRows {
  readonly parts: readonly { readonly marks: PartMarks; readonly rows: Uint32Array }[]
  /** Rows of the open memtable. */
  readonly rows: Uint32Array
}

interface Replaced extends TableReplacement {
  readonly table: WriterTable
}

/** A table some of whose rows are removed. */
interface Removing extends FoundRows {
  readonly table: WriterTable
  readonly addedRows: number
  readonly hidden: Uint32Array
}

/** Every outcome ends in a receipt. */
export function applyReplace(state: WriterState, command: Replace): void {
  const { requestId } = command
  try {
    const replaced = command.tables.map((one) => ({ ...one, table: tableOf(state, one.input) }))
    if (replaced.some((one) => removesPending(state, one))) {
      sendReceiptNow(state, receiptOf(requestId, { isStale: true, isLate: true }))
      return
    }
    const unknown = new Set<WriterTable>()
    const removing = replaced.every((one) => hasLate(state, one)) ? findAll(state, replaced, unknown) : null
    if (removing !== null && commit(state, requestId, replaced, removing)) return
    enqueue(state, {
      versions: [...unknown].map((table) => table.nextVersion()),
      receipts: [receiptOf(requestId, { isStale: true })],
    })
  } catch (thrown) {
    if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
    state.catalog.undo()
    sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
  }
}

/** Whether sealed buckets of views lack rows that are removed. */
function removesPending(state: WriterState, { table, removal, removesLate: isPermitted }: Replaced): boolean {
  return removal !== null && isPermitted !== true && removesLate(state, table, removal)
}

/** Whether the base of the view still has the late rows, and the buckets are still sealed. */
function hasLate({ catalog }: WriterState, { table, late }: Replaced): boolean {
  if (late === undefined) return true
  const base = catalog.byId.get(late.baseId)
  if (base?.schema.sealed?.some(({ viewId }) => viewId === table.id) !== true) return false
  return late.parts.every((partId) => base.parts.some(({ id }) => id === partId))
}

function tableOf(state: WriterState, { tableId, refreshes }: RowsInput): WriterTable {
  const table = state.catalog.required(tableId)
  if (refreshes !== true) requireTable(table.schema)
  return table
}

/**
 * Returns null if the statement must be executed again. Adds the tables whose newest version does not tell readers of
 * the removals to `unknown`. Throws ResourceError.
 */
function findAll(state: WriterState, replaced: readonly Replaced[], unknown: Set<WriterTable>): Removing[] | null {
  const removing: Removing[] = []
  let isComplete = true
  for (const { table, input, removal } of replaced) {
    if (removal === null) continue
    const { hasRemovals, marks } = table
    const marked = marks.size
    const found = findRows(state, table, removal)
    if (!hasRemovals || marks.size > marked) unknown.add(table)
    if (found === null) isComplete = false
    else removing.push({ table, addedRows: input.rows, hidden: removal.hidden, ...found })
  }
  return isComplete ? removing : null
}

/** Returns null if the statement must be executed again. Throws ResourceError. */
function findRows(state: WriterState, table: WriterTable, removal: Removal): FoundRows | null {
  const { schemaVersion, transaction, parts, memtables } = removal
  const isKnown = table.hasRemovals
  table.hasRemovals = true
  if (table.schema.version !== schemaVersion || table.removal.transaction > transaction) return null
  if (state.rewriting.has(table)) return null
  const busy = busyParts(state, table)
  const found: { marks: PartMarks; rows: Uint32Array }[] = []
  let isComplete = isKnown
  for (const [partId, rows] of parts) {
    const part = table.parts.find(({ id }) => id === partId)
    if (part === undefined || busy.has(partId)) return null
    if (!table.marks.has(partId)) isComplete = false
    const marks = table.marksOf(part)
    if (rows.some((row) => marks.isRemoved(row))) return null
    found.push({ marks, rows })
  }
  if (memtables.length > 1) return null
  const [only] = memtables
  if (only !== undefined && only[0] !== table.open?.memtable.id) return null
  return isComplete ? { parts: found, rows: only?.[1] ?? new Uint32Array() } : null
}

function busyParts({ jobs }: WriterState, table: WriterTable): Set<number> {
  const busy = new Set<number>()
  for (const running of jobs.values()) {
    if (running.table === table && running.job.kind === 'merge') for (const { id } of running.job.parts) busy.add(id)
  }
  return busy
}

/** Returns false if the memory is exhausted; nothing has happened then, and a flush will free some. */
function commit(
  state: WriterState,
  requestId: number,
  replaced: readonly Replaced[],
  removing: readonly Removing[],
): boolean {
  if (removing.length > 0) requireFormat(state, formats.removedRows)
  for (const { table, late } of replaced) {
    if (late === undefined) continue
    assert(late.parts.length > 0, 'S2: late rows are those of parts')
    requireFormat(state, formats.lateSealed)
    const version = table.schema.version + 1
    state.catalog.replaceDrafted(table, { ...table.schema, version, stored: late.stored })
  }
  const staged = stageRows(state.options, replaced)
  try {
    const isDone = commitStaged(state, requestId, staged, extraOf(removing))
    if (!isDone) state.catalog.undo()
    return isDone
  } finally {
    staged.free()
  }
}

function commitStaged(state: WriterState, requestId: number, staged: StagedRows, extra: CommitExtra): boolean {
  const rows = staged.tables.reduce((sum, { chunks }) => chunks.reduce((all, chunk) => all + chunk.rows, sum), 0)
  assert(
    staged.tables.every(({ chunks }) => chunks.some((chunk) => chunk.rows > 0)),
    'S1: a transaction becomes visible with its rows',
  )
  return commitRows(state, staged.tables, (lsn) => [receiptOf(requestId, { rows, lsn })], undefined, extra)
}

function extraOf(removing: readonly Removing[]): CommitExtra {
  /** Rows of the open memtables. */
  const removed = new Map<WriterTable, Uint32Array>()
  const none = (): void => {}
  return {
    ddl: () => removing.map((table) => loggedRemoval(table, removed)),
    logged: (endLsn) => {
      for (const one of removing) markRows(one, removed.get(one.table) ?? new Uint32Array(), endLsn)
    },
    ...{ before: none, undone: none, changed: [], dropped: [], after: none },
    leaving: new Map(removing.map(({ table, hidden, ...found }) => [table, leavingRows(found, hidden)])),
  }
}

/** The log's record of the removals. Adds the rows of the memtable to `removed`. */
function loggedRemoval(
  { table, parts, rows, addedRows, hidden }: Removing,
  removed: Map<WriterTable, Uint32Array>,
): LoggedChange {
  const entry = openOf(table)
  const firstAdded = entry.memtable.rows - addedRows
  const own = Uint32Array.from([...rows, ...hidden.map((row) => firstAdded + row)])
  if (!own.every((row) => entry.memtable.reserveMark(row))) throw new ResourceError('out of memory for removed rows')
  removed.set(table, own)
  return {
    kind: 'remove',
    tableId: table.id,
    parts: parts.map((part) => [part.marks.partId, encodeRowNumbers(part.rows)] as const),
    firstTxn: entry.minTxn,
    rows: encodeRowNumbers(own),
  }
}

function markRows({ table, parts }: Removing, removed: Uint32Array, endLsn: Lsn): void {
  const transaction = table.transaction + 1
  const entry = openOf(table)
  for (const { marks, rows } of parts) for (const row of rows) marks.mark(row, transaction)
  const { memtable } = entry
  for (const row of removed) memtable.markSuperseded(row, memtable.rows)
  if (removed.length > 0) entry.hasRemovals = true
  table.removal = { transaction, endLsn }
}

function leavingRows({ parts, rows }: FoundRows, hidden: Uint32Array): LeavingRows {
  return {
    parts: new Map(parts.map((part) => [part.marks.partId, new Set(part.rows)])),
    rows: new Set(rows),
    hidden: new Set(hidden),
  }
}

function openOf(table: WriterTable): MemtableEntry {
  const { open } = table
  assert(open !== undefined, 'T2: rows are appended to the open memtable')
  return open
}
