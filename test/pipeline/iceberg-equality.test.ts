// Goal: iceberg() leaves out the rows that files of equality deletes delete: those with the values of such a file in its
// columns, in data files with a smaller sequence number of the same partition; NULL equals NULL. Method: tables that
// test/support/lake/iceberg-table.ts writes as Flink does, one of them random and compared with a plain implementation.

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { column, numbers, openIcebergQueries, texts } from '../support/lake/iceberg-queries.js'
import { intBound, putData, type WrittenFile, type WrittenTable, writeIceberg } from '../support/lake/iceberg-table.js'
import { createRandom } from '../support/random.js'

const { folder, rows, failure, forget, close } = await openIcebergQueries()

afterAll(close)

beforeEach(() => {
  forget()
  rmSync(folder, { recursive: true, force: true })
})

const id = { id: 1, name: 'id', type: 'int' }
const name = { id: 2, name: 'name', type: 'string' }

function table(changes: Partial<WrittenTable>): void {
  writeIceberg(folder, { location: '/former/place/t', fields: [id, name], files: [], ...changes })
}

function putRows(file: string, ids: readonly (number | null)[], names: readonly (string | null)[] = []): void {
  const columns = [column('id', 1, 1, ids)]
  if (names.length > 0) {
    columns.push(
      column(
        'name',
        2,
        6,
        names.map((text) => (text === null ? null : Buffer.from(text))),
      ),
    )
  }
  putData(folder, file, columns)
}

const deletesOf = (file: string, sequence: number, more: Partial<WrittenFile> = {}): WrittenFile => ({
  ...{ name: file, rows: 1, content: 2, sequence },
  ...more,
})

test('files with a smaller sequence number lose the rows, whichever columns are read', async () => {
  putRows('data/a.parquet', [1, 2, 3, null], ['a', 'b', 'c', 'd'])
  putRows('data/b.parquet', [2, 3], ['later', 'too'])
  putRows('data/q.parquet', [2, null])
  putRows('data/r.parquet', [3])
  table({
    files: [
      { name: 'data/a.parquet', rows: 4, sequence: 1 },
      { name: 'data/b.parquet', rows: 2, sequence: 2 },
      deletesOf('data/q.parquet', 2),
      deletesOf('data/r.parquet', 3),
    ],
  })
  expect(await rows("select id, name from iceberg('t')")).toEqual([
    [1, 'a'],
    [2, 'later'],
  ])
  expect(await rows("select name from iceberg('t')")).toEqual([['a'], ['later']])
  expect(await rows("select count() from iceberg('t')")).toEqual([[2]])
  expect(await rows("select name from iceberg('t') where id = 2")).toEqual([['later']])
})

test('several columns are compared together, and others of the file are not', async () => {
  putRows('data/a.parquet', [1, 1, 2, null, null], ['x', null, 'x', null, 'x'])
  putRows('data/q.parquet', [1, null, 2], [null, null, 'y'])
  putRows('data/r.parquet', [2, 9], ['ignored', 'ignored'])
  table({
    files: [
      { name: 'data/a.parquet', rows: 5, sequence: 1 },
      deletesOf('data/q.parquet', 2, { equalityIds: [1, 2] }),
      deletesOf('data/r.parquet', 2, { equalityIds: [1] }),
    ],
  })
  expect(await rows("select id, name from iceberg('t')")).toEqual([
    [1, 'x'],
    [null, 'x'],
  ])
})

test('deletes of a partition concern this partition, those without one all', async () => {
  putRows('data/a.parquet', [1, 2], ['a', 'a'])
  putRows('data/b.parquet', [1, 2], ['b', 'b'])
  putRows('data/q.parquet', [1])
  table({
    partitions: [{ name: 'name', transform: 'identity', sourceId: 2 }],
    partitionTypes: { name: 'string' },
    files: [
      { name: 'data/a.parquet', rows: 2, sequence: 1, partition: { name: 'a' } },
      { name: 'data/b.parquet', rows: 2, sequence: 1, partition: { name: 'b' } },
      deletesOf('data/q.parquet', 2, { partition: { name: 'b' } }),
    ],
  })
  expect(await rows("select id, name from iceberg('t')")).toEqual([
    [1, 'a'],
    [2, 'a'],
    [2, 'b'],
  ])
})

