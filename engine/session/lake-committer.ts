// Commits changes of tables to their Iceberg tables in object storage (LAKE ON). When a table has had uncommitted
// changes for a configured time, the committer flushes its rows to parts (Parquet files). Each unit of parts, usually a
// single part, has one data file (engine/lake/lake-units.ts), and the committer writes those that are missing. Then it
// commits a snapshot with the files of all units, and the writer records the version of the Iceberg metadata in the
// manifest. A table has one commit at a time.
//
// The committer compares the parts of the newest table version with the data files of the Iceberg table, and adds and
// removes files until they match. So flush, compaction, UPDATE, DELETE, TTL and changes of partitions need no code
// here. A commit that a crash interrupted is completed by the next comparison. The file runs on the main thread, which
// only decides: query threads read and encode rows, and the object store's thread writes and uploads files.

import type {
  CatalogTable,
  LakeCatalog,
  LakeStatistics,
  SharedSource,
  SourcePlace,
  SourceSharing,
} from '../api/lake.js'
import type { VirtualRelation } from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { CommittedTable } from '../lake/committed-table.js'
import { lakeRelation } from '../lake/lake-relation.js'
import { type LakeUnit, removedRowCount, unitsOf } from '../lake/lake-units.js'
import type { DataFile } from '../lake/manifest-files.js'
import {
  handedOutLocation,
  hasSameRows,
  identityOf,
  isCompacted,
  isHandedOut,
  openLakeTable,
  placesOf,
  recordedVersion,
  unitNameOf,
} from '../lake/open-lake-table.js'
import type { RestCatalog, RestCatalogOptions } from '../lake/rest-catalog.js'
import { OvertakenError, type SourceAdvance, streamKey, streamOf } from '../lake/source-offsets.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { StoreError } from '../object-store/object-store.js'
import { notOwner, type Ownership } from '../object-store/ownership.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import type { TableSnapshot, TableVersion } from '../storage/schema/schema.js'
import type { StoreClient } from '../threads/store-client.js'
import type { KafkaPosition } from '../wal/source-position.js'
import type { CatalogView } from './catalog-view.js'
import { type LakeFileOptions, writeLakeFile } from './lake-file.js'
import { type LakeSources, notConfigured, type StoredOffsets, sharedBy } from './lake-sources.js'
import type { NamedObjects } from './store-sweeper.js'

export interface LakeOptions extends Pick<LakeFileOptions, 'directory' | 'execute'> {
  readonly view: CatalogView
  readonly memory: SharedMemory
  /** Null: none is configured, and tables wait. */
  readonly store: LakeClient | null
  /** Whether the store honours put-if-absent and is there. */
  readonly ready: () => boolean
  readonly rootId: string
  /** Whether another server has not taken over the objects of this root; null: there is no store. */
  readonly ownership: Pick<Ownership, 'isOwner' | 'key'> | null
  /** The external catalog that has the tables; null: this server is their catalog. */
  readonly catalog: RestCatalogOptions | null
  /** For how long the lake may lack a change, apart from the time of the commit. */
  readonly lagMs: () => number
  readonly clock: Clock
  readonly log: Log
  readonly report: (statistics: LakeStatistics) => void
  readonly flush: (tableId: number) => Promise<unknown>
  readonly post: (message: Extract<ToWriter, { kind: 'lakeCommitted' }>) => void
  readonly sources: LakeSources
}

export type LakeClient = Pick<
  StoreClient,
  | ('url' | 'get' | 'head' | 'list' | 'delete' | 'putIfAbsent' | 'putIfMatch')
  | ('append' | 'parquetFooter' | 'uploadSpooled' | 'discard' | 'bucket')
>

const lookMs = 250
const tablesAtOnce = 2
/** After a failure. */
const pauseMs = 5000
/** After a start, connectors have this time to say what they read. */
const connectorsMs = 30_000
/** The writer records a version within this time, or is asked again. */
const recordMs = 10_000

