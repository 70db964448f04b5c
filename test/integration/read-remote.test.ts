// Goal: read_parquet() reads objects of object storage by key and by pattern, over HTTP and the PostgreSQL protocol,
// and joins them with local tables. iceberg() reads a table there, and requests only the files that can contain rows
// that satisfy the conditions. A replaced object is read again. A missing or forbidden object, an object that is not
// Parquet, or a store that cannot be reached makes only that statement fail.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { intBound, putData, type WrittenFile, writeIceberg } from '../support/lake/iceberg-table.js'
import { openS3Service } from '../support/lake/s3-service.js'
import { TestServer } from '../support/server.js'

const service = await openS3Service()
const server = new TestServer([
  `object.store.url=s3://${service.bucket}/own`,
  `object.store.s3.endpoint=${service.endpoint}`,
  `object.store.access.key.id=${service.accessKeyId}`,
  `object.store.secret.access.key=${service.secretAccessKey}`,
  'object.store.retry.time=1s',
])

function put(key: string, file: string): void {
  const content = readFileSync(join(server.root, 'export', file))
  service.objects.set(key, { content, etag: `"${key}-${file}"`, headers: {} })
}

beforeAll(async () => {
  await server.start()
  const wire = await server.connect()
  for (const [name, first] of [
    ['one', 0],
    ['two', 1000],
  ] as const) {
    await wire.query(`create table ${name} as (select x + ${first} x, 'n' || x s from long_sequence(1000))`)
    await wire.query(`copy ${name} to '${name}'`)
  }
  await server.exec('drop table two')
})

afterAll(async () => {
  await server.remove()
  await service.close()
})

beforeEach(() => {
  service.fail = null
  service.objects.clear()
  put('data/1/one.parquet', 'one.parquet')
  put('data/2/two.parquet', 'two.parquet')
})

const both = "read_parquet('s3://history/data/*.parquet')"

test('by key and pattern, over HTTP and the wire protocol', async () => {
  expect(await server.rows(`select count(), sum(x), max(s) from ${both}`)).toEqual([[2000, 2_001_000, 'n999']])
  expect(await server.rows("select count() from read_parquet('s3://history/data/1/one.parquet')")).toEqual([[1000]])
  const wire = await server.connect()
  const { rows } = await wire.query(`select a.x, b.s from ${both} a join one b on a.x = b.x where a.x > $1`, [998])
  expect(rows).toEqual([
    { x: '999', s: 'n999' },
    { x: '1000', s: 'n1000' },
  ])
  await wire.query(`create table copied as (select * from ${both})`)
  expect(await server.rows('select count() from copied')).toEqual([[2000]])
  const query = new URLSearchParams({ query: `select x from ${both} where x = 1500`, fmt: 'csv' })
  expect(await (await fetch(`http://${server.address('http')}/exp?${query}`)).text()).toBe('"x"\r\n1500\r\n')
  const requested = new URLSearchParams({ query: `select * from read_parquet('s3://history/data/2/*')` })
  const validated = await fetch(`http://${server.address('http')}/api/v1/sql/validate?${requested}`)
  expect(await validated.text()).toContain('"name":"x"')
})

test('an object is fetched once, and again when it was replaced', async () => {
  const one = "select max(x) from read_parquet('s3://history/data/fresh.parquet')"
  put('data/fresh.parquet', 'one.parquet')
  expect(await server.rows(one)).toEqual([[1000]])
  const fetches = () => service.requests.filter((text) => text.startsWith('GET /history/data/fresh.parquet')).length
  const before = fetches()
  await new Promise((later) => setTimeout(later, 3200))
  expect(await server.rows(one)).toEqual([[1000]])
  expect(fetches()).toBe(before)
  await new Promise((later) => setTimeout(later, 3200))
  put('data/fresh.parquet', 'two.parquet')
  expect(await server.rows(one)).toEqual([[2000]])
})

