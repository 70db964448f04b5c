// Goal: a table with LAKE ON is also an Iceberg table in the object store, which readers find through the server's
// Iceberg catalog. It follows every change of the SQL table: inserts, late rows, UPDATE, DELETE, DEDUP, changed
// columns, dropped partitions, restarts and kills. Method: the rows of the Iceberg table, read by DuckDB, equal those
// of the SQL table.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { currentSchema, currentSnapshot } from '../../engine/lake/table-metadata.js'
import { dataFiles, loadTable, readLake, untilCommitted } from '../support/lake/lake-reader.js'
import { TestServer } from '../support/server.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-lake-'))
const settings = [`object.store.url=file://${folder}`, 'lake.commit.lag=1s', 'telemetry.enabled=false']
const server = new TestServer(settings)

beforeAll(() => server.start())

afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect([status, text]).toEqual([200, expect.anything()])
}

const get = async (path: string, init: RequestInit = {}): Promise<{ status: number; body: unknown }> => {
  const answer = await fetch(`http://${server.address('http')}/iceberg/v1/${path}`, init)
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? null : JSON.parse(text) }
}

/** The same figures from the lake and from SQL, after the lake has followed. */
async function expectSame(table: string, lake: string, sql = lake): Promise<void> {
  const { metadata } = await untilCommitted(server, table)
  const wanted = await server.rows(`select ${sql} from ${table}`)
  const found = await readLake(metadata, lake)
  expect(found.map((row) => row.map(Number))).toEqual(wanted.map((row) => row.map(Number)))
}

test('the catalog is empty, and says what it can', async () => {
  expect((await get('config')).body).toMatchObject({
    endpoints: expect.arrayContaining(['GET /v1/{prefix}/namespaces']),
  })
  expect(await get('namespaces')).toEqual({ status: 200, body: { namespaces: [['qdb']] } })
  expect(await get('namespaces?parent=qdb')).toEqual({ status: 200, body: { namespaces: [] } })
  expect((await get('namespaces/qdb/tables')).body).toMatchObject({ identifiers: [] })
  expect((await get('namespaces/other')).status).toBe(404)
  expect((await get('namespaces/qdb/tables/none')).body).toMatchObject({
    error: { type: 'NoSuchTableException', code: 404 },
  })
  // Spark asks for snapshots of the table m in qdb so, and takes this error alone for an answer.
  expect((await get('namespaces/qdb%1Fm/tables/snapshots')).body).toMatchObject({
    error: { type: 'NoSuchTableException', message: 'table does not exist in the lake [table=qdb.m.snapshots]' },
  })
  for (const [path, method] of [
    ['namespaces', 'POST'],
    ['namespaces/qdb', 'DELETE'],
    ['namespaces/qdb/tables', 'POST'],
    ['namespaces/qdb/tables/t', 'POST'],
    ['transactions/commit', 'POST'],
    ['namespaces/qdb/views', 'GET'],
  ] as const)
    expect([path, (await get(path, { method })).status]).toEqual([path, 406])
})

test('an empty table is there at once, and rows follow', async () => {
  await run('create table t (ts timestamp, s symbol, x long, d double) timestamp(ts) partition by day lake on')
  expect((await server.exec('show create table t')).text).toContain('PARTITION BY DAY LAKE ON')
  const { metadata, location } = await untilCommitted(server, 't')
  expect(metadata).toMatchObject({ 'current-snapshot-id': -1, snapshots: [] })
  expect(location).toMatch(/^file:\/\/\/.*\/metadata\/v1\.metadata\.json$/)
  await run(
    `insert into t select dateadd('m', (x * 7)::int, '2024-01-01'::timestamp), 's' || x % 5, x, case when x % 3 = 0 then null else x / 4.0 end from long_sequence(1000)`,
  )
  await expectSame('t', 'count(*), sum(x), sum(d), count(d)')
  const names = (await get('namespaces/qdb/tables')).body
  expect(names).toMatchObject({ identifiers: [{ namespace: ['qdb'], name: 't' }] })
  expect((await get('namespaces/qdb/tables/t', { method: 'HEAD' })).status).toBe(204)
})

