// Goal: what a user sees of object storage. At the start, the server tests the store and reports its state; wrong
// settings end the start. If the store cannot be reached, the server starts anyway and reports that. The log does not
// contain the secret access key.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openS3Service } from '../support/lake/s3-service.js'
import { TestServer } from '../support/server.js'

const service = await openS3Service()
afterAll(() => service.close())

const keys = [
  `object.store.access.key.id=${service.accessKeyId}`,
  `object.store.secret.access.key=${service.secretAccessKey}`,
]

/** Once the state is no longer `probing`. */
async function stateOf(server: TestServer): Promise<unknown> {
  for (;;) {
    const [row] = await server.rows('select * from object_store()')
    if (row === undefined || row[2] !== 'probing') return row
    await new Promise((later) => setTimeout(later, 50))
  }
}

async function warnings(server: TestServer): Promise<string> {
  return (await fetch(`http://${server.address('http')}/warnings`)).text()
}

test('without a store', async () => {
  const server = new TestServer()
  await server.start()
  expect(await server.rows('select * from object_store()')).toEqual([])
  await server.remove()
})

test('a store is probed at the start', async () => {
  const server = new TestServer([
    `object.store.url=s3://${service.bucket}/first`,
    `object.store.s3.endpoint=${service.endpoint}`,
    ...keys,
  ])
  await server.start()
  expect(await stateOf(server)).toEqual(['s3://history/first', service.endpoint, 'ready', true, true, null])
  expect(await warnings(server)).not.toContain('object store')
  await server.remove()
  expect(service.objects.size).toBe(0)
})

test('a store that ignores conditions, and one that is away', async () => {
  service.ignoresConditions = true
  const careless = new TestServer([
    `object.store.url=s3://${service.bucket}`,
    `object.store.s3.endpoint=${service.endpoint}`,
    ...keys,
  ])
  await careless.start()
  expect(await stateOf(careless)).toMatchObject(['s3://history', service.endpoint, 'ready', false, false, /./])
  expect(await warnings(careless)).toContain('does not honour conditional writes')
  await careless.remove()
  service.ignoresConditions = false

  const away = new TestServer([
    'object.store.url=s3://history',
    'object.store.s3.endpoint=http://127.0.0.1:9',
    'object.store.retry.time=200ms',
    ...keys,
  ])
  await away.start()
  expect(await stateOf(away)).toMatchObject([
    's3://history',
    'http://127.0.0.1:9',
    'unavailable',
    false,
    false,
    /reached/,
  ])
  expect(await warnings(away)).toContain('the object store cannot be used: object storage cannot be reached')
  const logs = join(away.root, 'log')
  const logged = readdirSync(logs).map((name) => readFileSync(join(logs, name), 'utf8'))
  expect(logged.join('')).toContain('the object store cannot be used')
  expect(logged.join('')).not.toContain(service.secretAccessKey)
  await away.remove()
})

test.each([
  ['object.store.url=gs://bucket', 'expected s3://bucket/prefix or file:///path'],
  ['object.store.s3.endpoint=minio:9000', 'expected http://host:port'],
  ['object.store.access.key.id=AK', 'must be set together'],
])('%s is refused', async (setting, words) => {
  const base = setting.startsWith('object.store.url') ? [] : ['object.store.url=s3://bucket']
  const server = new TestServer([...base, setting])
  await expect(server.start()).rejects.toThrow(words)
  await server.remove()
})
