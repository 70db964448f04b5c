// Goal: a flush of a large memtable, which sorts one time range after the other, gives the same result as a single
// sort: every row once, ascending, ties in commit order, also with outliers and with more rows of one timestamp than
// fit into a range; and it stays within the memory reserved for flushes.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadKernels } from '../../../../engine/kernels/load.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { blockHeaderBytes } from '../../../../engine/memory/column-layout.js'
import { createFlushJob, flushRowsMax } from '../../../../engine/storage/jobs/flush.js'
import type { PartDescriptor } from '../../../../engine/storage/schema/schema.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { type Bench, bench, random, schemaOf, versionOf } from '../part-support.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sorter-'))
})
afterEach(() => rmSync(root, { recursive: true }))

/** Two columns: timestamps, and the number of the row in commit order. */
function storeMemtable({ memory, allocator }: Bench, rows: number, blockRows: number, tsOf: (row: number) => number) {
  const blocks: number[] = []
  for (let first = 0; first < rows; first += blockRows) {
    const count = Math.min(blockRows, rows - first)
    const block = allocator.allocateOrThrow(blockHeaderBytes + 8, budgets.memtables)
    const [ts, numbers] = [0, 1].map(() => allocator.allocateOrThrow(count * 8 + 128, budgets.memtables)) as [
      number,
      number,
    ]
    memory.u32.set([first, count, count, 2, 0, 0, 0, 0, 0, 0], block >>> 2)
    memory.u32.set([ts, numbers], (block + blockHeaderBytes) >>> 2)
    for (let row = 0; row < count; row++) {
      memory.i64[(ts >>> 3) + row] = BigInt(tsOf(first + row))
      memory.i64[(numbers >>> 3) + row] = BigInt(first + row)
    }
    blocks.push(block)
  }
  const directory = allocator.allocateOrThrow(blocks.length * 4, budgets.memtables)
  memory.u32.set(blocks, directory >>> 2)
  const memtable = allocator.allocateOrThrow(64, budgets.memtables)
  memory.u32.set([rows, blocks.length, directory, blocks.length, rows], memtable >>> 2)
  return memtable
}

const seed = 4711

const shapes: Record<string, (next: () => number) => (row: number) => number> = {
  'anything, with outliers': (next) => (row) =>
    row % 100_000 === 7 ? (row % 3 === 0 ? -9e15 : 9e15) : Math.floor(next() * 1e12),
  'one timestamp fills slices': (next) => (row) =>
    next() < 0.9 ? 1_000_000 : Math.floor(next() * 2_000_000) + (row % 2),
  'ascending, a tenth late': (next) => (row) => row * 10 - (next() < 0.1 ? Math.floor(next() * 1e6) : 0),
}

test.each(Object.keys(shapes))(`%s (seed ${seed})`, (shape) => {
  const rows = flushRowsMax + 250_000
  const bed = bench(root, { memoryMiB: 512, cacheMiB: 64 })
  const tsOf = (shapes[shape] as (typeof shapes)[string])(random(seed))
  const memtable = storeMemtable(bed, rows, 100_000, tsOf)
  const schema = schemaOf([dataType('TIMESTAMP'), dataType('LONG')], { timestampId: 0, partitionBy: 'NONE' })
  const version = versionOf(schema)
  const { files, directory, codec } = bed.tools
  const { memory, allocator } = bed
  const tools = { files, directory, codec, group: null, memory, allocator, kernels: loadKernels(memory) }
  const places = { minTxn: 1, maxTxn: 1, firstPartId: 1 }
  const job = createFlushJob(tools, { kind: 'flush', version, memtable, rows, ...places })
  while (job.step() !== 'done') expect(allocator.used(budgets.flush)).toBeLessThanOrEqual(64 * 1024 * 1024)
  const parts = job.result?.parts ?? []
  expect(parts.map((part) => part.rows)).toEqual([flushRowsMax, 250_000])
  expect(disorder(bed, version, parts, rows)).toBe('none')
})

/** The first place where rows are not ascending by timestamp and commit order, or come twice. */
function disorder(bed: Bench, version: ReturnType<typeof versionOf>, parts: readonly PartDescriptor[], rows: number) {
  const { i64 } = bed.memory
  const seen = new Uint8Array(rows)
  let [lastTs, lastRow, count] = [-(2n ** 63n), -1, 0]
  for (const part of parts) {
    const handle = bed.access.open(part, version)
    for (let page = 0; page < handle.pageCount; page++) {
      const [ts, numbers] = [0, 1].map((id) => bed.access.pin(handle, id, page)) as [number, number]
      const pageRows = handle.firstRows[page + 1]! - handle.firstRows[page]!
      for (let row = 0; row < pageRows; row++) {
        const [t, n] = [i64[(ts >>> 3) + row]!, Number(i64[(numbers >>> 3) + row])]
        if (t < lastTs || (t === lastTs && n < lastRow))
          return `${part.id} ${page} ${row}: ${t} ${n} after ${lastTs} ${lastRow}`
        if (seen[n] === 1) return `row ${n} twice`
        seen[n] = 1
        lastTs = t
        lastRow = n
        count++
      }
      bed.access.unpin(ts)
      bed.access.unpin(numbers)
    }
  }
  return count === rows ? 'none' : `${count} rows`
}
