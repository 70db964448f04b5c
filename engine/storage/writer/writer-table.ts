// A table as the writer holds it: the newest schema in serial order (published or not), its dictionaries, memtable
// generations and parts. Versions for readers are made from it.
//
// Invariants:
//   1. `transaction` counts the table's transactions in the log; a generation holds a run of them.
//   2. Of `generations` only the last may be open; without an open one, the next append starts one.
//   3. What versions name is freed only after a version without it was published and nobody holds one of those. A version that
//      somebody holds for long keeps the memtables and parts that it names, and none that came and went later.

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
import type { ColumnSchema, PartDescriptor, TableSchema, TableVersion } from '../schema/schema.js'

/** open: takes rows. frozen: waits to be flushed. flushing: a job reads it. gone: freed when that job ends. */
type GenerationState = 'open' | 'frozen' | 'flushing' | 'gone'

export interface Generation {
  readonly memtable: Memtable
  readonly dedup: DedupIndex | undefined
  state: GenerationState
  minTxn: number
  maxTxn: number
  /** Start of the oldest frame that the generation's rows need. */
  firstLsn: Lsn
  /** End of the newest one: behind it, all rows are visible. */
  lastLsn: Lsn
  /** Start of the newest frame that carries the generation; 0 when none does. */
  carriedLsn: Lsn
  readonly createdMs: number
  /** Partitions that are dropped with its flush: their rows become no parts. */
  leaving?: ReadonlySet<string>
}

/** How far a column's symbols are in the dictionary file. */
export interface SymbolFile {
  readonly count: number
  readonly end: number
}

/** Something to free when no reader holds a version from `since` up to the one before `version`. */
export interface Retired {
  readonly since: number
  readonly version: number
  readonly free: () => void
}

export interface TableMemory {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly symbols: SymbolKernel
  readonly kernels: MemtableKernels
  readonly indexes: DictionaryIndexes
  /** Texts of a file, when they are to be in memory again. Throws ResourceError. */
  readonly readSymbols: (id: DictionaryFileId, count: number) => readonly Uint8Array[]
}

export class WriterTable {
  schema: TableSchema
  parts: readonly PartDescriptor[] = []
  generations: Generation[] = []
  /** Of the last appended rows; 0 before the first. */
  transaction = 0
  /** Transactions up to here are in parts. */
  flushedTxn = 0
  /** UPDATE and DELETE statements since the start. */
  rewrites = 0
  /** See TableVersion. */
  repeats = 0
  /** Number of the last version made. */
  version = 0
  dropped = false
  /** Of query threads that are under way for the table: they read its symbols. */
  jobs = 0
  /** On the monotonic clock: when it last began a generation. */
  usedMs = 0
  /** The largest designated timestamp since the start, in the table's unit. */
  newestTs: bigint = -(2n ** 63n)
  /** The manifest lacks the newest schema. */
  schemaDirty = false
  /** Frames from here on are needed for what the manifest lacks of the schema; Infinity when it lacks nothing. */
  dirtyLsn: Lsn = Number.POSITIVE_INFINITY
  /** Start of the oldest frame whose symbols the manifest does not name; Infinity when it names all. */
  symbolsLsn: Lsn = Number.POSITIVE_INFINITY
  /** The schema without what the request under way has added; undefined when it has added nothing. */
  committed: TableSchema | undefined
  /** The newest schema whose change is acknowledged: what the manifest is told and jobs write parts by. */
  settledSchema: TableSchema
  /** Counts changes that make learnt line shapes wrong. */
  shapeEpoch = 0
  /** Entries by column id that log frames or files hold. */
  readonly loggedSymbols = new Map<number, number>()
  readonly symbolFiles = new Map<number, SymbolFile>()
  /** Entries by column id that the manifest names: a start relies on these, and the log holds the others. */
  namedSymbols: ReadonlyMap<number, number> = new Map()
  readonly dictionaries = new Map<number, SymbolDictionary>()
  retired: Retired[] = []
  /** By what versions name the first one that does. */
  private readonly namedSince = new WeakMap<PartDescriptor | Generation, number>()
  private readonly resources: TableMemory
  private namedSchema: TableSchema | undefined
  private names = new Map<string, ColumnSchema>()

  constructor(resources: TableMemory, schema: TableSchema) {
    this.resources = resources
    this.schema = schema
    this.settledSchema = schema
    this.addDictionaries()
  }

  get id(): number {
    return this.schema.id
  }

  /** The live column; the name in lower case. */
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

  /** All symbols are in memory: they stay while there are generations or jobs. Throws ResourceError. */
  restoreSymbols(): void {
    for (const dictionary of this.dictionaries.values()) dictionary.restore()
  }

