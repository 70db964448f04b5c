// Goal: the WebAssembly kernel that copies single rows from memory blocks into one column is not much slower when a
// block lacks the column than when it has it.

import { expect, test } from 'vitest'
import { loadKernels } from '../../../engine/kernels/load.js'
import { nullKinds } from '../../../engine/kernels/parquet.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'

const memory = createSharedMemory(4 * 1024 * 1024)
const { parquet } = loadKernels(memory)
const [positions, values, bases, target] = [65_536, 1024 * 1024, 1024, 2 * 1024 * 1024]

test('gather of a column that no block has takes time by the row, as it does of others', () => {
  const rows = 65_536
  for (let row = 0; row < rows; row++) memory.u32[positions / 4 + row] = row
  const time = (base: number): number => {
    memory.u32[bases / 4] = base
    const start = performance.now()
    parquet.gatherBlocks(positions, rows, 16, bases, 4, nullKinds.i32, target)
    return performance.now() - start
  }
  const best = (base: number): number => Math.min(...Array.from({ length: 5 }, () => time(base)))
  expect(best(0)).toBeLessThan(Math.max(best(values), 0.05) * 100)
})
