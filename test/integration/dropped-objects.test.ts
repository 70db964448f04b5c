// Goal: a storage policy with DROP REMOTE removes partitions by their age. Objects in the object store that nothing
// refers to any more, such as data files of dropped partitions and files of dropped Iceberg tables, are removed after the
// grace period; all others stay. A server that runs on a copy of the root folder removes no objects, since they belong to
// the original.

import { cpSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { openS3Service } from '../support/lake/s3-service.js'
import { TestServer } from '../support/server.js'

const service = await openS3Service()
const settings = [
  `object.store.url=s3://${service.bucket}/history`,
  `object.store.s3.endpoint=${service.endpoint}`,
  `object.store.access.key.id=${service.accessKeyId}`,
  `object.store.secret.access.key=${service.secretAccessKey}`,
  ...['object.store.retry.time=1s', 'object.store.delete.grace=3s', 'lake.commit.lag=1s', 'telemetry.enabled=false'],
]
const server = new TestServer(settings)
const copy = new TestServer(settings)

afterAll(async () => {
  await copy.remove()
  await server.remove()
  await service.close()
})

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect([status, text]).toEqual([200, expect.anything()])
}

const keys = (part: string): string[] =>
  [...service.objects.keys()].filter((key) => key.includes(part) && !/probe/.test(key)).sort()

async function until(condition: () => Promise<boolean> | boolean, what: () => unknown): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    if (await condition()) return
    await new Promise((later) => setTimeout(later, 100))
  }
  throw new Error(`it does not come to that: ${JSON.stringify(what())}`)
}

test('partitions end with DROP REMOTE, and their objects after the grace period', async () => {
  await server.start()
  await run(
    'create table t (ts timestamp, x long) timestamp(ts) partition by day storage policy(to remote 1d, drop local 2d, drop remote 5d) lake off',
  )
  await run(`insert into t select dateadd('h', (x * 12)::int, '2024-01-01'::timestamp), x from long_sequence(10)`)
  await run('checkpoint create')
  await run('checkpoint release')
  // The newest row is of January 6: five days before it ends the life of nothing, uploads begin.
  await until(
    () => keys('.parquet').length >= 4,
    () => keys(''),
  )
  const before = keys('.parquet')
  await run("insert into t values ('2024-01-09T00:00', 100)")
  await run('checkpoint create')
  await run('checkpoint release')
  const rows = async () => (await server.rows('select count(), min(ts) from t'))[0]
  await until(
    async () => String((await rows())?.[1]).startsWith('2024-01-04'),
    () => keys(''),
  )
  await until(
    () => keys('2024-01-01').length === 0 && keys('2024-01-02').length === 0,
    () => keys(''),
  )
  expect(keys('2024-01-04').length).toBeGreaterThan(0)
  expect(before.filter((key) => keys('.parquet').includes(key)).length).toBeGreaterThan(0)
  expect((await server.rows("select count() from t where ts < '2024-01-06'"))[0]).toEqual([4])
})

test('a table of the lake keeps what its snapshots name, and a dropped one nothing', async () => {
  await run('create table l (ts timestamp, x long) timestamp(ts) partition by day lake on')
  await run(`insert into l select dateadd('h', x::int, '2024-01-01'::timestamp), x from long_sequence(100)`)
  const committed = async () =>
    String((await server.rows("select state, rows from lake_tables() where table_name = 'l'"))[0]) === 'committed,100'
  await until(committed, () => keys(''))
  const named = keys('/lake/')
  await new Promise((later) => setTimeout(later, 6000))
  expect(keys('/lake/')).toEqual(named)
  await run('drop table l')
  await until(
    () => keys('/lake/').length === 0,
    () => keys('/lake/'),
  )
})

test('a copy of the root removes nothing and commits nothing', async () => {
  await run('create table l (ts timestamp, x long) timestamp(ts) partition by day lake on')
  const state = async (at: TestServer) => (await at.rows('select state, failure from lake_tables()'))[0]
  await until(
    async () => (await state(server))?.[0] === 'committed',
    () => keys(''),
  )
  await server.end()
  cpSync(server.root, copy.root, { recursive: true })
  await copy.start()
  await copy.exec("insert into l values ('2024-01-01', 1)")
  await until(
    async () => String((await state(copy))?.[1]).includes('another server owns the objects'),
    () => keys(''),
  )
  const before = keys('')
  await copy.exec('truncate table t')
  await new Promise((later) => setTimeout(later, 6000))
  expect(keys('')).toEqual(before)
  const warnings = await (await fetch(`http://${copy.address('http')}/warnings`)).text()
  expect(warnings).toContain('objects that nothing names are not removed from the object store: another server owns')
  await copy.end()
  await server.start()
  await run("insert into l values ('2024-01-01', 1)")
  await until(
    async () => (await state(server))?.[0] === 'committed',
    () => keys(''),
  )
})
