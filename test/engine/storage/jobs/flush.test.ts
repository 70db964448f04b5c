// Goal: flushing any memtable, and compacting any parts (Parquet files), writes rows with ascending timestamps, ties in
// commit order, and without rows that DEDUP has replaced; each part has rows of one partition only. Flushes allocate
// only from the memory reserved for them.
//
// Method: random out-of-order rows in random blocks, compared with a sorted array as a model. The name of each test
// contains its random seed.

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadKernels } from '../../../../engine/kernels/load.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { blockHeaderBytes } from '../../../../engine/memory/column-layout.js'
import {
  type CompactionTools,
  chooseCompaction,
  compactedPartsMax,
  compactionPolicy,
  compactionSliceRows,
  createCompactionJob,
  inCommitOrder,
} from '../../../../engine/storage/jobs/compaction.js'
import { createFlushJob } from '../../../../engine/storage/jobs/flush.js'
import type { LateBound } from '../../../../engine/storage/schema/materialized.js'
import { partitionNamer } from '../../../../engine/storage/schema/partition.js'
import type {
  PartDescriptor,
  PartitionUnit,
  TableSchema,
  TableVersion,
} from '../../../../engine/storage/schema/schema.js'
import { type DataType, dataType } from '../../../../engine/types/column-types.js'
import {
  type Bench,
  bench,
  type Cell,
  cellsAt,
  everyType,
  hexOfCell,
  random,
  randomCell,
  schemaOf,
  storeColumn,
  versionOf,
} from '../part-support.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'flush-'))
})
afterEach(() => rmSync(root, { recursive: true }))

interface Row {
  readonly ts: bigint
  readonly cells: readonly Cell[]
}

function tsCell(ts: bigint): Uint8Array {
  return new Uint8Array(BigInt64Array.of(ts).buffer)
}

/** A memtable as the writer leaves it; `superseded[i]` = 1 + the row that replaced row i. */
function storeMemtable(
  { memory, allocator }: Bench,
  schema: TableSchema,
  rows: readonly Row[],
  superseded: readonly number[],
  next: () => number,
): number {
  const blocks: number[] = []
  for (let first = 0; first < rows.length; ) {
    const count = Math.min(rows.length - first, 1 + Math.floor(next() * 300))
    const some = rows.slice(first, first + count)
    const block = allocator.allocateOrThrow(blockHeaderBytes + schema.columns.length * 4, budgets.memtables)
    const marks = superseded.slice(first, first + count)
    const marksAt = allocator.allocateOrThrow(count * 4, budgets.memtables)
    memory.u32.set(marks, marksAt >>> 2)
    const words = [
      first,
      count,
      count,
      schema.columns.length,
      0,
      0,
      0,
      0,
      0,
      marks.some((mark) => mark > 0) ? marksAt : 0,
    ]
    memory.u32.set(words, block >>> 2)
    for (const { id, type } of schema.columns) {
      const cells = some.map((row) => row.cells[id] as Cell)
      const absent = id !== schema.timestampId && cells.every((cell) => cell === null)
      memory.u32[((block + blockHeaderBytes) >>> 2) + id] = absent ? 0 : storeColumn(memory, allocator, type, cells)
    }
    blocks.push(block)
    first += count
  }
  const directory = allocator.allocateOrThrow(blocks.length * 4, budgets.memtables)
  memory.u32.set(blocks, directory >>> 2)
  const memtable = allocator.allocateOrThrow(64, budgets.memtables)
  memory.u32.set([rows.length, blocks.length, directory, blocks.length, rows.length], memtable >>> 2)
  return memtable
}

