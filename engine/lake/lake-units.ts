// Maps the parts (Parquet files) of a table version to the data files of its Iceberg table. A data file contains the
// rows of one unit. A unit is a single part; or, in a table with DEDUP keys, all parts of a partition that overlap in
// time, because rows of one replace rows of another. A unit's name consists of the ids of its parts and the number of
// their removed rows (or, if too long, of a hash of these), so data files of the same name have the same rows.

import { createHash } from 'node:crypto'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { PartDescriptor, TableSnapshot, TableVersion } from '../storage/schema/schema.js'

export interface LakeUnit {
  readonly name: string
  /** In transaction order. */
  readonly parts: readonly PartDescriptor[]
}

const nameMax = 48

/** `removedRows`: of a part, those that the snapshot does not see. */
export function unitsOf({ parts, schema }: TableVersion, removedRows: (partId: number) => number): LakeUnit[] {
  const groups = schema.dedupKeys.length === 0 ? parts.map((part) => [part]) : overlapping(parts)
  return groups.map((group) => {
    const names = group.map(({ id }) => {
      const removed = removedRows(id)
      return removed === 0 ? `${id}` : `${id}r${removed}`
    })
    return { name: shortened(names.join('_')), parts: group }
  })
}

/** Rows of the part that transactions up to the last flushed one have removed. */
export function removedRowCount(
  { u32 }: Pick<SharedMemory, 'u32'>,
  { removals = [], flushedTxn = 0, parts }: TableVersion,
  partId: number,
): number {
  const marks = removals.find(([id]) => id === partId)
  if (marks === undefined) return 0
  const first = marks[1] >>> 2
  const rows = parts.find(({ id }) => id === partId)?.rows ?? 0
  let count = 0
  for (let row = first; row < first + rows; row++) {
    const transaction = u32[row]!
    if (transaction !== 0 && transaction <= flushedTxn) count++
  }
  return count
}

/** The snapshot with the rows of these parts alone, as transactions up to the last flushed one have left them. */
export function unitSnapshot({ version }: TableSnapshot, parts: readonly PartDescriptor[]): TableSnapshot {
  const { removals, flushedTxn = 0 } = version
  const own = { ...version, parts, memtables: [] }
  return { version: own, visibleRows: [], ...(removals === undefined ? {} : { transaction: flushedTxn }) }
}

function shortened(name: string): string {
  if (name.length <= nameMax) return name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 32)
  return `${name.slice(0, name.indexOf('_'))}_${hash}`
}

/** The parts of each partition in groups that do not overlap in time. */
function overlapping(parts: readonly PartDescriptor[]): PartDescriptor[][] {
  const byPartition = new Map<string, PartDescriptor[]>()
  for (const part of parts) byPartition.set(part.partition, [...(byPartition.get(part.partition) ?? []), part])
  return [...byPartition.values()].flatMap((all) => {
    const groups: { maxTs: bigint; ids: Set<number> }[] = []
    for (const { id, minTs, maxTs } of [...all].sort((x, y) => (x.minTs < y.minTs ? -1 : x.minTs > y.minTs ? 1 : 0))) {
      const last = groups.at(-1)
      if (last === undefined || minTs > last.maxTs) groups.push({ maxTs, ids: new Set([id]) })
      else {
        last.ids.add(id)
        if (maxTs > last.maxTs) last.maxTs = maxTs
      }
    }
    return groups.map(({ ids }) => all.filter(({ id }) => ids.has(id)))
  })
}
