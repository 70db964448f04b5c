// Reduces what the join of an upsert (marksRight() in join-sides.ts) reads of its probe side, the table whose rows are
// looked up among the new rows (the build side). If the key is an integer or a time, the scan skips pages whose minimum
// and maximum are outside of the range of the keys of the build side. Of the other pages it reads the key columns
// first, and then, unless keys have many matches, the remaining columns only for rows whose keys the build side has.

import { aggregateKinds, initStats, statsBytes } from '../../kernels/aggregate.js'
import { expandModes } from '../../kernels/join.js'
import type { ColumnType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import type { ScanMorsel } from '../scan/morsels.js'
import type { ScanShape } from '../scan/scan-shape.js'
import type { WantedRows } from '../scan/scan-slices.js'
import type { Matches, Pairing } from './join-matches.js'

/** Matches of a row, on average, up to which rows are selected before the join. */
const pairsMax = 4

interface BuiltKeys {
  readonly rows: number
  /** The key columns. */
  readonly keys: readonly Vector[]
}

/** `columns`: the keys among the columns of the scan. `matches` writes to `pairing`. */
export function wantedMatches(
  context: ExecContext,
  scan: ScanShape,
  columns: readonly number[],
  built: BuiltKeys,
  matches: Matches,
  { probeRows, rowsMax }: Pairing,
): WantedRows {
  const { u32 } = context.memory
  return {
    columns,
    skips: skippedBy(context, scan, columns, built),
    select: (vectors, rows, out) => {
      const keys = columns.flatMap((index) => vectors[index] ?? [])
      matches.begin(keys, rows)
      const first = out >>> 2
      let last = -1
      let count = 0
      let pairs = 0
      for (let found = rowsMax; found === rowsMax; ) {
        found = matches.next(expandModes.matches)
        pairs += found
        // With keys that repeat, the join itself finds the pairs, in steps.
        if (pairs > rows * pairsMax) return -1
        for (let at = probeRows >>> 2, end = at + found; at < end; at++) {
          const row = u32[at]!
          if (row !== last) u32[first + count++] = row
          last = row
        }
      }
      return count
    },
  }
}

/** Types of keys whose bounds are compared. */
const bounded: Partial<Record<ColumnType, 'i32' | 'i64'>> = {
  ...{ INT: 'i32', LONG: 'i64', DATE: 'i64', TIMESTAMP: 'i64', TIMESTAMP_NS: 'i64' },
}

/** Tests by the bounds of one key of the build side, if it has no NULL. */
function skippedBy(
  { arena, memory, kernels }: ExecContext,
  { types, columnIds }: ScanShape,
  columns: readonly number[],
  { rows, keys }: BuiltKeys,
): (morsel: ScanMorsel) => boolean {
  const never = (): boolean => false
  const place = columns.findIndex((column, index) => {
    const { name } = types[column] ?? {}
    return name !== undefined && bounded[name] !== undefined && keys[index]?.type.name === name
  })
  const key = keys[place]
  const kind = key === undefined ? undefined : bounded[key.type.name]
  const columnId = columnIds[columns[place] ?? -1]
  if (key === undefined || kind === undefined || columnId === undefined || rows === 0) return never
  const stats = arena.keep(statsBytes)
  initStats(memory, stats, kind)
  kernels.aggregate.stats(aggregateKinds[kind], key.address, 0, rows, stats)
  const word = stats >>> 3
  const [count, min, max] = [memory.i64[word + 1], memory.i64[word + 2], memory.i64[word + 3]]
  if (count !== BigInt(rows) || min === undefined || max === undefined) return never
  return (morsel) => {
    const range = morsel.bounds(columnId)
    return range !== undefined && (range.max < min || range.min > max)
  }
}
