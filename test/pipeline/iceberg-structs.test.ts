// Goal: iceberg(), read_parquet() and COPY show the fields of structs as columns, with their values at every level of
// nesting. Also: for a table that is partitioned by bucket[n], iceberg() computes the bucket of a value in WHERE and
// skips data files and manifests of other buckets. Method: files that DuckDB writes, and tables of
// test/support/lake/iceberg-table.ts.

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { bucketOf } from '../../engine/lake/bucket-transform.js'
import { column, numbers, openIcebergQueries, texts } from '../support/lake/iceberg-queries.js'
import { intBound, putData, type WrittenTable, writeIceberg } from '../support/lake/iceberg-table.js'

const { folder, rows, failure, forget, close } = await openIcebergQueries()

afterAll(close)

beforeEach(() => {
  forget()
  rmSync(folder, { recursive: true, force: true })
})

const location = '/former/place/t'
const idField = { id: 1, name: 'id', type: 'int' }

function table(changes: Partial<WrittenTable>): void {
  writeIceberg(folder, { location, fields: [idField], files: [], ...changes })
}

// The values of appendix B of Iceberg's specification.
test.each([
  ['int', 34, 2_017_239_379],
  ['long', 34n, 2_017_239_379],
  ['date', BigInt(Date.parse('2017-11-16')), -653_330_422],
  ['timestamp', BigInt(Date.parse('2017-11-16T22:31:08Z')) * 1000n, -2_047_944_441],
  ['timestamptz', BigInt(Date.parse('2017-11-16T22:31:08Z')) * 1000n, -2_047_944_441],
  ['string', Buffer.from('iceberg'), 1_210_000_089],
])('the bucket of a value: %s %s', (type, value, hash) => {
  expect(bucketOf(type, value, 1_000_003)).toBe((hash & 0x7fffffff) % 1_000_003)
})

test('a value that is none of the type has no known bucket', () => {
  expect([
    bucketOf('int', 1.5, 16),
    bucketOf('long', 2n ** 63n, 16),
    bucketOf('date', 1n, 16),
    bucketOf('double', 1, 16),
    bucketOf('int', Buffer.from('1'), 16),
  ]).toEqual([null, null, null, null, null])
})

test.each([
  ['int', 'id = 34', 2_017_239_379 % 16],
  ['int', 'id in (34, 34)', 2_017_239_379 % 16],
  ['string', "id = 'iceberg'", 1_210_000_089 % 16],
])('files and manifests are skipped by buckets: %s %s', async (type, where, bucket) => {
  putData(folder, 'data/a.parquet', [
    type === 'int' ? column('id', 1, 1, [33, 34]) : column('id', 1, 6, texts(['a', 'iceberg'])),
  ])
  const shared: Partial<WrittenTable> = {
    fields: [{ id: 1, name: 'id', type }],
    partitions: [{ name: 'id_bucket', transform: 'bucket[16]', sourceId: 1 }],
    partitionTypes: { id_bucket: 'int' },
  }
  table({
    ...shared,
    files: [
      { name: 'data/a.parquet', rows: 2, partition: { id_bucket: bucket } },
      { name: 'data/missing.parquet', rows: 1, partition: { id_bucket: (bucket + 1) % 16 } },
      { name: 'data/null.parquet', rows: 1, partition: { id_bucket: null } },
    ],
  })
  expect(await rows(`select count() from iceberg('t') where ${where}`)).toEqual([[1]])
  expect(
    await failure(`select count() from iceberg('t') where ${where.replace(/=|in/, '>').replace(', 34', '')}`),
  ).toContain('missing')
  forget()
  table({
    ...shared,
    files: [{ name: 'data/missing.parquet', rows: 1, partition: {} }],
    summaries: [[intBound(bucket + 1), intBound(bucket + 5)]],
  })
  rmSync(join(folder, 'metadata/m0.avro'))
  expect(await rows(`select count() from iceberg('t') where ${where}`)).toEqual([[0]])
})

async function writeByDuckdb(name: string, query: string, ids: string): Promise<void> {
  const duckdb = await DuckDBInstance.create(':memory:')
  const writer = await duckdb.connect()
  mkdirSync(join(folder, 'data'), { recursive: true })
  await writer.run(`copy (${query}) to '${join(folder, name)}' (format parquet${ids})`)
  writer.closeSync()
  duckdb.closeSync()
}

