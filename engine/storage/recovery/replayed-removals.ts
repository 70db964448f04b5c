// Applies the removals of upserts (LoggedChange of kind `remove`) while the log is replayed. The log refers to a row of
// a memtable by the first transaction of the memtable and the number of the row in it. Replay may divide the rows into
// memtables differently, so this class records at which row each transaction starts.
//
// A mark is the number of rows or the transaction from which on readers see the removal. Here it is 1, so that every
// reader sees it.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { decodeRowNumbers } from '../memtable/removed-rows.js'
import type { LoggedChange } from '../schema/logged-change.js'
import type { MemtableEntry, WriterTable } from '../writer/writer-table.js'

export type RemovedRows = Extract<LoggedChange, { kind: 'remove' }>

/** The removals among the changes of a frame. */
export function removalsOf(changes: readonly unknown[]): RemovedRows[] {
  return changes.filter(isRemoval)
}

function isRemoval(change: unknown): change is RemovedRows {
  return typeof change === 'object' && change !== null && 'kind' in change && change.kind === 'remove'
}

/** The replayed rows of a table, in the order of the log. */
interface ReplayedRows {
  /** The last transaction that was in parts before. */
  readonly flushedTxn: number
  /** Number of rows so far, including those that were flushed during the replay. */
  rows: number
  /** Ascending transactions, and the number of the first row of each. */
  readonly transactions: number[]
  readonly firstRows: number[]
  /** The number of a memtable's first row. */
  readonly starts: Map<MemtableEntry, number>
}

export class ReplayedRemovals {
  private readonly tables = new Map<WriterTable, ReplayedRows>()

  /** Records that the memtable has the rows of the transaction, from its row `before` on. */
  note(table: WriterTable, entry: MemtableEntry, transaction: number, before: number): void {
    const replayed = this.tables.get(table) ?? startOf(table)
    this.tables.set(table, replayed)
    assert(transaction > (replayed.transactions.at(-1) ?? 0), 'T2: transactions are replayed in their order')
    if (!replayed.starts.has(entry)) replayed.starts.set(entry, replayed.rows)
    replayed.transactions.push(transaction)
    replayed.firstRows.push(replayed.rows)
    replayed.rows += entry.memtable.rows - before
  }

  /** The replayed rows of the table were replaced. */
  forget(table: WriterTable): void {
    this.tables.delete(table)
  }

  /** Marks the rows that are in memory or in parts. Throws ResourceError; it may be called again then. */
  apply(table: WriterTable, { parts, firstTxn, rows }: RemovedRows): void {
    for (const [partId, numbers] of parts) {
      // A part that the manifest does not have was compacted without these rows.
      const part = table.parts.find(({ id }) => id === partId)
      if (part === undefined) continue
      const marks = table.marksOf(part)
      for (const row of decodeRowNumbers(numbers)) marks.mark(row, 1)
    }
    const replayed = this.tables.get(table)
    if (replayed === undefined) return
    const index = replayed.transactions.findIndex((transaction) => transaction >= firstTxn)
    // Memtables that start with a flushed transaction were flushed without the rows.
    if (index < 0 || firstTxn <= replayed.flushedTxn) return
    const first = replayed.firstRows[index] ?? 0
    for (const row of decodeRowNumbers(rows)) markRow(table, replayed, first + row)
  }
}

function startOf({ flushedTxn }: WriterTable): ReplayedRows {
  return { flushedTxn, rows: 0, transactions: [], firstRows: [], starts: new Map() }
}

/** Rows that were flushed during the replay were marked before, and later rows are not replayed yet. */
function markRow(table: WriterTable, { starts }: ReplayedRows, row: number): void {
  const entry = table.memtables.findLast((one) => (starts.get(one) ?? Number.POSITIVE_INFINITY) <= row)
  if (entry === undefined) return
  const { memtable } = entry
  const number = row - (starts.get(entry) ?? 0)
  if (number >= memtable.rows) return
  if (!memtable.reserveMark(number)) throw new ResourceError('out of memory for removed rows')
  memtable.markSuperseded(number, 1)
  entry.hasRemovals = true
  table.hasRemovals = true
}
