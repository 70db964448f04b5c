// CatalogView: the main thread's view of all tables. It stores the newest version of each table (its schema, Parquet
// files and memtables), counts the queries that still read older versions, and gives queries snapshots.
//
// Invariant: the main thread reports to the writer which older versions are held (in use by a query), with every new
// version of a table and whenever a query releases an older one; the newest version always counts as held. The writer
// frees memory and files only by these reports.

import type { ReadSnapshot } from '../api/session.js'
import { assert } from '../base/assert.js'
import type { Clock } from '../base/clock.js'
import { SqlError } from '../base/errors.js'
import { showRows, type VisibleRows, visibleRows, visibleTransaction } from '../memory/column-layout.js'
import { publishSequenceAddress } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { SchemaChange } from '../sql/catalog.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import { DroppedNames } from '../storage/schema/dropped-names.js'
import { schemaStatements, type TableSnapshot, type TableVersion } from '../storage/schema/schema.js'
import { type EvictedSymbols, PinnedSymbols } from '../threads/pinned-symbols.js'

/** The table versions that a query holds until it ends. */
export interface PinnedSnapshots {
  readonly snapshots: readonly TableSnapshot[]
  /** Symbol dictionaries that were evicted and have to be loaded first; the writer then holds them for this query. */
  readonly evicted: readonly EvictedSymbols[]
  /** Registers a dictionary that is now held. */
  add(symbols: EvictedSymbols): void
  release(): void
}

/** Tells the writer which versions are held, and that rows are visible. */
type Report = (message: Extract<ToWriter, { readonly kind: 'released' | 'shown' }>) => void

/** Maximal schema changes of a table that wal_transactions() shows. */
const changesMax = 1000

interface TableState {
  current: TableVersion
  /** The last changes since the server's start, oldest first. */
  readonly schemaChanges: SchemaChange[]
  /** Number of queries that hold each version. */
  readonly holders: Map<number, number>
  dropped: boolean
}

