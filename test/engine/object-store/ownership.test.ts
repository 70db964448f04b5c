// Goal: the objects of a root folder's id in the object store have one owner: the root folder that knows the token
// stored there. A copy of the folder never becomes the owner. If the whole disk is cloned, the clone that was started
// last is the owner. A crash or a lost response while the token is replaced does not lose the ownership. A root folder
// that does not know the token never takes it.

import { expect, test } from 'vitest'
import type { Files } from '../../../engine/base/files.js'
import { bodyOf, type ObjectStore, StoreError } from '../../../engine/object-store/object-store.js'
import { Ownership } from '../../../engine/object-store/ownership.js'
import { reliableStore } from '../../../engine/object-store/reliable-store.js'
import { createRandom } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { createFaultyDisk, SimulatedCrash } from '../../support/simulator/faulty-files.js'
import { simulatedRetries, simulatedStore } from '../../support/simulator/simulated-store.js'

const path = '/root/root.owner'

function diskWith(content: string | null = null): Files {
  const { files } = createFaultyDisk()
  files.makeDirectory('/root')
  if (content !== null) {
    const file = files.open(path, 'create')
    file.write([Buffer.from(content)], 0)
    file.close()
  }
  return files
}

function plainStore(): ObjectStore {
  return reliableStore(simulatedStore(), simulatedRetries(createRandom(1)))
}

const owned = (store: ObjectStore, files: Files, fingerprint = 'inode 1'): Ownership =>
  new Ownership({ store, rootId: 'r', files, path, fingerprint })

function contentOf(files: Files): string {
  const file = files.open(path, 'read')
  const content = new Uint8Array(file.size())
  file.read(content, 0)
  file.close()
  return Buffer.from(content).toString()
}

test('the first server owns the prefix, and still does after a restart', async () => {
  const store = plainStore()
  const files = diskWith()
  expect(await owned(store, files).isOwner()).toBe(true)
  const second = owned(store, files)
  expect(await Promise.all([second.isOwner(), second.isOwner(), second.isOwner()])).toEqual([true, true, true])
  expect(contentOf(files)).toBe(`inode 1\n${Buffer.from(await store.get('r/owner')).toString()}\n`)
})

test('a copy has another fingerprint and never takes over', async () => {
  const store = plainStore()
  const files = diskWith()
  const original = owned(store, files)
  expect(await original.isOwner()).toBe(true)
  expect(await owned(store, diskWith(contentOf(files)), 'inode 2').isOwner()).toBe(false)
  expect(await original.isOwner()).toBe(true)
})

test('a clone that is started takes over, and the original notices', async () => {
  const store = plainStore()
  const files = diskWith()
  const original = owned(store, files)
  expect(await original.isOwner()).toBe(true)
  const copied = diskWith(contentOf(files))
  expect(await owned(store, copied).isOwner()).toBe(true)
  expect(await original.isOwner()).toBe(false)
  expect(await owned(store, files).isOwner()).toBe(false)
})

test('a root without the token is no owner until a person removes the object', async () => {
  const store = plainStore()
  expect(await owned(store, diskWith()).isOwner()).toBe(true)
  const stranger = owned(store, diskWith())
  expect(await stranger.isOwner()).toBe(false)
  expect(await owned(store, diskWith('inode 1\nother\n')).isOwner()).toBe(false)
  await store.delete('r/owner')
  expect(await stranger.isOwner()).toBe(true)
})

test('an object that somebody else wrote is no token of ours', async () => {
  const store = plainStore()
  const files = diskWith()
  const own = owned(store, files)
  await own.isOwner()
  await store.put('r/owner', bodyOf(Buffer.from('nonsense')))
  expect(await own.isOwner()).toBe(false)
})

test.each(Array.from({ length: runs(300, 40) }, (_, seed) => seed))(
  'faults of the store and crashes keep one owner, seed %i',
  async (seed) => {
    const random = createRandom(seed)
    const driver = simulatedStore({ chance: 0.15, random })
    const retries = { ...simulatedRetries(random), totalMs: random.chance(0.5) ? 0 : 100 }
    const store = reliableStore(driver, retries)
    const disk = createFaultyDisk(seed)
    disk.files.makeDirectory('/root')
    disk.files.syncDirectory('/')
    for (let start = 0; start < 10; start++) {
      const crashAt = disk.operations + Math.floor(random.next() * 12)
      disk.inject(({ index }) => (index === crashAt ? { kind: 'crash' } : undefined))
      const own = owned(store, disk.files)
      for (let attempt = 0; attempt < 5; attempt++) {
        try {
          await own.isOwner()
        } catch (error) {
          if (!(error instanceof StoreError || error instanceof SimulatedCrash)) throw error
        }
      }
      disk.inject(undefined)
      disk.crash(seed * 100 + start)
    }
    driver.isAway = false
    const calm = reliableStore(simulatedStore(), retries)
    // What the faulty store has, without its faults.
    const found = driver.objects.get('r/owner')
    if (found !== undefined) await calm.put('r/owner', bodyOf(found.content))
    expect(await owned(calm, disk.files).isOwner()).toBe(true)
  },
)
