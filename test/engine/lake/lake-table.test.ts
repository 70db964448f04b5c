// Goal: commits to an Iceberg table write metadata as its specification requires (compared with golden files), in an
// order in which no snapshot ever refers to a missing object, whichever request to the object store fails. Of two
// writers of the same version only one commits.
//
// `LAKE_GOLDEN=1 npx vitest run test/engine/lake` writes the golden files anew: read the diff.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { decodeAvro } from '../../../engine/lake/avro-file.js'
import { creationOf } from '../../../engine/lake/catalog-layout.js'
import { CatalogTable } from '../../../engine/lake/catalog-table.js'
import type { LakeChange } from '../../../engine/lake/committed-table.js'
import { LakeTable, type LakeTableOptions } from '../../../engine/lake/lake-table.js'
import {
  type DataFile,
  decodeManifest,
  decodeManifestList,
  encodeManifest,
  entryStatus,
} from '../../../engine/lake/manifest-files.js'
import { placesOf } from '../../../engine/lake/open-lake-table.js'
import { partitionFieldOf, partitionValue } from '../../../engine/lake/partition-spec.js'
import type { TableMetadata } from '../../../engine/lake/table-metadata.js'
import { bodyOf, type ObjectStore, StoreError } from '../../../engine/object-store/object-store.js'
import { reliableStore } from '../../../engine/object-store/reliable-store.js'
import type { PartitionUnit, TableSchema } from '../../../engine/storage/schema/schema.js'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import { committed, newTable } from '../../support/lake/rest-catalog.js'
import { createRandom } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { type SimulatedStore, simulatedRetries, simulatedStore } from '../../support/simulator/simulated-store.js'

const uuid = '6f0e4d0c-8a3c-4d38-9a55-3f0c6a7d1b11'
const golden = join(import.meta.dirname, 'golden')

const types: readonly (readonly [string, DataType])[] = [
  ['ts', dataType('TIMESTAMP')],
  ['flag', dataType('BOOLEAN')],
  ['b', dataType('BYTE')],
  ['s', dataType('SHORT')],
  ['c', dataType('CHAR')],
  ['i', dataType('INT')],
  ['l', dataType('LONG')],
  ['f', dataType('FLOAT')],
  ['d', dataType('DOUBLE')],
  ['day', dataType('DATE')],
  ['ns', dataType('TIMESTAMP_NS')],
  ['text', dataType('VARCHAR')],
  ['symbol', dataType('SYMBOL')],
  ['id', dataType('UUID')],
  ['address', dataType('IPv4')],
  ['place', dataType('GEOHASH', 40)],
  ['bytes', dataType('BINARY')],
  ['wide', dataType('LONG256')],
  ['price', dataType('DECIMAL', 20, 4)],
  ['huge', dataType('DECIMAL', 50, 2)],
  ['grid', dataType('ARRAY', 2)],
]

function schemaOf(columns = types, partitionBy: PartitionUnit = 'DAY'): TableSchema {
  return {
    ...{ id: 7, name: 'trades', version: 1, timestampId: 0, partitionBy, bypassWal: false, dedupKeys: [], ttl: null },
    ...{ maxUncommittedRows: 0, o3MaxLagMicros: 0, createdMicros: 0, lake: { uuid } },
    columns: columns.map(([name, type], id) => ({ id, name, type, dropped: false })),
  }
}

const key = (path: string): string => path.replace('s3://simulated/', '')

/** A table whose ids and names are counted, so that its metadata is the same in every run. */
function counted(store: ObjectStore): LakeTableOptions {
  let [ids, names, clock] = [100, 0, 1_700_000_000_000]
  return {
    ...{ store, prefix: 'root/lake/7', uuid },
    nowMs: () => (clock += 1000),
    randomId: () => ++ids,
    randomName: () => `name-${++names}`,
  }
}

function plainStore(): { store: ObjectStore; driver: SimulatedStore } {
  const driver = simulatedStore()
  return { store: reliableStore(driver, simulatedRetries(createRandom(1))), driver }
}

async function fileOf(
  table: LakeTable,
  store: ObjectStore,
  name: string,
  partition: number,
  rows = 10,
): Promise<DataFile> {
  const path = `data/day/${name}.parquet`
  await store.putIfAbsent(table.key(path), bodyOf(new TextEncoder().encode(name)))
  const bound = Buffer.alloc(8)
  bound.writeBigInt64LE(BigInt(partition) * 86_400_000_000n)
  return {
    ...{ path: table.uri(path), rows, bytes: name.length, partition, isSorted: true },
    valueCounts: new Map([[1, rows]]),
    nullCounts: new Map([[1, 0]]),
    lowerBounds: new Map([[1, bound]]),
    upperBounds: new Map([[1, bound]]),
  }
}

