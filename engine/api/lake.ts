// Types of the engine's API for the lake (tables that are also Iceberg tables in object storage): the catalog that
// Iceberg readers ask for tables, statistics of commits, and sources that several servers read into one table.

import type { KafkaPosition } from '../wal/source-position.js'

/** An Iceberg table as a catalog hands it out: its newest committed metadata, and the place of the file with it. */
export interface CatalogTable {
  readonly metadataLocation: string
  /** The content of the file. */
  readonly metadata: object
}

export interface LakeCatalog {
  /** Names of the tables with committed metadata. */
  tables(): readonly string[]
  /** Null if no such table has committed metadata. Rejects with StoreError while the store is away. */
  table(name: string): Promise<CatalogTable | null>
  /** The external catalog that has the tables instead; null: there is none. */
  readonly external: string | null
  readonly sources: SourceSharing
}

export interface SourcePlace {
  readonly topic: string
  readonly partition: number
}

/** A connector whose streams several servers read, one at a time each, into one Iceberg table of an external catalog. */
export interface SharedSource {
  readonly connector: string
  readonly table: string
  /** Columns that say from which record a row is. */
  readonly columns: { readonly topic: string; readonly partition: string; readonly offset: string }
}

/** See engine/session/lake-sources.ts. */
export interface SourceSharing {
  /** Call at the start, before rows are stored. Throws Error if another source has the table. */
  share(source: SharedSource): void
  /**
   * Call before records of these streams are fetched: they are to follow the stored positions then. Rejects while the
   * catalog does not say so.
   */
  begin(connector: string, places: readonly SourcePlace[]): Promise<void>
  /** Why records of the stream must not be stored at the moment; null: they may. */
  refusal(connector: string, place: SourcePlace): string | null
  /** Commits what is stored, since another server is to read on. Resolves also if that fails. */
  handOver(connector: string): Promise<void>
  /** Last offsets whose rows are in the Iceberg table, as far as they are known. */
  committed(connector: string): readonly KafkaPosition[]
}

const noSources: SourceSharing = {
  share: () => {},
  begin: async () => {
    throw new Error('offsets are shared through an Iceberg table, and there is no object store')
  },
  refusal: () => null,
  handOver: async () => {},
  committed: () => [],
}

export const noLake: LakeCatalog = {
  tables: () => [],
  table: async () => null,
  external: null,
  sources: noSources,
}

export interface LakeStatistics {
  /** Tables with changes that the lake does not have yet. */
  readonly waiting: number
  readonly commits: number
  readonly files: number
  readonly bytes: number
  readonly failures: number
  /** Attempts of commits that began again because another writer had committed to the table. */
  readonly conflicts: number
  /** Of a table whose last commit failed; null: there is none. */
  readonly failure: string | null
}