/** What is known of one Iceberg table. */
interface Followed {
  readonly uuid: string
  table: CommittedTable | null
  /** Of the table when it was open last. */
  location: string | null
  /** The version of the table that the lake matches; 0: unknown. */
  matched: number
  /** When the first change was seen that the lake lacks; null: there is none. */
  changedMs: number | null
  pausedUntilMs: number
  isRunning: boolean
  /** Units of the current commit that have files, and all that need one. */
  progress: readonly [done: number, all: number]
  /** Names of units without rows, which have no files. */
  readonly empty: Set<string>
  /** Files of a commit that is not complete, by the names of their units. */
  readonly written: Map<string, DataFile>
  /** Numbers of changes of rows at the last commit. */
  rewrites: number | undefined
  failure: string | null
}

export class LakeCommitter implements LakeCatalog {
  readonly #options: LakeOptions
  readonly #followed = new Map<number, Followed>()
  readonly #timer: NodeJS.Timeout
  #running = 0
  #isClosed = false
  #statistics: LakeStatistics = { waiting: 0, commits: 0, files: 0, bytes: 0, failures: 0, conflicts: 0, failure: null }
  #catalog: Promise<RestCatalog> | null = null
  readonly sources: SourceSharing
  readonly #startedMs: number

  constructor(options: LakeOptions) {
    const { sources, clock } = options
    this.#options = options
    this.#startedMs = clock.monotonicMs()
    this.sources = {
      share: (source) => sources.share(source),
      begin: (connector, places) => this.#begin(sources.named(connector), places),
      refusal: (name, place) => sources.refusal(name, place, options.view.table(sources.named(name).table)?.schema),
      handOver: (connector) => this.#handOver(sources.named(connector)),
      committed: (connector) => this.#committedOffsets(sources.named(connector)),
    }
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    void this.#catalog?.then((catalog) => catalog.close())
  }

  get external(): string | null {
    return this.#options.catalog?.url ?? null
  }