function change(added: readonly DataFile[], removed: readonly string[] = [], schema = schemaOf()): LakeChange {
  return { schema, added, removed: new Set(removed), isCompaction: false }
}

/** Compares with the golden file of that name. */
function expectGolden(name: string, value: unknown): void {
  const path = join(golden, `${name}.json`)
  const shown = (_: string, member: unknown): unknown => (member instanceof Map ? [...member] : member)
  const text = `${JSON.stringify(value, shown, 2)}\n`
  if (process.env['LAKE_GOLDEN'] === '1' || !existsSync(path)) writeFileSync(path, text)
  expect(text).toBe(readFileSync(path, 'utf8'))
}

test('metadata, manifest list and manifests are as the specification has them', async () => {
  const { store, driver } = plainStore()
  const options = counted(store)
  const table = await LakeTable.open(options, 0)
  expect(await table.commit(change([]))).toBe(true)
  expectGolden('empty', table.metadata)
  const files = [await fileOf(table, store, 'one', 19_000), await fileOf(table, store, 'two', 19_001, 20)]
  await table.commit(change(files))
  const third = await fileOf(table, store, 'three', 19_001, 20)
  const fewer = schemaOf(types.slice(0, 3))
  await table.commit(change([third], [files[1]?.path ?? ''], fewer))
  expectGolden('three-snapshots', table.metadata)
  expect([...table.files.keys()].map(key)).toEqual([
    'root/lake/7/data/day/one.parquet',
    'root/lake/7/data/day/three.parquet',
  ])
  const list = table.metadata?.snapshots.at(-1)?.['manifest-list'] ?? ''
  const manifests = decodeManifestList(driver.objects.get(key(list))?.content ?? new Uint8Array())
  expectGolden('manifest-list', manifests)
  const entries = manifests.map((manifest) =>
    decodeManifest(
      partitionFieldOf(schemaOf()),
      manifest,
      driver.objects.get(key(manifest.path))?.content ?? new Uint8Array(),
    ),
  )
  expectGolden('manifests', entries)
})

const inVersion3: TableSchema = { ...schemaOf(), lake: { uuid, formatVersion: 3 } }

/** Files of the newest snapshot by name, each with the id of its first row, and what the list says of their manifests. */
function rowIdsOf({ metadata }: LakeTable, driver: SimulatedStore): { files: unknown[]; manifests: unknown[] } {
  const contentOf = (uri = ''): Uint8Array => driver.objects.get(key(uri))?.content ?? new Uint8Array()
  const listed = decodeManifestList(contentOf(metadata?.snapshots.at(-1)?.['manifest-list']))
  const entries = listed.flatMap((manifest) =>
    decodeManifest(partitionFieldOf(schemaOf()), manifest, contentOf(manifest.path)),
  )
  return {
    manifests: listed.map(({ firstRowId, rows }) => [firstRowId, ...rows]),
    files: entries.map(({ file, status }) => [/(\w+)\.parquet$/.exec(file.path)?.[1], status, file.firstRowId]),
  }
}

test('in format version 3 nanoseconds have a type, and rows have ids', async () => {
  const { store, driver } = plainStore()
  const table = await LakeTable.open(counted(store), 0)
  const files = [await fileOf(table, store, 'one', 19_000), await fileOf(table, store, 'two', 19_001, 20)]
  await table.commit(change(files, [], inVersion3))
  expect(rowIdsOf(table, driver)).toEqual({
    manifests: [[0, 0, 30, 0]],
    files: [
      ['one', 1, 0],
      ['two', 1, 10],
    ],
  })
  await table.commit(change([await fileOf(table, store, 'three', 19_001, 7)], [files[0]?.path ?? ''], inVersion3))
  expectGolden('version-3', table.metadata)
  // The manifest with the rest is another one, and its files keep their ids.
  const wanted = {
    manifests: [
      [30, 20, 0, 10],
      [60, 0, 7, 0],
    ],
    files: [
      ['one', 2, 0],
      ['two', 0, 10],
      ['three', 1, 60],
    ],
  }
  expect(rowIdsOf(table, driver)).toEqual(wanted)
  const again = await LakeTable.open(counted(store), 2)
  expect([...again.files.values()].map(({ firstRowId }) => firstRowId)).toEqual([10, 60])
  expect([...table.files.values()].map(({ firstRowId }) => firstRowId)).toEqual([10, 60])
})

