// Goal: the SQL function iceberg() returns the rows of Iceberg tables that other programs wrote, with the columns of
// their current schema and without deleted rows, also from files written before columns were added, dropped, renamed or
// widened. Files, manifests and row groups that the query's conditions exclude are not read: in these tests they are
// missing or damaged. The metadata of a table cannot make the server read a file that a statement could not name.
// Method: tables that test/support/lake/iceberg-table.ts writes.

import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { crc32 } from '../../engine/base/checksum.js'
import { readRights } from '../../engine/base/rights.js'
import { column, numbers, openIcebergQueries, texts } from '../support/lake/iceberg-queries.js'
import { intBound, longBound, put, putData, type WrittenTable, writeIceberg } from '../support/lake/iceberg-table.js'
import type { WrittenColumn } from '../support/parquet-writer.js'

const { home, folder, rows, failure, forget, close } = await openIcebergQueries()

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

test('files from before a change of the schema are read as of today', async () => {
  putData(folder, 'data/old.parquet', [
    column('id', 1, 1, [1, 2, null]),
    column('name', 2, 6, texts(['a', 'b', 'c'])),
    column('price', 3, 4, [0.5, 1.5, 2.5]),
    column('gone', 4, 6, texts(['x', 'y', 'z'])),
    {
      ...column('decimal', 5, 1, [150, 250, 350]),
      element: { field_id: 5, converted_type: 5, precision: 5, scale: 2 },
    },
    // Of a type that is not supported, and dropped since.
    { name: 'nested', physical: 6, element: {}, encoding: 0, values: [[Buffer.from('q')], [], null] },
    column('again', 9, 1, [7, 8, 9]),
  ])
  putData(folder, 'data/new.parquet', [
    column('name', 4_000, 6, texts(['another'])),
    column('label', 2, 6, texts(['d'])),
    column('id', 1, 2, [5_000_000_000n]),
    column('price', 3, 5, [3.25]),
    column('extra', 6, 6, texts(['e'])),
    { ...column('decimal', 5, 2, [450n]), element: { field_id: 5, converted_type: 5, precision: 12, scale: 2 } },
  ])
  table({
    fields: [
      { id: 6, name: 'extra', type: 'string', 'initial-default': 'before' },
      { id: 1, name: 'id', type: 'long' },
      { id: 2, name: 'label', type: 'string' },
      { id: 3, name: 'price', type: 'double' },
      { id: 5, name: 'decimal', type: 'decimal(12, 2)' },
      { id: 7, name: 'since', type: 'timestamptz', 'initial-default': '2024-01-02T03:04:05.123456+00:00' },
      { id: 8, name: 'none', type: { type: 'list', 'element-id': 10, element: 'double' } },
    ],
    files: [
      { name: 'data/old.parquet', rows: 3 },
      { name: 'data/new.parquet', rows: 1 },
      { name: 'data/deleted.parquet', rows: 1, status: 2 },
    ],
  })
  expect(await rows("select * from iceberg('t')")).toEqual([
    ['before', 1, 'a', 0.5, '1.50', '2024-01-02T03:04:05.123456Z', null],
    ['before', 2, 'b', 1.5, '2.50', '2024-01-02T03:04:05.123456Z', null],
    ['before', null, 'c', 2.5, '3.50', '2024-01-02T03:04:05.123456Z', null],
    ['e', 5_000_000_000, 'd', 3.25, '4.50', '2024-01-02T03:04:05.123456Z', null],
  ])
  expect(await rows("select count(), sum(id) from iceberg('t/metadata/00001-b55d.metadata.json')")).toEqual([
    [4, 5_000_000_003],
  ])
  // No column at all.
  expect(await rows("select count() from iceberg('t')")).toEqual([[4]])
})

