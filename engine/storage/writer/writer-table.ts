// A table in the writer: its newest schema, even if readers do not see it yet, its symbol dictionaries (strings of
// SYMBOL columns), memtables and parts (Parquet files). It creates versions: immutable lists of these, which readers
// use.
//
// Invariants:
//   1. `transaction` counts the table's transactions in the log; a memtable contains a contiguous range of them.
//   2. Only the last of `memtables` may be open. If none is, the next append starts one.
//   3. What a version names is freed only after a version without it was published and no reader holds a version with
//      it. A version that is held for long keeps only the memtables and parts that it names itself.

import { assert } from '../../base/assert.js'
import type { Clock } from '../../base/clock.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Lsn } from '../../wal/types.js'
import { SymbolDictionary, type SymbolKernel } from '../memtable/dictionary.js'
import type { DictionaryFileId } from '../memtable/dictionary-file.js'
import type { DictionaryIndexes } from '../memtable/dictionary-indexes.js'
import { Memtable, type MemtableKernels } from '../memtable/memtable.js'
import { DedupIndex } from '../memtable/memtable-dedup.js'
import { decodeRowNumbers, PartMarks } from '../memtable/removed-rows.js'
import {
  type ColumnSchema,
  type LakePointer,
  type PartDescriptor,
  precedesDedup,
  type TableSchema,
  type TableVersion,
} from '../schema/schema.js'

/** open: accepts rows. frozen: waits for its flush. flushing: a job reads it. gone: freed when that job ends. */
type MemtableState = 'open' | 'frozen' | 'flushing' | 'gone'

export interface MemtableEntry {
  readonly memtable: Memtable
  readonly dedup: DedupIndex | undefined
  state: MemtableState
  minTxn: number
  maxTxn: number
  /** Start of the oldest frame that contains rows of the memtable. */
  firstLsn: Lsn
  /** End of the newest frame. When that is acknowledged, all rows are visible. */
  lastLsn: Lsn
  /** Start of the newest relocation frame of the memtable; 0 if there is none. */
  relocatedLsn: Lsn
  readonly createdMs: number
  /** Whether upserts have removed rows of it, so that its row numbers are in the log. */
  hasRemovals?: true
  /** Partitions that are dropped with the flush, which skips their rows. */
  leaving?: ReadonlySet<string>
}

/** How many of a column's symbols are in the dictionary file, and the end of its last record. */
export interface SymbolFile {
  readonly count: number
  readonly end: number
}

/** Memory or files to free when no reader holds a version from `since` up to, but not including, `version`. */
export interface Retired {
  readonly since: number
  readonly version: number
  readonly free: () => void
}

/** A compaction whose result is published. */
export interface Compacted {
  /** The first version with the parts that it has written. */
  readonly version: number
  readonly from: readonly PartExtent[]
  readonly to: readonly number[]
}

/** A part, and the number of its rows that upserts have removed. */
export interface PartExtent extends Pick<PartDescriptor, 'id' | 'partition' | 'minTs' | 'maxTs' | 'minTxn'> {
  readonly removed: number
}

export interface TableMemory {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly symbols: SymbolKernel
  readonly kernels: MemtableKernels
  readonly indexes: DictionaryIndexes
  /** Reads symbols from their file. Throws ResourceError. */
  readonly readSymbols: (id: DictionaryFileId, count: number) => readonly Uint8Array[]
}