const place = {
  type: 'struct',
  fields: [
    { id: 4, name: 'hall', type: 'long' },
    { id: 5, name: 'spot', type: { type: 'struct', fields: [{ id: 6, name: 'row', type: 'int' }] } },
    { id: 7, name: 'sizes', type: { type: 'list', 'element-id': 8, element: 'double' } },
    { id: 9, name: 'note', type: 'string' },
  ],
}

test('the fields of a struct are columns, also those that files lack, and under other names', async () => {
  const query =
    "select i::int id, case when i % 5 = 4 then null else {'hall': i::int, 'spot': case when i % 3 = 2 then null else" +
    " {'row': nullif(i % 7, 0)::int} end, 'sizes': [i / 2.0, 1][:i % 3], 'tags': map {'k': 'v'}} end p from range(3000) r(i)"
  const ids = (at: string): string =>
    `, field_ids {id: 1, p: {__duckdb_field_id: 3, hall: 4, ${at}, sizes: {__duckdb_field_id: 7, element: 8}}}`
  await writeByDuckdb('data/a.parquet', query, ids('spot: {__duckdb_field_id: 5, row: 6}'))
  table({ fields: [idField, { id: 3, name: 'place', type: place }], files: [{ name: 'data/a.parquet', rows: 3000 }] })
  const sums = (columns: readonly string[]): string =>
    `select count(), ${columns.map((name) => `count(${name}), sum(${name})`).join()} from`
  const wanted = [0, 1, 2].map((which) => {
    const values = numbers(3000).flatMap((i) => {
      if (i % 5 === 4) return []
      if (which === 1) return i % 3 === 2 || i % 7 === 0 ? [] : [i % 7]
      return which === 0 ? [i] : i % 3 === 0 ? [] : [i / 2]
    })
    return [values.length, values.reduce((sum, value) => sum + value, 0)]
  })
  const all = [[3000, ...wanted.flat()]]
  expect(await rows(`${sums(['place_hall', 'place_spot_row', 'place_sizes[1]'])} iceberg('t')`)).toEqual(all)
  expect(await rows("select * from iceberg('t') where id in (3, 4, 5)")).toEqual([
    [3, 3, 3, [], null],
    [4, null, null, null, null],
    [5, 5, null, [2.5, 1], null],
  ])
  expect(await rows("select id from iceberg('t') where place_hall = 2998")).toEqual([[2998]])
  expect(await rows("select * from read_parquet('t/data/a.parquet') where id = 3")).toEqual([
    [3, 3, 3, [], '{"k":"v"}'],
  ])
  await writeByDuckdb('data/b.parquet', query.replace(", 'tags': map {'k': 'v'}", ''), '')
  expect(await rows(`${sums(['p_hall', 'p_spot_row', 'p_sizes[1]'])} read_parquet('t/data/b.parquet')`)).toEqual(all)
})

test('structs in files without field ids; types that are refused; two columns of one name', async () => {
  await writeByDuckdb('data/a.parquet', "select 7::int id, {'hall': 8, 'spot': {'seat': 9}} p", '')
  const mapping = JSON.stringify([
    { 'field-id': 1, names: ['id'] },
    {
      'field-id': 3,
      names: ['place', 'p'],
      fields: [
        { 'field-id': 4, names: ['hall'] },
        { 'field-id': 5, names: ['spot'], fields: [{ 'field-id': 6, names: ['row', 'seat'] }] },
      ],
    },
  ])
  const files = [{ name: 'data/a.parquet', rows: 1 }]
  const fields = [idField, { id: 3, name: 'place', type: place }]
  table({ fields, files, properties: { 'schema.name-mapping.default': mapping } })
  expect(await rows("select * from iceberg('t')")).toEqual([[7, 8, 9, null, null]])
  forget()
  const properties = { 'schema.name-mapping.default': mapping }
  table({ fields: [idField, { id: 3, name: 'tags', type: { type: 'map' } }], files, properties })
  expect(await rows("select * from iceberg('t')")).toEqual([[7]])
  for (const column of ['tags', 'T.Tags'])
    expect(await failure(`select id, ${column} from iceberg('t') t`)).toMatch(
      /^the column cannot be read: the type map is not supported \[column=tags\]/i,
    )
  forget()
  table({ fields: [...fields, { id: 12, name: 'place_hall', type: 'int' }], files })
  expect(await failure("select id from iceberg('t')")).toContain('two columns have the name place_hall')
  await writeByDuckdb('data/c.parquet', "select {'b': 1} a, 2 a_b", '')
  expect(await failure("select a_b from read_parquet('t/data/c.parquet')")).toContain(
    'two columns have the name [file=t/data/c.parquet, column=a_b]',
  )
})

