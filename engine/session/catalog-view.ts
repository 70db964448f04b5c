// The main thread's view of all tables: the newest version of each, who still reads older ones, and snapshots.
//
// Invariant: which versions are held is reported whenever it changes and with every new version; the newest counts as held.
// The writer frees memory and files by these reports alone.

import type { ReadMoment } from '../api/session.js'
import { assert } from '../base/assert.js'
import type { Clock } from '../base/clock.js'
import { SqlError } from '../base/errors.js'
import { visibleRows, visibleTransaction } from '../memory/column-layout.js'
import { publishSequenceAddress } from '../memory/layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { SchemaChange } from '../sql/catalog.js'
import { schemaStatements, type TableSnapshot, type TableVersion } from '../storage/schema/schema.js'
import { HeldSymbols, type RestedSymbols } from '../threads/held-symbols.js'

/** Versions that a query holds until it ends. */
export interface HeldSnapshots {
  readonly snapshots: readonly TableSnapshot[]
  /** Symbol dictionaries that have to be read again first: the writer holds them for whoever asks. */
  readonly rested: readonly RestedSymbols[]
  /** They are held now. */
  add(symbols: RestedSymbols): void
  release(): void
}

/** Of the versions below that one, these are held. */
type ReleasedVersions = (tableId: number, below: number, held: readonly number[]) => void

/** Changes of a table's schema that wal_transactions() shows. */
const changesMax = 1000

interface TableState {
  current: TableVersion
  /** The last changes since the start, oldest first. */
  readonly schemaChanges: SchemaChange[]
  /** Queries by the version that they hold. */
  readonly holders: Map<number, number>
  dropped: boolean
}

