// Goal: a part (Parquet file of a table) returns the values of every column type as they were written, bit by bit. A
// part that is completely written survives a power loss; one whose writing fails leaves no file. A flipped bit is
// reported with the name of the file, or changes no value. The cache of decoded pages stays within its budget, reports
// when all of it is pinned, and lets large scans pass it by. Method: random columns with boundary values and NULLs; the
// names of the tests of every type contain the seed.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CorruptionError, FileError, ResourceError } from '../../../engine/base/errors.js'
import { budgets } from '../../../engine/memory/budgets.js'
import { cacheCounts } from '../../../engine/storage/cache/chunk-slots.js'
import { writePart } from '../../../engine/storage/part/part-writer.js'
import type { PartDescriptor, TableSchema } from '../../../engine/storage/schema/schema.js'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import { firstDifference } from '../../support/differences.js'
import { atOperation, createFaultyDisk } from '../../support/simulator/faulty-files.js'
import {
  type Bench,
  bench,
  type Cell,
  cellsAt,
  drain,
  everyType,
  hexOfCell,
  random,
  randomCell,
  schemaOf,
  sourceOf,
  versionOf,
} from './part-support.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'part-'))
})
afterEach(() => rmSync(root, { recursive: true }))

function write(
  bed: Bench,
  schema: TableSchema,
  columns: readonly (readonly Cell[] | undefined)[],
  partId = 1,
): PartDescriptor {
  const source = sourceOf(bed, schema, columns)
  const place = { partId, partition: 'default', minTxn: 1, maxTxn: 2 }
  return drain(writePart(bed.tools, { schema, source, ...place }))
}

function readColumn(bed: Bench, schema: TableSchema, part: PartDescriptor, columnId: number): string[] {
  const handle = bed.access.open(part, versionOf(schema))
  const type = schema.columns[columnId]?.type as DataType
  const out: string[] = []
  for (let page = 0; page < handle.pageCount; page++) {
    const rows = handle.firstRows[page + 1]! - handle.firstRows[page]!
    const address = bed.access.pin(handle, columnId, page)
    out.push(...cellsAt(bed.memory, type, address, rows))
    bed.access.unpin(address)
  }
  return out
}

describe.each([
  { name: 'kernels, lz4', useReference: false, codec: 'lz4_raw' as const },
  { name: 'kernels, no codec', useReference: false, codec: 'none' as const },
  { name: 'reference kernels, lz4', useReference: true, codec: 'lz4_raw' as const },
])('$name', ({ useReference, codec }) => {
  test.each([1, 2, 3, 4, 5, 6])('every type comes back bit for bit (seed %i)', (seed) => {
    const next = random(seed * 7919)
    const bed = bench(root, { useReference, codec })
    const schema = schemaOf(everyType)
    const rows = [1, 7, 64, 1000, 3000, 129][seed - 1] as number
    const columns = everyType.map((type) => {
      const variety = next()
      const nullable = next() < 0.6
      return Array.from({ length: rows }, () => {
        const cell = randomCell(type, next, variety)
        return cell ?? (nullable ? null : randomCell(type, () => 0.5, variety))
      })
    })
    const part = write(bed, schema, columns)
    everyType.forEach((type, id) => {
      const wanted = (columns[id] as Cell[]).map((cell) => hexOfCell(type, cell))
      expect(readColumn(bed, schema, part, id), `${type.name} ${type.a}`).toEqual(wanted)
    })
    bed.access.close()
  })
})

test('several pages, cut where texts exceed a page; null pages; columns left out', () => {
  const bed = bench(root)
  const types = [dataType('TIMESTAMP'), dataType('VARCHAR'), dataType('DOUBLE'), dataType('INT'), dataType('BYTE')]
  const schema = schemaOf(types, { timestampId: 0 })
  const rows = 70_000
  const next = random(11)
  const ts = Array.from({ length: rows }, (_, i) => new Uint8Array(BigInt64Array.of(BigInt(i) * 3n).buffer))
  const big = new Uint8Array(3_000_000).fill(97)
  const strings = Array.from({ length: rows }, (_, i) => (i === 5 || (i > 100 && i < 108) ? big : new Uint8Array([98])))
  const doubles = Array.from({ length: rows }, (_, i) =>
    i < 63_000 ? randomCell(types[2] as DataType, next, 1) : null,
  )
  const part = write(bed, schema, [ts, strings, doubles])
  expect(part.columnIds).toEqual([0, 1, 2])
  expect([part.minTs, part.maxTs]).toEqual([0n, 3n * 69_999n])
  const handle = bed.access.open(part, versionOf(schema))
  expect(handle.pageCount).toBeGreaterThan(3)
  expect(handle.minTs[1]).toBe(BigInt(handle.firstRows[1]!) * 3n)
  expect(handle.maxTs.at(-1)).toBe(part.maxTs)
  expect(bed.access.pin(handle, 3, 0)).toBe(0)
  expect(bed.access.statistics(handle, 2, handle.pageCount - 1)?.bounds).toBeUndefined()
  expect(readColumn(bed, schema, part, 1)).toEqual(strings.map((cell) => hexOfCell(types[1] as DataType, cell)))
  expect(readColumn(bed, schema, part, 2)).toEqual(doubles.map((cell) => hexOfCell(types[2] as DataType, cell)))
})

