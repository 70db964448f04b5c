// Frees memory during the replay of the log, when the rows in it do not fit: writes memtables as Parquet files (parts).
// The flush job, which otherwise query threads run, runs on this thread to its end. Symbols of tables without rows in
// memory are written to their files, so that their dictionaries can be evicted (dictionary-indexes.ts).
//
// Invariants:
//   1. Only whole transactions are flushed, so `flushedTxn` tells a replay after another crash what to skip.
//   2. Rows of a table with a later relocation frame (log record) are not flushed. That frame contains all of them
//      again and replaces them, so they are only removed from memory.
//   3. Tables with a gap in the ids of their symbols (strings of a dictionary) are not flushed, because parts need the
//      strings.

import { assert } from '../../base/assert.js'
import { FileError } from '../../base/errors.js'
import { decodeRows } from '../../wal/frame-rows.js'
import type { HighWater } from '../../wal/high-water.js'
import { replayWal } from '../../wal/replay.js'
import { frameKinds, type Lsn, type WalFrame } from '../../wal/types.js'
import { createFlushJob } from '../jobs/flush.js'
import { type Job, partIdsPerFlush } from '../jobs/messages.js'
import { type JobTools, pageCodecDefault } from '../jobs/part-job.js'
import { readOnly } from '../maintenance/read-only.js'
import type { Manifest } from '../manifest/manifest.js'
import type { PartDescriptor } from '../schema/schema.js'
import type { WriterCatalog } from '../writer/writer-catalog.js'
import { schemaRecords, schemaWritten, symbolCounts, symbolsNamed, writeSymbols } from '../writer/writer-records.js'
import type { WriterOptions } from '../writer/writer-state.js'
import type { MemtableEntry, WriterTable } from '../writer/writer-table.js'
import { type RemovedRows, removalsOf } from './replayed-removals.js'

export interface ReplayFlushOptions {
  readonly options: WriterOptions
  readonly manifest: Manifest
  readonly catalog: WriterCatalog
  readonly highWater: HighWater
}

export class ReplayFlush {
  /** Number of memtables that became parts. */
  count = 0
  private readonly options: WriterOptions
  private readonly manifest: Manifest
  private readonly catalog: WriterCatalog
  private readonly highWater: HighWater
  /** Position of the last relocation frame by table id. */
  private relocations: ReadonlyMap<number, Lsn> | undefined
  /** By table id. */
  private removed: ReadonlyMap<number, readonly RemovedRows[]> | undefined

  constructor({ options, manifest, catalog, highWater }: ReplayFlushOptions) {
    this.options = options
    this.manifest = manifest
    this.catalog = catalog
    this.highWater = highWater
  }

  /**
   * Flushes the largest of the tables' oldest memtables, or writes symbols; false if nothing can be freed. `lsn`:
   * position of the frame being replayed. `complete` applies the removals of rows that follow in the log. Throws
   * FileError.
   */
  makeRoom(lsn: Lsn, stays: (table: WriterTable) => boolean, complete: (table: WriterTable) => void): boolean {
    let best: { readonly table: WriterTable; readonly entry: MemtableEntry } | undefined
    for (const table of this.catalog.byId.values()) {
      const [entry] = table.memtables
      if (entry === undefined || entry.memtable.rows === 0 || stays(table)) continue
      const { bytes } = entry.memtable
      if (best === undefined || bytes > best.entry.memtable.bytes) best = { table, entry }
    }
    if (best !== undefined && this.isRelocated(best.table.id, lsn)) {
      forgetRows(best.table)
      return true
    }
    this.requireRoom()
    if (best === undefined) return this.nameSymbols(stays)
    complete(best.table)
    this.flush(best.table, best.entry)
    return true
  }

  /** Writes symbols of tables without rows in memory to their files, which makes them evictable. */
  private nameSymbols(stays: (table: WriterTable) => boolean): boolean {
    const isNamed = ({ dictionaries, namedSymbols }: WriterTable): boolean =>
      [...dictionaries].every(([columnId, { count }]) => count === (namedSymbols.get(columnId) ?? 0))
    const tables = [...this.catalog.byId.values()].filter(
      (table) => table.memtables.length === 0 && !isNamed(table) && !stays(table),
    )
    if (tables.length === 0) return false
    writeSymbols(this.options, tables)
    for (const table of tables) {
      const dictionaries = symbolCounts(table)
      this.manifest.commit([
        ...schemaRecords(this.manifest, table),
        { kind: 'parts', tableId: table.id, added: [], removed: [], dictionaries },
        { kind: 'ids', table: this.catalog.nextTableId },
      ])
      schemaWritten(table, 0)
      symbolsNamed(table)
    }
    return true
  }

