// Goal: a storage policy with DROP LOCAL removes the local files of parts (Parquet files) that were uploaded to object
// storage, and statements behave as before. Queries return the rows of an equal table with local files, changes,
// restarts, backups and `penstock check` work, and a query requests no object outside of its time range. While the
// store cannot be reached, queries of its rows fail with a clear error, and others work.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { openS3Service } from '../support/lake/s3-service.js'
import { TestServer } from '../support/server.js'

const service = await openS3Service()
const server = new TestServer([
  `object.store.url=s3://${service.bucket}/lake`,
  `object.store.s3.endpoint=${service.endpoint}`,
  `object.store.access.key.id=${service.accessKeyId}`,
  `object.store.secret.access.key=${service.secretAccessKey}`,
  'object.store.retry.time=200ms',
])
const copies = mkdtempSync(join(tmpdir(), 'penstock-remote-'))

afterAll(async () => {
  await server.remove()
  await service.close()
  rmSync(copies, { recursive: true, force: true })
})

const blocks = join(server.root, 'tmp', 'parts')

function tool(...args: readonly string[]): string {
  const cli = join(repositoryRoot, 'dist/deploy/cli.js')
  return execFileSync(process.execPath, [cli, ...args], {
    env: { ...process.env, PENSTOCK_URL: `http://${server.address('http')}` },
    encoding: 'utf8',
  })
}

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect([status, text]).toEqual([200, expect.anything()])
}

async function flush(): Promise<void> {
  await run('checkpoint create')
  await run('checkpoint release')
}

/** Until parts, remote parts and local parts of the table are these. */
async function until(table: string, wanted: readonly number[]): Promise<void> {
  const sql = `select parts, remote_parts, local_parts from storage_policies() where table_name = '${table}'`
  for (let attempt = 0; ; attempt++) {
    const [row] = await server.rows(sql)
    if (JSON.stringify(row) === JSON.stringify(wanted)) return
    if (attempt === 400) expect(row).toEqual(wanted)
    await new Promise((later) => setTimeout(later, 100))
  }
}

function emptyCache(): void {
  for (const name of readdirSync(blocks)) rmSync(join(blocks, name))
}

/** Reads of objects since the call before. */
function reads(): number {
  const count = service.requests.filter((request) => request.startsWith('GET ') && request.includes('.parquet')).length
  service.requests.length = 0
  return count
}

const columns = 'x long, i int, s symbol, v varchar, d double, b boolean, u uuid, a double[], ts timestamp'
const values = `x, (x % 100)::int, 'n' || x % 9, 'text ' || x % 1000, x / 3.0, x % 2 = 0, to_uuid(x, 7), array[x, 1.5],
  dateadd('m', x::int, '2024-01-01'::timestamp)`

const queries = [
  'select * from T',
  'select * from T order by ts desc limit 7',
  'select * from T limit -5',
  'select * from T limit 3, 9',
  "select * from T where ts in '2024-01-02' and v = 'text 500'",
  "select ts, s, d from T where s = 'n3' and d > 1000 limit 20",
  'select count(), sum(x), min(d), max(ts), avg(i) from T',
  'select min(v), max(v), count_distinct(s), count_distinct(u) from T',
  'select first(v), last(v), first(d), last(s) from T',
  'select s, count(), sum(x), min(v) from T order by s',
  'select v, count() c from T order by c desc, v limit 10',
  'select ts, avg(d), count() from T sample by 6h',
  'select distinct s from T order by s',
  'select * from T latest on ts partition by s',
  'select * from T order by u limit 5',
  'select x, row_number() over (partition by s order by ts) from T where x < 3000 order by x limit 50',
  'select count(), sum(a.x), sum(c.x) from T a join T c on a.x = c.x where a.x < 4000',
  "select count(), sum(c.x) from T a asof join T c on s where a.ts in '2024-01-02'",
  'select a, b, u from T where x = 2500',
  'select count() from (select x from T union all select x from T)',
]

/** Each query returns the same over the remote table and over an equal local table. */
async function compare(): Promise<void> {
  for (const query of queries) {
    const [remote, local] = ['t', 'twin'].map((name) => query.replaceAll(' T', ` ${name}`)) as [string, string]
    expect([query, await server.rows(remote)]).toEqual([query, await server.rows(local)])
  }
}

async function both(sql: (table: string) => string): Promise<void> {
  for (const table of ['t', 'twin']) await run(sql(table))
}

