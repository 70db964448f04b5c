// Decides whether a row group of a Parquet file that another program wrote may have rows for a query's conditions, by
// the statistics in the file's footer. If not, scans skip it.

import { type Bound, boundsTest, type ColumnCondition, isTextCondition, textTest } from '../types/bounds.js'
import type { ForeignChunk } from './footer.js'
import { type ForeignColumn, physical } from './foreign-column.js'

export type ChunkTest = (column: ForeignColumn, chunk: ForeignChunk) => boolean

/** Null: row groups are not skipped by the condition. */
export function chunkTest(condition: ColumnCondition): ChunkTest | null {
  if (isTextCondition(condition)) {
    const test = textTest(condition.name, condition.values)
    if (test === null) return null
    return ({ form }, { bounds }) => form !== 'text' || bounds === null || test(bounds.min, bounds.max)
  }
  const values = condition.values.flatMap((value) => (value instanceof Uint8Array ? [] : [value]))
  const test = boundsTest(condition.name, values)
  if (test === null) return null
  return (column, { bounds }) => {
    if (bounds === null) return true
    const [min, max] = [boundOf(column, bounds.min), boundOf(column, bounds.max)]
    return min === undefined || max === undefined || test(min, max)
  }
}

/** As the values of the column are in memory; undefined: they have no bounds that are used. */
function boundOf({ form, physical: kind, lists }: ForeignColumn, bytes: Buffer): Bound | undefined {
  if (lists.length > 0) return undefined
  switch (form) {
    case 'same':
    case 'widened':
    case 'i8':
    case 'i16':
      return numberOf(kind, bytes)
    case 'days': {
      const days = numberOf(kind, bytes)
      return days === undefined ? undefined : BigInt(days) * 86_400_000n
    }
    case 'milliseconds': {
      const milliseconds = numberOf(kind, bytes)
      return milliseconds === undefined ? undefined : BigInt(milliseconds) * 1000n
    }
    default:
      return undefined
  }
}

function numberOf(kind: number, bytes: Buffer): Bound | undefined {
  if (kind === physical.int32) return bytes.length === 4 ? bytes.readInt32LE() : undefined
  if (kind === physical.int64) return bytes.length === 8 ? bytes.readBigInt64LE() : undefined
  if (kind !== physical.double || bytes.length !== 8) return undefined
  const value = bytes.readDoubleLE()
  return Number.isNaN(value) ? undefined : value
}