export class CatalogView {
  readonly #memory: SharedMemory
  readonly #released: ReleasedVersions
  readonly #clock: Pick<Clock, 'nowMicros'>
  readonly #byId = new Map<number, TableState>()
  readonly #byName = new Map<string, TableVersion>()
  /** Counts every change: cached plans of older epochs are stale. */
  epoch = 0
  /** Snapshots that are held. */
  readers = 0
  /** Snapshots whose holder forgot to give them back. */
  leaks = 0
  readonly #forgotten = new FinalizationRegistry<() => void>((release) => {
    this.leaks++
    release()
  })

  constructor(memory: SharedMemory, released: ReleasedVersions, clock: Pick<Clock, 'nowMicros'>) {
    this.#clock = clock
    this.#memory = memory
    this.#released = released
  }

  publish(versions: readonly TableVersion[], dropped: readonly number[]): void {
    for (const version of versions) this.#replace(version)
    for (const tableId of dropped) this.#drop(tableId)
    if (versions.length + dropped.length > 0) this.epoch += 1
  }

  /** The table of that name; names match without case. */
  table(name: string): TableVersion | undefined {
    return this.#byName.get(name.toLowerCase())
  }

  /** How many tables and views there are. */
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

  /** Tables that somebody reads, as he sees them. */
  read(): TableVersion[] {
    return [...this.#byId.values()].filter(({ holders }) => holders.size > 0).map(({ current }) => current)
  }

  /** Rows that a reader would see now. */
  rowCount(version: TableVersion): number {
    const parts = version.parts.reduce((sum, part) => sum + part.rows, 0)
    return version.generations.reduce((sum, { address }) => sum + visibleRows(this.#memory, address), parts)
  }

  /** The last transaction of rows that a reader would see now. */
  visibleTransaction({ generations, parts, flushedTxn = 0 }: TableVersion): number {
    const inMemory = generations.map(({ address }) => visibleTransaction(this.#memory, address))
    return Math.max(flushedTxn, ...inMemory, ...parts.map(({ maxTxn }) => maxTxn))
  }

  schemaChanges(tableId: number): readonly SchemaChange[] {
    return this.#byId.get(tableId)?.schemaChanges ?? []
  }

  /** The same for whoever is done with them before anything else happens on this thread. */
  glance(tableIds: readonly number[], moment?: ReadMoment): readonly TableSnapshot[] {
    const current = this.#read(tableIds.map((tableId) => this.#state(tableId).current))
    return moment === undefined ? current : current.map((snapshot) => asOf(moment, snapshot))
  }

  /** Snapshots of the tables at one moment: all tables of a transaction appear together. */
  hold(tableIds: readonly number[], moment?: ReadMoment): HeldSnapshots {
    const held = this.#hold(tableIds, moment)
    const symbols = new HeldSymbols(this.#memory, held.snapshots)
    const release = (): void => {
      symbols.release()
      held.release()
    }
    const { snapshots } = held
    return this.#watched({ snapshots, rested: symbols.rested, add: (some) => symbols.add(some), release })
  }

  /** Without their symbols. */
  #hold(tableIds: readonly number[], moment?: ReadMoment): Pick<HeldSnapshots, 'snapshots' | 'release'> {
    const states = tableIds.map((tableId) => this.#state(tableId))
    const snapshots = this.glance(tableIds, moment)
    const versions = snapshots.map(({ version }) => version)
    states.forEach((state, index) => count(state.holders, (versions[index] as TableVersion).version, 1))
    this.readers += states.length
    const release = (): void => {
      this.readers -= states.length
      states.forEach((state, index) => this.#unhold(state, versions[index] as TableVersion))
    }
    return { snapshots, release }
  }

  /** With `moment`: what is there of it, held once more. */
  holdMoment(moment?: ReadMoment): ReadMoment {
    const tableIds = [...this.#byName.values()].map(({ schema }) => schema.id)
    const held = this.#hold(
      moment === undefined ? tableIds : tableIds.filter((tableId) => moment.snapshotOf(tableId) !== undefined),
      moment,
    )
    const byId = new Map(held.snapshots.map((snapshot) => [snapshot.version.schema.id, snapshot]))
    const release = (): void => {
      // Whoever still has it reads tables as they are.
      byId.clear()
      held.release()
    }
    return { snapshotOf: (tableId) => byId.get(tableId), release }
  }

  /** Who forgets to release is counted as a leak when the collector finds it, and released. */
  #watched({ release, ...rest }: HeldSnapshots): HeldSnapshots {
    const token = {}
    let held = true
    const holder: HeldSnapshots = {
      ...rest,
      release: () => {
        assert(held, 'snapshots are released once')
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
    assert(state !== undefined, 'a plan names tables of the catalog')
    return state
  }

  #replace(version: TableVersion): void {
    const { id, name } = version.schema
    const state = this.#byId.get(id)
    if (state === undefined) {
      this.#byId.set(id, { current: version, schemaChanges: [], holders: new Map(), dropped: false })
    } else {
      // Another one may have the name by now.
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
    this.#released(tableId, below, held)
  }

  #read(versions: readonly TableVersion[]): TableSnapshot[] {
    const word = publishSequenceAddress >>> 2
    for (;;) {
      const before = Atomics.load(this.#memory.u32, word)
      const snapshots = versions.map((version) => ({
        version,
        visibleRows: version.generations.map(({ address }) => visibleRows(this.#memory, address)),
      }))
      if ((before & 1) === 0 && Atomics.load(this.#memory.u32, word) === before) return snapshots
    }
  }
}

/** The snapshot as it was at the moment. A table that was made later is read as it is; a statement was planned for its columns as they are. */
function asOf(moment: ReadMoment, current: TableSnapshot): TableSnapshot {
  const { id, name } = current.version.schema
  const then = moment.snapshotOf(id)
  if (then === undefined) return current
  if (schemaStatements(then.version.schema) === schemaStatements(current.version.schema)) return then
  throw new SqlError(`the table has changed since the transaction began to read [table=${name}]`, -1)
}

function count(counts: Map<number, number>, key: number, change: number): void {
  const value = (counts.get(key) ?? 0) + change
  if (value === 0) counts.delete(key)
  else counts.set(key, value)
}
