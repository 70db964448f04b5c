// Goal: the Iceberg catalog hands out temporary keys of a security token service. Each key is for one table; clients
// get it with the metadata of the table, or by a separate request. If the service refuses, these requests fail and
// nothing else does. No key appears in the log.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openS3Service } from '../support/lake/s3-service.js'
import { openStsService } from '../support/lake/sts-service.js'
import { TestServer } from '../support/server.js'

const [store, sts] = await Promise.all([openS3Service(), openStsService()])
const server = new TestServer([
  `object.store.url=s3://${store.bucket}/lake`,
  `object.store.s3.endpoint=${store.endpoint}`,
  `object.store.access.key.id=${store.accessKeyId}`,
  `object.store.secret.access.key=${store.secretAccessKey}`,
  'lake.commit.lag=1s',
  'lake.credentials.vend=sts',
  `lake.credentials.sts.endpoint=${sts.endpoint}`,
  'lake.credentials.sts.role.arn=arn:aws:iam::1:role/readers',
  `lake.credentials.access.key.id=${sts.accessKeyId}`,
  `lake.credentials.secret.access.key=${sts.secretAccessKey}`,
  'lake.credentials.sts.duration=30m',
  'telemetry.enabled=false',
])

beforeAll(() => server.start())

afterAll(async () => {
  await server.remove()
  await Promise.all([store.close(), sts.close()])
})

interface Answer {
  readonly status: number
  readonly body: {
    readonly 'metadata-location': string
    readonly config: Readonly<Record<string, string>>
    readonly 'storage-credentials': readonly object[]
    readonly error: { readonly message: string }
  }
}

async function get(path: string): Promise<Answer> {
  const answer = await fetch(`http://${server.address('http')}/iceberg/v1/namespaces/qdb/tables/${path}`)
  return { status: answer.status, body: (await answer.json()) as Answer['body'] }
}

async function committed(table: string): Promise<void> {
  const sql = `select state from lake_tables() where table_name = '${table}'`
  for (let attempt = 0; (await server.rows(sql))[0]?.[0] !== 'committed'; attempt++) {
    if (attempt > 600) throw new Error('the table is not committed')
    await new Promise((later) => setTimeout(later, 50))
  }
}

test('each table has keys of its own, which expire', async () => {
  for (const table of ['a', 'b']) {
    await server.rows(`create table ${table} (ts timestamp, x long) timestamp(ts) partition by day lake on`)
    await server.rows(`insert into ${table} values ('2024-03-14', 1)`)
    await committed(table)
  }
  const [a, b] = [await get('a'), await get('b')]
  expect(a.body.config).toMatchObject({
    ...{ 's3.access-key-id': 'TEMPORARY1', 's3.secret-access-key': 'hidden/1&x', 's3.session-token': 'token==1' },
    's3.endpoint': store.endpoint,
    'client.refresh-credentials-endpoint': 'v1/namespaces/qdb/tables/a/credentials',
  })
  const expires = Number(a.body.config['s3.session-token-expires-at-ms'])
  expect(expires - Date.now()).toBeGreaterThan(20 * 60_000)
  expect(b.body.config['s3.access-key-id']).toBe('TEMPORARY2')
  const location = a.body['metadata-location'].replace(/\/metadata\/.*/, '')
  expect(sts.requests[0]?.get('Policy')).toContain(`arn:aws:s3:::${location.slice('s3://'.length)}/*`)
  const again = await get('a/credentials')
  expect(again.body['storage-credentials']).toMatchObject([
    { prefix: location, config: { 's3.access-key-id': 'TEMPORARY1' } },
  ])
  expect(sts.requests.length).toBe(2)
  expect((await get('none/credentials')).status).toBe(404)
  expect((await get('a/other')).status).toBe(406)
})

test('a service that refuses is reported, and the tables go on', async () => {
  await server.rows('create table c (ts timestamp, x long) timestamp(ts) partition by day lake on')
  await server.rows("insert into c values ('2024-03-14', 1)")
  await committed('c')
  sts.refuse = { status: 403, code: 'AccessDenied', message: 'no such role' }
  const refused = await get('c')
  expect(refused.status).toBe(503)
  expect(refused.body.error.message).toMatch(/gives no keys for readers: status 403: AccessDenied$/)
  expect((await get('a')).status).toBe(200)
  // It needs no keys.
  const exists = await fetch(`http://${server.address('http')}/iceberg/v1/namespaces/qdb/tables/c`, { method: 'HEAD' })
  expect(exists.status).toBe(204)
  sts.refuse = null
  expect((await get('c')).status).toBe(200)
})

test('no key is in the log', () => {
  const folder = join(server.root, 'log')
  const logged = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  expect(logged.join('')).toContain('object-store')
  expect(logged.join('')).toContain('status 403: AccessDenied: no such role')
  for (const key of ['hidden/', 'token==', sts.secretAccessKey, store.secretAccessKey])
    expect(logged.join('')).not.toContain(key)
})