test('the partition of NULL is not that of the text null', async () => {
  putRows('data/a.parquet', [1, 2])
  putRows('data/b.parquet', [1, 2])
  putRows('data/q.parquet', [1])
  putRows('data/r.parquet', [2])
  table({
    partitions: [{ name: 'name', transform: 'identity', sourceId: 2 }],
    partitionTypes: { name: 'string' },
    files: [
      { name: 'data/a.parquet', rows: 2, sequence: 1, partition: { name: null } },
      { name: 'data/b.parquet', rows: 2, sequence: 1, partition: { name: 'null' } },
      deletesOf('data/q.parquet', 2, { partition: { name: null } }),
      deletesOf('data/r.parquet', 2, { partition: { name: 'null' } }),
    ],
  })
  expect(await rows("select id, name from iceberg('t')")).toEqual([
    [2, null],
    [1, 'null'],
  ])
})

test('partitions from before and after a promotion are the same', async () => {
  putData(folder, 'data/a.parquet', [column('id', 1, 1, [5, 5, 5]), column('name', 2, 6, texts(['x', 'y', 'z']))])
  putData(folder, 'data/q.parquet', [column('name', 2, 6, texts(['x']))])
  putData(folder, 'data/p.parquet', [
    column('file_path', 2_147_483_546, 6, texts(['/former/place/t/data/a.parquet'])),
    column('pos', 2_147_483_545, 2, [1n]),
  ])
  table({
    formerFields: [id, name],
    fields: [{ ...id, type: 'long' }, name],
    partitions: [{ name: 'id', transform: 'identity', sourceId: 1 }],
    partitionTypes: { id: 'int' },
    deletePartitionTypes: { id: 'long' },
    files: [
      { name: 'data/a.parquet', rows: 3, sequence: 1, partition: { id: 5 } },
      deletesOf('data/q.parquet', 2, { partition: { id: 5n }, equalityIds: [2] }),
      { name: 'data/p.parquet', rows: 1, content: 1, sequence: 2, partition: { id: 5n } },
    ],
  })
  expect(await rows("select id, name from iceberg('t')")).toEqual([[5, 'z']])
})

test('a partition spec of void fields alone has no partition', async () => {
  putRows('data/a.parquet', [1, 2])
  putRows('data/q.parquet', [1])
  table({
    partitions: [{ name: 'name', transform: 'void', sourceId: 2 }],
    partitionTypes: { name: 'string' },
    files: [
      { name: 'data/a.parquet', rows: 2, sequence: 1, partition: { name: 'a' } },
      deletesOf('data/q.parquet', 2, { partition: { name: null } }),
    ],
  })
  expect(await rows("select id from iceberg('t')")).toEqual([[2]])
})

test.each([
  ['double', 5],
  ['float', 4],
])('numbers of the type %s are compared, but not NULL and NaN', async (type, physical) => {
  const bound = (value: number): Buffer => {
    const bytes = Buffer.alloc(type === 'double' ? 8 : 4)
    if (type === 'double') bytes.writeDoubleLE(value)
    else bytes.writeFloatLE(value)
    return bytes
  }
  putData(folder, 'data/a.parquet', [column('x', 1, physical, [0.5, null, Number.NaN, 2])])
  putData(folder, 'data/q.parquet', [column('x', 1, physical, [0.5])])
  const files: WrittenFile[] = [
    { name: 'data/a.parquet', rows: 4, sequence: 1, bounds: { 1: [bound(0.5), bound(2)] } },
    deletesOf('data/q.parquet', 2),
  ]
  table({ fields: [{ id: 1, name: 'x', type }], files })
  expect(await rows("select x from iceberg('t')")).toEqual([[null], [null], [2]])
  // Bounds leave out NaN.
  for (const value of [null, Number.NaN]) {
    forget()
    putData(folder, 'data/r.parquet', [column('x', 1, physical, [7, value])])
    const more = deletesOf('data/r.parquet', 2, { bounds: { 1: [bound(7), bound(7)] }, nulls: { 1: 0 } })
    table({ fields: [{ id: 1, name: 'x', type }], files: [...files, more] })
    expect(await failure("select x from iceberg('t')")).toMatch(
      /equality deletes by NULL or NaN in a FLOAT or DOUBLE column are not supported .*r\.parquet.*column=x/,
    )
  }
})

test('columns that are dropped, added and widened since', async () => {
  putData(folder, 'data/old.parquet', [column('id', 1, 1, [1, 2, 3]), column('gone', 5, 6, texts(['x', 'y', 'x']))])
  putData(folder, 'data/new.parquet', [column('id', 1, 2, [4n, 5n]), column('added', 6, 1, [7, 8])])
  putData(folder, 'data/q.parquet', [column('gone', 5, 6, texts(['y']))])
  putData(folder, 'data/r.parquet', [column('id', 1, 1, [3]), column('added', 6, 1, [0])])
  putData(folder, 'data/s.parquet', [column('id', 1, 2, [5n])])
  table({
    formerFields: [id, { id: 5, name: 'gone', type: 'string' }],
    fields: [
      { ...id, type: 'long' },
      { id: 6, name: 'added', type: 'int', 'initial-default': 0 },
    ],
    files: [
      { name: 'data/old.parquet', rows: 3, sequence: 1 },
      { name: 'data/new.parquet', rows: 2, sequence: 1 },
      deletesOf('data/q.parquet', 2, { equalityIds: [5] }),
      deletesOf('data/r.parquet', 2, { equalityIds: [1, 6] }),
      deletesOf('data/s.parquet', 2),
    ],
  })
  expect(await rows("select * from iceberg('t')")).toEqual([
    [1, 0],
    [4, 7],
  ])
})