export class CatalogView {
  readonly #memory: SharedMemory
  readonly #report: Report
  readonly #clock: Pick<Clock, 'nowMicros'>
  readonly #byId = new Map<number, TableState>()
  readonly #byName = new Map<string, TableVersion>()
  readonly droppedNames = new DroppedNames()
  /** The catalog epoch: incremented by every change. Cached plans of older epochs are stale. */
  epoch = 0
  /** Number of snapshots held. */
  readers = 0
  /** Number of snapshots that were garbage-collected without being released. */
  leaks = 0
  #closed = false
  readonly #forgotten = new FinalizationRegistry<() => void>((release) => {
    if (this.#closed) return
    this.leaks++
    release()
  })

  constructor(memory: SharedMemory, report: Report, clock: Pick<Clock, 'nowMicros'>) {
    this.#clock = clock
    this.#memory = memory
    this.#report = report
  }

  /** Snapshots that nobody has released stay as they are from now on: their memory may serve another engine. */
  close(): void {
    this.#closed = true
  }

  /** Snapshots see the versions and rows together, since none is taken meanwhile. */
  publish(versions: readonly TableVersion[], dropped: readonly number[], visible: readonly VisibleRows[] = []): void {
    for (const rows of visible) showRows(this.#memory, rows)
    if (visible.length > 0) this.#report({ kind: 'shown' })
    for (const version of versions) this.#replace(version)
    for (const tableId of dropped) this.#drop(tableId)
    if (versions.length + dropped.length > 0) this.epoch += 1
  }

  /** The table or view of that name; names are case-insensitive. */
  table(name: string): TableVersion | undefined {
    return this.#byName.get(name.toLowerCase())
  }

  /** Number of tables and views. */
  get count(): number {
    return this.#byName.size
  }

  byId(tableId: number): TableVersion | undefined {
    return this.#byId.get(tableId)?.current
  }

  /** All tables by id. */
  tables(): TableVersion[] {
    return [...this.#byName.values()].sort((x, y) => x.schema.id - y.schema.id)
  }

  /** The newest versions of the tables that queries are reading. */
  read(): TableVersion[] {
    return [...this.#byId.values()].filter(({ holders }) => holders.size > 0).map(({ current }) => current)
  }

  /** Rows that are visible now. */
  rowCount(version: TableVersion): number {
    const parts = version.parts.reduce((sum, part) => sum + part.rows, 0)
    return version.memtables.reduce((sum, { address }) => sum + visibleRows(this.#memory, address), parts)
  }

  /** The last transaction whose rows are visible now. */
  visibleTransaction({ memtables, parts, flushedTxn = 0 }: TableVersion): number {
    const inMemory = memtables.map(({ address }) => visibleTransaction(this.#memory, address))
    return Math.max(flushedTxn, ...inMemory, ...parts.map(({ maxTxn }) => maxTxn))
  }

  schemaChanges(tableId: number): readonly SchemaChange[] {
    return this.#byId.get(tableId)?.schemaChanges ?? []
  }

  /** Like hold(), for callers that are done before control returns to the event loop. */
  readNow(tableIds: readonly number[], readSnapshot?: ReadSnapshot): readonly TableSnapshot[] {
    const current = this.#read(tableIds.map((tableId) => this.#state(tableId).current))
    return readSnapshot === undefined ? current : current.map((snapshot) => asOf(readSnapshot, snapshot))
  }

  /**
   * Consistent snapshots of the tables: a transaction is visible in all of them or in none. `readSnapshot`: an earlier
   * read snapshot to use.
   */
  hold(tableIds: readonly number[], readSnapshot?: ReadSnapshot): PinnedSnapshots {
    const held = this.#hold(tableIds, readSnapshot)
    const symbols = new PinnedSymbols(this.#memory, held.snapshots)
    const release = (): void => {
      symbols.release()
      held.release()
    }
    const { snapshots } = held
    return this.#watched({ snapshots, evicted: symbols.evicted, add: (some) => symbols.add(some), release })
  }

  /** Without their symbol dictionaries. */
  #hold(tableIds: readonly number[], readSnapshot?: ReadSnapshot): Pick<PinnedSnapshots, 'snapshots' | 'release'> {
    const states = tableIds.map((tableId) => this.#state(tableId))
    const snapshots = this.readNow(tableIds, readSnapshot)
    const versions = snapshots.map(({ version }) => version)
    states.forEach((state, index) => count(state.holders, (versions[index] as TableVersion).version, 1))
    this.readers += states.length
    const release = (): void => {
      this.readers -= states.length
      states.forEach((state, index) => this.#unhold(state, versions[index] as TableVersion))
    }
    return { snapshots, release }
  }

  /** A read snapshot of all tables, or another hold on an existing one. */
  holdSnapshot(readSnapshot?: ReadSnapshot): ReadSnapshot {
    const tableIds = [...this.#byName.values()].map(({ schema }) => schema.id)
    const held = this.#hold(
      readSnapshot === undefined
        ? tableIds
        : tableIds.filter((tableId) => readSnapshot.snapshotOf(tableId) !== undefined),
      readSnapshot,
    )
    const byId = new Map(held.snapshots.map((snapshot) => [snapshot.version.schema.id, snapshot]))
    const release = (): void => {
      // Later uses read the current versions.
      byId.clear()
      held.release()
    }
    return { snapshotOf: (tableId) => byId.get(tableId), release }
  }

  /** If the holder is garbage-collected without release(), that counts as a leak and releases the snapshots. */
  #watched({ release, ...rest }: PinnedSnapshots): PinnedSnapshots {
    const token = {}
    let held = true
    const holder: PinnedSnapshots = {
      ...rest,
      release: () => {
        assert(held, 'A5: snapshots are released once')
        held = false
        this.#forgotten.unregister(token)
        release()
      },
    }
    if (rest.snapshots.length > 0) this.#forgotten.register(holder, release, token)
    return holder
  }

  #state(tableId: number): TableState {
    const state = this.#byId.get(tableId)
    assert(state !== undefined, 'B1: a plan names tables of the catalog')
    return state
  }

  #replace(version: TableVersion): void {
    const { id, name } = version.schema
    const state = this.#byId.get(id)
    if (state === undefined) {
      const created: TableState = { current: version, schemaChanges: [], holders: new Map(), dropped: false }
      this.#byId.set(id, created)
      this.#reportReleased(created)
    } else {
      // Another table may have taken over the name.
      const before = state.current.schema.name.toLowerCase()
      if (this.#byName.get(before)?.schema.id === id) this.#byName.delete(before)
      if (schemaStatements(version.schema) !== schemaStatements(state.current.schema)) this.#noteChange(state)
      state.current = version
      this.#reportReleased(state)
    }
    this.#byName.set(name.toLowerCase(), version)
  }

  #noteChange({ current, schemaChanges }: TableState): void {
    schemaChanges.push({ afterTxn: this.visibleTransaction(current), micros: this.#clock.nowMicros() })
    if (schemaChanges.length > changesMax) schemaChanges.shift()
  }

  #drop(tableId: number): void {
    const state = this.#byId.get(tableId)
    if (state === undefined) return
    state.dropped = true
    this.droppedNames.note(tableId, state.current.schema.name)
    const name = state.current.schema.name.toLowerCase()
    if (this.#byName.get(name)?.schema.id === tableId) this.#byName.delete(name)
    this.#reportReleased(state)
  }

  #unhold(state: TableState, version: TableVersion): void {
    count(state.holders, version.version, -1)
    if (version !== state.current || state.dropped) this.#reportReleased(state)
  }

  #reportReleased(state: TableState): void {
    const { current, holders, dropped } = state
    const tableId = current.schema.id
    if (dropped && holders.size === 0) this.#byId.delete(tableId)
    const below = dropped ? current.version + 1 : current.version
    const held = [...holders.keys()].filter((version) => version < below)
    this.#report({ kind: 'released', tableId, below, held })
  }

  #read(versions: readonly TableVersion[]): TableSnapshot[] {
    const word = publishSequenceAddress >>> 2
    for (;;) {
      const before = Atomics.load(this.#memory.u32, word)
      const snapshots = versions.map((version) => this.#now(version))
      if ((before & 1) === 0 && Atomics.load(this.#memory.u32, word) === before) return snapshots
    }
  }

  #now(version: TableVersion): TableSnapshot {
    const rows = version.memtables.map(({ address }) => visibleRows(this.#memory, address))
    if (version.removals === undefined) return { version, visibleRows: rows }
    return { version, visibleRows: rows, transaction: this.visibleTransaction(version) }
  }
}

/**
 * The table as of the read snapshot. A table that is newer is read as it is. Fails if the schema has changed since,
 * because the statement was planned for the current columns.
 */
function asOf(readSnapshot: ReadSnapshot, current: TableSnapshot): TableSnapshot {
  const { id, name } = current.version.schema
  const then = readSnapshot.snapshotOf(id)
  if (then === undefined) return current
  if (schemaStatements(then.version.schema) === schemaStatements(current.version.schema)) return then
  throw new SqlError(`the table has changed since the snapshot of the transaction [table=${name}]`, -1)
}

function count(counts: Map<number, number>, key: number, change: number): void {
  const value = (counts.get(key) ?? 0) + change
  if (value === 0) counts.delete(key)
  else counts.set(key, value)
}
