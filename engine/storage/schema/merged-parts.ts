// Records in a part (Parquet file) that a compaction has written from which parts it was joined, and from which parts
// those were joined in turn, as far as views list these. A record has at most 16 parts; if there are more, it has only
// the parts that were joined directly, or is omitted. Materialized views list the parts from which their stored buckets
// were computed; with this record they recognise that a joined part has the same rows. Without it, as in a server
// version that ignores it, they compute these buckets again.

import { assert } from '../../base/assert.js'
import type { BucketRange } from './materialized.js'
import type { MergedPart, PartDescriptor } from './schema.js'

/** Parts that a part names, at all levels. */
const namedMax = 16

/**
 * The part that a compaction has made of all rows of the others. Those names are kept of what an input was joined from
 * that views may need: they list a part among them.
 */
export function mergedPart(
  part: PartDescriptor,
  from: readonly PartDescriptor[],
  listed: ReadonlySet<number>,
): PartDescriptor {
  const isListed = ([id, , , merged = []]: MergedPart): boolean => listed.has(id) || merged.some(isListed)
  const inputs = from.map(({ id, minTs, maxTs, merged }) =>
    named(id, minTs, maxTs, merged?.some(isListed) === true ? merged : undefined),
  )
  if (namesIn(inputs) <= namedMax) return { ...part, merged: inputs }
  const direct = from.map(({ id, minTs, maxTs }) => named(id, minTs, maxTs))
  return direct.length > namedMax ? part : { ...part, merged: direct }
}

function named(id: number, minTs: bigint, maxTs: bigint, merged?: readonly MergedPart[]): MergedPart {
  return merged === undefined ? [id, `${minTs}`, `${maxTs}`] : [id, `${minTs}`, `${maxTs}`, merged]
}

function namesIn(parts: readonly MergedPart[]): number {
  return parts.reduce((sum, [, , , merged = []]) => sum + 1 + namesIn(merged), 0)
}

interface ChangedParts {
  /** Parts all of whose rows were added, and their time ranges. */
  readonly added: readonly PartDescriptor[]
  readonly addedRanges: readonly BucketRange[]
  /** Time ranges of rows that were added to a part that has others, and of those that were removed. */
  readonly grown: readonly BucketRange[]
  readonly removed: readonly BucketRange[]
  /** Both. */
  readonly other: readonly BucketRange[]
}

/** Compares the parts of a table with those that are listed. */
export function changedParts(
  listed: readonly (readonly [id: number, minTs: string, maxTs: string])[],
  parts: readonly PartDescriptor[],
): ChangedParts {
  const left = new Map(listed.map(([id, lo, hi]) => [id, { lo: BigInt(lo), hi: BigInt(hi) }]))
  const added: PartDescriptor[] = []
  const addedRanges: BucketRange[] = []
  const other: BucketRange[] = []
  /** Whether none of the rows are listed. Adds the ranges of those that are not to `news`. */
  const visit = ([id, lo, hi, merged]: MergedPart, news: BucketRange[]): boolean => {
    if (left.delete(id)) return false
    if (merged !== undefined) return merged.map((one) => visit(one, news)).every((isNew) => isNew)
    news.push({ lo: BigInt(lo), hi: BigInt(hi) })
    return true
  }
  for (const part of parts) {
    const news: BucketRange[] = []
    const { id, minTs, maxTs, merged } = part
    assert(minTs <= maxTs, 'T1: the rows of a part ascend by time')
    const isAdded = visit(named(id, minTs, maxTs, merged), news)
    if (isAdded) added.push(part)
    ;(isAdded ? addedRanges : other).push(...news)
  }
  const removed = [...left.values()]
  return { added, addedRanges, grown: other, removed, other: [...other, ...removed] }
}