test('files have partitions, bounds and counts', async () => {
  const { metadata } = await untilCommitted(server, 't')
  const files = dataFiles(metadata)
  expect(files.map(({ partition }) => partition).sort()).toEqual([19_723, 19_724, 19_725, 19_726, 19_727])
  expect(files.reduce((sum, { rows }) => sum + rows, 0)).toBe(1000)
  const [low, high] = await server.rows('select min(x), max(x) from t').then(([row]) => row as [number, number])
  const bound = (of: 'lowerBounds' | 'upperBounds'): number[] =>
    files.map((file) => Number(file[of].get(3)?.readBigInt64LE()))
  expect([Math.min(...bound('lowerBounds')), Math.max(...bound('upperBounds'))]).toEqual([low, high])
  expect(files.reduce((sum, { nullCounts }) => sum + (nullCounts.get(4) ?? 0), 0)).toBe(333)
  expect(metadata['partition-specs']).toEqual([
    { 'spec-id': 0, fields: [{ 'source-id': 1, 'field-id': 1000, name: 'ts_day', transform: 'day' }] },
  ])
  expect(metadata['sort-orders'][0]?.fields[0]).toMatchObject({ 'source-id': 1, direction: 'asc' })
})

test('late rows, UPDATE, DELETE and DROP PARTITION are snapshots', async () => {
  await run("insert into t values ('2024-01-01T00:00:01', 'late', 5000, 1.5)")
  await expectSame('t', 'count(*), sum(x), sum(d)')
  await run("update t set x = x + 1 where s = 's1'")
  await expectSame('t', 'count(*), sum(x), sum(d)')
  await run("delete from t where s = 's2'")
  await expectSame('t', 'count(*), sum(x), sum(d)')
  await run("alter table t drop partition list '2024-01-02'")
  await expectSame('t', 'count(*), sum(x), sum(d)')
  const { metadata } = await untilCommitted(server, 't')
  const operations = metadata.snapshots.map(({ summary }) => summary.operation)
  expect(operations.slice(0, 2)).toEqual(['append', 'append'])
  expect(operations.at(-1)).toBe('delete')
  expect(operations).toContain('overwrite')
  expect(currentSnapshot(metadata)?.summary['total-records']).toBe(
    String((await server.rows('select count() from t'))[0]?.[0]),
  )
})

test('columns are added, renamed, dropped and change their types', async () => {
  await run('alter table t add column flag boolean')
  await run("insert into t values ('2024-01-05T12:00', 'new', 1, 2.5, true)")
  await expectSame('t', 'count(*), count(case when flag then 1 end)')
  expect(await readLake((await untilCommitted(server, 't')).metadata, 'count(flag)')).toEqual([['1']])
  await run('alter table t rename column x to y')
  await run('alter table t drop column d')
  let fields = currentSchema((await untilCommitted(server, 't')).metadata).fields
  expect(fields.map(({ id, name, type }) => [id, name, type])).toEqual([
    [1, 'ts', 'timestamptz'],
    [2, 's', 'string'],
    [3, 'y', 'long'],
    [5, 'flag', 'boolean'],
  ])
  await run('alter table t alter column y type double')
  const { metadata } = await untilCommitted(server, 't')
  fields = currentSchema(metadata).fields
  expect(fields.map(({ id, name, type }) => [id, name, type])).toContainEqual([6, 'y', 'double'])
  await expectSame('t', 'count(*), sum(y)')
})

test('a restart and a kill lose nothing and repeat nothing', async () => {
  const before = dataFiles((await untilCommitted(server, 't')).metadata).map(({ path }) => path)
  await server.restart()
  const after = dataFiles((await untilCommitted(server, 't')).metadata).map(({ path }) => path)
  expect(after.sort()).toEqual(before.sort())
  for (let round = 0; round < 3; round++) {
    await run(
      `insert into t (ts, s, y) select dateadd('s', x::int, '2024-01-06'::timestamp), 'k', x from long_sequence(2000)`,
    )
    // Amid a flush, an upload or a commit.
    await new Promise((later) => setTimeout(later, 900 + round * 150))
    await server.restart('SIGKILL')
  }
  await expectSame('t', 'count(*), sum(y)')
})

