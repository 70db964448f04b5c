// placeholder interface while written
import type { Files } from '../base/files.js'
import type { Log } from '../base/log.js'
import type { PartDescriptor, TableSchema } from './schema.js'

/** Ids that are never used twice over the life of the data directory: the first unused one of each kind. */
export interface ManifestIds {
  readonly table: number
  readonly part: number
  readonly generation: number
}

/** What the manifest knows of one table. */
export interface ManifestTable {
  readonly schema: TableSchema
  /** In transaction order. */
  readonly parts: readonly PartDescriptor[]
  /** Transactions up to this one are in parts; replay skips them. */
  readonly flushedTxn: number
  /** The table's symbol dictionaries are durable up to these counts: [columnId, entries]. */
  readonly dictionaries: readonly (readonly [number, number])[]
}

export type ManifestRecord =
  /** A table appears, or its schema is replaced. */
  | { readonly kind: 'schema'; readonly schema: TableSchema }
  /** One atomic change of a table's parts; `flushedTxn` and `dictionaries` when they move with it. */
  | {
      readonly kind: 'parts'
      readonly tableId: number
      readonly added: readonly PartDescriptor[]
      readonly removed: readonly number[]
      readonly flushedTxn?: number
      readonly dictionaries?: readonly (readonly [number, number])[]
    }
  | { readonly kind: 'drop'; readonly tableId: number }
  /** Reserves ids: the first unused ones. A missing member stays. */
  | { readonly kind: 'ids'; readonly table?: number; readonly part?: number; readonly generation?: number }
  /** The log before this position is not needed any more. */
  | { readonly kind: 'log'; readonly lsn: number }

export interface ManifestOptions {
  readonly files: Files
  /** Created when it does not exist. Belongs to the manifest alone. */
  readonly directory: string
  readonly log: Log
  /** A new file is begun when the current one exceeds twice its live size, but not below this. Default 1 MiB. */
  readonly checkpointBytesMin?: number
}

export interface Manifest {
  /** As of the last append, durable or not. Entries are replaced, never changed. */
  readonly tables: ReadonlyMap<number, ManifestTable>
  readonly ids: ManifestIds
  readonly lsn: number
  /** Appends the records as one atomic frame. Not durable before its sync. Throws FileError and is unusable then. */
  append(records: readonly ManifestRecord[]): void
  /**
   * The descriptor that a log thread syncs to make everything appended so far durable, then says so by synced().
   * It stays open until the next checkpoint().
   */
  readonly descriptor: number
  /** Everything up to the given count of appends is durable. */
  synced(appends: number): void
  /** Appends so far: pass it to synced() when a sync that began after it has returned. */
  readonly appends: number
  /** append and sync in one. */
  commit(records: readonly ManifestRecord[]): void
  /** A checkpoint is worth its cost. Take it when no sync is on its way. */
  readonly checkpointDue: boolean
  /** Writes the live state to a new file, durably, and removes the old one. */
  checkpoint(): void
  close(): void
}
