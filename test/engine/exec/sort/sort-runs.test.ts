// Goal: an external sort returns what a stable sort returns, leaves no files behind, and reports a full disk clearly.
// Method: tables several times larger than the memory of queries, with keys of all types and many ties, compared with a
// sort in JavaScript.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FileError, ResourceError } from '../../../../engine/base/errors.js'
import { type File, nodeFiles } from '../../../../engine/base/files.js'
import type { SortKey } from '../../../../engine/sql/plan/plan.js'
import { temporaryFiles } from '../../../../engine/storage/part/temporary-files.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { type Bench, createBench, makeTable, queryOf, runQuery, scanOf, type TestTable } from '../exec-support.js'
import { countedFiles } from '../spill/spill-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'few', type: dataType('INT') },
  { name: 'value', type: dataType('DOUBLE') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'short', type: dataType('VARCHAR') },
  { name: 'long', type: dataType('STRING') },
  { name: 'wide', type: dataType('DECIMAL', 38, 2) },
]
const rowsCount = 50_000

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-runs-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

function tableOf(bench: Bench): TestTable {
  const random = createRandom(7)
  const rows = Array.from({ length: rowsCount }, (_, row): Value[] => [
    1_000_000n + BigInt(row),
    random.below(3),
    random.chance(0.1) ? null : random.below(100) / 4,
    random.chance(0.1) ? null : `symbol ${random.below(40)}`,
    random.chance(0.1) ? null : ['', 'a', 'ab', 'abcdefgh', 'abcdefghi', 'é', '\u{1f600}'][random.below(7)]!,
    random.chance(0.1) ? null : `${'x'.repeat(70 + random.below(2))}${random.below(50)}`,
    random.chance(0.1) ? null : BigInt(random.below(50) - 25),
  ])
  return makeTable(bench, columns, [rows], 0)
}

const first = (index: number): SortKey => ({ index, descending: false, nullsFirst: true })
const last = (index: number): SortKey => ({ index, descending: true, nullsFirst: false })

function sorted(rows: TestTable['rows'], keys: readonly SortKey[]): readonly (readonly Value[])[] {
  return rows.toSorted((left, right) => {
    for (const { index, descending, nullsFirst } of keys) {
      const [a, b] = [left[index] as Value, right[index] as Value]
      if (a === b) continue
      if (a === null || b === null) return (a === null) === nullsFirst ? -1 : 1
      // No text has a character above the surrogates: the order of UTF-16 is that of code points.
      return a < b === descending ? 1 : -1
    }
    return 0
  })
}

describe('rows that outgrow the memory are sorted', () => {
  const orders: [string, SortKey[]][] = [
    ['numbers', [last(2), first(1)]],
    ['symbols and ties', [first(3), last(1)]],
    ['short texts', [first(4)]],
    ['short texts, descending', [last(4), first(2)]],
    ['long texts', [last(5)]],
    ['decimals', [first(6), last(3)]],
    ['one value only', [{ index: 1, descending: true, nullsFirst: true }]],
  ]
  for (const [name, keys] of orders.slice(0, runs(orders.length, 4))) {
    test(name, () => {
      const bench = createBench(24)
      const table = tableOf(bench)
      const created: string[] = []
      const files = nodeFiles()
      const temporary = temporaryFiles({
        ...{ directory, memory: bench.memory, threadId: 1 },
        files: {
          ...files,
          open: (path, mode) => {
            created.push(path)
            return files.open(path, mode)
          },
        },
      })
      const plan = { kind: 'sort', input: scanOf(table), columns, keys, limit: null } as const
      expect(runQuery(bench, queryOf(plan), [table], { temporary }).rows).toEqual(sorted(table.rows, keys))
      expect(created.length).toBeGreaterThan(1)
      const limit = 20_000
      const limited = runQuery(bench, queryOf({ ...plan, limit }), [table], { temporary }).rows
      expect(limited).toEqual(sorted(table.rows, keys).slice(0, limit))
      expect(readdirSync(directory)).toEqual([])
    })
  }
})

// Blocks of all runs beside each other would take three quarters of the free memory, and the merge may take half of it.
test('runs of wide rows that do not fit beside each other are merged in passes', () => {
  const bench = createBench(128)
  const wideColumns = [
    { name: 'key', type: dataType('INT') },
    { name: 'row', type: dataType('INT') },
    { name: 'text', type: dataType('VARCHAR') },
  ]
  const count = 40_000
  const keyOf = (row: number): number => ((row * 7919) % count) >> 3
  const rows = Array.from({ length: count }, (_, row): Value[] => [
    keyOf(row),
    row,
    `${row} ${'of wide rows '.repeat(90)}`,
  ])
  const table = makeTable(bench, wideColumns, [rows], -1)
  const { created, temporary } = countedFiles(directory, bench.memory)
  const keys = [first(0)]
  for (const limit of [null, 9000]) {
    const plan = { kind: 'sort', input: scanOf(table), columns: wideColumns, keys, limit } as const
    const found = runQuery(bench, queryOf(plan), [table], { temporary, memoryLeft: 10 * 1024 * 1024 }).rows
    const expected = rows.toSorted((a, b) => Number(a[0]) - Number(b[0]))
    expect(found).toEqual(expected.slice(0, limit ?? count))
  }
  expect(created()).toBeGreaterThan(20)
  expect(readdirSync(directory)).toEqual([])
})

describe('what the disk says ends the query', () => {
  const run = (failing: {
    freeBytes?: number
    write?: (file: File) => void
    readMax?: number
  }): { open: number; run: () => void } => {
    const bench = createBench(24)
    const table = tableOf(bench)
    const files = nodeFiles()
    const state = { open: 0, run: () => {} }
    const temporary = temporaryFiles({
      ...{ directory, memory: bench.memory, threadId: 1 },
      files: {
        ...files,
        freeBytes: (path) => failing.freeBytes ?? files.freeBytes(path),
        open: (path, mode) => {
          const file = files.open(path, mode)
          state.open++
          return {
            ...{ path, descriptor: file.descriptor, sync: () => {}, truncate: () => {}, size: () => file.size() },
            read: (target, position) => file.read(target.subarray(0, failing.readMax), position),
            write: (chunks, position) => {
              failing.write?.(file)
              file.write(chunks, position)
            },
            close: () => {
              state.open--
              file.close()
            },
          }
        },
      },
    })
    const plan = { kind: 'sort', input: scanOf(table), columns, keys: [first(2)], limit: null } as const
    state.run = () => void runQuery(bench, queryOf(plan), [table], { temporary })
    return state
  }

  test('no room', () => {
    const state = run({ freeBytes: 1000 })
    expect(state.run).toThrow(ResourceError)
    expect(state.run).toThrow(/the disk is nearly full.*freeMiB=0/)
    expect(state.open).toBe(0)
  })

  test('a write that fails', () => {
    const state = run({
      write: () => {
        throw new FileError('cannot write: no space left on device', 'ENOSPC')
      },
    })
    expect(state.run).toThrow(FileError)
    expect(state.open).toBe(0)
    expect(readdirSync(directory)).toEqual([])
  })

  test('a file that is shorter than what was written', () => {
    const state = run({ readMax: 100 })
    expect(state.run).toThrow(/is shorter than what was written to it/)
    expect(state.open).toBe(0)
  })
})