export class WriterTable {
  schema: TableSchema
  parts: readonly PartDescriptor[] = []
  memtables: MemtableEntry[] = []
  /** Number of the last transaction; 0 before the first. */
  transaction = 0
  /** Transactions up to this one are in parts. */
  flushedTxn = 0
  /** Number of UPDATE and DELETE statements since the start. */
  rewrites = 0
  /** See TableVersion. */
  repeats = 0
  /** See TableVersion. */
  lake: LakePointer | undefined
  /** Number of the last version. */
  version = 0
  /** Number of the newest version that the main thread has. */
  knownVersion = 0
  dropped = false
  /** Number of jobs in progress for the table, which read its symbols. */
  jobs = 0
  /** Monotonic time at which it last started a memtable. */
  usedMs = 0
  /** The largest designated timestamp since the start, in the table's unit. */
  newestTs: bigint = -(2n ** 63n)
  /** Whether the manifest lacks the newest schema. */
  schemaDirty = false
  /** Start of the oldest frame with a schema that the manifest lacks; Infinity if it lacks nothing. */
  dirtyLsn: Lsn = Number.POSITIVE_INFINITY
  /** Start of the oldest frame with symbols that the manifest does not count; Infinity if it counts all. */
  symbolsLsn: Lsn = Number.POSITIVE_INFINITY
  /** The schema without the additions of the current request; undefined if there are none. */
  committed: TableSchema | undefined
  /** The newest acknowledged schema, which goes to the manifest and determines new parts. */
  settledSchema: TableSchema
  /** Number of changes that invalidate the line decoder's templates. */
  shapeEpoch = 0
  /** Number of symbols by column id that are in log frames or files. */
  readonly loggedSymbols = new Map<number, number>()
  readonly symbolFiles = new Map<number, SymbolFile>()
  /** Number of symbols by column id in the manifest. A start reads these from files, and the others from the log. */
  namedSymbols: ReadonlyMap<number, number> = new Map()
  readonly dictionaries = new Map<number, SymbolDictionary>()
  retired: Retired[] = []
  /** Compactions since the oldest version that a reader holds. */
  compactions: readonly Compacted[] = []
  /** Marks of removed rows by part id. */
  readonly marks = new Map<number, PartMarks>()
  /**
   * Whether readers must look for removed rows, in parts or memtables. Set with a new version, before rows are removed.
   */
  hasRemovals = false
  /** The last transaction that removed rows, and the end of its frame. */
  removal: { readonly transaction: number; readonly endLsn: Lsn } = { transaction: 0, endLsn: 0 }
  /** The first version that names a part or memtable. */
  private readonly namedSince = new WeakMap<PartDescriptor | MemtableEntry, number>()
  private readonly resources: TableMemory
  private namedSchema: TableSchema | undefined
  private names = new Map<string, ColumnSchema>()

  constructor(resources: TableMemory, schema: TableSchema) {
    this.resources = resources
    this.schema = schema
    this.settledSchema = schema
    this.addDictionaries()
  }

  /** Whether upserts may have removed rows, in parts or memtables. */
  get mayHaveRemovals(): boolean {
    return this.hasRemovals || this.marks.size > 0
  }

  get id(): number {
    return this.schema.id
  }

  /** The existing column with that name, given in lower case. */
  column(lowerName: string): ColumnSchema | undefined {
    if (this.namedSchema !== this.schema) {
      this.names = new Map(
        this.schema.columns.filter(({ dropped }) => !dropped).map((column) => [column.name.toLowerCase(), column]),
      )
      this.namedSchema = this.schema
    }
    return this.names.get(lowerName)
  }

  columnById(id: number): ColumnSchema {
    const column = this.schema.columns[id]
    assert(column !== undefined, 'S3: column ids are dense')
    return column
  }

  dictionary(columnId: number): SymbolDictionary {
    const dictionary = this.dictionaries.get(columnId)
    assert(dictionary !== undefined, 'R2: a SYMBOL column has a dictionary')
    return dictionary
  }

  /** Loads all symbols into memory, where they stay while there are memtables or jobs. Throws ResourceError. */
  restoreSymbols(): void {
    for (const dictionary of this.dictionaries.values()) dictionary.restore()
  }