  /** Whether a relocation frame of the table follows the position. Scans the log ahead, once. */
  private isRelocated(tableId: number, lsn: Lsn): boolean {
    this.relocations ??= this.lastRelocations()
    return (this.relocations.get(tableId) ?? 0) > lsn
  }

  private lastRelocations(): Map<number, Lsn> {
    const relocations = new Map<number, Lsn>()
    this.scan(({ kind, lsn, payload }) => {
      if (kind !== frameKinds.relocation) return
      for (const { tableId } of decodeRows(payload).tables) relocations.set(tableId, lsn)
    })
    return relocations
  }

  /** The removals of the table's rows in the whole log: rows that are flushed now cannot be removed by number later. */
  removals(tableId: number): readonly RemovedRows[] {
    this.removed ??= this.allRemovals()
    return this.removed.get(tableId) ?? []
  }

  private allRemovals(): Map<number, RemovedRows[]> {
    const removed = new Map<number, RemovedRows[]>()
    this.scan(({ kind, payload }) => {
      if (kind !== frameKinds.rows) return
      for (const removal of removalsOf(decodeRows(payload).ddl))
        removed.set(removal.tableId, [...(removed.get(removal.tableId) ?? []), removal])
    })
    return removed
  }

  private scan(onFrame: (frame: WalFrame) => void): void {
    const { files, directory } = this.options
    const { trimmedLsn } = this.manifest
    replayWal(readOnly(files), `${directory}/wal`, onFrame, { marks: this.highWater.marks, trimmedLsn })
  }

  /** Throws if the disk is full, because parts and symbols need files. */
  private requireRoom(): void {
    if (this.manifest.takesRecords) return
    const message = 'the disk is full, and the memory does not suffice to replay the log without flushing'
    throw new FileError(message, 'ENOSPC')
  }

  private flush(table: WriterTable, entry: MemtableEntry): void {
    const { manifest, options } = this
    const { memtable, minTxn, maxTxn } = entry
    const firstPartId = manifest.ids.part
    manifest.commit([{ kind: 'ids', part: firstPartId + partIdsPerFlush }])
    memtable.publish(memtable.rows)
    const version = { ...table.describeSettled(), memtables: [{ id: memtable.id, address: memtable.address }] }
    const rest = { memtable: memtable.address, rows: memtable.rows, minTxn, maxTxn, firstPartId }
    const parts = this.run({ kind: 'flush', version, ...rest })
    assert(parts.reduce((sum, { rows }) => sum + rows, 0) <= memtable.rows, 'S2: a flush writes every row once')
    writeSymbols(options, [table])
    const dictionaries = symbolCounts(table)
    const described = table.describedMarks(maxTxn)
    manifest.commit([
      ...schemaRecords(manifest, table),
      { kind: 'parts', tableId: table.id, added: described, removed: described.map(({ id }) => id) },
      { kind: 'parts', tableId: table.id, added: parts, removed: [], flushedTxn: maxTxn, dictionaries },
      { kind: 'ids', table: this.catalog.nextTableId },
    ])
    schemaWritten(table, 0)
    symbolsNamed(table)
    assert(maxTxn >= table.flushedTxn, 'T2: memtables are flushed in their order')
    table.parts = [...table.parts, ...parts]
    table.redescribe(described, maxTxn)
    table.flushedTxn = maxTxn
    table.memtables = table.memtables.filter((other) => other !== entry)
    memtable.free()
    this.count++
    options.log('I', 'writer', `flushed during the replay [table=${table.schema.name}, rows=${rest.rows}]`)
  }

  private run(job: Extract<Job, { kind: 'flush' }>): readonly PartDescriptor[] {
    const { files, directory, memory, allocator, kernels } = this.options
    const tools: JobTools = { files, directory, memory, allocator, kernels, codec: pageCodecDefault, group: null }
    const running = createFlushJob(tools, job)
    while (running.step() !== 'done');
    return running.result?.parts ?? []
  }
}

/** Frees the replayed rows of the table. */
export function forgetRows(table: WriterTable): void {
  for (const { memtable } of table.memtables) memtable.free()
  table.memtables = []
}