/** A dictionary whose entry i has the text `s<i>`, as far as the tests need it. */
function storeDictionary({ memory, allocator }: Bench): number {
  const dictionary = allocator.allocateOrThrow(192, budgets.memtables)
  for (let chunk = 0; chunk < 3; chunk++) {
    const entries = allocator.allocateOrThrow((256 << chunk) * 8, budgets.memtables)
    memory.u32[((dictionary + 32) >>> 2) + chunk] = entries
    for (let i = 0; i < 256 << chunk; i++) {
      const text = new TextEncoder().encode(`s${256 * ((1 << chunk) - 1) + i}`)
      const at = allocator.allocateOrThrow(32, budgets.memtables)
      memory.u8.set(text, at)
      memory.u32.set([at, text.length], (entries + i * 8) >>> 2)
    }
  }
  memory.u32[dictionary >>> 2] = 700
  return dictionary
}

function toolsOf(bed: Bench): CompactionTools {
  const { files, directory, codec } = bed.tools
  const { memory, allocator, access } = bed
  return { files, directory, codec, group: null, memory, allocator, kernels: loadKernels(memory), parts: access }
}

function runFlush(bed: Bench, version: TableVersion, memtable: number, rows: number, txn: number, firstPartId: number) {
  const steps = { kind: 'flush', version, memtable, rows, minTxn: txn, maxTxn: txn, firstPartId } as const
  const job = createFlushJob(toolsOf(bed), steps)
  while (job.step() !== 'done') expect(bed.allocator.used(budgets.flush)).toBeGreaterThan(0)
  expect(bed.allocator.used(budgets.flush)).toBe(0)
  return job.result?.parts ?? []
}

/** All cells of a part, row by row. */
function rowsOf(bed: Bench, version: TableVersion, part: PartDescriptor): string[][] {
  const handle = bed.access.open(part, version)
  const out: string[][] = []
  for (let page = 0; page < handle.pageCount; page++) {
    const rows = handle.firstRows[page + 1]! - handle.firstRows[page]!
    const columns = version.schema.columns.map(({ id, type }) => {
      const address = bed.access.pin(handle, id, page)
      const cells =
        address === 0
          ? Array.from({ length: rows }, () => hexOfCell(type, null))
          : cellsAt(bed.memory, type, address, rows)
      bed.access.unpin(address)
      return cells
    })
    for (let row = 0; row < rows; row++) out.push(columns.map((cells) => cells[row] as string))
  }
  return out
}

function hexRow(schema: TableSchema, row: Row): string[] {
  return schema.columns.map(({ type, id }) => hexOfCell(type, row.cells[id] as Cell))
}

/** Stable by commit order. */
function sorted(rows: readonly Row[]): Row[] {
  return [...rows].sort((x, y) => (x.ts < y.ts ? -1 : x.ts > y.ts ? 1 : 0))
}

const units: PartitionUnit[] = ['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR']

function randomRows(types: readonly DataType[], count: number, next: () => number, spreadMicros: number): Row[] {
  return Array.from({ length: count }, (_, i) => {
    const late = next() < 0.3 ? Math.floor(next() * spreadMicros) : 0
    const ts = 1_710_000_000_000_000n + BigInt(Math.floor((i * spreadMicros) / count) - late)
    return { ts, cells: types.map((type, id) => (id === 0 ? tsCell(ts) : randomCell(type, next, 0.4))) }
  })
}

test.each(units.map((unit, i) => [unit, i + 1] as const))('flush by %s (seed %i)', (partitionBy, seed) => {
  const next = random(seed * 104_729)
  const bed = bench(root)
  const types = [dataType('TIMESTAMP'), ...everyType]
  const schema = schemaOf(types, { timestampId: 0, partitionBy })
  const dictionary = storeDictionary(bed)
  const version = { ...versionOf(schema), dictionaries: schema.columns.map(({ id }) => [id, dictionary] as const) }
  const spread = { NONE: 1e9, HOUR: 2e10, DAY: 4e11, WEEK: 3e12, MONTH: 1e13, YEAR: 1e14 }[partitionBy]
  const rows = randomRows(types, 1500, next, spread)
  const superseded = rows.map((_, i) => (next() < 0.1 && i + 1 < rows.length ? rows.length : 0))
  const memtable = storeMemtable(bed, schema, rows, superseded, next)
  const parts = runFlush(bed, version, memtable, rows.length, 7, 100)
  const wanted = sorted(rows.filter((_, i) => superseded[i] === 0)).map((row) => hexRow(schema, row))
  expect(parts.flatMap((part) => rowsOf(bed, version, part))).toEqual(wanted)
  const nameOf = partitionNamer(schema)
  for (const part of parts) {
    expect([nameOf(part.minTs), nameOf(part.maxTs), part.minTxn, part.maxTxn]).toEqual([
      part.partition,
      part.partition,
      7,
      7,
    ])
    expect(existsSync(join(root, part.file))).toBe(true)
  }
  expect(new Set(parts.map(({ partition }) => partition)).size).toBe(parts.length)
})

