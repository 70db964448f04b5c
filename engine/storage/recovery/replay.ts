// Replay: applies the frames (log records) of the log to the tables in memory, which restores the state at the end of
// the log. Transactions whose rows are in Parquet files already, as the manifest (the list of all files) says, are
// skipped by their numbers. Among the frames are relocation frames, in which the rows of a small table were logged
// again so that older segments of the log could be removed (writer-relocate.ts).
//
// Invariants:
//   1. A transaction is applied once: its number must be greater than the last one of the table.
//   2. A relocation frame replaces all rows of its table that were replayed before it.
//   3. Replay changes no file, except for flushes that free memory (replay-flush.ts). Each of them is atomic, so a
//      crash during the replay is harmless.

import { assert } from '../../base/assert.js'
import { CorruptionError, ResourceError } from '../../base/errors.js'
import { noteTransaction } from '../../memory/transactions.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import { decodeRows, type NewSymbols, type RowsColumn, type TableRows } from '../../wal/frame-rows.js'
import { frameKinds, type WalFrame } from '../../wal/types.js'
import type { SourcePositions } from '../manifest/source-positions.js'
import type { SymbolDictionary } from '../memtable/dictionary.js'
import type { Memtable } from '../memtable/memtable.js'
import { changesDedup } from '../schema/draft.js'
import type { LoggedChange } from '../schema/logged-change.js'
import type { PartDescriptor } from '../schema/schema.js'
import { emptiedSchema, finishedSchema, precedesDedup } from '../schema/schema.js'
import {
  BatchHeap,
  type ChunkColumn,
  chunkColumn,
  freeChunk,
  newChunk,
  noteTimestamp,
  type RowChunk,
  resetChunk,
} from '../writer/writer-batch.js'
import type { WriterCatalog } from '../writer/writer-catalog.js'
import { noteSchemaChange } from '../writer/writer-commit.js'
import type { WriterOptions } from '../writer/writer-state.js'
import type { MemtableEntry, WriterTable } from '../writer/writer-table.js'
import { forgetRows, type ReplayFlush } from './replay-flush.js'
import { type RemovedRows, ReplayedRemovals, removalsOf } from './replayed-removals.js'

/** Rows that are staged at a time. */
const sliceRows = 8192

export interface ReplayTools {
  readonly options: WriterOptions
  readonly catalog: WriterCatalog
  readonly flush: ReplayFlush
  readonly sourcePositions: SourcePositions
  /** Maximum rows of a memtable. */
  readonly flushRows: number
}

export class Replay {
  rows = 0
  /** Parts that truncated tables lose, which the manifest must be told. */
  readonly truncated = new Map<WriterTable, PartDescriptor[]>()
  nextMemtableId: number
  private readonly options: WriterOptions
  private readonly catalog: WriterCatalog
  private readonly flush: ReplayFlush
  private readonly sourcePositions: SourcePositions
  private readonly flushRows: number
  private readonly heap: BatchHeap
  private readonly removals = new ReplayedRemovals()
  /** Position of the frame that is being replayed. */
  private lsn = 0
  /** Symbols after a gap in the ids, by table and column. */
  private readonly waiting = new Map<string, WaitingSymbols>()

  constructor({ options, catalog, flush, sourcePositions, flushRows }: ReplayTools, nextMemtableId: number) {
    this.options = options
    this.catalog = catalog
    this.flush = flush
    this.sourcePositions = sourcePositions
    this.nextMemtableId = nextMemtableId
    this.flushRows = flushRows
    this.heap = new BatchHeap(options.memory, options.allocator)
  }

  frame(frame: WalFrame): void {
    switch (frame.kind) {
      case frameKinds.rows:
      case frameKinds.relocation:
        this.transaction(frame)
        return
      case frameKinds.ddl:
        this.change(JSON.parse(new TextDecoder().decode(frame.payload.slice())) as LoggedChange, frame.lsn)
        return
      default:
        throw new CorruptionError('unknown kind of log frame', `kind ${frame.kind}`, frame.lsn)
    }
  }

  /** Ends the replay: makes all rows visible. */
  finish(): void {
    this.fillGaps()
    this.heap.free()
    this.catalog.rebuildNames()
    for (const table of this.catalog.byId.values()) {
      const { open, schema } = table
      // Later rows are compared with others, so they go to another memtable.
      if (open !== undefined && schema.dedupKeys.length > 0 && open.dedup === undefined) this.closeMemtable(table, open)
      for (const { memtable, maxTxn } of table.memtables) {
        memtable.mark(maxTxn, 0)
        memtable.publish(memtable.rows)
      }
    }
  }

