// Seals buckets of materialized views: from then on they are read as stored, although their base table has lost the
// rows of dropped partitions (schema/materialized.ts). Checks that the table has the same rows for these buckets as when
// the views stored them, and makes the table's new schema, which the manifest record that removes the partitions
// contains.
//
// A compaction changes parts and no rows. The writer remembers each one until no reader holds an older version of the
// table, so it finds the parts that the views have read, although compactions have replaced them since.

import { assert } from '../../base/assert.js'
import { blockAt, blockCount, blockRows, blockTimes } from '../../memory/column-layout.js'
import type { SealedBuckets, Sealing } from '../schema/materialized.js'
import type { PartDescriptor, TableSchema } from '../schema/schema.js'
import type { WriterState } from './writer-state.js'
import type { Compacted, PartExtent, WriterTable } from './writer-table.js'

/** Sealed ranges of a view that a schema lists one by one. */
const rangesMax = 100

interface Range {
  readonly lo: bigint
  readonly hi: bigint
}

/** Whether the table has the same rows, of those on which the buckets depend, as when they were stored. */
export function isAsStored({ options: { memory } }: WriterState, table: WriterTable, sealing: Sealing): boolean {
  assert(table.schema.timestampId >= 0, 'S2: buckets are those of a table with a designated timestamp')
  const ranges = sealing.needed.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) }))
  const overlaps = ({ lo, hi }: Range): boolean => ranges.some((range) => lo <= range.hi && range.lo <= hi)
  const parts = partsBefore(table, sealing.version)
    .filter(({ minTs, maxTs }) => overlaps({ lo: minTs, hi: maxTs }))
    .map(({ id, removed }) => `${id}:${removed}`)
  const expected = new Set(sealing.parts.map(([id, removed]) => `${id}:${removed}`))
  if (parts.length !== expected.size || parts.some((part) => !expected.has(part))) return false
  return !table.memtables.some(({ memtable: { address } }) => {
    for (let index = 0; index < blockCount(memory, address); index++) {
      const block = blockAt(memory, address, index)
      if (blockRows(memory, block) === 0) continue
      const { minTs, maxTs } = blockTimes(memory, block)
      if (overlaps({ lo: minTs, hi: maxTs })) return true
    }
    return false
  })
}

/** To be called before the next version, and before the marks of the replaced parts are taken. */
export function noteCompaction(
  table: WriterTable,
  from: readonly PartDescriptor[],
  to: readonly PartDescriptor[],
): void {
  const noted: Compacted = { version: table.version + 1, from: extentsOf(table, from), to: to.map(({ id }) => id) }
  table.compactions = [...table.compactions, noted]
  table.retire(() => {
    table.compactions = table.compactions.filter((one) => one !== noted)
  })
}

/** The parts as they would be without the compactions since this version. */
function partsBefore(table: WriterTable, version: number): readonly PartExtent[] {
  const parts = new Map(extentsOf(table, table.parts).map((part) => [part.id, part]))
  for (const { version: since, from, to } of table.compactions.toReversed()) {
    // A part that has changed since is not the one that the compaction has written.
    if (since <= version || !to.every((id) => parts.get(id)?.removed === 0)) continue
    for (const id of to) parts.delete(id)
    for (const part of from) parts.set(part.id, part)
  }
  return [...parts.values()]
}

function extentsOf({ marks }: WriterTable, parts: readonly PartDescriptor[]): PartExtent[] {
  return parts.map(({ id, minTs, maxTs }) => ({ id, minTs, maxTs, removed: marks.get(id)?.count ?? 0 }))
}

/** The schema with these buckets sealed as of the table's last transaction. Views that do not exist are forgotten. */
export function sealedSchema(
  { schema, transaction }: WriterTable,
  sealing: Sealing,
  exists: (viewId: number) => boolean,
): TableSchema {
  const before = new Map(schema.sealed?.map((sealed) => [sealed.viewId, sealed.ranges] as const))
  for (const { viewId, ranges } of sealing.views) {
    for (const [first, last] of ranges) assert(BigInt(first) <= BigInt(last), 'P2: buckets end after they begin')
    assert(viewId !== schema.id, 'S2: a table keeps the buckets of other tables')
    const added = ranges.map(([first, last]) => [first, last, transaction] as const)
    before.set(viewId, bounded([...(before.get(viewId) ?? []), ...added]))
  }
  const sealed = [...before].flatMap(([viewId, ranges]) =>
    exists(viewId) && ranges.length > 0 ? [{ viewId, ranges }] : [],
  )
  return { ...schema, sealed }
}

/** The oldest ranges become one where they are adjacent, with the later transaction. */
function bounded(ranges: SealedBuckets['ranges']): SealedBuckets['ranges'] {
  if (ranges.length <= rangesMax) return ranges
  const sorted = [...ranges].sort(([x], [y]) => (BigInt(x) < BigInt(y) ? -1 : 1))
  const merged: (readonly [string, string, number])[] = []
  for (const range of sorted) {
    const last = merged.at(-1)
    const isAdjacent = last !== undefined && BigInt(last[1]) + 1n === BigInt(range[0])
    if (isAdjacent) merged[merged.length - 1] = [last[0], range[1], Math.max(last[2], range[2])]
    else merged.push(range)
  }
  return merged
}
