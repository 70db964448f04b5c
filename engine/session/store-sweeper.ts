// Garbage collection in the object store: removes objects of this root folder that nothing refers to any more, such as
// those of replaced and dropped data files (parts), of expired Iceberg snapshots, and of commits that a crash
// interrupted. From time to time it lists all objects below the root's id and below the Iceberg tables in an external
// catalog, and records since when each has been unreferenced.
//
// Invariants:
//   1. An object is removed only if it has been unreferenced for the whole grace period. By then uploads have been
//      recorded, queries of older table versions have ended, and backups that are still needed are newer.
//   2. Only the owner removes objects (object-store/ownership.ts), which is checked before each round of removals.
//   3. If it is unknown what an Iceberg table refers to, because its metadata cannot be read, none of its objects is
//      removed.

import type { Clock } from '../base/clock.js'
import { FileError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import type { Log } from '../base/log.js'
import { type ObjectStore, StoreError } from '../object-store/object-store.js'
import { notOwner, type Ownership } from '../object-store/ownership.js'
import type { TableVersion } from '../storage/schema/schema.js'

/** Objects that Iceberg tables name, and prefixes of keys of which that is not known. */
export interface NamedObjects {
  readonly keys: ReadonlySet<string>
  readonly unknown: readonly string[]
}

export interface SweeperOptions {
  readonly tables: () => readonly TableVersion[]
  readonly lake: () => Promise<NamedObjects>
  /** Where the root has objects besides those with its id at the beginning of their keys. */
  readonly lakePrefixes: () => readonly string[]
  readonly store: Pick<ObjectStore, 'list' | 'delete'>
  readonly ownership: Pick<Ownership, 'isOwner' | 'key'>
  readonly ready: () => boolean
  readonly rootId: string
  readonly graceMs: () => number
  readonly files: Files
  /** Where it is noted since when nothing has named an object. */
  readonly path: string
  readonly clock: Pick<Clock, 'nowMicros' | 'monotonicMs'>
  readonly log: Log
  readonly report: (statistics: SweepStatistics) => void
}

export interface SweepStatistics {
  /** Objects that nothing names and that are not removed yet. */
  readonly unnamed: number
  readonly removed: number
  readonly failure: string | null
}

const lookMs = 1000
const sweepMsMax = 3_600_000
/** Sweeps within one grace period. */
const sweepsPerGrace = 4

export class StoreSweeper {
  readonly #options: SweeperOptions
  readonly #timer: NodeJS.Timeout
  /** In milliseconds since 1970, by key. */
  #since: Map<string, number> | null = null
  #nextMs = 0
  #isRunning = false
  #isClosed = false
  #statistics: SweepStatistics = { unnamed: 0, removed: 0, failure: null }

  constructor(options: SweeperOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), lookMs).unref()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  #look(): void {
    const { clock, ready, graceMs } = this.#options
    if (this.#isRunning || !ready() || clock.monotonicMs() < this.#nextMs) return
    this.#nextMs = clock.monotonicMs() + Math.min(sweepMsMax, graceMs() / sweepsPerGrace)
    void this.sweep()
  }

  /** One round. */
  async sweep(): Promise<void> {
    const { log, report } = this.#options
    this.#isRunning = true
    try {
      await this.#sweep()
      this.#statistics = { ...this.#statistics, failure: null }
    } catch (error) {
      if (!(error instanceof StoreError || error instanceof FileError)) throw error
      if (this.#statistics.failure !== error.message && !this.#isClosed)
        log('W', 'object-store', `objects that nothing names could not be removed: ${error.message}`)
      this.#statistics = { ...this.#statistics, failure: error.message }
    } finally {
      this.#isRunning = false
      report(this.#statistics)
    }
  }

  async #sweep(): Promise<void> {
    const { store, rootId, clock, graceMs, ownership, log, lakePrefixes } = this.#options
    const since = this.#since ?? this.#read()
    this.#since = since
    const found = new Map<string, number>()
    const nowMs = Math.floor(clock.nowMicros() / 1000)
    const keys: string[] = []
    for (const prefix of [`${rootId}/`, ...lakePrefixes()]) {
      for await (const { key } of store.list(prefix)) keys.push(key)
    }
    // Taken after the list: what was written in between is not in the list.
    const isNamed = await this.#naming()
    for (const key of keys) if (key !== ownership.key && !isNamed(key)) found.set(key, since.get(key) ?? nowMs)
    const due = [...found].filter(([, from]) => nowMs - from >= graceMs()).map(([key]) => key)
    if (due.length > 0) {
      if (!(await ownership.isOwner())) throw notOwner(ownership.key)
      for (const key of due) {
        if (this.#isClosed) break
        await store.delete(key)
        found.delete(key)
        this.#statistics = { ...this.#statistics, removed: this.#statistics.removed + 1 }
      }
      log('I', 'object-store', `objects that nothing names were removed [objects=${due.length}]`)
    }
    this.#since = found
    this.#statistics = { ...this.#statistics, unnamed: found.size }
    this.#write(found)
  }

  async #naming(): Promise<(key: string) => boolean> {
    const { tables, lake } = this.#options
    const { keys, unknown } = await lake()
    const parts = new Set(
      tables().flatMap(({ schema, parts: all }) =>
        [...all, ...(schema.detached ?? [])].flatMap(({ remote }) => remote?.key ?? []),
      ),
    )
    return (key) => parts.has(key) || keys.has(key) || unknown.some((prefix) => key.startsWith(prefix))
  }

  /** A file that is lost or damaged makes the grace period begin again. */
  #read(): Map<string, number> {
    const { files, path } = this.#options
    if (!files.exists(path)) return new Map()
    const file = files.open(path, 'read')
    try {
      const content = new Uint8Array(file.size())
      file.read(content, 0)
      const entries: [string, number][] = JSON.parse(Buffer.from(content).toString('utf8'))
      return new Map(entries)
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof TypeError) return new Map()
      throw error
    } finally {
      file.close()
    }
  }

  #write(since: ReadonlyMap<string, number>): void {
    const { files, path } = this.#options
    const next = `${path}.new`
    if (files.exists(next)) files.remove(next)
    const file = files.open(next, 'create')
    try {
      file.write([Buffer.from(JSON.stringify([...since]))], 0)
      file.sync()
    } finally {
      file.close()
    }
    files.rename(next, path)
  }
}
