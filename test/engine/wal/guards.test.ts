// Goal: the crash test of the write-ahead log (crash.test.ts) detects bugs. Each safeguard of the log is removed in
// turn, and the test must then fail for some seed. If the safeguard is a call of the disk, such as a sync, a wrapper of
// the Files interface removes it; if it is a rule of the code, the function that implements the rule is replaced. The
// production code has no switch for that.

import { afterEach, expect, test, vi } from 'vitest'
import type { File, Files } from '../../../engine/base/files.js'
import type { SimulationOptions } from './simulation.js'

const seedsMax = 400

afterEach(() => {
  vi.resetModules()
  vi.doUnmock('../../../engine/base/checksum.js')
  vi.doUnmock('../../../engine/wal/frame.js')
  vi.doUnmock('../../../engine/wal/high-water.js')
})

/** Loads everything anew, so that replaced functions are in, and returns what the first failing seed said. */
async function firstFailure(options: Partial<SimulationOptions>): Promise<string> {
  const { simulate } = await import('./simulation.js')
  const { openWal } = await import('../../../engine/wal/open.js')
  const { createLogLoop } = await import('../../../engine/wal/log-loop.js')
  for (let seed = 1; seed <= seedsMax; seed++) {
    try {
      simulate({ modules: { openWal, createLogLoop }, seed, ...options })
    } catch (error) {
      return `seed ${seed}: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  return 'nothing'
}

/** The same files with some operations of open files replaced. */
function withFile(files: Files, change: (file: File) => Partial<File>): Files {
  return {
    ...files,
    open: (path, mode) => {
      const file = files.open(path, mode)
      return { ...file, ...change(file) }
    },
  }
}

async function replaceInFrame(replacement: object): Promise<void> {
  vi.resetModules()
  const original = await vi.importActual<object>('../../../engine/wal/frame.js')
  vi.doMock('../../../engine/wal/frame.js', () => ({ ...original, ...replacement }))
}

async function withoutMarks(): Promise<void> {
  const original = await vi.importActual<object>('../../../engine/wal/high-water.js')
  vi.doMock('../../../engine/wal/high-water.js', () => ({ ...original, markOfLog: () => 0 }))
}

test('all guards in place: nothing is noticed', async () => {
  expect(await firstFailure({})).toBe('nothing')
})

test('no sync of groups', async () => {
  expect(await firstFailure({ wrap: (files) => ({ ...files, syncDescriptor: () => {} }) })).toMatch(/lost|false alarm/)
})

test('no sync of new segments and of what recovery copies', async () => {
  const wrap = (files: Files) => withFile(files, () => ({ sync: () => {} }))
  expect(await firstFailure({ wrap })).toMatch(/lost|false alarm/)
})

test('no sync of directories', async () => {
  expect(await firstFailure({ wrap: (files) => ({ ...files, syncDirectory: () => {} }) })).toMatch(/lost|false alarm/)
})

test('a failed sync is tried again on the same file', async () => {
  const again = (files: Files) => (descriptor: number) => {
    try {
      files.syncDescriptor(descriptor)
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'FileError') throw error
      files.syncDescriptor(descriptor)
    }
  }
  expect(await firstFailure({ wrap: (files) => ({ ...files, syncDescriptor: again(files) }) })).toMatch(
    /lost|false alarm/,
  )
})

test('no checksums', async () => {
  vi.resetModules()
  vi.doMock('../../../engine/base/checksum.js', () => ({ crc32: () => 0 }))
  expect(await firstFailure({})).toMatch(/replayed|lost|false alarm/)
})

test('the tail rule takes every bad frame for damage', async () => {
  await replaceInFrame({ durableLsnOf: (kind: number) => (kind < 16 ? Number.MAX_SAFE_INTEGER : 0) })
  expect(await firstFailure({})).toMatch(/replayed|lost|false alarm/)
})

test('the tail rule takes every bad frame for the end', async () => {
  await replaceInFrame({ durableLsnOf: () => 0 })
  await withoutMarks()
  expect(await firstFailure({ damage: true, rounds: 1 })).toMatch(/damage cost more/)
})

test('groups share blocks', async () => {
  await replaceInFrame({ padBytes: () => 0 })
  expect(await firstFailure({})).toMatch(/lost|false alarm/)
})
