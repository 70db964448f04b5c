// Goal: a part (Parquet file) that is only in the object store reads like a local file. Its metadata come from a local
// file, the sidecar; its pages from a local cache of blocks, which fetches missing blocks from the store. This works
// even if the store fails, is slow, or answers a request twice. Damage in sidecar, cache and object is detected.
//
// Method: random columns, a simulated store with seeds, a cache smaller than the part.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { crc32 } from '../../../../engine/base/checksum.js'
import { CorruptionError, ResourceError } from '../../../../engine/base/errors.js'
import { nodeFiles } from '../../../../engine/base/files.js'
import { loadKernels } from '../../../../engine/kernels/load.js'
import { BlockCache } from '../../../../engine/object-store/block-cache.js'
import type { ObjectStore } from '../../../../engine/object-store/object-store.js'
import { reliableStore } from '../../../../engine/object-store/reliable-store.js'
import { uploadFile } from '../../../../engine/object-store/transfer.js'
import { ChunkCache } from '../../../../engine/storage/cache/chunk-cache.js'
import type { PartAccess } from '../../../../engine/storage/part/part-access.js'
import { createPartAccess } from '../../../../engine/storage/part/part-reader.js'
import { writePart } from '../../../../engine/storage/part/part-writer.js'
import { RemoteBlocks } from '../../../../engine/storage/part/remote-blocks.js'
import { openPartFile } from '../../../../engine/storage/part/remote-file.js'
import { checkSidecar, readSidecar, writeSidecar } from '../../../../engine/storage/part/sidecar.js'
import { type PartDescriptor, sidecarFileOf, type TableSchema } from '../../../../engine/storage/schema/schema.js'
import { type DataType, dataType } from '../../../../engine/types/column-types.js'
import { createRandom } from '../../../support/random.js'
import { type SimulatedStore, simulatedRetries, simulatedStore } from '../../../support/simulator/simulated-store.js'
import {
  type Bench,
  bench,
  cellsAt,
  drain,
  random,
  randomCell,
  schemaOf,
  sourceOf,
  versionOf,
} from '../part-support.js'

const files = nodeFiles()
const MIB = 1024 * 1024
const unreachable = reliableStore(simulatedStore(), simulatedRetries(createRandom(1)))
const types = (['TIMESTAMP', 'DOUBLE', 'LONG', 'VARCHAR', 'SYMBOL', 'UUID'] as const).map((name) => dataType(name))
const schema = schemaOf(types)
const rows = 100_000

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'remote-part-'))
})
afterEach(() => rmSync(root, { recursive: true }))

/** A thread's access to the part, with a cache of blocks of its own in the same folder. */
class Reader {
  readonly access: PartAccess
  nowMs = 0
  readonly #running = new Set<Promise<void>>()

