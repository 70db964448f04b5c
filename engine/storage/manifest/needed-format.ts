// The format number of the manifest (the list of all files) that a table or part needs. Older servers, which would
// misinterpret its rows, do not know the number and refuse the root folder. The writer raises the format before it
// installs a schema that needs it. A repair derives the format from the schemas and parts that it finds.

import { enforcedKey, isRemoteOnly, type PartDescriptor, type TableSchema } from '../schema/schema.js'
import { formats } from './manifest-format.js'

type FormatMember = ('dedupSkips' | 'dedupAfter' | 'keys' | 'columns' | 'materialized') | ('ttl' | 'sealed' | 'lake')

/** `isView`: whether the table with this id is a materialized view. */
export function formatOfSchema(schema: Pick<TableSchema, FormatMember>, isView: (tableId: number) => boolean): number {
  const { materialized, columns } = schema
  return Math.max(
    formats.plain,
    materialized === undefined ? 0 : formats.materializedViews,
    materialized !== undefined && (schema.ttl !== null || isView(materialized.baseId)) ? formats.sealedBuckets : 0,
    materialized?.live === undefined ? 0 : formats.liveViews,
    schema.sealed === undefined ? 0 : formats.sealedBuckets,
    schema.sealed?.some(({ adds }) => adds === true) === true ? formats.lateSealed : 0,
    columns.some(({ state }) => state === true) ? formats.viewStates : 0,
    materialized?.stateRule === undefined ? 0 : formatOfRule[materialized.stateRule],
    schema.dedupSkips === true ? formats.dedupSkip : 0,
    enforcedKey(schema) === undefined ? 0 : formats.enforcedKeys,
    schema.dedupAfter === undefined ? 0 : formats.dedupOfStored,
    columns.some(({ parquet }) => parquet !== undefined) ? formats.columnStorage : 0,
    schema.lake?.formatVersion === undefined ? 0 : formats.lakeVersions,
  )
}

const formatOfRule = { 2: formats.viewTimes, 3: formats.viewMeans, 4: formats.viewValues } as const

export function formatOfPart(part: Pick<PartDescriptor, 'remote' | 'removedRows'>): number {
  return Math.max(
    formats.plain,
    isRemoteOnly(part) ? formats.remoteParts : 0,
    part.removedRows === undefined ? 0 : formats.removedRows,
  )
}