  tables(): readonly string[] {
    if (this.#options.catalog !== null) return []
    return this.#lakeTables()
      .filter((version) => isHandedOut(version) || (this.#of(version).table?.version ?? 0) > 0)
      .map(({ schema }) => schema.name)
  }

  async table(name: string): Promise<CatalogTable | null> {
    const version = this.#options.view.table(name)
    if (version === undefined || version.schema.lake == null) return null
    const followed = this.#of(version)
    return (await this.#opened(followed, version)).handedOut
  }

  relation(): VirtualRelation {
    return lakeRelation(() =>
      this.#lakeTables().map((version) => {
        const followed = this.#of(version)
        const isCommitted = followed.table !== null && !this.#isChanged(followed, version)
        const url = this.#options.catalog === null ? this.#options.store?.url : undefined
        const location = followed.location ?? handedOutLocation(version, this.#prefixOf(version), url)
        return { ...followed, version, isCommitted, location }
      }),
    )
  }

  /** What the Iceberg tables name. */
  async named(): Promise<NamedObjects> {
    const keys = new Set<string>()
    const unknown: string[] = []
    for (const version of this.#options.view.tables().filter(({ schema }) => schema.lake != null)) {
      const followed = this.#of(version)
      try {
        const table = await this.#opened(followed, version)
        for (const key of await table.namedKeys()) keys.add(key)
        for (const { path } of followed.written.values()) keys.add(table.keyOf(path))
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        unknown.push(...placesOf(version, this.#prefixOf(version)))
      }
    }
    return { keys, unknown }
  }

  /** Where objects of tables in an external catalog are; those of dropped tables stay, as the catalog may name them. */
  prefixes(): readonly string[] {
    return this.#options.catalog === null ? [] : this.#lakeTables().map((version) => `${this.#prefixOf(version)}/`)
  }

  #prefixOf(version: TableVersion): string {
    const { rootId, catalog } = this.#options
    return catalog === null ? `${rootId}/lake/${identityOf(version)}` : `iceberg/${rootId}/${identityOf(version)}`
  }

  #lakeTables(): TableVersion[] {
    return this.#options.view.tables().filter(({ schema }) => schema.lake != null && schema.unfinished === undefined)
  }

  #of({ schema }: TableVersion): Followed {
    const uuid = schema.lake?.uuid ?? ''
    const known = this.#followed.get(schema.id)
    if (known?.uuid === uuid) return known
    const followed: Followed = {
      ...{ uuid, table: null, location: null, matched: 0, changedMs: null, pausedUntilMs: 0, isRunning: false },
      ...{ progress: [0, 0], empty: new Set(), written: new Map(), rewrites: undefined, failure: null },
    }
    this.#followed.set(schema.id, followed)
    return followed
  }

  #look(): void {
    const { ready, clock, lagMs, report, store, view } = this.#options
    const nowMs = clock.monotonicMs()
    let waiting = 0
    for (const [tableId, { isRunning }] of this.#followed) {
      if (!isRunning && view.byId(tableId)?.schema.lake == null) this.#followed.delete(tableId)
    }
    for (const version of this.#lakeTables()) {
      const followed = this.#of(version)
      if (followed.isRunning) continue
      if (!this.#isChanged(followed, version)) continue
      waiting++
      followed.changedMs ??= nowMs
      const isDue = followed.table === null || nowMs - followed.changedMs >= lagMs()
      if (!isDue || nowMs < followed.pausedUntilMs || store === null || !ready()) continue
      if (this.#running < tablesAtOnce) void this.#run(store, followed, version.schema.id)
    }
    const failure = [...this.#followed.values()].find((followed) => followed.failure !== null)?.failure ?? null
    this.#statistics = { ...this.#statistics, waiting, failure }
    report(this.#statistics)
  }

  #isChanged({ matched }: Followed, version: TableVersion): boolean {
    return version.version !== matched || this.#hasRowsInMemory(version.schema.id)
  }

  #hasRowsInMemory(tableId: number): boolean {
    return this.#options.view.readNow([tableId]).some(({ visibleRows }) => visibleRows.some((rows) => rows > 0))
  }

  async #run(store: LakeClient, followed: Followed, tableId: number): Promise<void> {
    followed.isRunning = true
    followed.changedMs = null
    this.#running++
    try {
      await this.#commit(store, followed, tableId)
      followed.failure = null
    } catch (error) {
      if (error instanceof OvertakenError) await this.#overtaken(followed, tableId, error)
      else this.#failed(followed, tableId, error)
    } finally {
      followed.isRunning = false
      this.#running--
    }
  }

  // Sources that several servers read -------------------------------------------------------------------------------

  async #begin(source: SharedSource, places: readonly SourcePlace[]): Promise<void> {
    const { sources, store, ready, view, ownership } = this.#options
    const version = view.table(source.table)
    if (version?.schema.lake == null || version.schema.dedupKeys.length > 0) {
      const needed = 'offsets are shared through a table with LAKE ON and without DEDUP keys: create it'
      throw new StoreError('rejected', `${needed} [table=${source.table}]`)
    }
    if (store === null || !ready()) throw new StoreError('unavailable', 'the object store is not ready')
    const followed = this.#of(version)
    while (followed.isRunning) await pause(10)
    followed.isRunning = true
    try {
      if (ownership !== null && !(await ownership.isOwner())) throw notOwner(ownership.key)
      const shared = sharedBy(await this.#opened(followed, version), source)
      const keys = places.map((place) => streamKey({ connector: source.connector, ...place }))
      await sources.settle(source, shared, version.schema, keys)
      sources.began(source, version.schema)
    } catch (error) {
      if (error instanceof StoreError) forget(followed)
      throw error
    } finally {
      followed.isRunning = false
    }
  }

  async #overtaken(followed: Followed, tableId: number, error: OvertakenError): Promise<void> {
    const { sources, view, log } = this.#options
    const schema = view.byId(tableId)?.schema
    const source = schema === undefined ? undefined : sources.ofTable(schema.name)
    const shared = followed.table?.sources ?? null
    try {
      if (schema === undefined || source === undefined || shared === null) throw error
      log('I', 'lake', error.message)
      await sources.settle(source, shared, schema, error.keys)
      followed.matched = 0
    } catch (thrown) {
      this.#failed(followed, tableId, thrown)
    }
  }

  async #handOver({ table }: SharedSource): Promise<void> {
    const { store, ready, view } = this.#options
    const version = view.table(table)
    if (version?.schema.lake == null || store === null || !ready()) return
    const followed = this.#of(version)
    while (followed.isRunning && !this.#isClosed) await pause(10)
    if (!this.#isClosed && this.#isChanged(followed, view.byId(version.schema.id) ?? version))
      await this.#run(store, followed, version.schema.id)
  }

  #committedOffsets({ table, connector }: SharedSource): readonly KafkaPosition[] {
    const version = this.#options.view.table(table)
    const own = version === undefined ? undefined : this.#followed.get(version.schema.id)?.table?.sources?.state.own
    return [...(own ?? [])].flatMap(([key, { next }]) => {
      const stream = streamOf(key)
      return next === null || stream.connector !== connector ? [] : [{ ...stream, offset: next - 1 }]
    })
  }

  /** How far the sources of the table are in the lake after a commit of these units. */
  async #advances(
    table: CommittedTable,
    snapshot: TableSnapshot,
    units: readonly LakeUnit[],
    stored: StoredOffsets,
  ): Promise<readonly SourceAdvance[]> {
    const { sources, clock } = this.#options
    const { name } = snapshot.version.schema
    const own = table.sources?.state.own ?? new Map<string, unknown>()
    if (sources.ofTable(name) === undefined && own.size === 0) return []
    const isEarly = (): boolean => clock.monotonicMs() - this.#startedMs < connectorsMs
    while (sources.ofTable(name) === undefined && isEarly() && !this.#isClosed) await pause(100)
    const source = sources.ofTable(name)
    if (source !== undefined) {
      const parts = units.flatMap((unit) => unit.parts)
      return sources.advances(source, sharedBy(table, source), snapshot, parts, stored)
    }
    throw notConfigured(name, own.keys())
  }

  #failed(followed: Followed, tableId: number, error: unknown): void {
    const { clock, log, view } = this.#options
    const name = view.byId(tableId)?.schema.name
    if (this.#isClosed || name === undefined) return
    const message = error instanceof Error ? error.message : String(error)
    if (followed.failure !== message) log('W', 'lake', `a table could not be committed [table=${name}]: ${message}`)
    // What another server has committed, or a write without a response, is read again.
    if (error instanceof StoreError) forget(followed)
    followed.failure = message
    followed.matched = 0
    followed.changedMs = clock.monotonicMs()
    followed.pausedUntilMs = clock.monotonicMs() + pauseMs
    this.#statistics = { ...this.#statistics, failures: this.#statistics.failures + 1 }
  }

  async #commit(store: LakeClient, followed: Followed, tableId: number): Promise<void> {
    const { view, flush, ownership, sources } = this.#options
    if (ownership !== null && !(await ownership.isOwner())) throw notOwner(ownership.key)
    const source = sources.ofTable(view.byId(tableId)?.schema.name ?? '')
    // Taken before the flush, so that the rows up to these offsets are in parts.
    const stored: StoredOffsets = source === undefined ? new Map() : sources.stored(source)
    if (this.#hasRowsInMemory(tableId)) await flush(tableId)
    const current = view.byId(tableId)
    if (current?.schema.lake?.uuid !== followed.uuid) return
    const table = await this.#opened(followed, current)
    if (view.byId(tableId)?.schema.lake?.uuid !== followed.uuid) return
    const held = view.hold([tableId])
    try {
      for (const snapshot of held.snapshots) await this.#match(store, followed, table, snapshot, stored)
    } finally {
      held.release()
    }
  }

  async #opened(followed: Followed, version: TableVersion): Promise<CommittedTable> {
    const known = followed.table
    if (known !== null && (known.name === null || known.name === version.schema.name)) return known
    const { store, catalog } = this.#options
    if (store === null) throw new StoreError('unavailable', 'no object store is configured')
    followed.table = null
    const { clock, rootId } = this.#options
    const table = await openLakeTable(version, {
      ...{ store, rootId, clock, prefix: this.#prefixOf(version) },
      catalog: catalog === null ? null : await this.#client(catalog),
      onConflict: () => {
        this.#statistics = { ...this.#statistics, conflicts: this.#statistics.conflicts + 1 }
      },
    })
    // Files of a commit whose response was lost are those of the table now, and not to be added once more.
    for (const [unit, { path }] of followed.written) if (table.files.has(path)) followed.written.delete(unit)
    followed.table ??= table
    return followed.table
  }

  /** Loaded by servers with an external catalog only. */
  #client(catalog: RestCatalogOptions): Promise<RestCatalog> {
    this.#catalog ??= import('../lake/rest-catalog.js').then(
      ({ RestCatalog: Client }) => new Client(catalog, () => this.#options.clock.monotonicMs()),
    )
    return this.#catalog
  }