test('queries return the same rows after the local files are dropped', async () => {
  await server.start()
  await run(
    `create table t (${columns}) timestamp(ts) partition by day storage policy(to remote 1d, drop local 1d) lake off`,
  )
  await run(`create table twin (${columns}) timestamp(ts) partition by day`)
  await both((table) => `insert into ${table} select ${values} from long_sequence(8000)`)
  await flush()
  // The newest row is of January 6: partitions up to January 4 have ended a day before.
  await until('t', [6, 4, 2])
  const folder = (await server.rows("select id from tables() where table_name = 't'"))[0]?.[0]
  const partition = join(server.root, 'db', String(folder), '2024-01-02')
  expect(readdirSync(partition).map((name) => name.replace(/^\d+/, ''))).toEqual(['.sidecar'])
  await compare()
  emptyCache()
  await compare()
})

test('what the sidecar knows and other partitions cost no request', async () => {
  emptyCache()
  reads()
  await server.rows('select count(), min(ts), max(ts), sum(x), max(d) from t')
  await server.rows("select sum(d * 2) from t where ts >= '2024-01-05'")
  await server.rows("select v from t where s = 'no such symbol'")
  await server.rows('select v from t where x = 1000000')
  expect(reads()).toBe(0)
  await server.rows("select sum(d * 2) from t where ts in '2024-01-02'")
  expect(reads()).toBe(1)
  await server.rows("select sum(d * 3) from t where ts in '2024-01-02'")
  expect(reads()).toBe(0)
})

test('exports have the same rows, and what is damaged in the cache is fetched again', async () => {
  const csv = async (table: string): Promise<string> =>
    (await fetch(`http://${server.address('http')}/exp?query=${table}`)).text()
  emptyCache()
  expect(await csv('t')).toBe(await csv('twin'))
  await server.restart()
  for (const name of readdirSync(blocks)) {
    const content = readFileSync(join(blocks, name))
    content[content.length >>> 1] = 255 - (content[content.length >>> 1] as number)
    writeFileSync(join(blocks, name), content)
  }
  expect(await csv('t')).toBe(await csv('twin'))
})

test('an unreachable store fails queries of its rows, and nothing else', async () => {
  emptyCache()
  await server.restart()
  service.fail = () => ({ status: 503, applied: false })
  const { status, body } = await server.exec("select sum(d * 4) from t where ts in '2024-01-03'")
  expect([status, body.error]).toEqual([
    expect.anything(),
    expect.stringContaining('could not be read from object storage'),
  ])
  expect(status).toBeGreaterThanOrEqual(400)
  expect(await server.rows("select count() from t where ts in '2024-01-06'")).toEqual(
    await server.rows("select count() from twin where ts in '2024-01-06'"),
  )
  expect(await server.rows('select count(), max(d) from t')).toEqual(
    await server.rows('select count(), max(d) from twin'),
  )
  const update = await server.exec("update t set i = 7 where ts in '2024-01-03'")
  expect(update.body.error).toContain('could not be read from object storage')
  service.fail = null
  await new Promise((later) => setTimeout(later, 1100))
  await compare()
})

test('changes replace the parts that they touch, and late rows add one', async () => {
  const keys = (): string[] => [...service.objects.keys()].filter((key) => key.includes('.parquet'))
  const before = keys().length
  await both((table) => `update ${table} set v = 'changed', i = i + 1 where ts in '2024-01-02' and s = 'n1'`)
  await until('t', [6, 4, 2])
  expect(keys().length).toBe(before + 1)
  await compare()
  await both((table) => `insert into ${table} select ${values} from long_sequence(20)`)
  await flush()
  await until('t', [7, 5, 2])
  await compare()
  await both((table) => `delete from ${table} where ts in '2024-01-01' and x % 2 = 1`)
  await compare()
  await both((table) => `alter table ${table} alter column i type long`)
  await compare()
  await both((table) => `alter table ${table} add column late varchar`)
  await compare()
})

test('a start after the end and after a kill, a check and a copy know the parts', async () => {
  await until('t', [7, 5, 2])
  await server.restart()
  await compare()
  await server.restart('SIGKILL')
  await compare()
  const copy = join(copies, 'copy')
  tool('backup', copy, '-d', server.root)
  // Each throws if it finds damage.
  tool('check', '-d', copy)
  tool('check', '-d', server.root)
  rmSync(join(copy, 'db'), { recursive: true, force: true })
})

test('partitions are dropped and not detached', async () => {
  const { body } = await server.exec("alter table t detach partition list '2024-01-02'")
  expect(body.error).toContain('only in object storage')
  await both((table) => `alter table ${table} drop partition list '2024-01-02'`)
  await compare()
  await run('alter table t drop storage policy')
  await compare()
  await run('drop table t')
})
