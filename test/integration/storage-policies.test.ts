// Goal: a storage policy with TO REMOTE uploads the data files of old partitions to object storage, each once. The
// objects are verified, and read_parquet() can read them there. Uploads wait while the store cannot be reached or the
// policy is disabled.

import { afterAll, expect, test } from 'vitest'
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

afterAll(async () => {
  await server.remove()
  await service.close()
})

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect([status, text]).toEqual([200, expect.anything()])
}

/** Until parts, remote parts and waiting parts of the table are these. */
async function until(table: string, wanted: readonly number[]): Promise<void> {
  const sql = `select parts, remote_parts, waiting_parts from storage_policies() where table_name = '${table}'`
  for (let attempt = 0; ; attempt++) {
    const [row] = await server.rows(sql)
    if (JSON.stringify(row) === JSON.stringify(wanted)) return
    if (attempt === 200) expect(row).toEqual(wanted)
    await new Promise((later) => setTimeout(later, 100))
  }
}

const keys = (): string[] => [...service.objects.keys()].filter((key) => key.startsWith('lake/') && !/probe/.test(key))

test('parts of old partitions are uploaded once', async () => {
  await server.start()
  await run(
    `create table t (x long, s symbol, ts timestamp) timestamp(ts) partition by day storage policy(to parquet 1d, to remote 2d) lake off`,
  )
  await run(
    `insert into t select x, 'n' || x % 10, dateadd('h', x::int, '2024-01-01'::timestamp) from long_sequence(120)`,
  )
  await run('checkpoint create')
  await run('checkpoint release')
  // The newest row is of January 6, 0:00: partitions up to January 3 have ended two days before.
  await until('t', [6, 3, 0])
  expect(keys()).toHaveLength(3)
  for (const key of keys())
    expect(key).toMatch(/^lake\/[0-9a-f-]{36}\/\d+\/2024-01-0[123]\/\d+-[0-9a-f-]{36}\.parquet$/)
  const local = await server.rows("select count(), sum(x), min(ts), max(ts) from t where ts < '2024-01-04'")
  const remote = await server.rows(
    "select count(), sum(x), min(ts), max(ts) from read_parquet('s3://history/lake/*.parquet')",
  )
  expect(remote).toEqual(local)
})

test('a restart uploads nothing again, late rows add a part, UPDATE replaces one', async () => {
  await server.end()
  const before = keys()
  await server.start()
  await until('t', [6, 3, 0])
  await new Promise((later) => setTimeout(later, 1500))
  expect(keys()).toEqual(before)
  await run("insert into t values (1000, 'late', '2024-01-02T12:30')")
  await run('checkpoint create')
  await run('checkpoint release')
  await until('t', [7, 4, 0])
  await run("update t set x = 0 where s = 'n1' and ts < '2024-01-02'")
  await until('t', [7, 4, 0])
  expect(await server.rows('select count() from t')).toEqual([[121]])
})

test('parts wait while the store is away, and while the policy is disabled', async () => {
  service.fail = () => ({ status: 503, applied: false })
  await run('alter table t disable storage policy')
  await run("insert into t values (1, 'a', '2024-01-20')")
  await run('checkpoint create')
  await run('checkpoint release')
  expect(await server.rows('select enabled, waiting_parts from storage_policies()')).toEqual([[false, 0]])
  await run('alter table t enable storage policy')
  await until('t', [8, 4, 3])
  const warnings = async (): Promise<string> => (await fetch(`http://${server.address('http')}/warnings`)).text()
  for (let attempt = 0; attempt < 100 && !(await warnings()).includes('parts wait'); attempt++) {
    await new Promise((later) => setTimeout(later, 100))
  }
  expect(await warnings()).toContain('parts wait for their upload to the object store [parts=3]')
  expect(await server.rows('select count() from t')).toEqual([[122]])
  service.fail = null
  await until('t', [8, 7, 0])
  for (let attempt = 0; attempt < 100 && (await warnings()).includes('parts wait'); attempt++) {
    await new Promise((later) => setTimeout(later, 100))
  }
  expect(await warnings()).not.toContain('parts wait')
})
