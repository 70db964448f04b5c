// Goal: every query that spills to temporary files ends, and leaves no file. Its files are limited by the minimum of
// free disk space and by the setting `query.spill.bytes.max`; a cancelled query ends soon; rows of one key that do not
// fit in memory are not partitioned for ever: the query succeeds or fails.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FileError, ResourceError } from '../../../../engine/base/errors.js'
import { type File, type Files, nodeFiles } from '../../../../engine/base/files.js'
import type { FromQueryThread } from '../../../../engine/exec/run/messages.js'
import { QueryLoop } from '../../../../engine/exec/run/query-loop.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import {
  removeLeftFiles,
  type TemporaryFiles,
  temporaryFiles,
} from '../../../../engine/storage/part/temporary-files.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { ballastOf, createBench, noParts, type RunOptions, runMessage, runQuery } from '../exec-support.js'
import { type Database, makeDatabase, queryOfText, tablesOf } from '../statement-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'k', type: dataType('LONG') },
  { name: 'one', type: dataType('INT') },
  { name: 'v', type: dataType('VARCHAR') },
]
const rowsCount = 60_000
const memoryLeft = 6 * 1024 * 1024
const memoryLeftForWide = 14 * 1024 * 1024
/** Suffices for no hash table of all groups. */
const shortForJoins = 3 * 1024 * 1024

let directory: string
let database: Database
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-spill-'))
  const rows = Array.from({ length: rowsCount }, (_, row): Value[] => [
    1_000_000n + BigInt(row),
    BigInt(row) * 7n,
    1,
    `text ${row}`,
  ])
  database = makeDatabase(createBench(64), [{ name: 't', columns, memtables: [rows], timestampId: 0 }])
})
afterAll(() => rmSync(directory, { recursive: true }))

/** The calls that fail, counted over all files of the query. */
interface Failing {
  readonly call: 'write' | 'read'
  readonly from: number
  readonly code: string
}

/** Temporary files of which as many are open as `open` tells. */
function watchedFiles(
  freeBytes?: number,
  failing?: Failing,
): { readonly open: () => number; readonly temporary: TemporaryFiles } {
  let open = 0
  let calls = 0
  const files = nodeFiles()
  const check = (call: Failing['call'], path: string): void => {
    if (failing?.call !== call || ++calls < failing.from) return
    throw new FileError(`could not ${call} [path=${path}, code=${failing.code}]`, failing.code)
  }
  const watched: Files = {
    ...files,
    freeBytes: (path) => freeBytes ?? files.freeBytes(path),
    open: (path, mode): File => {
      const file = files.open(path, mode)
      open++
      return {
        ...{ path, descriptor: file.descriptor, sync: () => {}, truncate: () => {}, size: () => file.size() },
        read: (target, position) => {
          check('read', path)
          return file.read(target, position)
        },
        write: (chunks, position) => {
          check('write', path)
          file.write(chunks, position)
        },
        close: () => {
          open--
          file.close()
        },
      }
    },
  }
  const folder = { directory, memory: database.bench.memory, threadId: 1, files: watched }
  return { open: () => open, temporary: temporaryFiles(folder) }
}

/** Rows that outgrow the memory, if they are not only counted. */
const wide = "(select ts, k, v, rpad(v, 150, '.') w from t)"

const statements = [
  'select k, count(), first(v) from t group by k',
  'select distinct k, v from t',
  'select k, v from t union select k + 1, v from t',
  'select k from t except all select k + 1 from t',
  'select a.v, b.ts, b.k, b.one, b.v w from t a left join t b on a.v = b.v',
  'select ts, row_number() over (partition by k order by v) from t',
  'select ts, max(k) over (partition by v), min(v) over (partition by k) from t',
  'select * from t latest on ts partition by k',
  'select a.ts, b.v from t a asof join t b on (k)',
  'select a.v, b.v w, b.ts, b.one from (select * from t limit 300) a left join t b on a.k < b.k and b.k < a.k + 30',
  'select a.v, b.v w, b.ts, b.one from (select * from t limit 300) a full join t b on a.one = b.one and a.k < b.k and b.k < a.k + 30',
  'select count(), count(distinct v), sum(distinct k), max(v) from (select k, v, row_number() over (order by v) n from t)',
  `select k, w, ts from ${wide} order by v`,
  `select k, w, ts from (select * from ${wide} order by v) limit -50000`,
  `select ts, k, w from ${wide} limit -50000`,
  `select ts, w, rank() over (order by v) n from ${wide}`,
  `select ts, w, lag(w, k % 9) over (order by v) n from ${wide}`,
  `select ts, w, avg(k, 'alpha', 0.1) over (order by v) n from ${wide}`,
]

