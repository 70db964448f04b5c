// Goal: garbage collection in the object store removes an object when no manifest and no Iceberg metadata has referred
// to it for the whole grace period, and never otherwise: not if something refers to it again, not while the metadata of
// an Iceberg table cannot be read, not on a server that does not own the objects, and not earlier because of a restart.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeFiles } from '../../../engine/base/files.js'
import { bodyOf, StoreError } from '../../../engine/object-store/object-store.js'
import { reliableStore } from '../../../engine/object-store/reliable-store.js'
import { type NamedObjects, StoreSweeper, type SweeperOptions } from '../../../engine/session/store-sweeper.js'
import type { TableSchema, TableVersion } from '../../../engine/storage/schema/schema.js'
import { createRandom } from '../../support/random.js'
import { type SimulatedStore, simulatedRetries, simulatedStore } from '../../support/simulator/simulated-store.js'

let folder: string
let driver: SimulatedStore
let nowMs: number
let named: readonly string[]
let lake: NamedObjects
let prefixes: string[]
let isOwner: boolean
let sweepers: StoreSweeper[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sweeper-'))
  driver = simulatedStore()
  nowMs = 1_700_000_000_000
  named = []
  lake = { keys: new Set(), unknown: [] }
  prefixes = []
  isOwner = true
  sweepers = []
  const store = reliableStore(driver, simulatedRetries(createRandom(1)))
  for (const key of ['r/1/a', 'r/1/b', 'r/lake/7/data', 'r/owner', 'other/1/a'])
    await store.putIfAbsent(key, bodyOf(Buffer.from(key)))
})

afterEach(() => {
  for (const sweeper of sweepers) sweeper.close()
  rmSync(folder, { recursive: true, force: true })
})

function tables(): TableVersion[] {
  const [first, ...detached] = named
  const partOf = (key: string) => ({
    ...{ id: 1, file: 'f', partition: 'p', rows: 1, bytes: 1, minTxn: 1, maxTxn: 1, columnIds: [] },
    remote: { key, checksum: 0 },
  })
  const schema: TableSchema = {
    ...{ id: 1, name: 't', version: 1, columns: [], timestampId: 0, partitionBy: 'DAY', bypassWal: false },
    ...{ dedupKeys: [], ttl: null, maxUncommittedRows: 0, o3MaxLagMicros: 0, createdMicros: 0 },
    detached: detached.map((key) => ({ ...partOf(key), minTs: '0', maxTs: '0' })),
  }
  const parts = first === undefined ? [] : [{ ...partOf(first), minTs: 0n, maxTs: 0n }]
  return [{ version: 1, schema, parts, memtables: [], dictionaries: [] }]
}

function sweeper(changes: Partial<SweeperOptions> = {}): StoreSweeper {
  const made = new StoreSweeper({
    tables,
    lake: async () => lake,
    lakePrefixes: () => prefixes,
    store: reliableStore(driver, { ...simulatedRetries(createRandom(1)), totalMs: 0 }),
    ownership: { isOwner: async () => isOwner, key: 'r/owner' },
    ...{ ready: () => false, rootId: 'r', graceMs: () => 1000, files: nodeFiles(), path: join(folder, 'unnamed.json') },
    clock: { nowMicros: () => nowMs * 1000, monotonicMs: () => nowMs },
    ...{ log: () => {}, report: () => {} },
    ...changes,
  })
  sweepers.push(made)
  return made
}

const keys = (): string[] => [...driver.objects.keys()].sort()
const all = ['other/1/a', 'r/1/a', 'r/1/b', 'r/lake/7/data', 'r/owner']

test('what nothing names is removed after the grace period, other prefixes are left alone', async () => {
  named = ['r/1/a']
  lake = { keys: new Set(['r/lake/7/data']), unknown: [] }
  const own = sweeper()
  await own.sweep()
  nowMs += 999
  await own.sweep()
  expect(keys()).toEqual(all)
  nowMs += 1
  await own.sweep()
  expect(keys()).toEqual(['other/1/a', 'r/1/a', 'r/lake/7/data', 'r/owner'])
})

test('objects below further prefixes are removed, too', async () => {
  const store = reliableStore(driver, simulatedRetries(createRandom(1)))
  for (const key of ['lake/r/1/a', 'lake/r/1/b', 'lake/r/2/a']) await store.putIfAbsent(key, bodyOf(Buffer.from(key)))
  named = ['r/1/a', 'r/1/b']
  lake = { keys: new Set(['r/lake/7/data', 'lake/r/1/b']), unknown: [] }
  prefixes = ['lake/r/1/']
  const own = sweeper()
  await own.sweep()
  nowMs += 5000
  await own.sweep()
  expect(keys()).toEqual(['lake/r/1/b', 'lake/r/2/a', ...all])
})

test('parts of detached partitions are named', async () => {
  named = ['r/1/a', 'r/1/b']
  lake = { keys: new Set(['r/lake/7/data']), unknown: [] }
  const own = sweeper()
  await own.sweep()
  nowMs += 5000
  await own.sweep()
  expect(keys()).toEqual(all)
})

test('the period begins again when an object was named in between', async () => {
  const own = sweeper()
  await own.sweep()
  nowMs += 900
  named = ['r/1/a']
  await own.sweep()
  named = []
  nowMs += 900
  await own.sweep()
  expect(keys()).toEqual(['other/1/a', 'r/1/a', 'r/owner'])
  nowMs += 1000
  await own.sweep()
  expect(keys()).toEqual(['other/1/a', 'r/owner'])
})

test('a restart continues the period, and a damaged file begins it again', async () => {
  await sweeper().sweep()
  nowMs += 1000
  await sweeper().sweep()
  expect(keys()).toEqual(['other/1/a', 'r/owner'])
  await reliableStore(driver, simulatedRetries(createRandom(1))).putIfAbsent('r/2/c', bodyOf(Buffer.from('c')))
  await sweeper().sweep()
  const file = nodeFiles().open(join(folder, 'unnamed.json'), 'write')
  file.write([Buffer.from('damaged')], 0)
  file.close()
  nowMs += 1000
  await sweeper().sweep()
  expect(keys()).toContain('r/2/c')
})

test('nothing of a table is removed while its metadata cannot be read', async () => {
  lake = { keys: new Set(), unknown: ['r/lake/7/'] }
  const own = sweeper()
  await own.sweep()
  nowMs += 5000
  await own.sweep()
  expect(keys()).toEqual(['other/1/a', 'r/lake/7/data', 'r/owner'])
})

test('only the owner removes, and failures of the store end a round only', async () => {
  isOwner = false
  let failure: string | null = null
  const report: SweeperOptions['report'] = (statistics) => {
    failure = statistics.failure
  }
  const own = sweeper({ report })
  await own.sweep()
  nowMs += 5000
  await own.sweep()
  expect(keys()).toEqual(all)
  expect(failure).toContain('another server owns the objects of this root')
  isOwner = true
  driver.isAway = true
  await own.sweep()
  expect(failure).toContain('away')
  driver.isAway = false
  const broken = sweeper({
    report,
    lake: async () => {
      throw new StoreError('unavailable', 'the lake is unknown')
    },
  })
  await broken.sweep()
  expect(keys()).toEqual(all)
  await own.sweep()
  expect(keys()).toEqual(['other/1/a', 'r/owner'])
})