  private transaction(frame: WalFrame): void {
    const { sourcePosition, ddl, tables } = decodeRows(frame.payload)
    this.catalog.indexes.beginRequest()
    this.lsn = frame.lsn
    this.sourcePositions.note(sourcePosition, frame.lsn)
    for (const change of ddl) this.change(change as LoggedChange, frame.lsn)
    for (const rows of tables) {
      const table = this.catalog.byId.get(rows.tableId)
      if (table === undefined) continue
      // Symbols are applied even if the rows are in parts, because symbol files may lag behind the manifest.
      for (const symbols of rows.symbols) this.addSymbols(table, symbols, frame.lsn)
      if (rows.transaction <= table.flushedTxn) continue
      if (frame.kind === frameKinds.relocation) {
        forgetRows(table)
        this.removals.forget(table)
      } else if (rows.transaction <= table.transaction) continue
      this.addRows(table, rows, frame)
    }
    for (const removal of removalsOf(ddl)) this.remove(removal)
  }

  private remove(change: RemovedRows): void {
    const table = this.catalog.byId.get(change.tableId)
    if (table === undefined) return
    for (;;) {
      try {
        this.removals.apply(table, change)
        return
      } catch (thrown) {
        if (!(thrown instanceof ResourceError)) throw thrown
      }
      this.makeRoom()
    }
  }

  private change(change: LoggedChange, lsn: number): void {
    if (change.kind === 'schema') {
      const known = this.catalog.byId.get(change.schema.id)
      if (known !== undefined && known.schema.version >= change.schema.version) return
      if (known === undefined) noteSchemaChange(this.catalog.add(change.schema), lsn)
      else {
        // The DEDUP index of a memtable is built for one set of keys.
        if (known.open !== undefined && changesDedup(known.schema, change.schema)) this.closeMemtable(known, known.open)
        this.catalog.replaceSchema(known, change.schema)
        known.settle(change.schema)
        noteSchemaChange(known, lsn)
      }
      return
    }
    const table = this.catalog.byId.get(change.tableId)
    if (table === undefined || change.kind === 'remove') return
    if (change.kind === 'finish') {
      const schema = finishedSchema(table.schema)
      this.catalog.replaceSchema(table, schema)
      table.settle(schema)
      noteSchemaChange(table, lsn)
    } else if (change.kind === 'drop') {
      this.catalog.remove(table)
      table.freeAll()
    } else {
      this.truncate(table, change.transaction)
      if (change.unseals === true) this.unseal(table, change.transaction, lsn)
    }
  }

  /** Buckets that were sealed later remain: the manifest may be ahead of the log. */
  private unseal(table: WriterTable, transaction: number, lsn: number): void {
    const schema = emptiedSchema(table.schema, transaction)
    if (schema === table.schema) return
    this.catalog.replaceSchema(table, schema)
    table.settle(schema)
    noteSchemaChange(table, lsn)
  }

  /** Removes rows and parts up to the transaction. Later parts remain: the manifest may be ahead of the log. */
  private truncate(table: WriterTable, transaction: number): void {
    forgetRows(table)
    this.removals.forget(table)
    const gone = table.parts.filter(({ maxTxn }) => maxTxn <= transaction)
    this.truncated.set(table, [...(this.truncated.get(table) ?? []), ...gone])
    table.parts = table.parts.filter((part) => !gone.includes(part))
    table.takeMarks(gone)()
    table.flushedTxn = Math.max(table.flushedTxn, transaction)
    table.transaction = Math.max(table.transaction, transaction)
  }

  /** Adds rows, flushing as often as memory runs out. Throws ResourceError if nothing is left to flush. */
  private addRows(table: WriterTable, rows: TableRows, frame: WalFrame): void {
    for (;;) {
      try {
        if (this.appendRows(table, rows, frame)) return
      } catch (thrown) {
        if (!(thrown instanceof ResourceError)) throw thrown
      }
      this.makeRoom()
    }
  }

  /** Throws ResourceError if nothing can be freed. */
  private makeRoom(): void {
    this.catalog.indexes.beginRequest()
    const applied = (table: WriterTable): void => {
      for (const change of this.flush.removals(table.id)) this.removals.apply(table, change)
    }
    if (this.flush.makeRoom(this.lsn, (other) => this.hasGaps(other), applied)) return
    throw new ResourceError('the memory does not suffice to replay the log')
  }