test('a table without designated timestamp keeps its order', () => {
  const next = random(99)
  const bed = bench(root)
  const types = [dataType('LONG'), dataType('VARCHAR')]
  const schema = schemaOf(types)
  const rows = randomRows(types, 1000, next, 1e9)
  const memtable = storeMemtable(
    bed,
    schema,
    rows,
    rows.map(() => 0),
    next,
  )
  const parts = runFlush(bed, versionOf(schema), memtable, 900, 1, 1)
  expect(parts.map(({ partition, rows: count }) => [partition, count])).toEqual([['default', 900]])
  expect(parts.flatMap((part) => rowsOf(bed, versionOf(schema), part))).toEqual(
    rows.slice(0, 900).map((row) => hexRow(schema, row)),
  )
})

test.each([1, 2, 3, 4])('merging parts equals flushing all rows at once, ties by transaction (seed %i)', (seed) => {
  const next = random(seed * 7477)
  const bed = bench(root)
  const types = [dataType('TIMESTAMP'), dataType('INT'), dataType('BOOLEAN'), dataType('VARCHAR'), dataType('SYMBOL')]
  const schema = schemaOf(types, { timestampId: 0, partitionBy: 'NONE' })
  const dictionary = storeDictionary(bed)
  const all: Row[] = []
  const parts: PartDescriptor[] = []
  const version = { ...versionOf(schema), dictionaries: [[4, dictionary]] as const }
  for (let txn = 1; txn <= 5; txn++) {
    // Few timestamps, so that there are many ties; a column that some parts do not have.
    const rows = randomRows(types, 200 + Math.floor(next() * 400), next, 300).map((row) => ({
      ts: row.ts,
      cells: row.cells.map((cell, id) => (id === 1 && txn % 2 === 0 ? null : cell)),
    }))
    const memtable = storeMemtable(
      bed,
      schema,
      rows,
      rows.map(() => 0),
      next,
    )
    parts.push(...runFlush(bed, version, memtable, rows.length, txn, txn * 10))
    all.push(...rows)
  }
  const job = createCompactionJob(toolsOf(bed), {
    kind: 'merge',
    version,
    parts: [...parts].reverse(),
    firstPartId: 999,
    sliceRows: 1 << 22,
  })
  const before = bed.allocator.used(budgets.queries)
  while (job.step() !== 'done') expect(bed.allocator.used(budgets.flush)).toBe(0)
  const merged = job.result?.parts[0] as PartDescriptor
  expect([merged.minTxn, merged.maxTxn, merged.rows]).toEqual([1, 5, all.length])
  expect(rowsOf(bed, version, merged)).toEqual(sorted(all).map((row) => hexRow(schema, row)))
  expect(bed.allocator.used(budgets.queries)).toBe(before)

  // With little memory it leaves a fourth to queries, although its estimate needs all.
  const limit = 8 * 1024 * 1024
  const narrow = { ...toolsOf(bed), allocator: { ...bed.allocator, limit: () => limit } }
  const again = createCompactionJob(narrow, { kind: 'merge', version, parts, firstPartId: 1999, sliceRows: 1 << 22 })
  again.step()
  const taken = bed.allocator.used(budgets.queries) - before
  expect(taken).toBeGreaterThan(limit / 2)
  expect(taken).toBeLessThan(limit * 0.8)
  while (again.step() !== 'done');
  expect(rowsOf(bed, version, again.result?.parts[0] as PartDescriptor)).toEqual(rowsOf(bed, version, merged))
})