  /** A new open generation. Throws ResourceError. */
  addGeneration(id: number, clock: Clock): Generation {
    assert(this.open === undefined, 'T2: a table has one open generation')
    this.restoreSymbols()
    this.usedMs = clock.monotonicMs()
    const { memory, allocator, kernels } = this.resources
    const memtable = new Memtable({ memory, allocator, kernels, id })
    const keys = this.schema.dedupKeys.map((key) => ({ id: key, type: this.columnById(key).type }))
    const generation: Generation = {
      memtable,
      dedup: keys.length > 0 ? new DedupIndex(memory, memtable, keys) : undefined,
      state: 'open',
      minTxn: this.transaction + 1,
      maxTxn: this.transaction,
      firstLsn: Number.POSITIVE_INFINITY,
      lastLsn: 0,
      carriedLsn: 0,
      createdMs: clock.monotonicMs(),
    }
    this.generations.push(generation)
    return generation
  }

  /** Gives every live SYMBOL column a dictionary. Throws ResourceError. */
  addDictionaries(): void {
    for (const { id, type, dropped } of this.schema.columns) {
      if (type.name === 'SYMBOL' && !dropped && !this.dictionaries.has(id)) this.addDictionary(id)
    }
  }

  /** For a column that is not live yet. Throws ResourceError. */
  addDictionary(columnId: number): void {
    // A file of this id is that of a column whose creation was undone: its symbols are others.
    this.symbolFiles.delete(columnId)
    const { memory, allocator, symbols, indexes, readSymbols } = this.resources
    const source = {
      mayRest: (count: number) => this.mayRest(columnId, count),
      read: (count: number) => readSymbols({ tableId: this.id, columnId }, count),
    }
    this.dictionaries.set(columnId, new SymbolDictionary(memory, allocator, symbols, indexes, source))
  }

  /** The file of a column's symbols has all of them, and neither rows in memory nor a job need the texts. */
  private mayRest(columnId: number, count: number): boolean {
    if (this.dropped || this.generations.length > 0 || this.jobs > 0) return false
    return this.namedSymbols.get(columnId) === count
  }

  /** Frees dictionaries of columns that the schema does not know (a request was undone). */
  removeUnknownDictionaries(): void {
    for (const [id, dictionary] of this.dictionaries) {
      if (id < this.schema.columns.length) continue
      dictionary.free()
      this.dictionaries.delete(id)
    }
  }

  get open(): Generation | undefined {
    const last = this.generations.at(-1)
    return last?.state === 'open' ? last : undefined
  }

  /** Start of the oldest frame that the log must keep for this table; Infinity when none. */
  get neededLsn(): Lsn {
    return this.generations.reduce((lsn, { firstLsn }) => Math.min(lsn, firstLsn), this.dirtyLsn)
  }

  /** What readers may know when the log has acknowledged it. */
  get stableSchema(): TableSchema {
    return this.committed ?? this.schema
  }

  /** The next version for readers, of what the table is now. It must be published. */
  nextVersion(): TableVersion {
    this.version++
    for (const named of [...this.parts, ...this.generations])
      if (!this.namedSince.has(named)) this.namedSince.set(named, this.version)
    return this.describe()
  }

  /** Changes up to this schema are acknowledged. */
  settle(schema: TableSchema): void {
    if (schema.version >= this.settledSchema.version) this.settledSchema = schema
  }

  /** For a job, which nobody releases: a change that may still be lost must not show in parts. */
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
      generations: this.generations.map(({ memtable }) => ({ id: memtable.id, address: memtable.address })),
      dictionaries: [...this.dictionaries]
        .filter(([columnId]) => columnId < schema.columns.length)
        .map(([columnId, { address }]) => [columnId, address] as const),
    }
  }

  /** Frees it when the next version is published and nobody holds an earlier one, or of these one that names `named`. */
  retire(free: () => void, named?: PartDescriptor | Generation): void {
    const version = this.version + 1
    this.retired.push({ since: named === undefined ? 0 : (this.namedSince.get(named) ?? version), version, free })
  }

  /** The same for parts, one by one. */
  retireParts(parts: readonly PartDescriptor[], free: (part: PartDescriptor) => void): void {
    for (const part of parts) this.retire(() => free(part), part)
  }

  /** Of the versions below this one the main thread holds these. */
  released(below: number, held: readonly number[]): void {
    const isDue = ({ since, version }: Retired): boolean =>
      version <= below && !held.some((other) => since <= other && other < version)
    const due = this.retired.filter(isDue)
    if (due.length === 0) return
    this.retired = this.retired.filter((entry) => !isDue(entry))
    for (const { free } of due) free()
  }

  /** Frees all memory at once: nobody reads the table. */
  freeAll(): void {
    for (const { memtable } of this.generations) memtable.free()
    for (const dictionary of this.dictionaries.values()) dictionary.free()
    this.generations = []
    this.dictionaries.clear()
  }
}
