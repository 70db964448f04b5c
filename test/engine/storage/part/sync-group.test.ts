// Goal: when commit() of a group of new files has returned, all of them survive a crash; after a failed sync, further
// commits fail without another sync until the group is closed.

import { expect, test } from 'vitest'
import type { Files } from '../../../../engine/base/files.js'
import { SyncGroup } from '../../../../engine/storage/part/sync-group.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'

function write(files: Files, group: SyncGroup, path: string): void {
  const file = files.open(path, 'create')
  file.write([new TextEncoder().encode(path)], 0)
  group.add(file, [path.slice(0, path.lastIndexOf('/')), '/'])
}

test('many files are durable after one commit, each directory synced once', () => {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/a')
  disk.files.makeDirectory('/b')
  const group = new SyncGroup(disk.files)
  for (let n = 0; n < 100; n++) write(disk.files, group, `/${n % 2 === 0 ? 'a' : 'b'}/${n}`)
  const before = disk.counts.syncDirectory
  group.commit()
  expect(disk.counts.syncDirectory - before).toBe(3)
  disk.crash(1)
  expect(disk.files.list('/a').length + disk.files.list('/b').length).toBe(100)
})

test('a failed sync is not tried again', () => {
  const disk = createFaultyDisk(1)
  const group = new SyncGroup(disk.files)
  write(disk.files, group, '/x')
  let failing = true
  disk.inject(({ kind }) => (failing && kind === 'sync' ? { kind: 'error', code: 'EIO' } : undefined))
  expect(() => group.commit()).toThrow('injected failure')
  failing = false
  expect(() => group.commit()).toThrow('injected failure')
  group.close()
  write(disk.files, group, '/y')
  expect(() => group.commit()).not.toThrow()
})
