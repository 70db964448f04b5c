// Goal: the settings of the lake (tables in object storage as Iceberg tables) determine what the Iceberg catalog gives
// to readers: region, endpoint and path style of the store, and access keys only if separate keys for readers are
// configured, never the server's own keys.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openLake } from '../../deploy/lake.js'
import { loadSettings } from '../../deploy/settings/settings.js'

const root = mkdtempSync(join(tmpdir(), 'penstock-lake-'))
afterAll(() => rmSync(root, { recursive: true }))

const store = {
  'object.store.url': 's3://history/lake',
  'object.store.access.key.id': 'OWN',
  'object.store.secret.access.key': 'own secret',
}

function configOf(set: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const assignments = Object.entries(set).map(([key, value]) => `${key}=${value}`)
  return openLake(loadSettings({ file: null, environment: {}, assignments }).values, root).config
}

test('region and path style are reported, an endpoint only if there is one, and no keys', () => {
  expect(configOf(store)).toEqual({
    ...{ 's3.region': 'us-east-1', 'client.region': 'us-east-1', 's3.path-style-access': 'false' },
  })
  const elsewhere = { 'object.store.s3.endpoint': 'http://127.0.0.1:9100', 'object.store.s3.region': 'eu-west-1' }
  expect(configOf({ ...store, ...elsewhere })).toEqual({
    ...{ 's3.endpoint': 'http://127.0.0.1:9100', 's3.region': 'eu-west-1', 'client.region': 'eu-west-1' },
    's3.path-style-access': 'true',
  })
  expect(configOf({ 'object.store.url': 'file:///mnt/lake' })).toEqual({})
  expect(configOf({})).toEqual({})
})

function keysOf(set: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
  const assignments = Object.entries(set).map(([key, value]) => `${key}=${value}`)
  return openLake(loadSettings({ file: null, environment: {}, assignments }).values, root).keys.of('s3://history/t')
}

test('a second pair of keys is handed out, the own one and half of a pair are refused', async () => {
  const vend = { 'lake.credentials.vend': 'static', 'lake.credentials.access.key.id': 'READER' }
  const pair = { ...vend, 'lake.credentials.secret.access.key': 'reader secret' }
  expect(await keysOf(store)).toEqual({})
  expect(await keysOf({ ...store, ...pair })).toEqual({
    's3.access-key-id': 'READER',
    's3.secret-access-key': 'reader secret',
  })
  expect(() => configOf({ ...store, 'lake.credentials.vend': 'static' })).toThrow(
    'lake.credentials.vend is static, but',
  )
  expect(() => configOf({ ...store, ...vend })).toThrow('must be set together')
  expect(() => configOf({ ...store, ...pair, 'lake.credentials.access.key.id': 'OWN' })).toThrow(
    'lake.credentials.access.key.id is the key of the server',
  )
  expect(() => configOf({ ...store, 'lake.credentials.vend': 'all' })).toThrow(/off, static, sts/)
})

test('a security token service needs a role, or an address', () => {
  const sts = { ...store, 'lake.credentials.vend': 'sts' }
  expect(() => configOf(sts)).toThrow('lake.credentials.vend is sts, but lake.credentials.sts.role.arn is not set')
  expect(() => configOf({ ...sts, 'lake.credentials.sts.endpoint': 'http://user@host' })).toThrow(
    'bad value of lake.credentials.sts.endpoint',
  )
  const role = { ...sts, 'lake.credentials.sts.role.arn': 'arn:aws:iam::1:role/r' }
  expect(() => configOf(role)).not.toThrow()
  for (const prefix of ['a*', 'a?', `\${aws:username}`])
    expect(() => configOf({ ...role, 'object.store.url': `s3://bucket/${prefix}` })).toThrow(
      'bad value of object.store.url: with lake.credentials.vend = sts',
    )
  expect(() => configOf({ ...sts, 'object.store.s3.endpoint': 'http://127.0.0.1:9100' })).not.toThrow()
})
