// Goal: a compaction is split into at most slicesMax() slices, the number for which part ids are reserved, and each row
// is in exactly one slice. Method: random lists of parts (Parquet files) whose pages do not overlap in time, so that no
// page must be read.

import { expect, test } from 'vitest'
import { sliceInputs, slicesMax } from '../../../../engine/storage/jobs/merge-slices.js'
import type { PartHandle } from '../../../../engine/storage/part/part-access.js'
import { createRandom } from '../../../support/random.js'

test('slices are no more than the reserved part ids', () => {
  const random = createRandom(7)
  for (let round = 0; round < 200; round++) {
    let time = 0n
    const handles = Array.from({ length: random.between(1, 10) }, () => {
      const firstRows = [0]
      const [minTs, maxTs]: [bigint[], bigint[]] = [[], []]
      for (let page = random.between(1, 6); page > 0; page--) {
        firstRows.push((firstRows.at(-1) as number) + random.between(1, 100))
        minTs.push(time)
        maxTs.push(time + 5n)
        time += 10n
      }
      return { pageCount: minTs.length, minTs, maxTs, firstRows, rows: firstRows.at(-1) } as unknown as PartHandle
    })
    const rows = handles.reduce((sum, handle) => sum + handle.rows, 0)
    const rowsMax = random.between(1, 300)
    const slices = sliceInputs({} as Parameters<typeof sliceInputs>[0], handles, 0, rowsMax)
    expect(slices.length).toBeLessThanOrEqual(slicesMax(rows, rowsMax))
    expect(slices.flat().reduce((sum, input) => sum + input.rows, 0)).toBe(rows)
  }
})
