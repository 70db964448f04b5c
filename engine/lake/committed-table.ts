// An Iceberg table as the engine commits to it. There are two implementations: lake-table.ts for a table whose catalog
// is this server, and catalog-table.ts for one in an external REST catalog.

import type { CatalogTable } from '../api/lake.js'
import { StoreError } from '../object-store/object-store.js'
import type { PartDescriptor, TableSchema } from '../storage/schema/schema.js'
import type { LakeColumn } from './lake-columns.js'
import type { DataFile } from './manifest-files.js'
import type { SourceAdvance, SourceBegin, TableSources } from './source-offsets.js'

export interface CommittedTable {
  /** Recorded in our manifest after each commit; 0: there was none. */
  readonly version: number
  /** Of the table in the catalog; null: it has the name of the table here. */
  readonly name: string | null
  /** Of the table that it replaces as long as it has no metadata itself. */
  readonly location: string | null
  /** What this server's catalog hands out; null: the table has no metadata yet, or is in another catalog. */
  readonly handedOut: CatalogTable | null
  /** Null: the table has no snapshot. */
  readonly snapshotId: bigint | null
  /** How far sources are in the table; null: this server is its catalog, and only its own commits count. */
  readonly sources: SharedSources | null
  /** Those of this server, by path. */
  readonly files: ReadonlyMap<string, Pick<DataFile, 'path' | 'rows' | 'bytes'>>
  /** Whether the file has the rows that its name says. */
  isKnown(path: string): boolean
  /** URI of an object of the table. */
  uri(name: string): string
  /** Key of an object of the table, as the store knows it. */
  key(name: string): string
  keyOf(uri: string): string
  /** Keys of this server's objects that the table, or something that it names, names. Rejects with StoreError. */
  namedKeys(): Promise<Set<string>>
  /** Called before data files are written: their columns, with field ids, and places depend on it. */
  prepare(schema: TableSchema): Promise<void>
  columns(schema: TableSchema): readonly LakeColumn[]
  placeOf(schema: TableSchema, parts: readonly PartDescriptor[]): Pick<DataFile, 'partition' | 'isSorted'>
  /** Whether there was anything to change. Rejects with StoreError, and with OvertakenError because of sources. */
  commit(change: LakeChange): Promise<boolean>
}

/** Sources whose records several servers store in the table. */
export interface SharedSources {
  readonly state: TableSources
  /**
   * Reads what the table is now, and commits, without a snapshot, where rows of sources begin. `decide` is called
   * again in each further attempt. Rejects with StoreError.
   */
  claim(decide: (state: TableSources) => ReadonlyMap<string, SourceBegin>): Promise<void>
}

/** What a commit changes. */
export interface LakeChange {
  readonly schema: TableSchema
  readonly added: readonly DataFile[]
  /** Paths of files of the current snapshot. */
  readonly removed: ReadonlySet<string>
  /** The added files have the rows of the removed ones. */
  readonly isCompaction: boolean
  readonly advances?: readonly SourceAdvance[]
}

type Sized = Pick<DataFile, 'rows' | 'bytes'>

export function operationOf({ added, removed, isCompaction }: LakeChange): string {
  if (removed.size === 0) return 'append'
  if (added.length === 0) return 'delete'
  return isCompaction ? 'replace' : 'overwrite'
}

/** Counts in the summary of a snapshot. */
export function countsOf(what: string, bytesKey: string, files: readonly Sized[]): Record<string, string> {
  const sum = (value: (file: Sized) => number): string => `${files.reduce((all, file) => all + value(file), 0)}`
  return {
    [`${what}-data-files`]: `${files.length}`,
    [`${what}-records`]: sum(({ rows }) => rows),
    [bytesKey]: sum(({ bytes }) => bytes),
  }
}

/** Decodes an object; an error becomes a StoreError that names it. */
export function decoded<Value>(uri: string, decode: () => Value): Value {
  try {
    return decode()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreError('damaged', `an object is damaged: ${reason} [uri=${uri}]`, { cause: error })
  }
}