function run(sql: string, options: RunOptions): ReturnType<typeof runQuery> {
  const query = queryOfText(sql, database)
  return runQuery(database.bench, query, tablesOf(query, database), options)
}

const leftFor = (sql: string): number => (sql.includes(wide) ? memoryLeftForWide : memoryLeft)

describe('bounds', () => {
  for (const sql of statements) {
    test(sql, () => {
      const full = watchedFiles(1000)
      expect(() => run(sql, { memoryLeft: leftFor(sql), temporary: full.temporary })).toThrow(/the disk is nearly full/)
      expect(full.open()).toBe(0)
      const bounded = watchedFiles()
      const options = { memoryLeft: leftFor(sql), temporary: bounded.temporary, spillBytesMax: 400_000 }
      expect(() => run(sql, options)).toThrow(ResourceError)
      expect(() => run(sql, options)).toThrow(/limit=400000, setting=query.spill.bytes.max/)
      expect(bounded.open()).toBe(0)
      expect(
        run(sql, { memoryLeft: leftFor(sql), temporary: bounded.temporary, spillBytesMax: 1e9 }).rows.length,
      ).toBeGreaterThan(0)
      expect(bounded.open()).toBe(0)
      expect(readdirSync(directory)).toEqual([])
    })
  }
})

describe('a disk that fails', () => {
  for (const [index, sql] of statements.entries()) {
    test(sql, () => {
      const code = index % 2 === 0 ? 'ENOSPC' : 'EIO'
      for (const failing of [
        { call: 'write', code, from: 1 + (index % 8) } as const,
        { call: 'read', code: 'EIO', from: 2 } as const,
      ]) {
        const { open, temporary } = watchedFiles(undefined, failing)
        const { call } = failing
        const failed = (() => {
          try {
            run(sql, { memoryLeft: leftFor(sql), temporary })
          } catch (error) {
            return error
          }
          return null
        })()
        expect(failed).toBeInstanceOf(FileError)
        expect(failed).toMatchObject({ code: failing.code, message: expect.stringContaining(`could not ${call}`) })
        expect(open()).toBe(0)
        expect(readdirSync(directory)).toEqual([])
      }
      const { open, temporary } = watchedFiles()
      expect(run(sql, { memoryLeft: leftFor(sql), temporary }).rows.length).toBeGreaterThan(0)
      expect(open()).toBe(0)
    })
  }
})

test.each(statements)('the rows read of a query that spills are counted once: %s', (sql) => {
  const { memory, allocator, kernels } = database.bench
  const ballast = ballastOf(database.bench, leftFor(sql))
  const { open, temporary } = watchedFiles()
  const messages: FromQueryThread[] = []
  let now = 0
  const loop = new QueryLoop({
    ...{ memory, allocator, kernels, partAccess: noParts, temporary },
    // Every slice of work reports the progress.
    clock: { nowMicros: () => 1_700_000_000_000_000, monotonicMs: () => (now += 400) },
    post: (message) => messages.push(message),
  })
  const query = queryOfText(sql, database)
  const scans = sql.match(/from t|join t/g)?.length ?? 0
  try {
    loop.receive(runMessage(query, tablesOf(query, database), { encoding: { kind: 'count' } }))
    let mostOpen = 0
    while (!messages.some(({ kind }) => kind === 'end' || kind === 'error')) {
      loop.step()
      mostOpen = Math.max(mostOpen, open())
    }
    expect(mostOpen).toBeGreaterThan(0)
    const totals = messages.flatMap((message) => (message.kind === 'progress' ? [message.total] : []))
    expect(Math.max(...totals)).toBe(scans * rowsCount)
  } finally {
    loop.close()
    allocator.free(ballast)
  }
})

