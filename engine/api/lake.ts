// Types of the engine's API for the lake (tables that are also Iceberg tables in object storage): the catalog that
// Iceberg readers ask for tables, and statistics of commits.

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
}

export const noLake: LakeCatalog = { tables: () => [], table: async () => null, external: null }

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