  /** A new open memtable, whose first transaction is `transaction` or later. Throws ResourceError. */
  addMemtable(id: number, clock: Clock, transaction = this.transaction + 1): MemtableEntry {
    assert(this.open === undefined, 'T2: a table has one open memtable')
    this.restoreSymbols()
    this.usedMs = clock.monotonicMs()
    const { memory, allocator, kernels } = this.resources
    const memtable = new Memtable({ memory, allocator, kernels, id })
    const keys = this.schema.dedupKeys.map((key) => ({ id: key, type: this.columnById(key).type }))
    const isCompared = keys.length > 0 && !precedesDedup(this.schema, transaction)
    const entry: MemtableEntry = {
      memtable,
      dedup: isCompared ? new DedupIndex(memory, memtable, keys, this.schema.dedupSkips === true) : undefined,
      state: 'open',
      minTxn: this.transaction + 1,
      maxTxn: this.transaction,
      firstLsn: Number.POSITIVE_INFINITY,
      lastLsn: 0,
      relocatedLsn: 0,
      createdMs: clock.monotonicMs(),
    }
    this.memtables.push(entry)
    return entry
  }

  /** Creates missing dictionaries of SYMBOL columns. Throws ResourceError. */
  addDictionaries(): void {
    for (const { id, type, dropped } of this.schema.columns) {
      if (type.name === 'SYMBOL' && !dropped && !this.dictionaries.has(id)) this.addDictionary(id)
    }
  }

  /** Creates the dictionary of a column, which need not exist yet. Throws ResourceError. */
  addDictionary(columnId: number): void {
    // An existing file belongs to a column whose creation was undone, with other symbols.
    this.symbolFiles.delete(columnId)
    const { memory, allocator, symbols, indexes, readSymbols } = this.resources
    const source = {
      mayEvict: (count: number) => this.mayEvict(columnId, count),
      read: (count: number) => readSymbols({ tableId: this.id, columnId }, count),
    }
    this.dictionaries.set(columnId, new SymbolDictionary(memory, allocator, symbols, indexes, source))
  }

  /**
   * Whether a column's symbols may be evicted: the file has all of them, and neither rows in memory nor jobs use them.
   */
  private mayEvict(columnId: number, count: number): boolean {
    if (this.dropped || this.memtables.length > 0 || this.jobs > 0) return false
    return this.namedSymbols.get(columnId) === count
  }

  /** Frees dictionaries of columns that are not in the schema, after a request was undone. */
  removeUnknownDictionaries(): void {
    for (const [id, dictionary] of this.dictionaries) {
      if (id < this.schema.columns.length) continue
      dictionary.free()
      this.dictionaries.delete(id)
    }
  }

  get open(): MemtableEntry | undefined {
    const last = this.memtables.at(-1)
    return last?.state === 'open' ? last : undefined
  }

  /** Start of the oldest frame that the log must keep for this table; Infinity if there is none. */
  get neededLsn(): Lsn {
    return this.memtables.reduce((lsn, { firstLsn }) => Math.min(lsn, firstLsn), this.dirtyLsn)
  }

  /** The schema without additions of the current request, which readers see when the log has acknowledged it. */
  get stableSchema(): TableSchema {
    return this.committed ?? this.schema
  }

  /** Creates the next version for readers from the current state. The caller must publish it. */
  nextVersion(): TableVersion {
    this.version++
    for (const named of [...this.parts, ...this.memtables])
      if (!this.namedSince.has(named)) this.namedSince.set(named, this.version)
    return this.describe()
  }

  /** The first version with the memtable. */
  firstVersionOf(entry: MemtableEntry): number {
    const version = this.namedSince.get(entry)
    assert(version !== undefined, 'S1: readers reach the rows of a memtable by a version')
    return version
  }

  /** Records that changes up to this schema are acknowledged. */
  settle(schema: TableSchema): void {
    if (schema.version >= this.settledSchema.version) this.settledSchema = schema
  }

  /** A version for a job, with the acknowledged schema: changes that may still fail must not affect parts. */
  describeSettled(): TableVersion {
    return this.describe(this.settledSchema)
  }

  private describe(schema = this.stableSchema): TableVersion {
    return {
      version: this.version,
      schema,
      parts: this.parts,
      flushedTxn: this.flushedTxn,
      rewrites: this.rewrites,
      repeats: this.repeats,
      ...(this.lake === undefined ? {} : { lake: this.lake }),
      ...(this.mayHaveRemovals ? { removals: this.removals() } : {}),
      memtables: this.memtables.map(({ memtable }) => ({ id: memtable.id, address: memtable.address })),
      dictionaries: [...this.dictionaries]
        .filter(([columnId]) => columnId < schema.columns.length)
        .map(([columnId, { address }]) => [columnId, address] as const),
    }
  }

