// Goal: the deterministic simulation (sim.ts) detects bugs. Safeguards of the storage are removed, one at a time, and
// the simulation must then fail for some seed. If the safeguard is a call of the disk, such as a sync, a wrapper of the
// Files interface removes it; if it is a rule of the code, the function that implements the rule is replaced. The wait
// for the sync is removed by the commit mode `async`. One safeguard of the manifest, for which simulated crashes are
// too rare, is tested with the manifest alone. With all safeguards, the simulation must not fail.
//
// For rare failures the search starts at a known seed, so that the test is fast. A change of the simulation may shift
// these seeds; then the search takes longer, and the test prints the seed that failed.

import { afterEach, expect, test, vi } from 'vitest'
import type { File, Files } from '../../engine/base/files.js'
import type { SimOptions } from './sim.js'

const seedsMax = 150
/** Seeds behind the expected one that are not worth a word. */
const strayMax = 10

const mocked = [
  '../../engine/base/checksum.js',
  '../../engine/wal/frame.js',
  '../../engine/storage/manifest/manifest-format.js',
] as const

afterEach(() => {
  vi.resetModules()
  for (const path of mocked) vi.doUnmock(path)
})

/** Loads everything anew, so that replaced functions are in, and returns what the first failing seed said. */
async function firstFailure(options: Partial<SimOptions>, first = 1, seeds = seedsMax): Promise<string> {
  const { createSimMemory } = await import('../support/simulator/host.js')
  const { newSimStats, simulate } = await import('./sim.js')
  const sim = createSimMemory()
  for (let seed = first; seed < first + seeds; seed++) {
    try {
      simulate({ seed, sim, stats: newSimStats(), ...options })
    } catch (error) {
      if (seed - first > strayMax) console.log(`found late: seed ${seed} instead of ${first}`)
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
  expect(await firstFailure({}, 1, 2)).toBe('nothing')
})

test.each([
  ['groups of the log', 1, (files: Files): Files => ({ ...files, syncDescriptor: () => {} })],
  ['segments and what recovery copies', 5, withoutSync(/\/wal\//)],
  ['the manifest', 1, withoutSync(/\/manifest\//)],
  ['parts', 1, withoutSync(/\.parquet$/)],
  ['dictionaries', 1, withoutSync(/\.symbols$/)],
] as const)('no sync of %s', async (_, first, wrap) => {
  expect(await firstFailure({ wrap }, first)).toMatch(noticed)
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
  expect(await firstFailure({ wrap: (files) => ({ ...files, syncDescriptor: again(files) }) }, 8)).toMatch(noticed)
})

test('rows are shown and acknowledged before they are durable', async () => {
  expect(await firstFailure({ commitMode: 'async' })).toMatch(noticed)
})

test('no checksums', async () => {
  await replaceIn('../../engine/base/checksum.js', () => ({ crc32: () => 0 }))
  expect(await firstFailure({}, 66)).toMatch(noticed)
})

test('the tail rule takes every bad frame for damage', async () => {
  await replaceIn('../../engine/wal/frame.js', () => ({
    durableLsnOf: (kind: number) => (kind < 16 ? 2 ** 52 : 0),
  }))
  expect(await firstFailure({}, 2)).toMatch(noticed)
})

test('groups of the log share blocks', async () => {
  await replaceIn('../../engine/wal/frame.js', () => ({ padBytes: () => 0 }))
  expect(await firstFailure({})).toMatch(noticed)
})

// A crash within a write of the manifest is too rare for the simulator's seeds: here every seed has one.
test.each([
  ['changes of the manifest share blocks', true],
  ['changes of the manifest have blocks of their own', false],
])('%s', async (_, shared) => {
  const format = '../../engine/storage/manifest/manifest-format.js'
  if (shared) await replaceIn(format, () => ({ nextBlock: (position: number) => position }))
  const { Manifest } = await import('../../engine/storage/manifest/manifest.js')
  const { createFaultyDisk } = await import('../support/simulator/faulty-files.js')
  let lost = 0
  for (let seed = 1; seed <= 100; seed++) {
    const { files, crash } = createFaultyDisk(seed)
    const options = { files, directory: '/manifest', log: () => {} }
    const manifest = Manifest.open(options)
    manifest.commit([{ kind: 'ids', table: 7 }])
    manifest.append([{ kind: 'ids', table: 8 }])
    crash(seed)
    try {
      if (Manifest.open(options).ids.table < 7) lost++
    } catch {
      lost++
    }
  }
  if (shared) expect(lost).toBeGreaterThan(0)
  else expect(lost).toBe(0)
})
