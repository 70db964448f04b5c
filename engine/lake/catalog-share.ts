// Records which part of an Iceberg table belongs to this server, if several servers commit to the table. Each server
// has one property of the table for this, named after the id of its root folder:
//
//   penstock.<root id> = {"table": id and uuid, "commit": number, "files": count, "rows": count, "columns": FieldMap,
//                         "sources": {connector: {topic: {partition: SourceBegin}}}}
//
// A server without rows of sources has no member `sources`.

import { StoreError } from '../object-store/object-store.js'
import type { FieldMap } from './catalog-columns.js'
import { type CatalogMetadata, isObject } from './catalog-metadata.js'
import { flatStreams, nestedStreams, offsetOf, type SourceBegin } from './source-offsets.js'

export interface OwnShare {
  /** Id and uuid of the table here that the files are of. */
  readonly table: string
  /** Number of the server's last commit with a snapshot. */
  readonly commit: number
  /** Data files of the server in the current snapshot, and their rows. */
  readonly files: number
  readonly rows: number
  readonly columns: FieldMap
  /** By streamKey(): where rows of the server begin that are not in the table. */
  readonly sources: ReadonlyMap<string, SourceBegin>
}

export const noShare: OwnShare = { table: '', commit: 0, files: 0, rows: 0, columns: {}, sources: new Map() }

const start = 'penstock.'

export function shareProperty(rootId: string, { sources, ...share }: OwnShare): Record<string, string> {
  const nested = sources.size === 0 ? {} : { sources: nestedStreams(sources) }
  return { [`${start}${rootId}`]: JSON.stringify({ ...share, ...nested }) }
}

/** Null: the server has nothing in the table. Throws StoreError. */
export function shareIn({ properties = {} }: CatalogMetadata, rootId: string): OwnShare | null {
  const text = properties[`${start}${rootId}`]
  if (text === undefined) return null
  const share = parsed(text)
  if (share !== null) return share
  throw new StoreError('damaged', `a property of the table in the catalog is damaged [property=${start}${rootId}]`)
}

/** Throws StoreError if the snapshot has other files of the server than its share says. `table`: for the message. */
export function requireOwnFiles(share: OwnShare, found: Pick<OwnShare, 'files' | 'rows'>, table: string): void {
  if (found.files === share.files && found.rows === share.rows) return
  throw new StoreError(
    'conflict',
    `another program has replaced files of this server, whose rows would be in the table twice: ` +
      `roll the table back [table=${table}, files=${found.files}, expected=${share.files}]`,
  )
}

/** Ids of fields that columns of other servers have. */
export function sharedFields({ properties = {} }: CatalogMetadata, rootId: string): Set<number> {
  const others = Object.entries(properties).filter(([name]) => name.startsWith(start) && name !== `${start}${rootId}`)
  return new Set(others.flatMap(([, text]) => Object.values(parsed(text)?.columns ?? {}).map(([id]) => id)))
}

/** Whether rows of sources have been committed to the table, so that its snapshots have offsets. */
export function hasSources({ properties = {} }: CatalogMetadata): boolean {
  const shares = Object.entries(properties).filter(([name]) => name.startsWith(start))
  const begins = shares.flatMap(([, text]) => [...(parsed(text)?.sources.values() ?? [])])
  return begins.some(({ next }) => next !== null)
}

function parsed(text: string): OwnShare | null {
  try {
    const share: unknown = JSON.parse(text)
    if (!isShare(share)) return null
    const sources = flatStreams(share.sources ?? {}, beginOf)
    return sources === null ? null : { ...share, sources }
  } catch {
    return null
  }
}

function beginOf(value: unknown): SourceBegin | null {
  if (!isObject(value)) return null
  const next = value['next'] === null ? null : offsetOf(value['next'])
  if (next === null && value['next'] !== null) return null
  if (value['discard'] === undefined) return { next }
  const discard = offsetOf(value['discard'])
  return discard === null ? null : { next, discard }
}

function isShare(value: unknown): value is Omit<OwnShare, 'sources'> & { readonly sources?: unknown } {
  if (!isObject(value) || typeof value['table'] !== 'string' || !isObject(value['columns'])) return false
  const { commit, files, rows, columns } = value
  const areNumbers = [commit, files, rows].every((one) => typeof one === 'number')
  return areNumbers && Object.values(columns).every((pair) => Array.isArray(pair) && typeof pair[0] === 'number')
}