  private removals(): NonNullable<TableVersion['removals']> {
    return [...this.marks.values()].map(({ partId, address, count }) => [partId, address, count] as const)
  }

  /** The marks of a part, created if necessary. Throws ResourceError. */
  marksOf(part: PartDescriptor): PartMarks {
    const known = this.marks.get(part.id)
    if (known !== undefined) return known
    const { memory, allocator } = this.resources
    const marks = new PartMarks(memory, allocator, part.id, part.rows)
    this.marks.set(part.id, marks)
    return marks
  }

  /** Creates the marks of parts whose descriptors have removed rows. Throws ResourceError. */
  restoreMarks(parts: readonly PartDescriptor[]): void {
    for (const part of parts) {
      if (part.removedRows === undefined || this.marks.has(part.id)) continue
      const marks = this.marksOf(part)
      // Transaction 1: every reader sees the removal.
      for (const row of decodeRowNumbers(part.removedRows)) marks.mark(row, 1)
      marks.written(1)
    }
  }

  /** Removes the marks of parts that leave the table; call the result when no reader holds a version with them. */
  takeMarks(parts: readonly PartDescriptor[]): () => void {
    const addresses = parts.flatMap(({ id }) => this.marks.get(id)?.address ?? [])
    for (const { id } of parts) this.marks.delete(id)
    return () => {
      for (const address of addresses) this.resources.allocator.free(address)
    }
  }

  /** The parts with removed rows that their descriptors lack, described with those of transactions up to this one. */
  describedMarks(upTo: number): PartDescriptor[] {
    return this.parts.flatMap((part) => {
      const marks = this.marks.get(part.id)
      return marks?.isUnwritten === true ? [{ ...part, removedRows: marks.encoded(upTo) }] : []
    })
  }

  /** Replaces descriptors of parts that stay the same. */
  redescribe(parts: readonly PartDescriptor[], upTo: number): void {
    const described = new Map(parts.map((part) => [part.id, part]))
    this.parts = this.parts.map((part) => {
      const next = described.get(part.id)
      if (next === undefined) return part
      const since = this.namedSince.get(part)
      if (since !== undefined) this.namedSince.set(next, since)
      this.marks.get(part.id)?.written(upTo)
      return next
    })
  }

  /** Calls `free` when the next version is published and no reader holds an earlier one, or one that names `named`. */
  retire(free: () => void, named?: PartDescriptor | MemtableEntry): void {
    const version = this.version + 1
    this.retired.push({ since: named === undefined ? 0 : (this.namedSince.get(named) ?? version), version, free })
  }

  /** The same for several parts. */
  retireParts(parts: readonly PartDescriptor[], free: (part: PartDescriptor) => void): void {
    for (const part of parts) {
      const freeMarks = this.takeMarks([part])
      this.retire(() => {
        freeMarks()
        free(part)
      }, part)
    }
  }

  /** Frees what is no longer used: of the versions below `below`, readers hold only those in `held`. */
  released(below: number, held: readonly number[]): void {
    this.knownVersion = Math.max(this.knownVersion, below)
    const isDue = ({ since, version }: Retired): boolean =>
      version <= below && !held.some((other) => since <= other && other < version)
    const due = this.retired.filter(isDue)
    if (due.length === 0) return
    this.retired = this.retired.filter((entry) => !isDue(entry))
    for (const { free } of due) free()
  }

  /** Frees all memory at once; the table must not have readers. */
  freeAll(): void {
    for (const { memtable } of this.memtables) memtable.free()
    for (const dictionary of this.dictionaries.values()) dictionary.free()
    for (const { address } of this.marks.values()) this.resources.allocator.free(address)
    this.marks.clear()
    this.memtables = []
    this.dictionaries.clear()
  }
}
