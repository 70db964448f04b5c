// Goal: a thread that reads pages of data files (parts) keeps the files open between pages, only a few at a time, and
// none after a failed read or when the thread is idle.

import { expect, test } from 'vitest'
import type { File, Files } from '../../../../engine/base/files.js'
import { nodeFiles } from '../../../../engine/base/files.js'
import { PartFiles } from '../../../../engine/storage/part/part-files.js'

/** Files that only count who is open. */
function counted(): { files: Files; open: Set<string>; opened: string[] } {
  const open = new Set<string>()
  const opened: string[] = []
  const openFile = (path: string): File => {
    expect(open).not.toContain(path)
    open.add(path)
    opened.push(path)
    return { path, close: () => void open.delete(path) } as File
  }
  return { files: { ...nodeFiles(), open: openFile }, open, opened }
}

test('a file is opened once for many pages', () => {
  const { files, open, opened } = counted()
  const parts = new PartFiles((path) => files.open(path, 'read'))
  for (let page = 0; page < 10; page++) expect(parts.with('a', ({ path }) => path + page)).toBe(`a${page}`)
  expect(opened).toEqual(['a'])
  parts.closeAll()
  expect(open.size).toBe(0)
  parts.with('a', () => undefined)
  expect(opened).toEqual(['a', 'a'])
})

test('few are open at once, those that were read last', () => {
  const { files, open } = counted()
  const parts = new PartFiles((path) => files.open(path, 'read'))
  for (let part = 0; part < 100; part++) {
    parts.with('often', () => undefined)
    parts.with(`part ${part}`, () => undefined)
    expect(open.size).toBeLessThanOrEqual(8)
    expect(open).toContain('often')
  }
})

test('a file that failed is opened anew', () => {
  const { files, open, opened } = counted()
  const parts = new PartFiles((path) => files.open(path, 'read'))
  const failing = (): never => {
    throw new Error('no disk')
  }
  expect(() => parts.with('a', failing)).toThrow('no disk')
  expect(open.size).toBe(0)
  parts.with('a', () => undefined)
  expect(opened).toEqual(['a', 'a'])
})