test.each([
  ["read_parquet('s3://history/data/none.parquet')", 400, /no object matches the name/],
  ["read_parquet('s3://history/none/*')", 400, /no object matches the name/],
  ["read_parquet('s3://other/x.parquet')", 400, /reading the bucket is not allowed \[bucket=other/],
  ["read_parquet('s3://history')", 400, /expected s3:\/\/bucket\/key/],
])('%s', async (source, status, words) => {
  const answer = await server.exec(`select * from ${source}`)
  expect([answer.status, answer.body.error, answer.body.position]).toEqual([status, expect.stringMatching(words), 27])
})

test('an object that is no Parquet file, and a store that is away, fail their statement alone', async () => {
  service.objects.set('data/bad.parquet', { content: Buffer.from('PAR1 no'), etag: '"bad"', headers: {} })
  const bad = await server.exec("select * from read_parquet('s3://history/data/bad.parquet')")
  expect([bad.status, bad.body.error]).toEqual([400, expect.stringContaining('Parquet file cannot be read')])
  service.fail = () => ({ status: 503, applied: false })
  const away = await server.exec("select * from read_parquet('s3://history/data/2/two.parquet')")
  expect([away.status, away.body.error]).toEqual([503, expect.stringContaining('object storage: ')])
  expect(await server.rows('select count() from one')).toEqual([[1000]])
})

/** Puts an Iceberg table with the column id below the key, whose data files of 10 rows begin at these ids. */
function putTable(table: string, files: readonly WrittenFile[], firsts: readonly number[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-table-'))
  for (const first of firsts) {
    const values = Array.from({ length: 10 }, (_, index) => first + index)
    putData(folder, `data/${first}.parquet`, [
      { name: 'id', physical: 1, element: { field_id: 1 }, encoding: 0, values },
    ])
  }
  writeIceberg(folder, { location: `s3a://history/${table}`, fields: [{ id: 1, name: 'id', type: 'int' }], files })
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.[a-z]+$/.test(name)) continue
    service.objects.set(`${table}/${name}`, {
      content: readFileSync(join(folder, name)),
      etag: `"${name}"`,
      headers: {},
    })
  }
  rmSync(folder, { recursive: true })
}

const fileOf = (first: number): WrittenFile => ({
  ...{ name: `data/${first}.parquet`, rows: 10 },
  bounds: { 1: [intBound(first), intBound(first + 9)] },
})

test('an Iceberg table: only what the conditions leave is requested, and once', async () => {
  putTable('table', [fileOf(0), fileOf(100), fileOf(200)], [0, 100, 200])
  const requested = () => service.requests.filter((text) => text.startsWith('GET /history/table/data/')).length
  const before = requested()
  const sql = "select count(), sum(id) from iceberg('s3://history/table') where id between 105 and 150"
  expect(await server.rows(sql)).toEqual([[5, 535]])
  expect(requested()).toBe(before + 1)
  const wire = await server.connect()
  const metadata = "iceberg('s3://history/table/metadata/00001-b55d.metadata.json')"
  expect((await wire.query(`select max(id) m from ${metadata} where id < $1`, [104])).rows).toEqual([{ m: 103 }])
  expect(requested()).toBe(before + 2)
  expect(await server.rows(`select count() from ${metadata}`)).toEqual([[30]])
  expect(requested()).toBe(before + 3)
})

test.each([
  ['s3://other/data/0.parquet', /reading the bucket is not allowed \[bucket=other/],
  ['file:///etc/passwd', /a table in object storage cannot name local files/],
  ['/etc/passwd', /a table in object storage cannot name local files/],
])('an Iceberg table that names %s', async (name, words) => {
  const table = `forbidden${name.length}`
  putTable(table, [{ name, rows: 1 }], [])
  const answer = await server.exec(`select id from iceberg('s3://history/${table}')`)
  expect([answer.status, answer.body.error]).toEqual([400, expect.stringMatching(words)])
})

test('an Iceberg table in a store that is away', async () => {
  putTable('away', [fileOf(300)], [300])
  service.fail = () => ({ status: 503, applied: false })
  const away = await server.exec("select * from iceberg('s3://history/away')")
  expect([away.status, away.body.error]).toEqual([503, expect.stringContaining('object storage: ')])
  service.fail = null
  expect(await server.rows("select count() from iceberg('s3://history/away')")).toEqual([[10]])
})