  /** Returns false or throws ResourceError if the memory is exhausted; no row is added then. */
  private appendRows(table: WriterTable, rows: TableRows, frame: WalFrame): boolean {
    const entry = this.openMemtable(table, rows.transaction)
    const { memtable } = entry
    const before = memtable.rows
    let complete = false
    try {
      complete = this.stageRows(table, rows, memtable)
      if (complete) entry.dedup?.add(before, memtable.rows)
    } catch (thrown) {
      memtable.cut(before)
      // The index contains rows that were removed, so the memtable accepts no more rows.
      if (complete) this.closeMemtable(table, entry)
      throw thrown
    }
    if (!complete) {
      memtable.cut(before)
      return false
    }
    this.rows += rows.rowCount
    assert(memtable.rows - before === rows.rowCount, 'S2: every row of a frame is replayed')
    table.transaction = rows.transaction
    this.removals.note(table, entry, rows.transaction, before)
    const { tableId, transaction, rowCount, minTimestamp: minTs, maxTimestamp: maxTs } = rows
    noteTransaction(this.options.memory, { tableId, transaction, rows: rowCount, micros: 0, minTs, maxTs })
    assert(rows.transaction >= entry.maxTxn, 'T2: transactions are replayed in their order')
    entry.maxTxn = rows.transaction
    entry.firstLsn = Math.min(entry.firstLsn, frame.lsn)
    entry.lastLsn = frame.endLsn
    return true
  }

  private closeMemtable(table: WriterTable, entry: MemtableEntry): void {
    entry.state = 'frozen'
    if (entry.memtable.rows > 0) return
    table.memtables = table.memtables.filter((other) => other !== entry)
    entry.memtable.free()
  }

  private stageRows(table: WriterTable, rows: TableRows, memtable: Memtable): boolean {
    const cursors = rows.columns.map((column) => newCursor(column, rows.rowCount))
    const chunk = newChunk(Math.min(sliceRows, Math.max(1, rows.rowCount)))
    try {
      for (let from = 0; from < rows.rowCount; from += chunk.rows) {
        resetChunk(chunk)
        chunk.rows = Math.min(chunk.capacity, rows.rowCount - from)
        for (const cursor of cursors) this.stageColumn(cursor, chunk, from)
        noteTimes(this.options.memory.i64, chunk, table.schema.timestampId)
        if (!memtable.append([chunk], table.schema.timestampId)) return false
        this.heap.reset()
      }
      return true
    } finally {
      this.heap.reset()
      freeChunk(this.options.allocator, chunk)
    }
  }

  /** Whether symbols of the table wait for earlier ids. */
  private hasGaps(table: WriterTable): boolean {
    return [...this.waiting.values()].some((waiting) => waiting.table === table && waiting.strings.size > 0)
  }

  /** The manifest may already have a schema with DEDUP, while rows that precede it come from the log. */
  private openMemtable(table: WriterTable, transaction: number): MemtableEntry {
    const { open, schema } = table
    if (open !== undefined && open.memtable.rows < this.flushRows) {
      if (precedesDedup(schema, open.maxTxn) === precedesDedup(schema, transaction)) return open
      this.closeMemtable(table, open)
    } else if (open !== undefined) open.state = 'frozen'
    const entry = table.addMemtable(this.nextMemtableId++, this.options.clock, transaction)
    // Rows that were stored in the log again have earlier transactions than the last one.
    entry.minTxn = Math.min(entry.minTxn, transaction)
    return entry
  }

  /**
   * Adds the strings that the dictionary lacks. Strings after a gap in the ids wait, because a later relocation frame
   * may contain the symbols of trimmed frames.
   */
  private addSymbols(table: WriterTable, symbols: NewSymbols, lsn: number): void {
    const { columnId, firstId, count, lengths, bytes } = symbols
    const dictionary = table.dictionaries.get(columnId)
    if (dictionary === undefined) return
    const waiting = this.waitingOf(table, columnId)
    const view = new DataView(lengths.buffer, lengths.byteOffset)
    for (let index = 0, at = 0; index < count; index++) {
      const length = view.getInt32(index * 4, true)
      const text = bytes.subarray(at, at + length)
      if (firstId + index === dictionary.count) this.addSymbol(dictionary, text)
      else if (firstId + index > dictionary.count) waiting.set(firstId + index, text.slice())
      at += length
    }
    this.takeWaiting(table, columnId, waiting)
    if (firstId + count > (table.symbolFiles.get(columnId)?.count ?? 0)) {
      table.symbolsLsn = Math.min(table.symbolsLsn, lsn)
    }
  }