test('the catalog asks for credentials when the server does, and gives tokens', async () => {
  await server.restartWith([...settings, 'http.user=reader', 'http.password=secret'])
  expect(await get('config')).toMatchObject({ status: 401, body: { error: { type: 'NotAuthorizedException' } } })
  const token = async (fields: Record<string, string>) =>
    get('oauth/tokens', { method: 'POST', body: new URLSearchParams(fields) })
  const wrong = await token({ grant_type: 'client_credentials', client_id: 'reader', client_secret: 'no' })
  expect(wrong).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  expect((await token({ grant_type: 'password' })).body).toMatchObject({ error: 'unsupported_grant_type' })
  const given = await token({
    grant_type: 'client_credentials',
    client_id: 'reader',
    client_secret: 'secret',
    scope: 'catalog',
  })
  expect(given).toMatchObject({ status: 200, body: { token_type: 'bearer', expires_in: 3600 } })
  const { access_token: bearer } = given.body as { access_token: string }
  const headers = { authorization: `Bearer ${bearer}` }
  expect((await get('namespaces/qdb/tables', { headers })).body).toMatchObject({ identifiers: [{ name: 't' }] })
  const exchanged = await token({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: bearer,
  })
  expect(exchanged.status).toBe(200)
  const basic = { authorization: `Basic ${Buffer.from('reader:secret').toString('base64')}` }
  expect((await get('namespaces', { headers: basic })).status).toBe(200)
  expect((await get('namespaces', { headers: { authorization: 'Bearer pso_other' } })).status).toBe(401)
  await server.restartWith(settings)
})

test('of rows with equal keys the lake has the last one only', async () => {
  await run(
    'create table k (ts timestamp, id int, v long) timestamp(ts) partition by month lake on wal dedup upsert keys(ts, id)',
  )
  for (let round = 1; round <= 3; round++) {
    await run(
      `insert into k select dateadd('m', x::int, '2024-03-01'::timestamp), (x % 10)::int, x * ${round} from long_sequence(${round * 300})`,
    )
    await expectSame('k', 'count(*), sum(v)')
  }
})

test('rows that ON CONFLICT replaces are not in the lake', async () => {
  const client = await server.connect()
  await client.query('create table u (ts timestamp, id int primary key, v long) timestamp(ts) partition by day')
  await run('alter table u set lake on')
  for (let round = 1; round <= 3; round++) {
    for (let id = 1; id <= 20; id++)
      await client.query(
        `insert into u values ('2024-03-0${1 + (id % 3)}', ${id}, ${id * round}) on conflict (id) do update set v = excluded.v`,
      )
    await expectSame('u', 'count(*), sum(v)')
  }
})

test('SET LAKE ON takes a table with parts, and OFF takes it out', async () => {
  await run(
    `create table w as (select timestamp_sequence('2024-01-01', 60000000L) ts, x from long_sequence(20000)) timestamp(ts) partition by week`,
  )
  expect(await loadTable(server, 'w')).toBeNull()
  await run('alter table w set lake on')
  await expectSame('w', 'count(*), sum(x)')
  const first = await untilCommitted(server, 'w')
  expect(first.metadata['partition-specs'][0]?.fields).toEqual([])
  expect(first.metadata.snapshots).toHaveLength(1)
  await run('alter table w set lake off')
  expect(await loadTable(server, 'w')).toBeNull()
  await run('alter table w set lake on')
  const second = await untilCommitted(server, 'w')
  expect(second.metadata['table-uuid']).not.toBe(first.metadata['table-uuid'])
  await run('rename table w to w2')
  await expectSame('w2', 'count(*), sum(x)')
  await run('truncate table w2')
  expect(await readLake((await untilCommitted(server, 'w2')).metadata, 'count(*)')).toEqual([[0]])
  await run('drop table w2')
  expect(await loadTable(server, 'w2')).toBeNull()
})