test.each([1, 2, 3])('DEDUP: of equal keys in several parts the last transaction stays (seed %i)', (seed) => {
  const next = random(seed * 7919)
  const bed = bench(root)
  const types = [dataType('TIMESTAMP'), dataType('INT'), dataType('VARCHAR'), dataType('LONG')]
  const schema = schemaOf(types, { timestampId: 0, partitionBy: 'NONE', dedupKeys: [0, 1, 2] })
  const version = versionOf(schema)
  const model = new Map<string, Row>()
  const parts: PartDescriptor[] = []
  for (let txn = 1; txn <= 4; txn++) {
    const rows = new Map<string, Row>()
    for (let i = 0; i < 400; i++) {
      const ts = BigInt(txn * 10 + Math.floor(next() * 60))
      const int = txn === 2 ? null : next() < 0.3 ? null : new Uint8Array(Int32Array.of(Math.floor(next() * 3)).buffer)
      const text = next() < 0.3 ? null : new TextEncoder().encode(next() < 0.5 ? '' : 'k')
      const row = { ts, cells: [tsCell(ts), int, text, tsCell(BigInt(i + txn * 1000))] }
      rows.set(hexRow(schema, row).slice(0, 3).join(), row)
    }
    const list = [...rows.values()]
    for (const [key, row] of rows) model.set(key, row)
    const memtable = storeMemtable(
      bed,
      schema,
      list,
      list.map(() => 0),
      next,
    )
    parts.push(...runFlush(bed, version, memtable, list.length, txn, txn * 10))
  }
  const chosen = chooseCompaction({ ...version, parts }, new Set())
  expect(chosen).toEqual(inCommitOrder(parts))
  const keyed = (row: string[]) => row.join()
  for (const [round, sliceRows] of [1 << 22, 500, 1].entries()) {
    const firstPartId = 1000 * (round + 1)
    const job = createCompactionJob(toolsOf(bed), { kind: 'merge', version, parts, firstPartId, sliceRows })
    while (job.step() !== 'done');
    const merged = job.result?.parts ?? []
    expect(merged.length).toBeLessThanOrEqual(compactedPartsMax(parts, sliceRows))
    if (sliceRows === 1) expect(merged.length).toBeGreaterThan(1)
    // Slices do not overlap, and share no timestamp.
    for (const [index, part] of merged.entries()) {
      if (index > 0) expect(part.minTs).toBeGreaterThan((merged[index - 1] as PartDescriptor).maxTs)
    }
    const rows = merged.flatMap((part) => rowsOf(bed, version, part))
    expect(rows.map(keyed).sort()).toEqual([...model.values()].map((row) => hexRow(schema, row).join()).sort())
  }
})

test('the slices of a compaction fit into the memory of queries', () => {
  const narrow = schemaOf([dataType('TIMESTAMP'), dataType('DOUBLE')], { timestampId: 0 })
  const MIB = 1024 * 1024
  expect(compactionSliceRows(narrow, 1 << 22, 1024 * MIB, 4)).toBe(1 << 22)
  const rows = compactionSliceRows(narrow, 1 << 22, 40 * MIB, 4)
  expect(rows).toBeLessThanOrEqual(1 << 20)
  expect(rows).toBeGreaterThan(100_000)
  expect(compactionSliceRows(narrow, 1 << 22, MIB, 4)).toBe(1 << 19)
  expect(compactionSliceRows(narrow, 1000, MIB, 4)).toBe(1000)
})