  /** Makes the files of the table those of the snapshot's units. */
  async #match(
    store: LakeClient,
    followed: Followed,
    table: CommittedTable,
    snapshot: TableSnapshot,
    stored: StoredOffsets,
  ): Promise<void> {
    const { version } = snapshot
    const { schema } = version
    await table.prepare(schema)
    const units = unitsOf(version, (partId) => removedRowCount(this.#options.memory, version, partId))
    const kept = new Map(
      [...table.files.keys()].filter((path) => table.isKnown(path)).map((path) => [unitNameOf(path), path]),
    )
    const missing = units.filter(({ name }) => !kept.has(name) && !followed.empty.has(name))
    const names = new Set(units.map(({ name }) => name))
    const paths = new Set([...kept].filter(([name]) => names.has(name)).map(([, path]) => path))
    const removed = new Set([...table.files.keys()].filter((path) => !paths.has(path)))
    const advances = await this.#advances(table, snapshot, missing, stored)
    const added = await this.#write(store, followed, table, snapshot, missing)
    if (this.#isClosed) return
    const isCompaction = isCompacted(followed.rewrites, table, version, added, removed)
    if (await table.commit({ schema, added, removed, isCompaction, advances })) this.#count(added)
    followed.rewrites = version.rewrites
    await this.#record(table, followed, schema.id)
    followed.written.clear()
    // The record makes a version of the table, too, which would otherwise be compared with the lake once more.
    const recorded = this.#options.view.byId(schema.id)
    const isSame = recorded !== undefined && hasSameRows(recorded, version)
    followed.matched = isSame ? recorded.version : version.version
  }

  async #write(
    store: LakeClient,
    followed: Followed,
    table: CommittedTable,
    snapshot: TableSnapshot,
    units: readonly LakeUnit[],
  ): Promise<DataFile[]> {
    const { execute, directory } = this.#options
    const added: DataFile[] = []
    for (const [index, unit] of units.entries()) {
      followed.progress = [index, units.length]
      if (this.#isClosed) return added
      const known = followed.written.get(unit.name)
      const file = known ?? (await writeLakeFile({ store, execute, directory }, table, snapshot, unit))
      if (file === null) followed.empty.add(unit.name)
      else added.push(file)
      if (file !== null) followed.written.set(unit.name, file)
    }
    followed.progress = [units.length, units.length]
    return added
  }

  #count(added: readonly DataFile[]): void {
    const { commits, files, bytes } = this.#statistics
    const own = added.reduce((sum, file) => sum + file.bytes, 0)
    this.#statistics = { ...this.#statistics, commits: commits + 1, files: files + added.length, bytes: bytes + own }
  }

  /** Resolves when the manifest has the version. */
  async #record(table: CommittedTable, { uuid }: Followed, tableId: number): Promise<void> {
    const { view, post, clock } = this.#options
    const isRecorded = (): boolean => {
      const version = view.byId(tableId)
      if (version?.schema.lake?.uuid !== uuid) return true
      return recordedVersion(version) === table.version && (table.name === null || version.lake?.name === table.name)
    }
    let askAgainMs = 0
    while (!isRecorded() && !this.#isClosed) {
      if (clock.monotonicMs() >= askAgainMs) {
        askAgainMs = clock.monotonicMs() + recordMs
        const name = table.name === null ? {} : { name: table.name }
        post({ kind: 'lakeCommitted', tableId, lake: { uuid, version: table.version, ...name } })
      }
      await pause(10)
    }
  }
}

/** It is opened again. */
function forget(followed: Followed): void {
  followed.location = followed.table?.location ?? followed.location
  followed.table = null
}

function pause(ms: number): Promise<void> {
  return new Promise((later) => setTimeout(later, ms))
}
