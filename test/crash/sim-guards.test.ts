// Goal: the simulator can fail. Each guard of the storage is removed in turn, and some seed must notice. Guards that are
// calls of the disk are removed by a wrapper over Files; those that are rules of the code by replacing the function
// that holds the rule: the code itself has no switch to be unsafe.

import { afterEach, expect, test, vi } from 'vitest'
import type { File, Files } from '../../engine/base/files.js'
import type { SimOptions } from './sim.js'

const seedsMax = 150

const mocked = [
  '../../engine/base/checksum.js',
  '../../engine/wal/frame.js',

  '../../engine/storage/manifest-format.js',
] as const

afterEach(() => {
  vi.resetModules()
  for (const path of mocked) vi.doUnmock(path)
})

/** Loads everything anew, so that replaced functions are in, and returns what the first failing seed said. */
async function firstFailure(options: Partial<SimOptions>, seeds = seedsMax): Promise<string> {
  const { createSimMemory } = await import('../support/sim-host.js')
  const { newSimStats, simulate } = await import('./sim.js')
  const sim = createSimMemory()
  for (let seed = 1; seed <= seeds; seed++) {
    try {
      simulate({ seed, sim, stats: newSimStats(), ...options })
    } catch (error) {
      return `seed ${seed}: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  return 'nothing'
}

/** Syncs of open files whose path matches do nothing. */
function withoutSync(paths: RegExp): (files: Files) => Files {
  return (files) => ({
    ...files,
    open: (path, mode): File => {
      const file = files.open(path, mode)
      return paths.test(path) ? { ...file, sync: () => {} } : file
    },
  })
}

async function replaceIn(path: (typeof mocked)[number], replacement: (original: object) => object): Promise<void> {
  vi.resetModules()
  const original = await vi.importActual<object>(path)
  vi.doMock(path, () => ({ ...original, ...replacement(original) }))
}

/** What a lost guard looks like: something is missing, too much, or unreadable. */
const noticed = /^seed \d+: /

test('all guards in place: nothing is noticed', async () => {
  expect(await firstFailure({}, 20)).toBe('nothing')
})

test.each([
  ['groups of the log', (files: Files): Files => ({ ...files, syncDescriptor: () => {} })],
  ['segments and what recovery copies', withoutSync(/\/wal\//)],
  ['the manifest', withoutSync(/\/manifest\//)],
  ['parts', withoutSync(/\.parquet$/)],
  ['dictionaries', withoutSync(/\.symbols$/)],
] as const)('no sync of %s', async (_, wrap) => {
  expect(await firstFailure({ wrap })).toMatch(noticed)
})

test.each([
  ['any folder', /./],
  ['folders of parts', /\/db\/\d+/],
  ['the folder of the manifest', /\/manifest$/],
  ['the folder of dictionaries', /\/symbols$/],
  ['the folder of the log', /\/wal$/],
] as const)('no sync of %s', async (_, paths) => {
  const wrap = (files: Files): Files => ({
    ...files,
    syncDirectory: (path) => {
      if (!paths.test(path)) files.syncDirectory(path)
    },
  })
  expect(await firstFailure({ wrap })).toMatch(noticed)
})

test('a failed sync of the log is tried again on the same file', async () => {
  const again = (files: Files) => (descriptor: number) => {
    try {
      files.syncDescriptor(descriptor)
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'FileError') throw error
      files.syncDescriptor(descriptor)
    }
  }
  expect(await firstFailure({ wrap: (files) => ({ ...files, syncDescriptor: again(files) }) })).toMatch(noticed)
})

test('rows are shown and acknowledged before they are durable', async () => {
  expect(await firstFailure({ commitMode: 'async' })).toMatch(noticed)
})

test('no checksums', async () => {
  await replaceIn('../../engine/base/checksum.js', () => ({ crc32: () => 0 }))
  expect(await firstFailure({})).toMatch(noticed)
})

test('the tail rule takes every bad frame for damage', async () => {
  await replaceIn('../../engine/wal/frame.js', () => ({
    durableLsnOf: (kind: number) => (kind < 16 ? 2 ** 52 : 0),
  }))
  expect(await firstFailure({})).toMatch(noticed)
})

test('groups of the log share blocks', async () => {
  await replaceIn('../../engine/wal/frame.js', () => ({ padBytes: () => 0 }))
  expect(await firstFailure({})).toMatch(noticed)
})

test('changes of the manifest share blocks', async () => {
  await replaceIn('../../engine/storage/manifest-format.js', () => ({ nextBlock: (position: number) => position }))
  expect(await firstFailure({})).toMatch(noticed)
})