test('a table of format version 2 is raised to 3 with its files, whose rows then get ids', async () => {
  const { store, driver } = plainStore()
  const table = await LakeTable.open(counted(store), 0)
  const plain = schemaOf(types.slice(0, 3))
  const files = [await fileOf(table, store, 'one', 19_000), await fileOf(table, store, 'two', 19_001, 20)]
  await table.commit(change(files, [], plain))
  const raised = { ...plain, lake: { uuid, formatVersion: 3 as const } }
  expect(await table.commit(change([], [], raised))).toBe(true)
  expect(table.metadata).toMatchObject({ 'format-version': 3, 'next-row-id': 0, schemas: [{}] })
  expect(table.metadata?.snapshots[0]).not.toHaveProperty('first-row-id')
  const again = await LakeTable.open({ ...counted(store), randomName: () => crypto.randomUUID() }, 2)
  expect(await again.commit(change([], [], raised))).toBe(false)
  await again.commit(change([await fileOf(again, store, 'three', 19_001, 7)], [], raised))
  expect(rowIdsOf(again, driver)).toEqual({
    manifests: [
      [0, 0, 30, 0],
      [30, 0, 7, 0],
    ],
    files: [
      ['one', 1, 0],
      ['two', 1, 10],
      ['three', 1, 30],
    ],
  })
  expect(again.metadata).toMatchObject({ 'next-row-id': 37 })
  expect(again.metadata?.snapshots.at(-1)).toMatchObject({ 'first-row-id': 0, 'added-rows': 37 })
})

test('a table that another one replaces is handed out, and keeps its objects, until the other has metadata', async () => {
  const { store } = plainStore()
  const former = await LakeTable.open({ ...counted(store), prefix: 'root/lake/former', uuid: 'former' }, 0)
  await former.commit(change([await fileOf(former, store, 'one', 1)]))
  const table = await LakeTable.open({ ...counted(store), replaced: former }, 0)
  expect(table.handedOut).toEqual(former.handedOut)
  expect(await table.namedKeys()).toEqual(await former.namedKeys())
  await table.commit(change([await fileOf(table, store, 'two', 1)], [], inVersion3))
  expect(table.handedOut?.metadataLocation).toBe('s3://simulated/root/lake/7/metadata/v1.metadata.json')
  expect([...(await table.namedKeys())].every((name) => name.startsWith('root/lake/7/'))).toBe(true)
})

test('a commit without changes writes nothing; a changed column alone makes no snapshot', async () => {
  const { store, driver } = plainStore()
  const table = await LakeTable.open(counted(store), 0)
  await table.commit(change([await fileOf(table, store, 'one', 1)]))
  const objects = driver.objects.size
  expect(await table.commit(change([]))).toBe(false)
  expect(driver.objects.size).toBe(objects)
  const renamed = schemaOf([...types.slice(0, 5), ['number', dataType('INT')]])
  await table.commit(change([], [], renamed))
  expect(table.metadata?.snapshots).toHaveLength(1)
  expect(table.metadata?.['current-schema-id']).toBe(1)
  // Going back is no third schema.
  await table.commit(change([]))
  expect([table.metadata?.schemas.length, table.metadata?.['current-schema-id']]).toEqual([2, 0])
})

test('an added column gets a higher id than any before, also than those of lists', async () => {
  const { store } = plainStore()
  const table = await LakeTable.open(counted(store), 0)
  await table.commit(change([], [], schemaOf([...types.slice(0, 2), ['grid', dataType('ARRAY', 2)]])))
  expect(table.metadata?.['last-column-id']).toBe(11_000_002)
  const [, , list] = table.metadata?.schemas[0]?.fields ?? []
  expect(list?.type).toEqual({
    ...{ type: 'list', 'element-id': 1_000_002, 'element-required': true },
    element: { type: 'list', 'element-id': 11_000_002, element: 'double', 'element-required': true },
  })
})

test('many manifests are joined, and files keep the numbers of the snapshots that added them', async () => {
  const { store, driver } = plainStore()
  const options = counted(store)
  const table = await LakeTable.open(options, 0)
  for (let at = 0; at < 60; at++) await table.commit(change([await fileOf(table, store, `f${at}`, at)]))
  expect(table.files.size).toBe(60)
  const list = table.metadata?.snapshots.at(-1)?.['manifest-list'] ?? ''
  const manifests = decodeManifestList(driver.objects.get(key(list))?.content ?? new Uint8Array())
  expect(manifests.length).toBeLessThan(26)
  const again = await LakeTable.open(options, 60)
  expect([...again.files.keys()].sort()).toEqual([...table.files.keys()].sort())
  const entries = manifests.flatMap((manifest) =>
    decodeManifest(
      partitionFieldOf(schemaOf()),
      manifest,
      driver.objects.get(key(manifest.path))?.content ?? new Uint8Array(),
    ),
  )
  for (const { file, sequenceNumber } of entries) expect(sequenceNumber).toBe((file.partition ?? 0) + 1)
})

