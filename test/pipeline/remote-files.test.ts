// Goal: the cache of objects that statements read never exceeds twice its size, keeps what statements are about to open,
// and forgets failed downloads. Method: a store of letters, and a clock that the test sets.

import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { whenReady } from '../../engine/base/errors.js'
import { StoreError } from '../../engine/engine.js'
import { RemoteFiles, type RemoteFilesOptions } from '../../pipeline/ingest.js'

const objectBytes = 100
const minuteMs = 60_000
let folder = ''
let nowMs = 0
let failing: string | null = null

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-remote-'))
  nowMs = 0
  failing = null
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function cache(bytesMax: number): RemoteFiles {
  const store = {
    head: async (key: string) => ({ key, bytes: objectBytes, etag: 'e' }),
    fetch: async (key: string, path: string) => {
      if (key === failing) throw new StoreError('unavailable', 'the store is away')
      writeFileSync(path, key.padEnd(objectBytes))
    },
  }
  const client = { bucket: () => store } as unknown as RemoteFilesOptions['client']
  const clock = { monotonicMs: () => nowMs }
  return new RemoteFiles({ client, buckets: ['*'], directory: join(folder, 'objects'), bytesMax, clock })
}

/** The local file of an object, planned as the engine does. */
async function read(files: RemoteFiles, key: string): Promise<string> {
  return await whenReady(() => files.named(`s3://b/${key}`, 0)[0]?.path ?? '')
}

function bytesOnDisk(): number {
  const directory = join(folder, 'objects')
  return readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
}

test('the folder stays within twice its size, also within ten minutes', async () => {
  const files = cache(5 * objectBytes)
  const paths: string[] = []
  for (let object = 0; object < 40; object++) {
    nowMs += 11_000
    paths.push(await read(files, `o${object}`))
    expect(bytesOnDisk()).toBeLessThanOrEqual(10 * objectBytes)
  }
  // The most recently used ones are there.
  expect(paths.map((path) => existsSync(path))).toEqual(paths.map((_, index) => index >= 30))
})

test('after ten minutes the folder returns to its size', async () => {
  const files = cache(5 * objectBytes)
  for (let object = 0; object < 9; object++) await read(files, `o${object}`)
  expect(bytesOnDisk()).toBe(9 * objectBytes)
  nowMs += 11 * minuteMs
  await read(files, 'last')
  expect(bytesOnDisk()).toBe(5 * objectBytes)
})

test('what was used within seconds stays, and the statement that needs its room fails', async () => {
  const files = cache(2 * objectBytes)
  const paths: string[] = []
  for (const key of ['a', 'b', 'c', 'd']) paths.push(await read(files, key))
  await expect(read(files, 'e')).rejects.toThrow('the cache of objects is full of what other statements read')
  expect(paths.every((path) => existsSync(path))).toBe(true)
  nowMs += 11_000
  expect(await read(files, 'e')).not.toBe('')
  expect(existsSync(paths[0] ?? '')).toBe(false)
})

test('a failed download leaves nothing, and its room is free', async () => {
  const files = cache(objectBytes)
  failing = 'x'
  for (let round = 0; round < 5; round++) await expect(read(files, 'x')).rejects.toThrow('the store is away')
  failing = null
  expect(await read(files, 'x')).not.toBe('')
  expect(await read(files, 'y')).not.toBe('')
  expect(bytesOnDisk()).toBe(2 * objectBytes)
})