  constructor(bed: Bench, store: ObjectStore, bytesMax: number) {
    const clock = { monotonicMs: () => performance.now() }
    const cache = new BlockCache({ directory: `${root}/blocks`, bytesMax, freeBytesMin: 0 }, files, clock)
    const blocks = new RemoteBlocks({
      files,
      directory: `${root}/blocks`,
      nowMs: () => this.nowMs,
      post: (message) => {
        if (message.kind === 'blocksUsed') {
          cache.used(message.names)
          return
        }
        const fetching = cache.fetch(store, message.request).then(
          () => blocks.fetched(message.requestId, null),
          (error) => blocks.fetched(message.requestId, String(error)),
        )
        this.#running.add(fetching)
        void fetching.then(() => this.#running.delete(fetching))
      },
    })
    this.access = createPartAccess({
      ...{ files, directory: root, memory: bed.memory, allocator: bed.allocator, kernels: loadKernels(bed.memory) },
      cache: new ChunkCache(bed.memory, bed.allocator, bed.cacheAddress, 0),
      remote: blocks,
    })
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }
}

interface Remote {
  readonly bed: Bench
  readonly driver: SimulatedStore
  readonly local: PartDescriptor
  readonly part: PartDescriptor
  /** `bytesMax`: of its cache. */
  readonly reader: (bytesMax: number) => Reader
}

/** A part in the store, with its sidecar beside the local file. */
async function remotePart(seed: number): Promise<Remote> {
  const bed = bench(root)
  const next = random(seed * 7919)
  const columns = types.map((type, column) =>
    Array.from({ length: rows }, () => randomCell(type, next, column === 4 ? 0.01 : 1)),
  )
  const source = sourceOf(bed, schema, columns)
  const place = { partId: 1, partition: 'default', minTxn: 1, maxTxn: 2 }
  const local = drain(writePart(bed.tools, { schema, source, ...place }))
  const faults = createRandom(seed)
  const driver = simulatedStore({ chance: 0.2, random: faults })
  const store = reliableStore(driver, simulatedRetries(faults))
  const path = `${root}/${local.file}`
  const { checksum } = await uploadFile(store, files, path, 'some/key.parquet')
  const copy = { key: 'some/key.parquet', checksum }
  writeSidecar(files, path, `${root}/${sidecarFileOf(local)}`, copy)
  const part: PartDescriptor = { ...local, remote: { ...copy, only: true } }
  return { bed, driver, local, part, reader: (bytesMax) => new Reader(bed, store, bytesMax) }
}

async function readColumn(reader: Reader, bed: Bench, part: PartDescriptor, columnId: number): Promise<string[]> {
  const { access } = reader
  const handle = access.open(part, versionOf(schema))
  const out: string[] = []
  for (let page = 0; page < handle.pageCount; page++) {
    while (!access.ready(handle, [columnId], page)) await reader.settled()
    const address = access.pin(handle, columnId, page)
    const count = handle.firstRows[page + 1]! - handle.firstRows[page]!
    out.push(...cellsAt(bed.memory, typeOf(schema, columnId), address, count))
    access.unpin(address)
  }
  return out
}

function typeOf({ columns }: TableSchema, columnId: number): DataType {
  return columns[columnId]?.type ?? dataType('LONG')
}

test.each([1, 2])('a remote part reads like its file (seed %i)', async (seed) => {
  const { bed, local, part, reader } = await remotePart(seed)
  const remote = reader(2 * MIB)
  // Pages are cached by part id: a bench of its own reads the file.
  const own = bench(root)
  const file = new Reader(own, unreachable, MIB)
  for (const columnId of types.keys()) {
    const expected = await readColumn(file, own, local, columnId)
    expect(await readColumn(remote, bed, part, columnId)).toEqual(expected)
  }
  expect(readdirSync(`${root}/blocks`).length).toBeGreaterThan(0)
})

test('symbols and statistics need no block', async () => {
  const { driver, part, reader } = await remotePart(3)
  const { access } = reader(16 * MIB)
  driver.isAway = true
  const handle = access.open(part, versionOf(schema))
  expect(access.symbols(handle, 4)?.length).toBeGreaterThan(0)
  expect(access.statistics(handle, 2, 0)?.bounds).toBeDefined()
  expect(() => access.pin(handle, 1, 0)).toThrow(ResourceError)
})

test('a request that fails fails its readers, and later ones are served', async () => {
  const { bed, driver, part, reader } = await remotePart(4)
  const remote = reader(16 * MIB)
  driver.isAway = true
  const handle = remote.access.open(part, versionOf(schema))
  expect(remote.access.ready(handle, [1], 0)).toBe(false)
  await remote.settled()
  expect(() => remote.access.ready(handle, [1], 0)).toThrow(ResourceError)
  driver.isAway = false
  remote.nowMs += 2000
  expect((await readColumn(remote, bed, part, 1)).length).toBe(rows)
})

test('a block that was damaged on disk is fetched again, a damaged object is not read', async () => {
  const { driver, part, reader } = await remotePart(5)
  const first = reader(16 * MIB)
  const handle = first.access.open(part, versionOf(schema))
  while (!first.access.readyWhole(handle)) await first.settled()
  const names = readdirSync(`${root}/blocks`)
  expect(names.length).toBeGreaterThan(4)
  for (const name of names) {
    const content = readFileSync(`${root}/blocks/${name}`)
    content[7] = 255 - content[7]!
    writeFileSync(`${root}/blocks/${name}`, content)
  }
  const second = reader(16 * MIB)
  expect(second.access.ready(second.access.open(part, versionOf(schema)), [1], 0)).toBe(false)
  while (!second.access.readyWhole(handle)) await second.settled()
  for (const [key, object] of driver.objects) {
    driver.objects.set(key, { ...object, content: Uint8Array.from(object.content).fill(3, 100, 200) })
  }
  for (const name of names) rmSync(`${root}/blocks/${name}`)
  const third = reader(16 * MIB)
  expect(third.access.ready(third.access.open(part, versionOf(schema)), [0], 0)).toBe(false)
  await third.settled()
  expect(() => third.access.ready(handle, [0], 0)).toThrow(/checksum of a block/)
})

test('a sidecar has its layout, and damage in it is found', async () => {
  const { local, bed, part } = await remotePart(6)
  const path = `${root}/${sidecarFileOf(local)}`
  const content = readFileSync(path)
  expect(content.subarray(0, 8).toString('hex')).toBe('5053433101000000')
  expect(crc32(content.subarray(16, 16 + content.readUInt32LE(8)))).toBe(content.readUInt32LE(12))
  expect(bed.access.open(part, versionOf(schema)).rows).toBe(rows)
  expect(openPartFile(files, path).size()).toBe(local.bytes)
  const check = (): void => {
    const file = files.open(path, 'read')
    try {
      checkSidecar(file, readSidecar(file))
    } finally {
      file.close()
    }
  }
  check()
  for (let at = 0; at < content.length; at += 97) {
    const changed = Buffer.from(content)
    changed[at] = 255 - changed[at]!
    writeFileSync(path, changed)
    expect(check, `byte ${at}`).toThrow(CorruptionError)
  }
  expect(() => writeSidecar(files, `${root}/${local.file}`, path, { key: 'k', checksum: 1 })).toThrow(/uploaded/)
})
