// The metadata of an Iceberg table as an external REST catalog returns it, and the JSON of its requests and responses.
// Ids of snapshots have up to 63 bits, more than numbers of JavaScript hold, so they are texts of digits here.

import { StoreError } from '../object-store/object-store.js'
import type { IcebergType } from './lake-columns.js'

export interface CatalogField {
  readonly id: number
  readonly name: string
  readonly required: boolean
  readonly type: IcebergType | { readonly type: 'struct' | 'map' }
  readonly doc?: string
}

export interface CatalogSchema {
  readonly type: 'struct'
  readonly 'schema-id': number
  readonly fields: readonly CatalogField[]
}

interface CatalogPartitionField {
  readonly 'source-id': number
  readonly 'field-id': number
  readonly name: string
  readonly transform: string
}

interface CatalogSortOrder {
  readonly 'order-id': number
  readonly fields: readonly {
    readonly transform: string
    readonly 'source-id': number
    readonly direction: string
    readonly 'null-order': string
  }[]
}

export interface CatalogSnapshot {
  readonly 'snapshot-id': string
  readonly 'parent-snapshot-id'?: string | null
  readonly 'sequence-number': number
  readonly 'timestamp-ms': number
  readonly 'manifest-list': string
  readonly summary: Readonly<Record<string, string>>
  readonly 'schema-id'?: number
  /** In format version 3. */
  readonly 'first-row-id'?: number
  readonly 'added-rows'?: number
}

export interface CatalogMetadata {
  readonly 'format-version': number
  readonly 'table-uuid': string
  readonly location: string
  readonly 'last-sequence-number': number
  readonly 'last-updated-ms': number
  readonly 'last-column-id': number
  readonly 'current-schema-id': number
  readonly schemas: readonly CatalogSchema[]
  readonly 'default-spec-id': number
  readonly 'partition-specs': readonly {
    readonly 'spec-id': number
    readonly fields: readonly CatalogPartitionField[]
  }[]
  readonly 'default-sort-order-id'?: number
  readonly 'sort-orders'?: readonly CatalogSortOrder[]
  readonly properties?: Readonly<Record<string, string>>
  readonly 'current-snapshot-id'?: string | null
  readonly snapshots?: readonly CatalogSnapshot[]
  readonly refs?: Readonly<Record<string, { readonly 'snapshot-id': string; readonly type: string }>>
  /** In format version 3: the first id of a row that no snapshot has given. */
  readonly 'next-row-id'?: number
}

const idMembers = 'current-snapshot-id|snapshot-id|parent-snapshot-id'
/** Within a string of JSON the closing quote would have a backslash before it, so these match members alone. */
const idNumbers = new RegExp(`("(?:${idMembers})"\\s*:\\s*)(-?\\d+)`, 'g')
const idTexts = new RegExp(`("(?:${idMembers})":)"(-?\\d+)"`, 'g')
const idLists = /("snapshot-ids":\[)((?:"\d+",?)*)\]/g

/** Throws SyntaxError. */
export function parseCatalogJson(text: string): unknown {
  return JSON.parse(text.replace(idNumbers, '$1"$2"'))
}

export function catalogJson(value: unknown): string {
  return JSON.stringify(value)
    .replace(idTexts, '$1$2')
    .replace(idLists, (_, start: string, ids: string) => `${start}${ids.replaceAll('"', '')}]`)
}

/** The member `metadata` of a response. Throws StoreError if it lacks what a table of format version 2 or 3 has. */
export function metadataIn(response: unknown): CatalogMetadata {
  const metadata = isObject(response) ? response['metadata'] : undefined
  if (!isMetadata(metadata))
    throw new StoreError('damaged', 'the response of the catalog is not the metadata of a table')
  const version = metadata['format-version']
  if (version === 2 || version === 3) return metadata
  throw new StoreError('rejected', `the table has format version ${version}, and only versions 2 and 3 are supported`)
}

export function currentSchemaOf(metadata: CatalogMetadata): CatalogSchema {
  const id = metadata['current-schema-id']
  const schema = metadata.schemas.find((one) => one['schema-id'] === id)
  if (schema === undefined) throw new StoreError('damaged', `the metadata lacks its current schema [schema=${id}]`)
  return schema
}

/** Null: the table has no rows. */
export function snapshotOf(metadata: CatalogMetadata): CatalogSnapshot | null {
  const id = metadata['current-snapshot-id'] ?? '-1'
  if (id === '-1') return null
  const snapshot = metadata.snapshots?.find((one) => one['snapshot-id'] === id)
  if (snapshot === undefined)
    throw new StoreError('damaged', `the metadata lacks its current snapshot [snapshot=${id}]`)
  return snapshot
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isMetadata(value: unknown): value is CatalogMetadata {
  if (!isObject(value)) return false
  const numbers = ['format-version', 'last-column-id', 'current-schema-id', 'default-spec-id']
  const lists = ['schemas', 'partition-specs']
  return (
    numbers.every((name) => typeof value[name] === 'number') &&
    lists.every((name) => Array.isArray(value[name])) &&
    typeof value['table-uuid'] === 'string' &&
    typeof value['location'] === 'string'
  )
}