test('rows that are older than a column have its default, of any type', async () => {
  putData(folder, 'data/a.parquet', [column('id', 1, 1, [1])])
  const defaults: readonly (readonly [string, unknown, unknown])[] = [
    ['boolean', true, true],
    ['int', -7, -7],
    ['long', 9007199254740993n, 9007199254740993n],
    ['double', 2.5, 2.5],
    ['double', 4, 4],
    ['decimal(9, 3)', '-14.2', '-14.200'],
    ['date', '2017-11-16', '2017-11-16T00:00:00.000Z'],
    ['time', '22:31:08.1234', 81_068_123_400],
    ['timestamp', '2017-11-16T22:31:08.123456', '2017-11-16T22:31:08.123456Z'],
    ['timestamptz', '2017-11-16T22:31:08.12+02:00', '2017-11-16T20:31:08.120000Z'],
    ['timestamp_ns', '1969-12-31T23:59:59.123456789', '1969-12-31T23:59:59.123456789Z'],
    ['timestamptz_ns', '2017-11-16T22:31:08+00:00', '2017-11-16T22:31:08.000000000Z'],
    ['string', '12', '12'],
    ['uuid', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', 'f79c3e09-677c-4bbd-a479-3f349cb785e7'],
  ]
  const fields = defaults.map(([type, value], index) => ({
    ...{ id: index + 2, name: `c${index}`, type },
    'initial-default': typeof value === 'bigint' ? `#${value}#` : value,
  }))
  const binary = { id: 99, name: 'b', type: 'fixed[3]', 'initial-default': '00ff10' }
  table({ version: 3, fields: [...fields, binary], files: [{ name: 'data/a.parquet', rows: 1 }] })
  const path = join(folder, 'metadata/00001-b55d.metadata.json')
  writeFileSync(path, readFileSync(path, 'utf8').replace(/"#(\d+)#"/g, '$1'))
  const names = fields.map(({ name, type }) => (type === 'long' ? `${name}::varchar` : name))
  expect(await rows(`select ${names.join()}, length(b) from iceberg('t')`)).toEqual([
    [...defaults.map(([, , value]) => (typeof value === 'bigint' ? `${value}` : value)), 3],
  ])
  forget()
  table({ fields: [idField, { id: 2, name: 'u', type: 'uuid', 'initial-default': 'no' }], files: [] })
  expect(await failure("select u from iceberg('t')")).toContain('the default of the column is not supported [column=u]')
})

test('files without field ids need a name mapping', async () => {
  putData(folder, 'data/a.parquet', [column('old_id', null, 1, [1, 2])])
  table({ files: [{ name: 'data/a.parquet', rows: 2 }] })
  expect(await failure("select id from iceberg('t')")).toContain('it has no field ids, and its table no name mapping')
  forget()
  const mapping = JSON.stringify([{ 'field-id': 1, names: ['id', 'old_id'] }])
  table({ files: [{ name: 'data/a.parquet', rows: 2 }], properties: { 'schema.name-mapping.default': mapping } })
  expect(await rows("select sum(id) from iceberg('t')")).toEqual([[3]])
})

test('a column that a file lacks has the value of its partition', async () => {
  putData(folder, 'data/a.parquet', [column('id', 1, 1, [1])])
  putData(folder, 'data/b.parquet', [column('id', 1, 1, [2])])
  table({
    fields: [idField, { id: 2, name: 'city', type: 'string' }, { id: 3, name: 'day', type: 'date' }],
    partitions: [
      { name: 'city', transform: 'identity', sourceId: 2 },
      { name: 'day', transform: 'identity', sourceId: 3 },
    ],
    partitionTypes: { city: 'string', day: { type: 'int', logicalType: 'date' } },
    files: [
      { name: 'data/a.parquet', rows: 1, partition: { city: 'Oslo', day: 19_723 } },
      { name: 'data/b.parquet', rows: 1, partition: { city: null, day: -1 } },
    ],
  })
  expect(await rows("select * from iceberg('t')")).toEqual([
    [1, 'Oslo', '2024-01-01T00:00:00.000Z'],
    [2, null, '1969-12-31T00:00:00.000Z'],
  ])
  rmSync(join(folder, 'data/b.parquet'))
  expect(await rows("select id from iceberg('t') where city = 'Oslo'")).toEqual([[1]])
  expect(await rows("select id from iceberg('t') where day >= '2024-01-01'")).toEqual([[1]])
})

const pruned: readonly (readonly [string, string, readonly [Buffer, Buffer], string])[] = [
  ['int', 'id', [intBound(10), intBound(19)], 'id = 15'],
  ['int', 'id', [intBound(10), intBound(19)], 'id > 18 and id < 100'],
  ['int', 'id', [intBound(10), intBound(19)], 'id in (1000, 12)'],
  ['int', 'id', [intBound(10), intBound(19)], 'id between 5 and 10'],
  ['long', 'id', [intBound(10), longBound(19n)], '15 = id'],
  ['timestamptz', 'id', [longBound(86_400_000_000n), longBound(90_000_000_000n)], "id < '1970-01-02T01:00'"],
  ['date', 'id', [intBound(10), intBound(19)], "id = '1970-01-12'"],
  ['string', 'id', [Buffer.from('k'), Buffer.from('n')], "id = 'm'"],
]

test.each(pruned)('files are skipped by their bounds: %s %s %s %s', async (type, _name, bounds, where) => {
  const kinds: Readonly<Record<string, WrittenColumn>> = {
    int: column('id', 1, 1, numbers(10, 10)),
    long: column('id', 1, 2, numbers(10, 10).map(BigInt)),
    timestamptz: {
      ...column('id', 1, 2, [86_400_000_000n, 90_000_000_000n]),
      element: { field_id: 1, converted_type: 10 },
    },
    date: { ...column('id', 1, 1, numbers(10, 10)), element: { field_id: 1, converted_type: 6 } },
    string: column('id', 1, 6, texts(['k', 'm', 'n'])),
  }
  const one = kinds[type]
  if (one === undefined) throw new Error(type)
  putData(folder, 'data/a.parquet', [one])
  const far: readonly [Buffer, Buffer] =
    type === 'string'
      ? [Buffer.from('x'), Buffer.from('y')]
      : type === 'timestamptz'
        ? [longBound(-9n), longBound(-5n)]
        : [intBound(-9), intBound(-5)]
  table({
    fields: [{ id: 1, name: 'id', type }],
    files: [
      { name: 'data/a.parquet', rows: 10, bounds: { 1: bounds } },
      { name: 'data/missing.parquet', rows: 10, bounds: { 1: far } },
    ],
  })
  // The lower bound of the other file would do for some.
  const where2 = where.includes("< '1970") ? `${where} and id > 0::timestamp` : where
  expect(await rows(`select count() > 0 from iceberg('t') where ${where2}`)).toEqual([[true]])
  expect(await failure("select count() from iceberg('t')")).toContain('missing.parquet')
})

const timestamps = ['timestamp', 'timestamptz', 'timestamp_ns', 'timestamptz_ns']

test.each(timestamps)('bounds and partitions of a date that became a %s skip no files', async (type) => {
  const day = { type: 'int', logicalType: 'date' }
  const where = "id >= '2024-01-01'"
  // Days, not microseconds.
  const days: readonly [Buffer, Buffer] = [intBound(19_723), intBound(19_724)]
  const shared: Partial<WrittenTable> = { version: 3, fields: [{ id: 1, name: 'id', type }] }
  table({ ...shared, files: [{ name: 'data/missing.parquet', rows: 1, bounds: { 1: days } }] })
  expect(await failure(`select count() from iceberg('t') where ${where}`)).toContain('missing.parquet')
  forget()
  const partitions = [{ name: 'id', transform: 'identity', sourceId: 1 }]
  const partitionTypes = { id: day }
  const file = { name: 'data/missing.parquet', rows: 1, partition: { id: 19_723 } }
  table({ ...shared, partitions, partitionTypes, files: [file], summaries: [days] })
  expect(await failure(`select count() from iceberg('t') where ${where}`)).toContain('missing.parquet')
  forget()
  // The value of the partition, in a file without the column.
  putData(folder, 'data/a.parquet', [column('other', 2, 1, [1])])
  table({ ...shared, partitions, partitionTypes, files: [{ ...file, name: 'data/a.parquet' }] })
  const [[value] = []] = await rows("select id::string from iceberg('t')")
  expect(value).toContain('2024-01-01T00:00:00.000000')
})

test('EXPLAIN tells how many files are left', async () => {
  for (const first of [0, 100]) putData(folder, `data/${first}.parquet`, [column('id', 1, 1, numbers(10, first))])
  const bounds = (first: number) => ({ 1: [intBound(first), intBound(first + 9)] as const })
  table({
    files: [
      { name: 'data/0.parquet', rows: 10, bounds: bounds(0) },
      { name: 'data/100.parquet', rows: 10, bounds: bounds(100) },
    ],
  })
  const sql = "select count() from iceberg('t') where id > 9"
  expect(JSON.stringify(await rows(`explain ${sql}`))).toContain('iceberg files: 1 columns: [id]')
  expect(JSON.stringify(await rows(`explain analyze ${sql}`))).toContain('iceberg files: 1 columns: [id]')
  expect(JSON.stringify(await rows("explain select id from iceberg('t')"))).toContain('iceberg files: 2 columns: [id]')
  expect(await rows(`${sql} union all select max(id) from iceberg('t')`)).toEqual([[10], [109]])
})

test.each([
  ['year', 54, 53, 54, 54, "'2024-06-01'"],
  ['month', 653, 652, 653, 653, "'2024-06-01'"],
  ['day', 19_875, 19_874, 19_875, 19_875, "'2024-06-01'"],
  ['hour', 477_003, 477_002, 477_003, 477_003, "'2024-06-01T03:00'"],
])('files and manifests are skipped by partitions: %s', async (transform, value, other, low, high, from) => {
  const micros = BigInt(Date.parse(`${from.slice(1, -1)}${from.includes('T') ? ':00Z' : ''}`)) * 1000n
  putData(folder, 'data/a.parquet', [
    { ...column('ts', 1, 2, [micros + 1n]), element: { field_id: 1, converted_type: 10 } },
  ])
  const shared: Partial<WrittenTable> = {
    fields: [{ id: 1, name: 'ts', type: 'timestamptz' }],
    partitions: [{ name: `ts_${transform}`, transform, sourceId: 1 }],
    partitionTypes: { [`ts_${transform}`]: transform === 'day' ? { type: 'int', logicalType: 'date' } : 'int' },
  }
  table({
    ...shared,
    files: [
      { name: 'data/a.parquet', rows: 1, partition: { [`ts_${transform}`]: value } },
      { name: 'data/missing.parquet', rows: 1, partition: { [`ts_${transform}`]: other } },
    ],
  })
  expect(await rows(`select count() from iceberg('t') where ts >= ${from}`)).toEqual([[1]])
  expect(await failure("select count() from iceberg('t')")).toContain('missing.parquet')
  forget()
  table({
    ...shared,
    files: [{ name: 'data/missing.parquet', rows: 1, partition: {} }],
    summaries: [[intBound(low), intBound(high)]],
  })
  rmSync(join(folder, 'metadata/m0.avro'))
  expect(await rows("select count() from iceberg('t') where ts > '2025-01-01'")).toEqual([[0]])
  expect(await failure(`select count() from iceberg('t') where ts = ${from}`)).toContain('m0.avro')
})

test('row groups are skipped by their statistics, in read_parquet() as well', async () => {
  const first = numbers(100)
  const ids: WrittenColumn = {
    ...column('id', 1, 1, first),
    metadata: { statistics: { min_value: intBound(0), max_value: intBound(99) } as never },
  }
  putData(folder, 'data/a.parquet', [ids])
  table({ files: [{ name: 'data/a.parquet', rows: 100 }] })
  const damage = readFileSync(join(folder, 'data/a.parquet'))
  damage.fill(0xff, 4, 30)
  writeFileSync(join(folder, 'data/a.parquet'), damage)
  for (const source of ["iceberg('t')", "read_parquet('t/data/a.parquet')"]) {
    expect(await rows(`select count() from ${source} where id >= 100`)).toEqual([[0]])
    expect(await failure(`select count() from ${source} where id >= 99`)).toContain('Parquet file cannot be read')
  }
})

test('deleted rows are left out', async () => {
  putData(folder, 'data/a.parquet', [column('id', 1, 1, numbers(3000))], 1000)
  putData(folder, 'data/b.parquet', [column('id', 1, 1, numbers(10, 5000))])
  const positions = [0, 1, 999, 1000, 1001, 2999, ...numbers(200, 1500)]
  const path = (name: string): Buffer => Buffer.from(`${location}/data/${name}.parquet`)
  putData(folder, 'data/d.parquet', [
    column('file_path', 2_147_483_546, 6, [path('b'), ...positions.map(() => path('a'))]),
    column('pos', 2_147_483_545, 2, [3n, ...positions.map(BigInt)]),
  ])
  putData(folder, 'data/e.parquet', [
    column('file_path', 2_147_483_546, 6, [path('a'), path('b'), path('b')]),
    column('pos', 2_147_483_545, 2, [1001n, 9n, 3n]),
  ])
  // Of an older snapshot than the file: it does not apply.
  putData(folder, 'data/f.parquet', [
    column('file_path', 2_147_483_546, 6, [path('b')]),
    column('pos', 2_147_483_545, 2, [0n]),
  ])
  table({
    files: [
      { name: 'data/a.parquet', rows: 3000, sequence: 2 },
      { name: 'data/b.parquet', rows: 10, sequence: 3 },
      { name: 'data/d.parquet', rows: 206, content: 1, sequence: 4 },
      { name: 'data/e.parquet', rows: 3, content: 1, sequence: 5 },
      { name: 'data/f.parquet', rows: 1, content: 1, sequence: 2 },
    ],
  })
  const kept = numbers(3000).filter((id) => !positions.includes(id))
  const others = numbers(10, 5000).filter((id) => id !== 5003 && id !== 5009)
  expect(await rows("select id from iceberg('t')")).toEqual([...kept, ...others].map((id) => [id]))
  expect(await rows("select count() from iceberg('t')")).toEqual([[kept.length + others.length]])
  expect(await rows("select count() from iceberg('t') where id in (0, 2, 5003, 5004, 2999)")).toEqual([[2]])
})

test('a deletion vector, of runs, values and bits', async () => {
  putData(folder, 'data/a.parquet', [column('id', 1, 1, numbers(80_000))], 80_000)
  const odd = numbers(30_000).filter((value) => value % 2 === 1)
  const vector = deletionVector([
    { kind: 'bits', values: odd },
    { kind: 'array', values: [0, 5] },
  ])
  put(folder, 'data/v.puffin', Buffer.concat([Buffer.from('PFA1'), vector, Buffer.from('PFA1')]))
  const file = { name: 'data/v.puffin', rows: 1, content: 1, format: 'puffin', dataFile: 'data/a.parquet' } as const
  table({
    version: 3,
    files: [
      { name: 'data/a.parquet', rows: 80_000 },
      { ...file, range: [4, vector.length] },
    ],
  })
  const left = numbers(80_000).filter((id) => !(id < 30_000 && id % 2 === 1) && id !== 65_536 && id !== 65_541)
  const sum = left.reduce((all, id) => all + id, 0)
  expect(await rows("select count(), sum(id) from iceberg('t')")).toEqual([[left.length, sum]])
  forget()
  const runs = deletionVector([{ kind: 'runs', values: numbers(10, 20) }])
  put(folder, 'data/v.puffin', runs)
  table({
    version: 3,
    files: [
      { name: 'data/a.parquet', rows: 80_000 },
      { ...file, range: [0, runs.length] },
    ],
  })
  expect(await rows("select count() from iceberg('t') where id < 40")).toEqual([[30]])
  runs[20] = 1
  put(folder, 'data/v.puffin', runs)
  expect(await failure("select count() from iceberg('t')")).toContain('a deletion vector is damaged')
})

test('names that lead out of what is allowed are refused', async () => {
  put(home, 'secret.parquet', Buffer.from('x'))
  for (const [name, words] of [
    [join(home, 'secret.parquet'), 'file name leads out of its directory'],
    [`file://${home}/secret.parquet`, 'file name leads out of its directory'],
    [`${location}/../../secret.parquet`, 'file name leads out of its directory'],
    ['s3://bucket/key', 'no object storage is configured'],
    ['hdfs://host/key', 'the table names a file that cannot be read here'],
  ] as const) {
    forget()
    table({ files: [{ name, rows: 1 }] })
    expect(await failure("select count() from iceberg('t')")).toContain(words)
  }
  table({ files: [] })
  expect(await failure("select * from iceberg('../secret.parquet')")).toContain('leads out of its directory')
  expect(await failure("select * from iceberg('../x.metadata.json')")).toContain('leads out of its directory')
  expect(await failure("select * from iceberg('t')", readRights)).toContain('the right is missing')
})

test('absolute names in the directories of COPY and in the folder of the store', async () => {
  const own = join(home, 'store/lake/t')
  for (const place of [folder, own]) {
    putData(place, 'data/a.parquet', [column('id', 1, 1, numbers(3))])
    writeIceberg(place, {
      location: `file://${place}`,
      fields: [idField],
      files: [{ name: 'data/a.parquet', rows: 3 }],
    })
    for (const name of [place, `${place}/`, `file://${place}`, `file://${place}/metadata/00001-b55d.metadata.json`])
      expect(await rows(`select count() from iceberg('${name}')`)).toEqual([[3]])
    expect(await rows(`select count() from read_parquet('${place}/data/*.parquet')`)).toEqual([[3]])
    expect(await failure(`select * from iceberg('${place}/metadata/none.json')`)).toContain('file does not exist')
    expect(await failure(`select * from iceberg('${place}/none')`)).toContain('no metadata of an Iceberg table')
    expect(await failure(`select * from read_parquet('${place}/none*')`)).toContain('no file matches the name')
  }
  // Names in the store are whole ones.
  expect(await failure("select * from iceberg('lake/t')")).toContain('no metadata of an Iceberg table')
  put(home, 'else/metadata/v1.metadata.json', Buffer.from('{}'))
  put(home, 'else/data/a.parquet', readFileSync(join(own, 'data/a.parquet')))
  const link = join(home, 'store/link')
  symlinkSync(join(home, 'else'), link)
  for (const source of [
    ...[`iceberg('${home}/else')`, `iceberg('${home}/else/metadata/v1.metadata.json')`, `iceberg('${link}')`],
    ...[
      `read_parquet('${home}/else/data/*')`,
      `read_parquet('${link}/data/*')`,
      `read_parquet('${link}/data/a.parquet')`,
    ],
  ])
    expect(await failure(`select * from ${source}`)).toMatch(/leads out of its directory .*copy\.import\.root/)
})

test('a table without rows, compressed metadata, a hint of the version', async () => {
  table({ files: [], codec: 'null' })
  expect(await rows("select * from iceberg('t')")).toEqual([])
  putData(folder, 'data/a.parquet', [column('id', 1, 1, numbers(3))])
  forget()
  table({ files: [{ name: 'data/a.parquet', rows: 3 }] })
  const path = join(folder, 'metadata/00001-b55d.metadata.json')
  put(folder, 'metadata/v7.gz.metadata.json', gzipSync(readFileSync(path)))
  put(folder, 'metadata/v9.metadata.json', Buffer.from('{"format-version": 9, "location": "x"}'))
  expect(await failure("select count() from iceberg('t')")).toContain('format version 9 is not supported')
  forget()
  put(folder, 'metadata/version-hint.text', Buffer.from('7.gz\n'))
  expect(await rows("select count() from iceberg('t')")).toEqual([[3]])
  expect(await rows("select count() from iceberg('t/metadata/v7.gz.metadata.json')")).toEqual([[3]])
})

test.each([
  ["iceberg('t/metadata/none.json')", 'file does not exist'],
  ["iceberg('nothing')", 'the folder has no metadata of an Iceberg table'],
  ["iceberg('t', 'exact')", "takes the name of the table's metadata"],
  ['iceberg()', "takes the name of the table's metadata"],
  ["iceberg('t/data/x.json')", 'the file is not the metadata of an Iceberg table'],
  ["iceberg('t/data/y.json')", 'the type variant is not supported [column=point]'],
])('%s: %s', async (source, words) => {
  table({})
  put(folder, 'data/x.json', Buffer.from('{"a": 1}'))
  const fields = [{ id: 1, name: 'point', type: 'variant' }]
  const schemas = [{ 'schema-id': 0, fields }]
  put(
    folder,
    'data/y.json',
    Buffer.from(JSON.stringify({ 'format-version': 2, location, schemas, 'current-schema-id': 0 })),
  )
  expect(await failure(`select * from ${source}`)).toContain(words)
})

test('damaged manifests are reported', async () => {
  table({ files: [{ name: 'data/a.parquet', rows: 3 }] })
  const path = join(folder, 'metadata/m0.avro')
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.subarray(0, bytes.length - 30))
  expect(await failure("select count() from iceberg('t')")).toMatch(
    /Iceberg table cannot be read: a file is damaged.*m0/,
  )
  forget()
  writeFileSync(path, 'no Avro')
  expect(await failure("select count() from iceberg('t')")).toContain('not an Avro file')
  forget()
  table({ files: [{ name: 'data/a.orc', rows: 3, format: 'ORC' }] })
  expect(await failure("select count() from iceberg('t')")).toContain('files of the format ORC are not supported')
})

