// Adds Parquet files (parts) that an import has already written to a table, by a record of the manifest (the list of
// all files). Large imports of CSV and Parquet files thus bypass the write-ahead log and memtables. An import calls:
//
//   stage     symbols get their ids and part ids are reserved; query threads write the parts under their final names
//   register  one manifest record adds all parts, as one transaction; before that the table contains none of them.
//             A transaction of a client may register the parts of several imports, into any number of tables
//
// Invariants:
//   1. The manifest record is the commit, for all tables together. A crash before it leaves unreferenced files, which
//      the next start removes.
//   2. The transaction of the parts follows everything appended before the request. Those rows are flushed first,
//      because readers order parts before memtables. `flushedTxn` is not advanced to this transaction, because rows
//      that arrived during the import may be only in memory and in the log.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, ResourceError, SqlError } from '../../base/errors.js'
import { int64Max, int64Min } from '../../base/int64.js'
import { noteTransaction } from '../../memory/transactions.js'
import { type LoadedParts, partIdsPerFlush, type ToWriter } from '../jobs/messages.js'
import { comparesRows, type PartDescriptor, requireTable, requireTypes, rowsOf } from '../schema/schema.js'
import { BatchHeap } from './writer-batch.js'
import { discardParts, flushTable, whenFlushed } from './writer-flush.js'
import { takePartIds } from './writer-manifest.js'
import { addParts, afterRewrite } from './writer-rewrite.js'
import { enqueue, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type Stage = Extract<ToWriter, { kind: 'stage' }>
type RegisterParts = Extract<ToWriter, { kind: 'registerParts' }>

/** Responds with what a job needs to write parts of the table. */
export function stageParts(state: WriterState, { requestId, tableId, symbols }: Stage): void {
  try {
    const table = state.catalog.required(tableId)
    const symbolIds = symbols.map(([columnId, strings]) => [columnId, intern(state, table, columnId, strings)] as const)
    const firstPartId = takePartIds(state, partIdsPerFlush)
    const staged = { firstPartId, symbolIds, version: table.describeSettled() }
    sendReceiptNow(state, receiptOf(requestId, { staged }))
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown
    sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
  }
}

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof SqlError || thrown instanceof ResourceError || thrown instanceof FileError
}

/**
 * Adds strings to the dictionary. The next log frame of the table contains them, and the record of the parts counts
 * them.
 */
function intern(state: WriterState, table: WriterTable, columnId: number, strings: readonly string[]): Int32Array {
  requireTypes(table.schema, [{ columnId }])
  const heap = new BatchHeap(state.options.memory, state.options.allocator)
  try {
    return Int32Array.from(strings, (text) => {
      const bytes = new TextEncoder().encode(text)
      const id = table.dictionary(columnId).intern(heap.put(bytes), bytes.length)
      assert(id !== undefined, 'R2: encoded text is UTF-8')
      heap.reset()
      return id
    })
  } finally {
    heap.free()
  }
}

/** The parts of all loads of a table. */
interface TableParts {
  readonly table: WriterTable
  readonly columnIds: readonly number[]
  readonly parts: readonly PartDescriptor[]
}

/** Registers the parts of all loads, or none. Every outcome ends in a receipt; parts that are refused are removed. */
export function registerParts(state: WriterState, { requestId, loads }: RegisterParts): void {
  const parts = loads.flatMap((load) => load.parts)
  const refuse = (error: ErrorRecord): void => {
    discardParts(state, parts)
    sendReceiptNow(state, refusal(requestId, error))
  }
  const gone = loads.find(({ tableId }) => !state.catalog.byId.has(tableId))
  if (gone !== undefined) {
    refuse(errorRecord(state.catalog.droppedNames.error(gone.tableId)))
    return
  }
  const found = partsByTable(state, loads)
  const register = (): void => {
    const rewritten = found.find(({ table }) => state.rewriting.has(table))
    if (rewritten !== undefined) {
      afterRewrite(state, rewritten.table, register)
      return
    }
    let isTaken = false
    try {
      for (const one of found) requireTaken(one)
      isTaken = true
      name(state, found)
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      if (isTaken) sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
      else refuse(errorRecord(thrown))
      return
    }
    const versions = found.map(({ table }) => table.nextVersion())
    enqueue(state, { versions, receipts: [receiptOf(requestId, { rows: rowsOf(parts) })] })
  }
  // Runs between requests, because a request in progress may add columns or undo that.
  const later = (): void => void state.later.push(register)
  const memtables = found.flatMap(({ table }) => flushTable(state, table))
  whenFlushed(state, memtables, later, refuse)
}

function partsByTable({ catalog }: WriterState, loads: readonly LoadedParts[]): TableParts[] {
  const found = new Map<WriterTable, TableParts>()
  for (const { tableId, columnIds, parts } of loads) {
    const table = catalog.required(tableId)
    const known = found.get(table)
    found.set(table, {
      table,
      columnIds: [...(known?.columnIds ?? []), ...columnIds],
      parts: [...(known?.parts ?? []), ...parts],
    })
  }
  return [...found.values()]
}

/**
 * Throws SqlError if the table does not take the parts. Columns that were dropped in the meantime are no reason: the
 * rows are stored without them, as if they had been stored before.
 */
function requireTaken({ table: { schema, dropped }, columnIds }: TableParts): void {
  if (dropped) throw SqlError.tableDropped(schema.name)
  requireTable(schema)
  requireTypes(
    schema,
    columnIds.map((columnId) => ({ columnId })),
  )
  if (comparesRows(schema)) throw SqlError.tableChanged(schema.name)
}

/** Throws FileError or ResourceError; no table has any of the parts then. */
function name(state: WriterState, found: readonly TableParts[]): void {
  const additions = found.map(({ table, parts }) => {
    flushTable(state, table)
    const transaction = table.transaction + 1
    return { table, added: parts.map((part) => ({ ...part, minTxn: transaction, maxTxn: transaction })) }
  })
  addParts(state, additions)
  for (const { table, added } of additions) noteParts(state, table, added)
}

function noteParts(
  { options: { memory, clock } }: WriterState,
  table: WriterTable,
  parts: readonly PartDescriptor[],
): void {
  table.transaction++
  let [minTs, maxTs] = [int64Max, int64Min]
  for (const part of parts) {
    if (part.minTs < minTs) minTs = part.minTs
    if (part.maxTs > maxTs) maxTs = part.maxTs
  }
  assert(parts.length === 0 || minTs <= maxTs, 'T1: the rows of a part ascend by time')
  if (maxTs > table.newestTs) table.newestTs = maxTs
  const { id: tableId, transaction } = table
  noteTransaction(memory, { transaction, tableId, rows: rowsOf(parts), micros: clock.nowMicros(), minTs, maxTs })
}