test('DEDUP: overlapping parts that are too many for one merge still become fewer', () => {
  const version = versionOf(schemaOf([dataType('TIMESTAMP')], { timestampId: 0, dedupKeys: [0] }))
  const policy = { compactionPartsMin: 4, compactionRowsMax: 1000 }
  const partOf = (id: number, rows: number, minTs: number, maxTs: number): PartDescriptor => ({
    ...{ id, file: `${id}`, partition: 'p', rows, bytes: rows, minTxn: id, maxTxn: id, columnIds: [0] },
    ...{ minTs: BigInt(minTs), maxTs: BigInt(maxTs) },
  })
  const large = [partOf(1, 900, 0, 99), partOf(2, 900, 100, 199), partOf(3, 900, 200, 299)]
  const late = [4, 5, 6].map((id) => partOf(id, 10, 50, 250))
  const choose = (parts: readonly PartDescriptor[]) => chooseCompaction({ ...version, parts }, new Set(), policy)
  expect(choose(large)).toBe(undefined)
  expect(choose([...large, ...late])).toHaveLength(6)
  const hundreds = Array.from({ length: 300 }, (_, n) => partOf(10 + n, 10, 50, 250))
  const chosen = choose([...large, ...hundreds])
  expect(chosen).toHaveLength(100)
  expect(chosen?.[0]?.id).toBe(210)
})

test('parts that are only in the object store stay until eight overlap', () => {
  const version = versionOf(schemaOf([dataType('TIMESTAMP')], { timestampId: 0 }))
  const partOf = (id: number, minTs: bigint, maxTs: bigint, isRemote: boolean): PartDescriptor => ({
    ...{
      id,
      file: `${id}`,
      partition: 'p',
      rows: 1000,
      bytes: 1000,
      minTxn: id,
      maxTxn: id,
      columnIds: [0],
      minTs,
      maxTs,
    },
    ...(isRemote ? { remote: { key: `${id}`, checksum: id, only: true as const } } : {}),
  })
  const choose = (parts: readonly PartDescriptor[]) => chooseCompaction({ ...version, parts }, new Set())
  const remote = [1, 2, 3, 4, 5, 6].map((id) => partOf(id, 0n, 99n, true))
  expect(choose(remote)).toBe(undefined)
  expect(choose([...remote, partOf(7, 0n, 99n, false)])).toBe(undefined)
  // Local parts behind them are joined as ever.
  const late = [7, 8, 9, 10].map((id) => partOf(id, 200n, 299n, false))
  expect(choose([...remote, ...late])).toEqual(late)
  expect(choose([...remote, partOf(7, 0n, 99n, false), partOf(8, 50n, 60n, false)])).toHaveLength(8)
})

test('a job that is given up leaves no file and no memory behind', () => {
  const next = random(4)
  const bed = bench(root)
  const types = [dataType('TIMESTAMP'), dataType('VARCHAR')]
  const schema = schemaOf(types, { timestampId: 0, partitionBy: 'NONE' })
  const rows = randomRows(types, 500, next, 1e6)
  const memtable = storeMemtable(
    bed,
    schema,
    rows,
    rows.map(() => 0),
    next,
  )
  const base = { kind: 'flush', version: versionOf(schema), memtable, rows: 500, minTxn: 1, maxTxn: 1 } as const
  for (let steps = 1; steps < 40; steps++) {
    const job = createFlushJob(toolsOf(bed), { ...base, firstPartId: steps })
    let done = false
    for (let i = 0; i < steps && !done; i++) done = job.step() === 'done'
    if (done) return
    job.cancel()
    expect(bed.allocator.used(budgets.flush)).toBe(0)
    expect(existsSync(join(root, '1', 'default')) ? readdirSync(join(root, '1', 'default')) : []).toEqual([])
  }
  expect.unreachable('the job ends')
})

function partOf(id: number, rows: number, rest: Partial<PartDescriptor> = {}): PartDescriptor {
  const bounds = { minTs: BigInt(id), maxTs: BigInt(id), minTxn: id, maxTxn: id }
  return { id, file: '', partition: 'default', rows, bytes: rows, ...bounds, columnIds: [], ...rest }
}