interface Container {
  readonly kind: 'array' | 'bits' | 'runs'
  readonly values: readonly number[]
}

/** A blob deletion-vector-v1; each container has the next 65,536 positions. */
function deletionVector(containers: readonly Container[]): Buffer {
  const u16 = (value: number): Buffer => Buffer.from([value & 255, value >>> 8])
  const hasRuns = containers.some(({ kind }) => kind === 'runs')
  const bodies = containers.map(({ kind, values }) => {
    if (kind === 'array') return Buffer.concat(values.map(u16))
    if (kind === 'runs') return Buffer.concat([u16(1), u16(values[0] ?? 0), u16(values.length - 1)])
    const bits = Buffer.alloc(8192)
    for (const value of values) bits.writeUInt8(bits.readUInt8(value >>> 3) | (1 << (value & 7)), value >>> 3)
    return bits
  })
  const roaring = Buffer.concat([
    hasRuns ? Buffer.concat([u16(12_347), u16(containers.length - 1), Buffer.from([1])]) : intBound(12_346),
    ...(hasRuns ? [] : [intBound(containers.length)]),
    ...containers.map(({ values }, index) => Buffer.concat([u16(index), u16(values.length - 1)])),
    ...(hasRuns ? [] : containers.map(() => intBound(0))),
    ...bodies,
  ])
  const body = Buffer.concat([Buffer.from([0xd1, 0xd3, 0x39, 0x64]), longBound(1n), intBound(0), roaring])
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(body.length)
  checksum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, checksum])
}
