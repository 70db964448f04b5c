// Adds Parquet files (parts) that an import has already written to a table, by a record of the manifest (the list of
// all files). Large imports of CSV and Parquet files thus bypass the write-ahead log and memtables. An import calls:
//
//   stage     symbols get their ids and part ids are reserved; query threads write the parts under their final names
//   register  one manifest record adds all parts, as one transaction; before that the table contains none of them
//
// Invariants:
//   1. The manifest record is the commit. A crash before it leaves unreferenced files, which the next start removes.
//   2. The transaction of the parts follows everything appended before the request. Those rows are flushed first,
//      because readers order parts before memtables. `flushedTxn` is not advanced to this transaction, because rows
//      that arrived during the import may be only in memory and in the log.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, ResourceError, SqlError } from '../../base/errors.js'
import { int64Max, int64Min } from '../../base/int64.js'
import { noteTransaction } from '../../memory/transactions.js'
import { partIdsPerFlush, type ToWriter } from '../jobs/messages.js'
import { comparesRows, type PartDescriptor, viewKind } from '../schema/schema.js'
import { BatchHeap } from './writer-batch.js'
import { discardParts, flushTable, whenFlushed } from './writer-flush.js'
import { takePartIds } from './writer-manifest.js'
import { afterRewrite, replaceParts } from './writer-rewrite.js'
import { enqueue, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type Stage = Extract<ToWriter, { kind: 'stage' }>
type RegisterParts = Extract<ToWriter, { kind: 'registerParts' }>

/** Responds with what a job needs to write parts of the table. */
export function stageParts(state: WriterState, { requestId, tableId, symbols }: Stage): void {
  try {
    const table = tableOf(state, tableId)
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

function tableOf(state: WriterState, tableId: number): WriterTable {
  const table = state.catalog.byId.get(tableId)
  if (table === undefined) throw new SqlError('the table was dropped in the meantime', 0)
  return table
}

/**
 * Adds strings to the dictionary. The next log frame of the table contains them, and the record of the parts counts
 * them.
 */
function intern(state: WriterState, table: WriterTable, columnId: number, strings: readonly string[]): Int32Array {
  const column = table.schema.columns[columnId]
  if (column === undefined || column.dropped) throw changed()
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

function changed(): SqlError {
  return new SqlError('the table has changed meanwhile, try again', 0)
}

/** Registers the parts. Every outcome ends in a receipt; parts that are refused are removed. */
export function registerParts(state: WriterState, { requestId, tableId, columnIds, parts }: RegisterParts): void {
  const refuse = (error: ErrorRecord): void => {
    discardParts(state, parts)
    sendReceiptNow(state, refusal(requestId, error))
  }
  const table = state.catalog.byId.get(tableId)
  if (table === undefined) {
    refuse(errorRecord(new SqlError('the table was dropped in the meantime', 0)))
    return
  }
  const register = (): void => {
    if (table.schema.materialized !== undefined) {
      const kind = viewKind(table.schema.materialized)
      refuse(errorRecord(new SqlError(`cannot modify ${kind} [view=${table.schema.name}]`, 0)))
      return
    }
    const gone = columnIds.some((id) => table.schema.columns[id]?.dropped !== false)
    if (table.dropped || gone || comparesRows(table.schema)) {
      refuse(errorRecord(changed()))
      return
    }
    try {
      name(state, table, parts)
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown
      sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
      return
    }
    const rows = parts.reduce((sum, part) => sum + part.rows, 0)
    enqueue(state, { versions: [table.nextVersion()], receipts: [receiptOf(requestId, { rows })] })
  }
  // Runs between requests, because a request in progress may add columns or undo that.
  const later = (): void => void state.later.push(() => afterRewrite(state, table, register))
  whenFlushed(state, flushTable(state, table), later, refuse)
}

function name(state: WriterState, table: WriterTable, parts: readonly PartDescriptor[]): void {
  flushTable(state, table)
  const transaction = table.transaction + 1
  const own = parts.map((part) => ({ ...part, minTxn: transaction, maxTxn: transaction }))
  replaceParts(state, table, [], own)
  table.transaction = transaction
  let [rows, minTs, maxTs] = [0, int64Max, int64Min]
  for (const part of own) {
    rows += part.rows
    if (part.minTs < minTs) minTs = part.minTs
    if (part.maxTs > maxTs) maxTs = part.maxTs
  }
  assert(parts.length === 0 || minTs <= maxTs, 'T1: the rows of a part ascend by time')
  if (maxTs > table.newestTs) table.newestTs = maxTs
  const { memory, clock } = state.options
  noteTransaction(memory, { transaction, tableId: table.schema.id, rows, micros: clock.nowMicros(), minTs, maxTs })
}