const nameOf = (id: number, name: string, fields?: readonly object[]): object => ({
  'field-id': id,
  names: [name],
  ...(fields === undefined ? {} : { fields }),
})

test.each([
  ['a field of a struct', "5 place_hall, {'hall': 8} place", [8]],
  ['a field of a struct', "{'hall': 8} place, 5 place_hall", [8]],
  ['a column', "5 place_hall, {'hall': 8} place", [5]],
  ['a column', "{'hall': 8} place, 5 place_hall", [5]],
])('files without field ids have a dropped column of the name of %s: %s', async (kept, columns, row) => {
  await writeByDuckdb('data/a.parquet', `select ${columns}`, '')
  const isField = kept === 'a field of a struct'
  const struct = { type: 'struct', fields: [{ id: 4, name: 'hall', type: 'int' }] }
  table({
    fields: [isField ? { id: 3, name: 'place', type: struct } : { id: 4, name: 'place_hall', type: 'int' }],
    files: [{ name: 'data/a.parquet', rows: 1 }],
    properties: {
      'schema.name-mapping.default': JSON.stringify([
        isField ? nameOf(3, 'place', [nameOf(4, 'hall')]) : nameOf(4, 'place_hall'),
      ]),
    },
  })
  expect(await rows("select place_hall from iceberg('t')")).toEqual([row])
})

test('the default of a field in a struct: refused where the struct may be NULL', async () => {
  putData(folder, 'data/a.parquet', [column('id', 1, 1, [1])])
  const place = (outer: boolean, inner: boolean, initial: unknown, whole: unknown = null) => {
    const seat = { id: 5, name: 'seat', type: 'int', 'initial-default': initial }
    const spot = { id: 4, name: 'spot', type: { type: 'struct', fields: [seat] }, required: inner }
    const type = { type: 'struct', fields: [spot] }
    table({
      version: 3,
      fields: [idField, { id: 3, name: 'place', type, required: outer, 'initial-default': whole }],
      files: [{ name: 'data/a.parquet', rows: 1 }],
    })
  }
  for (const [outer, inner] of [
    [false, true],
    [true, false],
  ] as const) {
    place(outer, inner, 7)
    expect(await rows("select * from iceberg('t')")).toEqual([[1]])
    expect(await failure("select place_spot_seat from iceberg('t')")).toContain(
      'the default of a field in an optional struct is not supported [column=place_spot_seat]',
    )
    forget()
  }
  place(true, true, 7, {})
  expect(await rows("select * from iceberg('t')")).toEqual([[1, 7]])
  forget()
  place(false, false, null)
  expect(await rows("select * from iceberg('t')")).toEqual([[1, null]])
  forget()
  place(true, true, null, { 4: { 5: 7 } })
  expect(await failure("select place from iceberg('t')")).toContain(
    'the default of the column is not supported [column=place]',
  )
  expect(await failure("select place_spot_seat from iceberg('t')")).toContain(
    'the default of the column is not supported [column=place]',
  )
})

test('names that differ in case alone are refused only where one is in a struct', async () => {
  putData(folder, 'data/a.parquet', [column('Id', 1, 1, [1]), column('id', 2, 1, [2]), column('Place_Hall', 3, 1, [3])])
  const files = [{ name: 'data/a.parquet', rows: 1 }]
  const both = [
    { id: 1, name: 'Id', type: 'int' },
    { id: 2, name: 'id', type: 'int' },
  ]
  const struct = (name: string): WrittenTable['fields'][number] => ({
    ...{ id: 5, name: 'place' },
    type: { type: 'struct', fields: [{ id: 6, name, type: 'int' }] },
  })
  table({ fields: both, files })
  const alone = await rows("select count() from iceberg('t')")
  forget()
  table({ fields: [...both, struct('hall')], files })
  expect(await rows("select count() from iceberg('t')")).toEqual(alone)
  expect(await rows("select place_hall from iceberg('t')")).toEqual([[null]])
  const flat = { id: 3, name: 'Place_Hall', type: 'int' }
  for (const [fields, name] of [
    [[flat, struct('hall')], 'place_hall'],
    [[struct('hall'), flat], 'Place_Hall'],
    [[struct('x_Y'), { ...struct('Y'), id: 7, name: 'place_x' }], 'place_x_Y'],
  ] as const) {
    forget()
    table({ fields, files })
    expect(await failure("select count() from iceberg('t')")).toContain(
      `two columns have the name ${name}, one of them in a struct`,
    )
  }
})
