// Goal: all implementations of object storage behave alike: a folder, an S3 service, and the simulated store of the
// tests, also while the latter injects every kind of fault. With PENSTOCK_S3=<endpoint> (and AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, PENSTOCK_S3_BUCKET) also a real service.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, describe, expect, test } from 'vitest'
import { crc32 } from '../../../engine/base/checksum.js'
import { systemClock } from '../../../engine/base/clock.js'
import { nodeFiles } from '../../../engine/base/files.js'
import { FolderDriver } from '../../../engine/object-store/folder-driver.js'
import { bodyOf, type ObjectStore, type PutCondition, StoreError } from '../../../engine/object-store/object-store.js'
import { type ObjectStoreOptions, openStore } from '../../../engine/object-store/open-store.js'
import { reliableStore } from '../../../engine/object-store/reliable-store.js'
import { openS3Service } from '../../support/lake/s3-service.js'
import { createRandom } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { simulatedRetries, simulatedStore } from '../../support/simulator/simulated-store.js'

const folder = mkdtempSync(`${tmpdir()}/penstock-store-`)
const service = await openS3Service()
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await service.close()
})

const MIB = 1024 * 1024

function options(url: string, endpoint = '', keys = { accessKeyId: '', secretAccessKey: '' }): ObjectStoreOptions {
  return {
    url,
    s3: { endpoint, region: 'us-east-1', pathStyle: 'auto', connections: 4, timeoutMs: 5000, multipartBytes: 5 * MIB },
    credentials: { source: 'auto', setting: { ...keys, sessionToken: '' }, file: '', profile: '' },
    retryMs: 10_000,
  }
}

const real = process.env['PENSTOCK_S3']
const stores: [string, () => ObjectStore][] = [
  ['folder', () => openStore(options(`file://${folder}/nested/store`))],
  ['S3 service', () => openStore(options(`s3://${service.bucket}/some/prefix`, service.endpoint, service))],
  ['simulated', () => reliableStore(simulatedStore(), simulatedRetries(createRandom(1)))],
  ...Array.from({ length: runs(60, 5) }, (_, seed): [string, () => ObjectStore] => [
    `simulated, with faults of seed ${seed}`,
    () => {
      const random = createRandom(seed)
      return reliableStore(simulatedStore({ chance: 0.2, random }), simulatedRetries(random))
    },
  ]),
  ...(real === undefined
    ? []
    : [
        [
          'real S3 service',
          () => openStore(options(`s3://${process.env['PENSTOCK_S3_BUCKET']}/run-${Date.now()}`, real)),
        ] satisfies [string, () => ObjectStore],
      ]),
]

const content = (text: string): Uint8Array => new TextEncoder().encode(text)
const body = (text: string) => bodyOf(content(text))
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

async function kindOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (error) {
    return error instanceof StoreError ? error.kind : String(error)
  }
  return 'no error'
}

async function keysBelow(store: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  return keys
}