describe('a cancelled query', () => {
  for (const sql of statements) {
    test(sql, () => {
      const { memory, allocator, kernels } = database.bench
      const ballast = ballastOf(database.bench, leftFor(sql))
      const before = allocator.used(budgets.queries)
      const { open, temporary } = watchedFiles()
      const messages: FromQueryThread[] = []
      const loop = new QueryLoop({
        ...{ memory, allocator, kernels, partAccess: noParts, temporary },
        clock: { nowMicros: () => 1_700_000_000_000_000, monotonicMs: () => performance.now() },
        post: (message) => messages.push(message),
      })
      const query = queryOfText(sql, database)
      try {
        // Rows are counted, so the query does not wait for its client.
        loop.receive(runMessage(query, tablesOf(query, database), { encoding: { kind: 'count' } }))
        while (
          open() < (sql.includes(wide) ? 1 : 3) &&
          !messages.some(({ kind }) => kind === 'end' || kind === 'error')
        )
          loop.step()
        expect(open()).toBeGreaterThan(0)
        loop.receive({ kind: 'cancel', queryId: 1, reason: 'enough' })
        loop.step()
        expect(messages.at(-1)).toMatchObject({ kind: 'error', error: { message: expect.stringContaining('enough') } })
        expect(open()).toBe(0)
        expect(allocator.used(budgets.queries)).toBe(before)
      } finally {
        loop.close()
        allocator.free(ballast)
      }
    })
  }
})

describe('rows of one key', () => {
  test.each([
    "select one, string_agg(v, ',') s from t group by one",
    'select ts, row_number() over (partition by one order by v) from t',
    'select a.v, b.v from t a join t b on a.one = b.one and a.k = b.k + 1',
  ])('%s', (sql) => {
    const { open, temporary } = watchedFiles()
    const outcome = (() => {
      try {
        return run(sql, { memoryLeft, temporary }).rows.length
      } catch (error) {
        return error instanceof Error ? error.message : ''
      }
    })()
    // Where the operator needs the rows together, the error names the setting.
    if (typeof outcome === 'string') expect(outcome).toMatch(/out of memory.*setting=memory.bytes/)
    expect(open()).toBe(0)
  })
})

test('a join that an aggregate without keys builds for all threads spills', () => {
  const { open, temporary } = watchedFiles()
  for (const join of ['join', 'left join']) {
    const grouped = '(select v, max(k) a from t group by v)'
    const sql = `select count(), max(a) from (select t.ts, x.a from t ${join} ${grouped} x on t.v = x.v)`
    expect(run(sql, { memoryLeft: shortForJoins, temporary }).rows).toEqual([[60_000n, 419_993n]])
  }
  expect(open()).toBe(0)
})

test('files whose name a killed process has left are removed', () => {
  writeFileSync(join(directory, 'query-1-2-3'), 'x')
  writeFileSync(join(directory, 'other'), 'x')
  removeLeftFiles({ files: nodeFiles(), directory })
  expect(readdirSync(directory)).toEqual(['other'])
  rmSync(join(directory, 'other'))
})

test('a crowded heap makes an operator spill', () => {
  const sql = "select k, string_agg(v, ',') s from t group by k"
  const { open, temporary } = watchedFiles()
  let slices = 0
  let most = 0
  const heapState = () => {
    most = Math.max(most, open())
    return ++slices === 3 ? 'crowded' : 'free'
  }
  expect(run(sql, { temporary, heapState }).rows).toEqual(run(sql, {}).rows)
  expect(most).toBeGreaterThan(0)
  expect(open()).toBe(0)
})