test('with positions, and files of deletes whose bounds exclude the data are not read', async () => {
  putRows('data/a.parquet', [1, 2, 3, 4])
  putRows('data/q.parquet', [4])
  putData(folder, 'data/p.parquet', [
    column('file_path', 2_147_483_546, 6, texts(['/former/place/t/data/a.parquet'])),
    column('pos', 2_147_483_545, 2, [0n]),
  ])
  writeFileSync(join(folder, 'data/damaged.parquet'), 'no Parquet file')
  const bounds = (from: number, to: number): NonNullable<WrittenFile['bounds']> => ({
    1: [intBound(from), intBound(to)],
  })
  const files: WrittenFile[] = [
    { name: 'data/a.parquet', rows: 4, sequence: 1, bounds: bounds(1, 4) },
    { name: 'data/p.parquet', rows: 1, content: 1, sequence: 1 },
    deletesOf('data/q.parquet', 2, { bounds: bounds(4, 4), nulls: { 1: 0 } }),
    deletesOf('data/damaged.parquet', 2, { bounds: bounds(5, 9), nulls: { 1: 0 } }),
  ]
  table({ fields: [id], files })
  expect(await rows("select id from iceberg('t')")).toEqual([[2], [3]])
  // It may have a NULL, which bounds do not tell.
  forget()
  table({ fields: [id], files: files.map((file) => ({ ...file, nulls: { 1: 1 } })) })
  expect(await failure("select id from iceberg('t')")).toContain('damaged.parquet')
})

test('what cannot be compared is refused', async () => {
  putRows('data/a.parquet', [1])
  const data = { name: 'data/a.parquet', rows: 1, sequence: 1 }
  table({
    fields: [id, { id: 3, name: 'flag', type: 'boolean' }],
    files: [data, deletesOf('data/q.parquet', 2, { equalityIds: [3] })],
  })
  expect(await failure("select id from iceberg('t')")).toMatch(
    /equality deletes by this column are not supported \[column=flag, file=.*q\.parquet\]/,
  )
  forget()
  table({ fields: [id], files: [data, deletesOf('data/q.parquet', 2, { equalityIds: [] })] })
  expect(await failure("select id from iceberg('t')")).toContain('a file of equality deletes names no columns')
  forget()
  putData(folder, 'data/q.parquet', [column('other', 9, 1, [1])])
  table({ fields: [id], files: [data, deletesOf('data/q.parquet', 2)] })
  expect(await failure("select id from iceberg('t')")).toMatch(/a file of deletes lacks a column.*column=id/)
})

test.each([1, 2, 3])('a stream of upserts, seed %i', async (seed) => {
  const random = createRandom(seed)
  const files: WrittenFile[] = []
  // By name, and with the sequence number of the data.
  const expected: { id: number | null; name: string; sequence: number }[] = []
  for (let sequence = 1; sequence <= 12; sequence++) {
    const count = random.pick([1, 50, 700])
    const ids = numbers(count).map(() => (random.chance(0.02) ? null : random.below(1500)))
    const names = ids.map((_, index) => `${sequence}-${index}`)
    const deleted = numbers(random.pick([1, 300, 1800])).map(() => (random.chance(0.01) ? null : random.below(1500)))
    putRows(`data/d${sequence}.parquet`, ids, names)
    putRows(`data/q${sequence}.parquet`, deleted)
    files.push({ name: `data/d${sequence}.parquet`, rows: count, sequence })
    files.push(deletesOf(`data/q${sequence}.parquet`, sequence))
    const gone = new Set(deleted)
    for (let at = expected.length - 1; at >= 0; at--) if (gone.has(expected[at]?.id ?? null)) expected.splice(at, 1)
    for (const [index, own] of ids.entries()) expected.push({ id: own, name: names[index] ?? '', sequence })
  }
  table({ files })
  const found = await rows("select id, name from iceberg('t')")
  expect(found.length).toBeGreaterThan(100)
  expect(found).toEqual(expected.map((row) => [row.id, row.name]))
})
