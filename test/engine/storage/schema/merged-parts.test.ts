// Goal: given an earlier list of a table's parts (Parquet files), changedParts() returns time ranges that contain
// every row that was added or removed since then. Compactions, which only join parts, do not count as changes. Method:
// random flushes, compactions and removals; the test knows the rows of each part.

import { expect, test } from 'vitest'
import { changedParts, mergedPart } from '../../../../engine/storage/schema/merged-parts.js'
import type { PartDescriptor } from '../../../../engine/storage/schema/schema.js'
import { createRandom } from '../../../support/random.js'

/** A part, and the timestamps of its rows, of which no two are equal. */
interface Known {
  readonly part: PartDescriptor
  readonly rows: ReadonlySet<bigint>
}

function partOf(id: number, rows: ReadonlySet<bigint>): PartDescriptor {
  const sorted = [...rows].sort((x, y) => (x < y ? -1 : 1))
  const [minTs = 0n, maxTs = 0n] = [sorted[0], sorted.at(-1)]
  return {
    ...{ id, file: `${id}`, partition: 'default', rows: rows.size, bytes: 0, minTs, maxTs, minTxn: id, maxTxn: id },
    columnIds: [0],
  }
}

function changedRanges(...parts: Parameters<typeof changedParts>) {
  const { addedRanges, other } = changedParts(...parts)
  return [...addedRanges, ...other]
}

test('changes are rows that came or went, not compactions', () => {
  let unchanged = 0
  for (let seed = 1; seed <= 100; seed++) {
    const random = createRandom(seed)
    let [id, ts] = [1, 0n]
    let parts: Known[] = []
    const lists: { readonly known: readonly Known[] }[] = []
    for (let step = 0; step < 40; step++) {
      const action = random.below(10)
      if (action < 5) {
        const rows = new Set(Array.from({ length: 1 + random.below(4) }, () => ts++ * 10n))
        parts.push({ part: partOf(id++, rows), rows })
      } else if (action < 8 && parts.length > 1) {
        const from = random.below(parts.length - 1)
        const chosen = parts.slice(from, from + 2 + random.below(3))
        const rows = new Set(chosen.flatMap((known) => [...known.rows]))
        const made = mergedPart(
          partOf(id++, rows),
          chosen.map(({ part }) => part),
          new Set(lists.flatMap(({ known }) => known.map(({ part }) => part.id))),
        )
        parts = [...parts.slice(0, from), { part: made, rows }, ...parts.slice(from + chosen.length)]
      } else if (action === 8 && parts.length > 0) {
        // A rewrite that removes a row, or all of them.
        const at = random.below(parts.length)
        const rows = new Set([...(parts[at]?.rows ?? [])].slice(1))
        const left = rows.size === 0 ? [] : [{ part: partOf(id++, rows), rows }]
        parts = [...parts.slice(0, at), ...left, ...parts.slice(at + 1)]
      } else lists.push({ known: parts })
      for (const { known } of lists) {
        const before = known.map(({ part }) => [part.id, `${part.minTs}`, `${part.maxTs}`] as const)
        const ranges = changedRanges(
          before,
          parts.map(({ part }) => part),
        )
        const [then, now] = [rowsOf(known), rowsOf(parts)]
        const changed = [...then, ...now].filter((row) => then.has(row) !== now.has(row))
        const isIn = (row: bigint): boolean => ranges.some(({ lo, hi }) => lo <= row && row <= hi)
        expect(
          changed.filter((row) => !isIn(row)),
          `seed ${seed}, step ${step}`,
        ).toEqual([])
        if (changed.length === 0 && ranges.length === 0) unchanged++
      }
    }
  }
  expect(unchanged).toBeGreaterThan(30)
})

function rowsOf(parts: readonly Known[]): ReadonlySet<bigint> {
  return new Set(parts.flatMap(({ rows }) => [...rows]))
}

test('a compaction of parts that are all listed changes nothing; a new one among them is its range', () => {
  const parts = [1, 2, 3].map((id) => partOf(id, new Set([BigInt(id * 10), BigInt(id * 10 + 5)])))
  const listed = parts.slice(0, 2).map(({ id, minTs, maxTs }) => [id, `${minTs}`, `${maxTs}`] as const)
  const first = mergedPart(partOf(4, new Set([10n, 25n])), parts.slice(0, 2), new Set([1]))
  expect(changedRanges(listed, [first])).toEqual([])
  const second = mergedPart(partOf(5, new Set([10n, 35n])), [first, ...parts.slice(2)], new Set([2]))
  expect(changedRanges(listed, [second])).toEqual([{ lo: 30n, hi: 35n }])
  expect(changedRanges([[4, '10', '25']], [second])).toEqual([{ lo: 30n, hi: 35n }])
  expect(changedRanges([[5, '10', '35']], [second])).toEqual([])
  // Names that no view lists are not kept.
  const short = mergedPart(partOf(6, new Set([10n, 35n])), [first, ...parts.slice(2)], new Set([3, 4]))
  expect(short.merged).toEqual([
    [4, '10', '25'],
    [3, '30', '35'],
  ])
})

test('a part names a bounded number of others', () => {
  const listed = new Set(Array.from({ length: 400 }, (_, id) => id))
  let part = partOf(1, new Set([1n]))
  for (let id = 2; id < 400; id++) {
    part = mergedPart(partOf(id, new Set([1n, BigInt(id)])), [part, partOf(1000 + id, new Set([BigInt(id)]))], listed)
    expect(JSON.stringify(part.merged).length).toBeLessThan(1000)
    expect(changedRanges([[part.merged?.[0]?.[0] ?? 0, '1', `${id - 1}`]], [part])).toEqual([
      { lo: BigInt(id), hi: BigInt(id) },
    ])
  }
})
