// Goal: all implementations of object storage behave alike: a folder, an S3 service, and the simulated store of the
// tests, also while the latter injects every kind of fault. With PENSTOCK_S3=<endpoint> (and AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, PENSTOCK_S3_BUCKET) also a real service.

import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type Files, nodeFiles } from '../../../engine/base/files.js'
import { FolderDriver } from '../../../engine/object-store/folder-driver.js'
import {
  bodyChecksum,
  bodyOf,
  type ObjectInfo,
  type ObjectStore,
  type PutCondition,
  StoreError,
} from '../../../engine/object-store/object-store.js'
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

describe('a folder of several processes', () => {
  let place = ''
  let nowMs = 1_000_000
  let opened = 0
  const clock = { nowMicros: () => nowMs * 1000 }
  const files = nodeFiles()
  /** `during` runs once, when the driver first calls the function for a path that ends so. */
  const driver = (call: 'exists' | 'list' = 'exists', ending = '', during: () => void = () => {}): FolderDriver => {
    let isDone = ending === ''
    const told = (path: string): void => {
      if (isDone || !path.endsWith(ending)) return
      isDone = true
      during()
    }
    const exists: Files['exists'] = (path) => {
      if (call === 'exists') told(path)
      return files.exists(path)
    }
    const list: Files['list'] = (path) => {
      const names = files.list(path)
      if (call === 'list') told(path)
      return names
    }
    return new FolderDriver({ files: { ...files, exists, list }, folder: place, clock })
  }
  const put = (own: FolderDriver, text: string, condition: PutCondition = { kind: 'always' }): Promise<ObjectInfo> => {
    const body = bodyOf(content(text))
    return own.put({ key: 'k', body, checksum: bodyChecksum(body), condition, writeId: text, multipart: false })
  }
  const stored = async (): Promise<string> => textOf((await driver().get('k', null)).content)
  const locks = (): string[] => readdirSync(`${place}/.locks`)
  const lockUntil = (untilMs: number): string => {
    const name = `${createHash('sha256').update('k').digest('hex')}.${untilMs}.another`
    writeFileSync(`${place}/.locks/${name}`, '')
    return name
  }

  beforeEach(async () => {
    place = `${folder}/processes-${opened++}`
    await put(driver(), 'one')
    expect(readdirSync(place)).toEqual(['.locks', 'k'])
    expect(locks()).toEqual([])
  })

  test('does not remove or replace an object while it is being replaced', async () => {
    const others: Promise<string>[] = []
    const own = driver('list', '/.locks', () => {
      others.push(kindOf(driver().delete('k')), kindOf(put(driver(), 'other')))
    })
    await put(own, 'two')
    expect(await Promise.all(others)).toEqual(['unavailable', 'unavailable'])
    expect(await stored()).toBe('two')
    await driver().delete('k')
    expect(await driver().head('k')).toBeNull()
    expect(await keysBelow(reliableStore(driver(), simulatedRetries(createRandom(1))), '')).toEqual([])
    expect(locks()).toEqual([])
  })

  test('takes over a lock that has expired, and waits for one that has not', async () => {
    const name = lockUntil(nowMs + 1)
    expect(await kindOf(put(driver(), 'two'))).toBe('unavailable')
    expect(locks()).toEqual([name])
    nowMs += 1
    await put(driver(), 'two')
    expect(locks()).toEqual([])
  })

  test('a process that was held up replaces nothing, and leaves the lock of another one', async () => {
    await driver().delete('k')
    let name = ''
    let checks = 0
    const own = new FolderDriver({
      files: {
        ...files,
        // The second check of the condition is made under the lock.
        exists: (path) => {
          if (path.endsWith('/k') && ++checks === 2) {
            nowMs += 31_000
            void put(driver(), 'other')
            name = lockUntil(nowMs + 1000)
            return false
          }
          return files.exists(path)
        },
      },
      folder: place,
      clock,
    })
    expect(await kindOf(put(own, 'own', { kind: 'absent' }))).toBe('unavailable')
    expect(await stored()).toBe('other')
    expect(locks()).toEqual([name])
    expect(readdirSync(place)).toEqual(['.locks', 'k'])
  })

  test('of two that find the same expired lock, one writes', async () => {
    lockUntil(nowMs)
    const others: Promise<string>[] = []
    const own = driver('list', '/.locks', () => others.push(kindOf(put(driver(), 'other'))))
    await put(own, 'own')
    expect(await Promise.all(others)).toEqual(['unavailable'])
    expect(await stored()).toBe('own')
    expect(locks()).toEqual([])
  })

  test('keys of its own are refused', async () => {
    for (const key of ['.locks', '.locks/k', 'k.lock', 'k.tmp'])
      expect(await kindOf(driver().head(key))).toBe('rejected')
  })
})
