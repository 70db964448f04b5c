// Starts what the engine does with the object store in the background: the uploader of storage policies and the committer
// of the lake.

import type { LakeCatalog, LakeStatistics } from '../api/lake.js'
import type { ExecuteOptions, StatementResult, VirtualRelation } from '../api/statements.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { ToWriter } from '../storage/jobs/messages.js'
import type { BlockSource } from '../threads/remote-fetches.js'
import type { CatalogView } from './catalog-view.js'
import { type LakeClient, LakeCommitter } from './lake-committer.js'
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
    readonly report: (statistics: LakeStatistics) => void
  }
}

export interface StoreWorkOptions {
  readonly view: CatalogView
  readonly memory: SharedMemory
  /** Of parts. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Log
  readonly post: (message: ToWriter) => void
  readonly flush: (tableId: number) => Promise<unknown>
  readonly execute: (sql: string, options: ExecuteOptions) => Promise<StatementResult>
}

export interface StoreWork {
  readonly lake: LakeCatalog
  readonly relation: VirtualRelation
  close(): void
}

export function startStoreWork(
  { store, lake, ...objectStore }: EngineObjectStore,
  options: StoreWorkOptions,
): StoreWork {
  const uploader = new Uploader({ ...options, ...objectStore, store })
  const committer = new LakeCommitter({ ...options, ...objectStore, ...lake, store })
  return {
    lake: committer,
    relation: committer.relation(),
    close: () => {
      uploader.close()
      committer.close()
    },
  }
}