test('of two writers one commits, and the other one gets an error', async () => {
  const { store } = plainStore()
  const first = await LakeTable.open(counted(store), 0)
  const second = await LakeTable.open({ ...counted(store), randomName: () => crypto.randomUUID() }, 0)
  await first.commit(change([await fileOf(first, store, 'one', 1)]))
  await expect(second.commit(change([]))).rejects.toMatchObject({ kind: 'conflict' })
  expect((await LakeTable.open(counted(store), 1)).files.size).toBe(1)
})

test('files of a version that is not recorded are not known to be right', async () => {
  const { store } = plainStore()
  const table = await LakeTable.open(counted(store), 0)
  await table.commit(change([await fileOf(table, store, 'one', 1)]))
  await table.commit(change([await fileOf(table, store, 'two', 2)]))
  const known = async (recorded: number): Promise<boolean[]> => {
    const again = await LakeTable.open(counted(store), recorded)
    expect(again.version).toBe(2)
    return [...again.files.keys()].map((path) => again.isKnown(path))
  }
  expect(await known(2)).toEqual([true, true])
  expect(await known(1)).toEqual([true, false])
  expect(await known(0)).toEqual([false, false])
  // The root is newer than the store: nothing can be said of its files.
  expect(await known(9)).toEqual([false, false])
})

test('metadata of another table or place, and damaged objects, are refused', async () => {
  const { store, driver } = plainStore()
  const table = await LakeTable.open(counted(store), 0)
  await table.commit(change([await fileOf(table, store, 'one', 1)]))
  await expect(LakeTable.open({ ...counted(store), uuid: 'other' }, 1)).rejects.toThrow(
    'the metadata is of another table',
  )
  const list = key(table.metadata?.snapshots[0]?.['manifest-list'] ?? '')
  await store.put(list, bodyOf(new TextEncoder().encode('nonsense')))
  await expect(LakeTable.open(counted(store), 1)).rejects.toThrow(/an object is damaged: not an Avro file/)
  driver.objects.delete(list)
  await expect(LakeTable.open(counted(store), 1)).rejects.toMatchObject({ kind: 'missing' })
})

/** Everything that the newest version of the metadata names is there; returns its data files. */
function namedFiles(driver: SimulatedStore): string[] {
  const contentOf = (uri: string): Uint8Array => {
    const found = driver.objects.get(key(uri))
    if (found === undefined) throw new Error(`an object is named and not there [uri=${uri}]`)
    return found.content
  }
  const versions = [...driver.objects.keys()].flatMap((name) => /\/v(\d+)\.metadata\.json$/.exec(name)?.[1] ?? [])
  if (versions.length === 0) return []
  const newest = Math.max(...versions.map(Number))
  expect(versions.length).toBe(newest)
  let files: string[] = []
  // Versions before them were looked at when they were the newest.
  for (let version = Math.max(1, newest - 1); version <= newest; version++) {
    const text = Buffer.from(contentOf(`s3://simulated/root/lake/7/metadata/v${version}.metadata.json`)).toString()
    const metadata = JSON.parse(text) as TableMetadata
    for (const snapshot of metadata.snapshots) {
      const manifests = decodeManifestList(contentOf(snapshot['manifest-list']))
      const entries = manifests.flatMap((manifest) =>
        decodeManifest(partitionFieldOf(schemaOf()), manifest, contentOf(manifest.path)),
      )
      const live = entries.filter(({ status }) => status !== entryStatus.deleted).map(({ file }) => file.path)
      for (const path of live) contentOf(path)
      files = live
    }
  }
  return files
}

