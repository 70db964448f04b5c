// Schemas of tables that no manifest and no log knows any more, from the columns of their parts. What parts do not say
// (DEDUP keys, TTL, declarations) is lost, and a column that no part has is, too.

import { crc32 } from 'node:zlib'
import { CorruptionError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import { dataType } from '../types/column-types.js'
import { type PartIndex, readPartIndex } from './part-index.js'
import type { ColumnSchema, PartitionUnit, TableSchema } from './schema.js'

const partitionForms: readonly (readonly [PartitionUnit, RegExp])[] = [
  ['HOUR', /^-?\d{4,}-\d\d-\d\dT\d\d$/],
  ['DAY', /^-?\d{4,}-\d\d-\d\d$/],
  ['WEEK', /^-?\d{4,}-W\d\d$/],
  ['MONTH', /^-?\d{4,}-\d\d$/],
  ['YEAR', /^-?\d{4,}$/],
]

/** Of the newest part; columns that it lacks are of earlier ones. */
export function schemaOfParts(parts: readonly PartIndex[]): TableSchema {
  const newest = [...parts].sort((x, y) => y.metadata.schemaVersion - x.metadata.schemaVersion)
  const [first] = newest
  if (first === undefined) throw new CorruptionError('a table without parts has no schema', '', 0)
  const { tableId, table, partition, timestampId, schemaVersion } = first.metadata
  const known = new Map<number, ColumnSchema>()
  for (const { metadata } of newest) {
    for (const { id, name, type } of metadata.columns) {
      if (!known.has(id)) known.set(id, { id, name, type, dropped: false })
    }
  }
  const columns = Array.from(
    { length: Math.max(...known.keys()) + 1 },
    (_, id): ColumnSchema => known.get(id) ?? { id, name: `dropped_${id}`, type: dataType('INT'), dropped: true },
  )
  return {
    ...{ id: tableId, name: table, version: schemaVersion, columns, timestampId },
    partitionBy: partitionForms.find(([, form]) => form.test(partition))?.[0] ?? 'NONE',
    ...{ bypassWal: false, dedupKeys: [], ttl: null, maxUncommittedRows: 500_000, o3MaxLagMicros: 600_000_000 },
    createdMicros: 0,
  }
}

/** How many symbols of each column the part relies on. */
export function symbolCountsOf(files: Files, path: string): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  const file = files.open(path, 'read')
  try {
    for (const { columnId, offset, count, crc } of readPartIndex(files, path).metadata.symbols) {
      const bytes = Buffer.alloc(count * 4)
      if (file.read(bytes, offset) < bytes.length || crc32(bytes) !== crc) {
        throw new CorruptionError('the symbol ids of a part are damaged', path, offset)
      }
      let highest = -1
      for (let at = 0; at < bytes.length; at += 4) highest = Math.max(highest, bytes.readInt32LE(at))
      counts.set(columnId, highest + 1)
    }
  } finally {
    file.close()
  }
  return counts
}
