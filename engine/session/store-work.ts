// Starts the background work of the engine with the object store: the uploader of storage policies (uploader.ts), the
// committer of Iceberg tables (lake-committer.ts), and garbage collection (store-sweeper.ts).

import type { LakeCatalog, LakeStatistics } from '../api/lake.js'
import type { ExecuteOptions, StatementResult, VirtualRelation } from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import type { Files } from '../base/files.js'
import type { Log } from '../base/log.js'
import type { RestCatalogOptions } from '../lake/rest-catalog.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { Ownership } from '../object-store/ownership.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import type { BlockSource } from '../threads/remote-fetches.js'
import type { CatalogView } from './catalog-view.js'
import { type LakeClient, LakeCommitter } from './lake-committer.js'
import { LakeSources, type LakeSourcesOptions } from './lake-sources.js'
import { StoreSweeper, type SweepStatistics } from './store-sweeper.js'
import { type PolicyStore, Uploader, type UploadStatistics } from './uploader.js'

/** Where storage policies move parts to, and parts are read from; and where the lake is. */
export interface EngineObjectStore {
  /** Null: none is configured, and parts wait. */
  readonly store: (PolicyStore & BlockSource & LakeClient) | null
  /** Whether the store honours put-if-absent and is there. */
  readonly ready: () => boolean
  /** Makes keys of several roots differ. */
  readonly rootId: string
  /** Folder of the local copies of remote parts. */
  readonly blocks: string
  /** Called whenever the statistics may have changed. */
  readonly report: (statistics: UploadStatistics) => void
  readonly lake: {
    /** Folder of data files that are being written. */
    readonly directory: string
    readonly lagMs: () => number
    /** Null: this server is the catalog of its tables. */
    readonly catalog: RestCatalogOptions | null
    readonly report: (statistics: LakeStatistics) => void
  }
  readonly sweep: {
    /** For how long nothing must have named an object before it is removed. */
    readonly graceMs: () => number
    readonly report: (statistics: SweepStatistics) => void
    /** Folder of the files that keep the token of the owner and the objects that nothing names. */
    readonly directory: string
    /** Differs between a root and its copies. */
    readonly fingerprint: string
  }
}

export interface StoreWorkOptions {
  readonly view: CatalogView
  readonly memory: SharedMemory
  readonly files: Files
  /** Of parts. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Log
  readonly post: (message: ToWriter) => void
  readonly flush: (tableId: number) => Promise<unknown>
  readonly execute: (sql: string, options: ExecuteOptions) => Promise<StatementResult>
  readonly lines: LakeSourcesOptions['lines']
  readonly positions: LakeSourcesOptions['positions']
}

export interface StoreWork {
  readonly lake: LakeCatalog
  readonly relation: VirtualRelation
  close(): void
}

export function startStoreWork(
  { store, lake, sweep, ...objectStore }: EngineObjectStore,
  options: StoreWorkOptions,
): StoreWork {
  const uploader = new Uploader({ ...options, ...objectStore, store })
  const { files } = options
  const { rootId, ready } = objectStore
  const path = `${sweep.directory}/root.owner`
  const ownership =
    store === null ? null : new Ownership({ store, rootId, files, path, fingerprint: sweep.fingerprint })
  const sources = new LakeSources(options)
  const committer = new LakeCommitter({ ...options, ...objectStore, ...lake, store, ownership, sources })
  const sweeper =
    store === null || ownership === null
      ? null
      : new StoreSweeper({
          ...{ store, ownership, ready, rootId, files, clock: options.clock, log: options.log },
          ...{ graceMs: sweep.graceMs, report: sweep.report, path: `${sweep.directory}/unnamed-objects.json` },
          tables: () => options.view.tables(),
          lake: () => committer.named(),
          lakePrefixes: () => committer.prefixes(),
        })
  return {
    lake: committer,
    relation: committer.relation(),
    close: () => {
      uploader.close()
      committer.close()
      sweeper?.close()
    },
  }
}