test('every type is in the lake, with its values and NULLs', async () => {
  await run(`create table a (ts timestamp, bo boolean, by byte, sh short, ch char, i int, l long, f float, d double, da date,
    ns timestamp_ns, st string, va varchar, sy symbol, uu uuid, ip ipv4, ge geohash(8c), bi binary, lo long256,
    de decimal(20, 4), hu decimal(50, 2), ar double[], ar2 double[][]) timestamp(ts) partition by hour lake on`)
  await run(`insert into a select timestamp_sequence('2024-01-01', 1000000000L), x % 2 = 0, (x % 100)::byte, (x * 3)::short, 'é',
    x::int, x * 1000000007, x / 4.0f, x / 8.0, (x * 86400000)::date, (x * 1000000000 + 789)::timestamp_ns,
    'str' || x, 'värchar' || x, 'sym' || x % 7, rnd_uuid4(), rnd_ipv4(), rnd_geohash(40), rnd_bin(4, 4, 0), rnd_long256(),
    (x || '.1234')::decimal(20, 4), (x || '.25')::decimal(50, 2), ARRAY[x / 2.0, null], ARRAY[[1.0, x], [2.0, 3.0]]
    from long_sequence(500)`)
  await run("insert into a (ts) values ('2024-01-07')")
  const { metadata } = await untilCommitted(server, 'a')
  const [row] = await readLake(
    metadata,
    `count(*), count(*) filter (where bo), sum("by"), sum(sh), max(ch), sum(i), sum(l), sum(f), sum(d), epoch_ms(max(da)),
     epoch_us(max(ns)) * 1000 + max(ns_nanos), count(distinct st), max(va), count(distinct sy), min(length(uu)), count(ip),
     min(length(ge)), sum(octet_length(bi)), min(octet_length(lo)), sum(de), max(hu::double), sum(ar[1]), sum(ar2[1][2])`,
  )
  const [wanted] = await server.rows(
    `select count(), count() filter (where bo), sum(by), sum(sh), 233, sum(i), sum(l), sum(f), sum(d), max(da)::long,
     max(ns)::long, count_distinct(st), max(va), count_distinct(sy), 36, count(ip), 8, 2000, 32, sum(de), max(hu),
     sum(ar[1]), sum(ar2[1][2]) from a`,
  )
  expect(row?.map(String)).toEqual(wanted?.map(String))
  const types = Object.fromEntries(currentSchema(metadata).fields.map(({ name, type }) => [name, type]))
  expect(types).toMatchObject({
    ...{ bo: 'boolean', by: 'int', sh: 'int', ch: 'int', da: 'timestamptz', ns: 'timestamptz', ns_nanos: 'int' },
    ...{ uu: 'string', ip: 'string', ge: 'string', bi: 'binary', lo: 'fixed[32]', de: 'decimal(20, 4)', hu: 'string' },
  })
})

test('a table with a storage policy is in the lake, unless it says otherwise', async () => {
  await run('create table p (ts timestamp, x long) timestamp(ts) partition by day storage policy(to remote 30d)')
  await run(
    'create table p2 (ts timestamp, x long) timestamp(ts) partition by day storage policy(to remote 30d) lake off',
  )
  await untilCommitted(server, 'p')
  expect(await loadTable(server, 'p2')).toBeNull()
  expect((await server.exec('show create table p')).text).not.toContain('LAKE')
  expect((await server.exec('show create table p2')).text).toContain('LAKE OFF')
  await run('alter table p2 set storage policy(to remote 60d)')
  expect((await server.exec('show create table p2')).text).toContain('LAKE OFF')
  await run('create table p3 (ts timestamp, x long) timestamp(ts) partition by day')
  await run('alter table p3 set storage policy(to remote 30d)')
  await untilCommitted(server, 'p3')
})

test('what cannot be is refused by name', async () => {
  expect((await server.exec('alter table t set lake maybe')).text).toContain("'on' or 'off' expected")
  expect((await server.exec('create table z (a int) lake')).text).toContain("'on' or 'off' expected")
  const plain = await get('oauth/tokens')
  expect(plain.status).toBe(406)
})