describe.each(stores)('%s', (_name, open) => {
  const store = open()
  afterAll(() => store.close())

  test('reads what was written, whole and in ranges', async () => {
    await store.put('a/plain', body('0123456789'))
    expect(textOf(await store.get('a/plain'))).toBe('0123456789')
    expect(textOf(await store.get('a/plain', { offset: 2, bytes: 3 }))).toBe('234')
    expect(textOf(await store.get('a/plain', { offset: 9, bytes: 1 }))).toBe('9')
    expect(await store.get('a/plain', { offset: 4, bytes: 0 })).toHaveLength(0)
    await store.put('a/plain', body('replaced'))
    expect(textOf(await store.get('a/plain'))).toBe('replaced')
    await store.put('a/empty', bodyOf(new Uint8Array()))
    expect(await store.get('a/empty')).toHaveLength(0)
  })

  test('a range behind the end is an error, not fewer bytes', async () => {
    await store.put('a/short', body('abc'))
    expect(await kindOf(store.get('a/short', { offset: 1, bytes: 3 }))).toBe('damaged')
  })

  test('tells size and checksum', async () => {
    await store.put('a/head', body('123456789'))
    expect(await store.head('a/head')).toMatchObject({ key: 'a/head', bytes: 9, checksum: 0xcbf43926 })
    expect(await store.head('a/nothing')).toBeNull()
  })

  test('missing objects', async () => {
    expect(await kindOf(store.get('a/nothing'))).toBe('missing')
    await store.delete('a/nothing')
    await store.put('a/gone', body('x'))
    await store.delete('a/gone')
    expect(await store.head('a/gone')).toBeNull()
  })

  test('put-if-absent writes once, whatever happens to its responses', async () => {
    for (let index = 0; index < 20; index++) {
      const key = `absent/${index}`
      expect(await store.putIfAbsent(key, body('first'))).toMatchObject({ key, bytes: 5 })
      expect(await store.putIfAbsent(key, body('first'))).toBeNull()
      expect(await store.putIfAbsent(key, body('second'))).toBeNull()
      expect(textOf(await store.get(key))).toBe('first')
    }
  })

  test('of several writers of one key exactly one succeeds', async () => {
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.all(
        Array.from({ length: 5 }, (_, index) => store.putIfAbsent(`race/${round}`, body(`writer ${index}`))),
      )
      const winners = outcomes.flatMap((outcome, index) => (outcome === null ? [] : [index]))
      expect(winners).toHaveLength(1)
      expect(textOf(await store.get(`race/${round}`))).toBe(`writer ${winners[0]}`)
    }
  })

  test('put-if-match replaces only the version that it names', async () => {
    const first = await store.put('match', body('one'))
    const second = await store.putIfMatch('match', body('two'), first.etag)
    expect(second).not.toBeNull()
    expect(await store.putIfMatch('match', body('three'), first.etag)).toBeNull()
    expect(textOf(await store.get('match'))).toBe('two')
    expect(await store.putIfMatch('match', body('three'), (await store.head('match'))?.etag ?? '')).not.toBeNull()
    expect(textOf(await store.get('match'))).toBe('three')
    expect(await store.putIfMatch('matched/nothing', body('x'), first.etag)).toBeNull()
  })

  test('lists all keys with a prefix in order', async () => {
    const keys = ['b', 'a', 'a/x', 'ab', 'a.b', 'c&d', 'e=f g'].map((name) => `list/${name.replace('a/x', 'd/x')}`)
    for (const key of keys) await store.put(key, body(key))
    expect(await keysBelow(store, 'list/')).toEqual([...keys].sort())
    expect(await keysBelow(store, 'list/a')).toEqual(['list/a', 'list/a.b', 'list/ab'])
    expect(await keysBelow(store, 'list/d/')).toEqual(['list/d/x'])
    expect(await keysBelow(store, 'nothing/')).toEqual([])
    for (const key of keys) expect(textOf(await store.get(key))).toBe(key)
  })

  test('keys that leave the prefix are refused', async () => {
    for (const key of ['', '/a', 'a//b', '../a', 'a/..', './a']) {
      expect(await kindOf(store.put(key, body('x')))).toBe('rejected')
    }
  })

  test('the probe finds that conditions are honoured, and leaves nothing behind', async () => {
    expect(await store.probe()).toEqual({ putIfAbsent: true, multipartIfAbsent: true, reason: '' })
    expect(await keysBelow(store, 'probe/')).toEqual([])
  })

  test('large objects', async () => {
    const large = createRandom(7).fill(new Uint8Array(11 * MIB + 3))
    expect(await store.putIfAbsent('large', bodyOf(large))).not.toBeNull()
    expect(await store.putIfAbsent('large', bodyOf(large))).toBeNull()
    expect(Buffer.compare(await store.get('large'), large)).toBe(0)
    expect(await store.get('large', { offset: 5 * MIB - 2, bytes: 4 })).toEqual(large.slice(5 * MIB - 2, 5 * MIB + 2))
  })
})

test('a folder does not remove an object while it is being replaced', async () => {
  const driver = new FolderDriver({ files: nodeFiles(), folder: `${folder}/removed`, clock: systemClock })
  const other = new FolderDriver({ files: nodeFiles(), folder: `${folder}/removed`, clock: systemClock })
  const put = (text: string, condition: PutCondition, during: () => void = () => {}) => {
    const whole = content(text)
    const read = (offset: number, bytes: number): Uint8Array => {
      during()
      return whole.subarray(offset, offset + bytes)
    }
    const body = { bytes: whole.length, read }
    const checksum = crc32(whole)
    return driver.put({ key: 'k', body, checksum, condition, writeId: text, multipart: false })
  }
  const { etag } = await put('one', { kind: 'always' })
  const removals: Promise<string>[] = []
  await put('two', { kind: 'match', etag }, () => removals.push(kindOf(other.delete('k'))))
  expect(await Promise.all(removals)).toEqual(['unavailable'])
  expect(textOf((await driver.get('k', null)).content)).toBe('two')
  await other.delete('k')
  expect(await driver.head('k')).toBeNull()
  expect(readdirSync(`${folder}/removed`)).toEqual([])
})