test('the merge policy keeps parts few and rewrites a row a logarithmic number of times', () => {
  const schema = schemaOf([dataType('TIMESTAMP')], { timestampId: 0 })
  const parts: PartDescriptor[] = []
  let rewritten = 0
  let id = 1
  for (let flush = 0; flush < 2000; flush++) {
    parts.push(partOf(id++, 1000))
    for (;;) {
      const chosen = chooseCompaction({ ...versionOf(schema), parts }, new Set())
      if (chosen === undefined) break
      expect(chosen.length).toBeGreaterThanOrEqual(compactionPolicy.compactionPartsMin)
      const at = parts.indexOf(chosen[0] as PartDescriptor)
      expect(parts.slice(at, at + chosen.length)).toEqual(chosen)
      const rows = chosen.reduce((sum, part) => sum + part.rows, 0)
      const maxTxn = (chosen.at(-1) as PartDescriptor).maxTxn
      parts.splice(at, chosen.length, partOf(id++, rows, { minTxn: (chosen[0] as PartDescriptor).minTxn, maxTxn }))
      rewritten += rows
    }
  }
  expect(parts.length).toBeLessThan(20)
  expect(rewritten / 2_000_000).toBeLessThan(8)
})

test('large parts are joined only where their times overlap', () => {
  const schema = schemaOf([dataType('TIMESTAMP')], { timestampId: 0 })
  const choose = (overlap: number, rows = 1_000_000) => {
    const parts = [1, 2, 3, 4].map((id) =>
      partOf(id, rows, { minTs: BigInt(id * 1000 - overlap), maxTs: BigInt(id * 1000 + 1000) }),
    )
    return chooseCompaction({ ...versionOf(schema), parts }, new Set())?.length
  }
  expect(choose(0)).toBe(undefined)
  // Rows of concurrent senders.
  expect(choose(250)).toBe(undefined)
  expect(choose(500)).toBe(4)
  expect(choose(0, 1000)).toBe(4)
})

test('the merge policy leaves siblings, busy parts and other partitions alone', () => {
  const schema = schemaOf([dataType('TIMESTAMP')], { timestampId: 0 })
  const choose = (parts: PartDescriptor[], busy: number[] = []) =>
    chooseCompaction({ ...versionOf(schema), parts }, new Set(busy))?.map((part) => part.id)
  const four = [1, 2, 3, 4].map((id) => partOf(id, 100))
  expect(choose(four)).toEqual([1, 2, 3, 4])
  expect(choose(four, [2])).toBeUndefined()
  expect(choose(four.map((part) => ({ ...part, minTxn: 5, maxTxn: 5 })))).toBeUndefined()
  expect(choose(four.map((part, i) => ({ ...part, partition: `p${i % 2}` })))).toBeUndefined()
})

test('parts with rows of sealed buckets are not joined with those whose rows came later', () => {
  const choose = (bounds: LateBound[], dedupKeys: number[] = []) => {
    const schema = { ...schemaOf([dataType('TIMESTAMP')], { timestampId: 0 }), dedupKeys }
    const parts = [1, 2, 3, 4, 5, 6, 7, 8].map((id) => partOf(id, 100, { minTs: 0n, maxTs: 9n }))
    return chooseCompaction({ ...versionOf(schema), parts }, new Set(), compactionPolicy, bounds)?.map(({ id }) => id)
  }
  const bound = { lo: 5n, hi: 20n, transaction: 2 }
  expect(choose([])).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(choose([{ ...bound, lo: 10n }])).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(choose([bound])).toEqual([3, 4, 5, 6, 7, 8])
  expect(choose([bound, { ...bound, transaction: 5 }])).toBeUndefined()
  // With DEDUP keys, parts that overlap are joined whatever their number.
  expect(choose([bound], [0])).toEqual([1, 2])
})