test('integers of a small range have a dictionary, of which few values are picked; those of a large one are deltas', () => {
  const bed = bench(root, { codec: 'none' })
  const schema = schemaOf([dataType('LONG'), dataType('LONG')])
  const next = random(17)
  const integers = (range: number): Uint8Array[] =>
    Array.from({ length: 70_000 }, () => new Uint8Array(BigInt64Array.of(BigInt(Math.floor(next() * range))).buffer))
  const handle = bed.access.open(write(bed, schema, [integers(101), integers(1e6)]), versionOf(schema))
  expect([0, 1].map((columnId) => bed.access.pinPacked(handle, columnId, 0) !== 0)).toEqual([true, false])
})

test('a flipped byte anywhere is damage, with its file, or changes nothing', () => {
  const bed = bench(root)
  const types = [dataType('TIMESTAMP'), dataType('SYMBOL'), dataType('VARCHAR'), dataType('DOUBLE')]
  const schema = schemaOf(types, { timestampId: 0 })
  const next = random(5)
  const columns = types.map((type) => Array.from({ length: 500 }, () => randomCell(type, next, 0.4)))
  const part = write(bed, schema, columns)
  const path = join(root, part.file)
  const whole = readFileSync(path)
  const wanted = columns.map((cells, id) => cells.map((cell) => hexOfCell(types[id] as DataType, cell)))
  let reported = 0
  for (let at = 0; at < whole.length; at += 23) {
    const bytes = Buffer.from(whole)
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (at % 8)), at)
    writeFileSync(path, bytes)
    const fresh = bench(root, { memoryMiB: 80, cacheMiB: 16 })
    try {
      const got = types.map((_, id) => readColumn(fresh, schema, part, id))
      expect(got, `offset ${at}`).toEqual(wanted)
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error
      expect(error.file).toBe(path)
      reported++
    }
  }
  expect(reported).toBeGreaterThan(whole.length / 23 / 2)
})

test('the cache evicts what nobody pins, and says so when everything is pinned', () => {
  const bed = bench(root, { cacheMiB: 3, codec: 'none' })
  const schema = schemaOf([dataType('DOUBLE')])
  const next = random(3)
  const cells = Array.from({ length: 450_000 }, () => new Uint8Array(Float64Array.of(next()).buffer))
  const wanted = cells.map((cell) => hexOfCell(dataType('DOUBLE'), cell))
  const part = write(bed, schema, [cells])
  const handle = bed.access.open(part, versionOf(schema))
  expect(handle.pageCount).toBe(8)
  for (let round = 0; round < 3; round++) {
    expect(firstDifference(readColumn(bed, schema, part, 0), wanted)).toBe(null)
    expect(bed.allocator.used(budgets.cache)).toBeLessThanOrEqual(3 * 1024 * 1024)
  }
  const pinned: number[] = []
  expect(() => {
    for (let page = 0; page < 8; page++) pinned.push(bed.access.pin(handle, 0, page))
  }).toThrow(ResourceError)
  expect(new Set(pinned).size).toBe(pinned.length)
  for (const address of pinned) bed.access.unpin(address)
  expect(firstDifference(readColumn(bed, schema, part, 0), wanted)).toBe(null)
})

test('a scan of more than the cache holds reads numbers without a codec past it', () => {
  const bed = bench(root, { cacheMiB: 3, codec: 'none' })
  const types = [dataType('LONG'), dataType('DOUBLE')]
  const schema = schemaOf(types)
  const next = random(5)
  const few = Array.from({ length: 5000 }, next)
  const columns = types.map((_, id) =>
    Array.from({ length: 300_000 }, (_, row) => {
      return new Uint8Array(Float64Array.of(id === 0 ? next() : (few[(row * 7) % 5000] as number)).buffer)
    }),
  )
  const part = write(bed, schema, columns)
  const wanted = columns.map((cells, id) => cells.map((cell) => hexOfCell(types[id] as DataType, cell)))
  for (let round = 0; round < 3; round++) {
    for (const [id, values] of wanted.entries()) {
      expect(firstDifference(readColumn(bed, schema, part, id), values)).toBe(null)
    }
  }
  const { misses, evictions } = cacheCounts(bed.memory, bed.cacheAddress)
  expect(misses).toBeGreaterThanOrEqual(2 * 8)
  expect(evictions).toBeLessThan(misses / 3)
})

test('a part whose writing has returned survives a power loss; one that failed leaves no file', () => {
  const types = [dataType('TIMESTAMP'), dataType('SYMBOL'), dataType('VARCHAR')]
  const schema = schemaOf(types, { timestampId: 0 })
  const next = random(77)
  const columns = types.map((type) => Array.from({ length: 300 }, () => randomCell(type, next, 0.4)))
  let failures = 0
  for (let seed = 1; seed <= 30; seed++) {
    const disk = createFaultyDisk(seed)
    disk.files.makeDirectory('db')
    disk.files.syncDirectory('.')
    const bed = bench('db', { files: disk.files, memoryMiB: 80, cacheMiB: 16 })
    if (seed > 12) disk.inject(atOperation(disk.operations + 1 + (seed % 18), { kind: 'error', code: 'ENOSPC' }))
    let part: PartDescriptor | undefined
    try {
      part = write(bed, schema, columns, seed)
    } catch (error) {
      if (!(error instanceof FileError)) throw error
    }
    disk.inject(undefined)
    if (part === undefined) {
      failures++
      expect(disk.files.exists(`db/1/default/${seed}.parquet`)).toBe(false)
      continue
    }
    disk.crash(seed)
    for (const [id, type] of types.entries()) {
      const wanted = (columns[id] as Cell[]).map((cell) => hexOfCell(type, cell))
      expect(readColumn(bed, schema, part, id), `seed ${seed}`).toEqual(wanted)
    }
  }
  expect(failures).toBeGreaterThan(6)
})
