// System relations about one table: table_columns(), table_partitions(), and table_parts(), which lists the parts
// (Parquet files).

import { isRemoteOnly, liveColumns, type TableVersion } from '../../storage/schema/schema.js'
import { typeText } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { sizePretty } from '../functions/math.js'
import type { BindContext } from '../scope/bind-context.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'
import { microsOf } from './tables-relations.js'

/** Defaults of CREATE TABLE. */
export const defaultSymbolCapacity = 256
export const defaultIndexCapacity = 256

export function columnsRelation(version: TableVersion, { catalog }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'column STRING, type STRING, indexed BOOLEAN, indexBlockCapacity INT, symbolCached BOOLEAN, symbolCapacity INT, symbolTableSize INT, designated BOOLEAN, upsertKey BOOLEAN',
    ),
    rows: () => {
      const { symbolCounts, nullSymbols } = catalog.statistics(version.schema.id)
      return liveColumns(version.schema).map(({ id, name, type, symbol, indexed, place }): Value[] => {
        const isSymbol = type.name === 'SYMBOL'
        return [
          name,
          typeText(type),
          indexed !== undefined,
          // Recorded behaviour: ALTER TABLE stores an index capacity for columns of every type.
          (isSymbol && version.schema.view === undefined) || place !== undefined
            ? (indexed?.blockCapacity ?? defaultIndexCapacity)
            : 0,
          isSymbol && (symbol?.cached ?? true),
          isSymbol ? (symbol?.capacity ?? defaultSymbolCapacity) : 0,
          // NULL counts as a value.
          isSymbol ? (symbolCounts.get(id) ?? 0) + (nullSymbols.has(id) ? 1 : 0) : 0,
          id === version.schema.timestampId,
          version.schema.dedupKeys.includes(id),
        ]
      })
    },
  }
}

export function partitionsRelation(version: TableVersion, { catalog }: BindContext): SystemRelation {
  // Without a designated timestamp the bounds are NULL, and clients expect the nanosecond type for them.
  const timestamp = version.schema.columns.find(({ id }) => id === version.schema.timestampId)
  const time = timestamp?.type.name ?? 'TIMESTAMP_NS'
  return {
    columns: columnList(
      `index INT, partitionBy STRING, name STRING, minTimestamp ${time}, maxTimestamp ${time}, numRows LONG, diskSize LONG, diskSizeHuman STRING, readOnly BOOLEAN, active BOOLEAN, attached BOOLEAN, detached BOOLEAN, attachable BOOLEAN, isParquet BOOLEAN, parquetFileSize LONG`,
    ),
    rows: () => {
      const { partitions } = catalog.statistics(version.schema.id)
      return partitions.map(({ name, minTs, maxTs, rows, bytes }, index): Value[] => [
        index,
        version.schema.partitionBy,
        name,
        minTs,
        maxTs,
        BigInt(rows),
        BigInt(bytes),
        sizePretty(bytes),
        false,
        index === partitions.length - 1,
        true,
        false,
        false,
        false,
        -1n,
      ])
    },
  }
}

export function partsRelation(version: TableVersion): SystemRelation {
  return {
    columns: columnList(
      'file STRING, partition STRING, rows LONG, min TIMESTAMP, max TIMESTAMP, minTxn LONG, maxTxn LONG, bytes LONG, local BOOLEAN, remote STRING',
    ),
    rows: () =>
      version.parts.map((part): Value[] => {
        const { file, partition, rows, minTs, maxTs, minTxn, maxTxn, bytes, remote } = part
        const place = [!isRemoteOnly(part), remote?.key ?? null]
        const timed = version.schema.timestampId >= 0
        const bounds = timed ? [microsOf(version, minTs), microsOf(version, maxTs)] : [null, null]
        return [file, partition, BigInt(rows), ...bounds, BigInt(minTxn), BigInt(maxTxn), BigInt(bytes), ...place]
      }),
  }
}