test.each(Array.from({ length: runs(100, 8) }, (_, seed) => seed))('faults of the store, seed %i', async (seed) => {
  const random = createRandom(seed)
  const driver = simulatedStore({ chance: 0.08, random })
  // No retries: every fault ends the commit.
  const retries = { ...simulatedRetries(random), totalMs: random.chance(0.5) ? 0 : 200 }
  const store = reliableStore(driver, retries)
  let recorded = 0
  let names = 0
  const options = (): LakeTableOptions => ({
    ...counted(store),
    randomName: () => `${seed}-${++names}`,
    randomId: () => 1000 + ++names,
  })
  let table: LakeTable | null = null
  const wanted = new Set<string>()
  for (let round = 0; round < 25; round++) {
    try {
      table ??= await LakeTable.open(options(), recorded)
      const stale = [...table.files.keys()].filter((path) => !table?.isKnown(path) || !wanted.has(path))
      for (const path of stale) wanted.delete(path)
      if (wanted.size > 3) {
        const [oldest = ''] = wanted
        wanted.delete(oldest)
        stale.push(oldest)
      }
      const file = await fileOf(table, store, `f${seed}-${++names}`, round)
      await table.commit(change([file], stale))
      recorded = table.version
      wanted.add(file.path)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      // A commit without an answer may have been made: the next one reads the table again.
      table = null
      wanted.clear()
      const known = await settled(() => LakeTable.open(options(), recorded))
      for (const path of known?.files.keys() ?? []) if (known?.isKnown(path)) wanted.add(path)
    }
    namedFiles(driver)
  }
  const calm = await settled(() => LakeTable.open(options(), recorded))
  expect(namedFiles(driver).sort()).toEqual([...(calm?.files.keys() ?? [])].sort())
  expect(recorded).toBeGreaterThan(0)
})

async function settled<Value>(work: () => Promise<Value>): Promise<Value | null> {
  for (let attempt = 0; attempt < 200; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
  }
  return null
}

test('the header of a manifest has the field ids', () => {
  const bytes = encodeManifest({ schemaId: 0, fields: [], partitionField: partitionFieldOf(schemaOf()) }, [])
  const text = bytes.toString('latin1')
  expect(text).toContain('"name":"file_path","type":"string","field-id":100')
  expect(text).toContain('"name":"ts_day","type":["null",{"type":"int","logicalType":"date"}]')
  expect(decodeAvro({ type: 'record', name: 'none', fields: [] }, bytes)).toEqual([])
})

test('partition values count from 1970, downwards before it', () => {
  const micros = (text: string): bigint => BigInt(Date.parse(text)) * 1000n
  expect(partitionValue('hour', micros('1970-01-01T01:59:59Z'))).toBe(1)
  expect(partitionValue('hour', micros('1970-01-01T00:00:00Z') - 1n)).toBe(-1)
  expect(partitionValue('day', micros('2024-03-14T23:59:59.999Z'))).toBe(19_796)
  expect(partitionValue('day', micros('1969-12-31T00:00:00Z'))).toBe(-1)
  expect(partitionValue('month', micros('2024-03-14T00:00:00Z'))).toBe(650)
  expect(partitionValue('month', micros('1969-11-30T00:00:00Z'))).toBe(-2)
  expect(partitionValue('year', micros('1969-11-30T00:00:00Z'))).toBe(-1)
})

test('partition fields have names of their own, and weeks are no transform', () => {
  const odd = schemaOf([
    ['1 st', dataType('TIMESTAMP')],
    ['_1_st_day', dataType('INT')],
  ])
  expect(partitionFieldOf(odd)?.name).toBe('_1_st_day_')
  for (const unit of ['WEEK', 'NONE'] as const) expect(partitionFieldOf(schemaOf(types, unit))).toBeNull()
})

test('a table that cannot be read keeps the objects of the one that it replaces', () => {
  const schema = schemaOf()
  expect(placesOf({ schema }, `root/lake/7-${uuid}`)).toEqual([`root/lake/7-${uuid}/`])
  const next: TableSchema = { ...schema, lake: { uuid, formatVersion: 3, replaces: 'former' } }
  expect(placesOf({ schema: next }, `root/lake/7-${uuid}`)).toEqual([`root/lake/7-${uuid}/`, 'root/lake/7-former/'])
})

test('a table of an external catalog gets format version 3 without a conflict', async () => {
  const { store } = plainStore()
  const schema = schemaOf(types.slice(0, 3))
  const json = (all: readonly object[]) => all.map((one) => ({ ...one }))
  let metadata = newTable({ ...creationOf(schema) })
  let conflicts = 0
  const table = await CatalogTable.open(
    {
      ...{
        ...counted(store),
        store: Object.assign(store, { bucket: () => store }),
        rootId: 'root',
        identity: '7-u',
        schema,
      },
      ...{ sleep: async () => {}, onConflict: () => conflicts++ },
      catalog: {
        load: async () => metadata,
        create: async () => metadata,
        commit: async (_name, requirements, updates) => {
          metadata = committed(metadata, json(requirements), json(updates))
          return { kind: 'committed', metadata }
        },
        rename: async () => true,
        describe: (name) => name,
      },
    },
    { version: 0 },
  )
  await table.prepare(schema)
  expect(metadata['format-version']).toBe(2)
  await table.prepare({ ...schema, lake: { uuid, formatVersion: 3 } })
  expect(metadata['format-version']).toBe(3)
  expect(conflicts).toBe(0)
})