  private waitingOf(table: WriterTable, columnId: number): Map<number, Uint8Array> {
    const key = `${table.id} ${columnId}`
    const known = this.waiting.get(key)
    if (known !== undefined) return known.strings
    const strings = new Map<number, Uint8Array>()
    this.waiting.set(key, { table, columnId, strings })
    return strings
  }

  /** Adds the waiting strings that directly follow the dictionary's last entry. */
  private takeWaiting(table: WriterTable, columnId: number, waiting: Map<number, Uint8Array>): void {
    if (waiting.size === 0) return
    const dictionary = table.dictionary(columnId)
    for (let text = waiting.get(dictionary.count); text !== undefined; text = waiting.get(dictionary.count)) {
      waiting.delete(dictionary.count)
      this.addSymbol(dictionary, text)
    }
    for (const id of waiting.keys()) if (id < dictionary.count) waiting.delete(id)
  }

  /** Fills gaps that remain, which damaged frames have left, with placeholders, so that later ids stay correct. */
  private fillGaps(): void {
    const encoder = new TextEncoder()
    for (const { table, columnId, strings } of this.waiting.values()) {
      if (table.dropped) continue
      const dictionary = table.dictionary(columnId)
      while (strings.size > 0) {
        if (!strings.has(dictionary.count)) this.addSymbol(dictionary, encoder.encode(`?${dictionary.count}`))
        this.takeWaiting(table, columnId, strings)
      }
      table.loggedSymbols.set(columnId, dictionary.count)
    }
  }

  /** Adds a symbol; symbols are added in id order. */
  private addSymbol(dictionary: SymbolDictionary, text: Uint8Array): void {
    for (;;) {
      try {
        dictionary.append(text)
        return
      } catch (thrown) {
        if (!(thrown instanceof ResourceError)) throw thrown
      }
      this.makeRoom()
    }
  }

  private stageColumn(cursor: ColumnCursor, chunk: RowChunk, from: number): void {
    const { memory, allocator } = this.options
    const column = chunkColumn(allocator, chunk, cursor.column.id, cursor.column.type)
    column.filled = chunk.rows
    if (cursor.fixed !== undefined) {
      const { width } = column
      memory.put(cursor.fixed.subarray(from * width, (from + chunk.rows) * width), column.address)
    } else this.stageStrings(cursor, chunk, column, from)
  }

  private stageStrings(cursor: ColumnCursor, chunk: RowChunk, column: ChunkColumn, from: number): void {
    const { u32, i32 } = this.options.memory
    for (let row = 0; row < chunk.rows; row++) {
      const length = cursor.lengths.getInt32((from + row) * 4, true)
      const word = (column.address >>> 2) + row * 2
      i32[word + 1] = length
      u32[word] = length <= 0 ? 0 : this.heap.put(cursor.bytes.subarray(cursor.at, cursor.at + length))
      if (length > 0) cursor.at += length
    }
  }
}

interface WaitingSymbols {
  readonly table: WriterTable
  readonly columnId: number
  /** Strings by id. */
  readonly strings: Map<number, Uint8Array>
}

/** Reads one column of a frame in slices of rows. */
interface ColumnCursor {
  readonly column: RowsColumn
  readonly fixed: Uint8Array | undefined
  readonly lengths: DataView
  readonly bytes: Uint8Array
  at: number
}

const none = new Uint8Array(0)
const noLengths = new DataView(none.buffer)

function newCursor(column: RowsColumn, rowCount: number): ColumnCursor {
  const { values, type } = column
  if (values.kind === 'packed') {
    assert(isVariable(type), 'R1: only variable columns are packed')
    const lengths = new DataView(values.lengths.buffer, values.lengths.byteOffset)
    return { column, fixed: undefined, lengths, bytes: values.bytes, at: 0 }
  }
  assert(values.kind === 'fixed', 'R1: a decoded column is one chunk')
  const [fixed = none] = values.chunks
  assert(fixed.length === rowCount * widthOf(type), 'R1: a decoded column is one chunk')
  return { column, fixed, lengths: noLengths, bytes: none, at: 0 }
}

function noteTimes(i64: BigInt64Array, chunk: RowChunk, timestampId: number): void {
  const column = chunk.columns.get(timestampId)
  if (column === undefined) return
  for (let row = 0; row < chunk.rows; row++) noteTimestamp(chunk, i64[(column.address >>> 3) + row]!)
}
