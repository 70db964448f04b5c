// Opens the Iceberg table of a table with LAKE ON, in this server's catalog or in an external one. Also compares table
// versions and data files for the committer (session/lake-committer.ts).

import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { CatalogTableOptions } from './catalog-table.js'
import type { CommittedTable } from './committed-table.js'
import type { LakeTableOptions } from './lake-table.js'
import type { DataFile } from './manifest-files.js'
import type { RestCatalog } from './rest-catalog.js'

export interface OpenLakeOptions {
  readonly store: LakeTableOptions['store'] & CatalogTableOptions['store']
  readonly rootId: string
  /** Of the table's keys in the store. */
  readonly prefix: string
  /** Null: this server is the catalog. */
  readonly catalog: RestCatalog | null
  readonly clock: Clock
  /** Called when a commit begins again because of another writer. */
  readonly onConflict: () => void
}

/** Rejects with StoreError. The code is loaded by servers with such tables only. */
export async function openLakeTable(
  version: TableVersion,
  { store, rootId, prefix, catalog, clock, onConflict }: OpenLakeOptions,
): Promise<CommittedTable> {
  const { schema, lake } = version
  const nowMs = (): number => Math.floor(clock.nowMicros() / 1000)
  const recorded = recordedVersion(version)
  if (catalog === null) {
    const { LakeTable } = await import('./lake-table.js')
    const { uuid = '', replaces } = schema.lake ?? {}
    const options = { store, nowMs, prefix, uuid }
    if (replaces === undefined || recorded > 0) return LakeTable.open(options, recorded)
    const former = { store, nowMs, prefix: formerPrefix(prefix, uuid, replaces), uuid: replaces }
    return LakeTable.open({ ...options, replaced: await LakeTable.open(former, 0) }, recorded)
  }
  const { CatalogTable } = await import('./catalog-table.js')
  const name = lake?.uuid === schema.lake?.uuid ? lake?.name : undefined
  const sleep = (ms: number): Promise<void> => new Promise((later) => setTimeout(later, ms))
  return CatalogTable.open(
    { store, rootId, identity: identityOf(version), schema, nowMs, catalog, sleep, onConflict },
    { version: recorded, ...(name === undefined ? {} : { name }) },
  )
}

function formerPrefix(prefix: string, uuid: string, former: string): string {
  return `${prefix.slice(0, -uuid.length)}${former}`
}

/** What the keys of the table's objects, and of those of the table that it replaces, begin with. */
export function placesOf({ schema: { lake } }: Pick<TableVersion, 'schema'>, prefix: string): string[] {
  const former = lake?.replaces === undefined ? [] : [formerPrefix(prefix, lake.uuid, lake.replaces)]
  return [prefix, ...former].map((one) => `${one}/`)
}

export function identityOf({ schema }: TableVersion): string {
  return `${schema.id}-${schema.lake?.uuid ?? ''}`
}

/** The version of the metadata that the manifest records; 0: none. */
export function recordedVersion({ schema, lake }: TableVersion): number {
  return lake !== undefined && lake.uuid === schema.lake?.uuid ? lake.version : 0
}

/** Whether readers find the table, or the one that it replaces, in this server's catalog. */
export function isHandedOut(version: TableVersion): boolean {
  return recordedVersion(version) > 0 || version.schema.lake?.replaces !== undefined
}

/** Where the catalog of this server has the table, or the one that it replaces; null: nowhere. `url`: of its store. */
export function handedOutLocation(version: TableVersion, prefix: string, url: string | undefined): string | null {
  if (url === undefined || !isHandedOut(version)) return null
  const { uuid = '', replaces } = version.schema.lake ?? {}
  const isOwn = recordedVersion(version) > 0 || replaces === undefined
  return `${url.replace(/\/+$/, '')}/${isOwn ? prefix : formerPrefix(prefix, uuid, replaces)}`
}

export function unitNameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/-[0-9a-f-]{36}\.parquet$/, '')
}

/** Whether versions differ at most in what the manifest records of the lake. */
export function hasSameRows(one: TableVersion, other: TableVersion): boolean {
  const bare = ({ version: _, lake: __, ...rest }: TableVersion): Omit<TableVersion, 'version' | 'lake'> => rest
  return isDeepStrictEqual(bare(one), bare(other))
}

/** Whether the added files certainly have the rows of the removed ones. `rewrites`: of the version before. */
export function isCompacted(
  rewrites: number | undefined,
  { files }: CommittedTable,
  version: TableVersion,
  added: readonly DataFile[],
  removed: ReadonlySet<string>,
): boolean {
  if (rewrites === undefined || rewrites !== version.rewrites) return false
  if (version.schema.dedupKeys.length > 0 || version.removals !== undefined) return false
  const rowsOf = (all: readonly Pick<DataFile, 'rows'>[]): number => all.reduce((sum, { rows }) => sum + rows, 0)
  return rowsOf(added) === rowsOf([...files.values()].filter(({ path }) => removed.has(path)))
}
