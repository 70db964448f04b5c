// Goal: several servers read the partitions of one Kafka topic, each partition by one server after the other, and
// append to one Iceberg table, which contains each record once. After each commit, the rows of a partition are those of
// all records before the offset that the snapshot names. This holds when partitions move between servers, when a server
// that has lost a partition continues to read it, when a commit or the response to it gets lost, when a server dies
// while it discards rows, and when other programs add snapshots. Method: random steps of three servers, which run the
// committer's steps over rows in memory, with a catalog in memory and the simulated object store.

import { describe, expect, test } from 'vitest'
import type { LineRequest, LineTicket } from '../../../engine/api/ingest.js'
import type { ExecuteOptions, StatementResult } from '../../../engine/api/statements.js'
import { creationOf } from '../../../engine/lake/catalog-layout.js'
import { type CatalogMetadata, snapshotOf } from '../../../engine/lake/catalog-metadata.js'
import { hasSources, noShare, shareProperty } from '../../../engine/lake/catalog-share.js'
import { CatalogTable, type CatalogTableOptions } from '../../../engine/lake/catalog-table.js'
import type { DataFile } from '../../../engine/lake/manifest-files.js'
import type { CommitResult } from '../../../engine/lake/rest-catalog.js'
import {
  advancedSources,
  OvertakenError,
  offsetsIn,
  streamKey,
  type TableSources,
} from '../../../engine/lake/source-offsets.js'
import { bodyOf, StoreError } from '../../../engine/object-store/object-store.js'
import { reliableStore } from '../../../engine/object-store/reliable-store.js'
import { LakeSources } from '../../../engine/session/lake-sources.js'
import type { PartDescriptor, TableSchema, TableSnapshot } from '../../../engine/storage/schema/schema.js'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import { committed, newTable } from '../../support/lake/rest-catalog.js'
import { createRandom, type Random } from '../../support/random.js'
import { runs } from '../../support/runs.js'
import { simulatedRetries, simulatedStore } from '../../support/simulator/simulated-store.js'

const partitions = [0, 1, 2]
const records = 120
const source = {
  ...{ connector: 'plant', table: 't' },
  columns: { topic: 'kafka_topic', partition: 'kafka_partition', offset: 'kafka_offset' },
}
const columns: readonly (readonly [string, DataType])[] = [
  ['ts', dataType('TIMESTAMP')],
  ['kafka_topic', dataType('SYMBOL')],
  ['kafka_partition', dataType('LONG')],
  ['kafka_offset', dataType('LONG')],
]
const schema: TableSchema = {
  ...{ id: 7, name: 't', version: 1, timestampId: 0, partitionBy: 'NONE', bypassWal: false, dedupKeys: [], ttl: null },
  ...{ maxUncommittedRows: 0, o3MaxLagMicros: 0, createdMicros: 0, lake: { uuid: 'u' } },
  columns: columns.map(([name, type], id) => ({ id, name, type, dropped: false })),
}
const keyOf = (partition: number): string => streamKey({ connector: 'plant', topic: 'ticks', partition })
/** Some records have no row. */
const hasRow = (offset: number): boolean => offset % 7 !== 3

type Row = readonly [partition: number, offset: number]

/** What all servers share. */
class World {
  readonly random: Random
  readonly driver = simulatedStore()
  readonly store: CatalogTableOptions['store']
  metadata: CatalogMetadata | null = null
  /** Of data files. */
  readonly rows = new Map<string, readonly Row[]>()
  names = 0
  faults = 0

  constructor(seed: number) {
    this.random = createRandom(seed)
    const store = reliableStore(this.driver, simulatedRetries(createRandom(seed)))
    this.store = Object.assign(store, { bucket: () => store })
  }

  readonly catalog: CatalogTableOptions['catalog'] = {
    load: async () => this.metadata,
    create: async (_name, request) => (this.metadata ??= newTable({ ...request })),
    commit: async (_name, requirements, updates) => this.#commit(requirements, updates),
    rename: async () => true,
    describe: (table) => table,
  }

  async #commit(requirements: readonly object[], updates: readonly object[]): Promise<CommitResult> {
    const lost = (): CommitResult => ({ kind: 'unknown', error: new StoreError('unavailable', 'no response') })
    if (this.random.chance(this.faults)) return lost()
    try {
      const before = this.metadata
      if (before === null) throw new Error('no table')
      const json = (all: readonly object[]) => all.map((one) => ({ ...one }))
      this.metadata = committed(before, json(requirements), json(updates))
    } catch (error) {
      return { kind: 'conflict', reason: String(error) }
    }
    return this.random.chance(this.faults) ? lost() : { kind: 'committed', metadata: this.metadata }
  }

  /** Another program adds a snapshot with the same rows and without offsets. */
  foreignSnapshot(): void {
    const before = this.metadata
    const current = before === null ? null : snapshotOf(before)
    if (before === null || current === null) return
    const id = `9${before['last-sequence-number']}`
    const snapshot = {
      ...{ ...current, 'snapshot-id': id, 'parent-snapshot-id': current['snapshot-id'] },
      ...{ 'sequence-number': before['last-sequence-number'] + 1, summary: { operation: 'replace' } },
    }
    const ref = { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': id }
    this.metadata = committed(before, [], [{ action: 'add-snapshot', snapshot }, ref])
  }

  /** Rows of the current snapshot. */
  async table(): Promise<Row[]> {
    const metadata = this.metadata
    const snapshot = metadata === null ? null : snapshotOf(metadata)
    if (snapshot === null) return []
    const { CatalogReader } = await import('../../../engine/lake/catalog-reader.js')
    const { manifests } = await new CatalogReader(this.store, 's3://simulated/').read(snapshot)
    return manifests.flatMap(({ files }) => files.flatMap(({ path }) => this.rows.get(path) ?? []))
  }

  async check(): Promise<void> {
    if (this.metadata === null) return
    const lake = offsetsIn(this.metadata, true)
    const found = await this.table()
    for (const partition of partitions) {
      const offsets = found.filter(([number]) => number === partition).map(([, offset]) => offset)
      const wanted = Array.from({ length: lake.get(keyOf(partition)) ?? 0 }, (_, offset) => offset).filter(hasRow)
      expect(offsets.sort((x, y) => x - y)).toEqual(wanted)
    }
  }
}

interface Part {
  readonly id: number
  rows: Row[]
  path: string | null
}

class Died extends Error {}

/** Its rows and stored offsets survive restart(). */
class Server {
  readonly #world: World
  readonly #rootId: string
  /** By partition: the offset behind the last stored record. */
  readonly #stored = new Map<number, number>()
  #memory: Row[] = []
  #parts: Part[] = []
  #nextPart = 1
  #sources: LakeSources
  #table: CatalogTable | null = null
  /** By partition: what the reader fetches next. */
  readonly reads = new Map<number, number>()
  dies = 0

  constructor(world: World, rootId: string) {
    this.#world = world
    this.#rootId = rootId
    this.#sources = this.#newSources()
  }

  #newSources(): LakeSources {
    const sources = new LakeSources({
      positions: () =>
        [...this.#stored].map(([partition, next]) => ({
          ...{ connector: 'plant', topic: 'ticks', partition, offset: next - 1 },
        })),
      lines: (request) => this.#lines(request),
      execute: (sql, options) => this.#execute(sql, options),
      log: () => {},
    })
    sources.share(source)
    return sources
  }

  restart(): void {
    this.#sources = this.#newSources()
    this.#table = null
    this.reads.clear()
  }

  get rows(): Row[] {
    return [...this.#memory, ...this.#parts.flatMap(({ rows }) => rows)]
  }

  #lines({ sourcePosition }: LineRequest): LineTicket {
    if (sourcePosition === undefined) throw new Error('no position')
    const { partition, offset, previous } = sourcePosition
    const existed = (this.#stored.get(partition) ?? 0) - 1 !== previous
    if (!existed) this.#stored.set(partition, offset + 1)
    const receipt = { requestId: 0, rows: 0, rejects: [], rejected: 0, error: null, lsn: 0, existed }
    return { taken: Promise.resolve(), receipt: Promise.resolve(receipt) }
  }

  async #execute(sql: string, { session }: ExecuteOptions): Promise<StatementResult> {
    if (this.#world.random.chance(this.dies)) throw new Died()
    const snapshot = session.snapshot?.snapshotOf(7)
    const [, partition = -1, from = -1] = (/_partition" = (\d+) and "kafka_offset" >= (\d+)/.exec(sql) ?? []).map(
      Number,
    )
    const isMeant = ([number, offset]: Row): boolean => number === partition && offset >= from
    if (sql.startsWith('delete')) {
      const before = this.rows.length
      this.#memory = this.#memory.filter((row) => !isMeant(row))
      for (const part of this.#parts.filter(({ rows }) => rows.some(isMeant))) {
        expect(part.path).toBe(null)
        part.rows = part.rows.filter((row) => !isMeant(row))
      }
      const rows = before - this.rows.length
      if (this.#world.random.chance(this.dies)) throw new Died()
      return { kind: 'done', tag: 'DELETE', rows, compilerMs: 0 }
    }
    if (sql.startsWith('select count_distinct'))
      return rowsResult([[BigInt(new Set(this.rows.filter(isMeant).map(([, offset]) => offset)).size)]])
    if (sql.startsWith('select count()')) return rowsResult([[BigInt(this.rows.filter(isMeant).length)]])
    const ids = new Set(snapshot?.version.parts.map(({ id }) => id))
    const ends = new Map<number, number>()
    for (const { id, rows } of this.#parts)
      for (const [number, offset] of ids.has(id) ? rows : []) ends.set(number, Math.max(ends.get(number) ?? 0, offset))
    return rowsResult([...ends].map(([number, offset]) => ['ticks', BigInt(number), BigInt(offset)]))
  }

  async #opened(): Promise<CatalogTable> {
    const { store, catalog, random } = this.#world
    this.#table ??= await CatalogTable.open(
      {
        ...{ store, catalog, rootId: this.#rootId, identity: '7-u', schema, nowMs: () => 0 },
        ...{ sleep: async () => {}, onConflict: () => {}, randomId: () => random.below(2 ** 40) + 1 },
        randomName: () => `name-${this.#world.names++}`,
      },
      { version: 0 },
    )
    return this.#table
  }

  async assign(partition: number): Promise<void> {
    const table = await this.#opened()
    await this.#sources.settle(source, table.sources, schema, [keyOf(partition)])
    this.reads.set(partition, this.#stored.get(partition) ?? 0)
  }

  /** Stores a transaction, as one that reads the partition, whether it is still assigned or not. */
  read(partition: number): void {
    const stored = this.#stored.get(partition) ?? 0
    const next = this.reads.get(partition)
    if (next === undefined) return
    const end = Math.min(records, next + 1 + this.#world.random.below(12))
    // The engine rejects what does not follow; the reader goes back then.
    if (stored === next) {
      for (let offset = next; offset < end; offset++) if (hasRow(offset)) this.#memory.push([partition, offset])
      this.#stored.set(partition, end)
    }
    this.reads.set(partition, stored === next ? end : stored)
  }

  async commit(): Promise<void> {
    const stored = this.#sources.stored(source)
    // Rows of transactions that begin after the offsets were taken are in the part, too.
    if (this.#world.random.chance(0.3)) for (const partition of this.reads.keys()) this.read(partition)
    if (this.#memory.length > 0) this.#parts.push({ id: this.#nextPart++, rows: this.#memory, path: null })
    this.#memory = []
    const table = await this.#opened()
    const missing = this.#parts.filter(({ rows, path }) => rows.length > 0 && path === null)
    try {
      const parts = missing.map(({ id }) => ({ id })) as unknown as PartDescriptor[]
      const snapshot = { version: { schema, parts }, visibleRows: [] } as unknown as TableSnapshot
      const advances = await this.#sources.advances(source, table.sources, snapshot, parts, stored)
      const added = await Promise.all(missing.map((part) => this.#file(table, part)))
      await table.commit({ schema, added, removed: new Set(), isCompaction: false, advances })
      for (const [index, part] of missing.entries()) part.path = added[index]?.path ?? null
    } catch (error) {
      if (!(error instanceof OvertakenError)) throw error
      await this.#sources.settle(source, table.sources, schema, error.keys)
    }
  }

  async #file(table: CatalogTable, { rows }: Part): Promise<DataFile> {
    const name = `data/${this.#world.names++}.parquet`
    await this.#world.store.putIfAbsent(table.key(name), bodyOf(new Uint8Array(1)))
    this.#world.rows.set(table.uri(name), [...rows])
    const none = new Map()
    const metrics = { valueCounts: none, nullCounts: none, lowerBounds: none, upperBounds: none }
    return { path: table.uri(name), rows: rows.length, bytes: 1, partition: null, isSorted: true, ...metrics }
  }

  /** Parts whose files are in the table, although the response of the commit was lost. */
  async recover(): Promise<void> {
    this.#table = null
    const table = await this.#opened()
    for (const part of this.#parts) {
      if (part.path !== null || part.rows.length === 0) continue
      const same = [...table.files.keys()].find(
        (path) => JSON.stringify(this.#world.rows.get(path)) === JSON.stringify(part.rows),
      )
      part.path = same ?? null
    }
  }
}

function rowsResult(rows: readonly (readonly Value[])[]): StatementResult {
  const values = (async function* () {
    yield rows
  })()
  return { kind: 'rows', values } as unknown as StatementResult
}

/** One step; a failure is one of the store or of the process, after which the server begins anew. */
async function tryStep(server: Server, step: () => Promise<void>): Promise<void> {
  try {
    await step()
  } catch (error) {
    if (error instanceof Died) server.restart()
    else if (!(error instanceof StoreError)) throw error
    await server.recover()
  }
}

async function runSeed(seed: number): Promise<void> {
  const world = new World(seed)
  const { random } = world
  const servers = ['a', 'b', 'c'].map((rootId) => new Server(world, rootId))
  world.faults = random.chance(0.5) ? 0.1 : 0
  for (const server of servers) server.dies = random.chance(0.5) ? 0.1 : 0
  for (let step = 0; step < 100; step++) {
    const server = random.pick(servers)
    const partition = random.pick(partitions)
    const kind = random.below(10)
    if (kind === 0) server.restart()
    else if (kind < 3) await tryStep(server, () => server.assign(partition))
    else if (kind < 7) server.read(partition)
    else if (kind === 7 && random.chance(0.3)) world.foreignSnapshot()
    else if (kind === 8) await Promise.all(servers.slice(0, 2).map((one) => tryStep(one, () => one.commit())))
    else await tryStep(server, () => server.commit())
    await world.check()
  }
  world.faults = 0
  for (const server of servers) server.dies = 0
  // A server whose rows are discarded reads them again, as others may then have rows of the partition, too.
  for (let round = 0; round < 4; round++) {
    for (const partition of partitions) {
      const server = random.pick(servers)
      await server.assign(partition)
      for (let turn = 0; turn < 2 * records; turn++) server.read(partition)
    }
    for (let turn = 0; turn < 3; turn++) for (const one of servers) await one.commit()
    await world.check()
  }
  const wanted = partitions.length * Array.from({ length: records }, (_, offset) => offset).filter(hasRow).length
  expect((await world.table()).length).toBe(wanted)
  // Each row is in one server alone, too.
  expect(servers.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(wanted)
}

describe('each record is in the table once', () => {
  for (let seed = 1; seed <= runs(200, 12); seed++) test(`seed ${seed}`, () => runSeed(seed))
})

describe('offsets of snapshots', () => {
  const table = newTable({ ...creationOf(schema) })
  const withSnapshot = (next: number | null, parent: string | null): CatalogMetadata => ({
    ...table,
    'current-snapshot-id': '7',
    snapshots: [
      {
        ...{ 'snapshot-id': '7', 'parent-snapshot-id': parent, 'sequence-number': 9, 'timestamp-ms': 0 },
        ...{ 'manifest-list': 's3://simulated/list', summary: { operation: 'append' } },
      },
    ],
    properties: shareProperty('a', { ...noShare, sources: new Map([[keyOf(0), { next }]]) }),
  })

  test('are expected only if rows of sources have been committed', () => {
    const begun = withSnapshot(null, '6')
    expect(offsetsIn(begun, hasSources(begun))).toEqual(new Map())
    const lost = withSnapshot(5, '6')
    expect(() => offsetsIn(lost, hasSources(lost))).toThrow('snapshots that say how far sources are in the table')
    const first = withSnapshot(5, null)
    expect(offsetsIn(first, hasSources(first))).toEqual(new Map())
  })

  test('follow one connector alone', () => {
    const renamed = streamKey({ connector: 'plant2', topic: 'ticks', partition: 0 })
    const own = new Map([[renamed, { next: null }]])
    const state: TableSources = { lake: new Map([[keyOf(0), 5]]), own }
    expect(() => advancedSources(state, [{ key: renamed, next: 9 }], 't')).toThrow(
      'a connector of another name [table=t, source=plant2 ticks-0, other=plant]',
    )
    expect(advancedSources({ lake: new Map(), own }, [{ key: renamed, next: 9 }], 't').lake.get(renamed)).toBe(9)
  })
})

describe('rows of a connector', () => {
  /** A server that has stored the records before 20, `visible` of them with their offset, and other rows without. */
  async function settled(changed: TableSchema, visible: number, others: number): Promise<string[]> {
    const statements: string[] = []
    let stored = 20
    const sources = new LakeSources({
      positions: () => [{ connector: 'plant', topic: 'ticks', partition: 0, offset: stored - 1 }],
      lines: ({ sourcePosition }) => {
        stored = (sourcePosition?.offset ?? 0) + 1
        const receipt = { requestId: 0, rows: 0, rejects: [], rejected: 0, error: null, lsn: 0, existed: false }
        return { taken: Promise.resolve(), receipt: Promise.resolve(receipt) }
      },
      execute: async (sql) => {
        statements.push(sql)
        if (sql.startsWith('delete')) return { kind: 'done', tag: 'DELETE', rows: visible, compilerMs: 0 }
        return rowsResult([[BigInt(sql.includes('count_distinct') ? visible : others)]])
      },
      log: () => {},
    })
    sources.share(source)
    const own = new Map<string, { next: number | null; discard?: number }>([[keyOf(0), { next: 10 }]])
    const state: TableSources = { lake: new Map([[keyOf(0), 15]]), own }
    const claim = async (decide: (sources: TableSources) => ReadonlyMap<string, { next: number | null }>) => {
      for (const [key, begin] of decide(state)) own.set(key, begin)
    }
    await sources.settle(source, { state, claim }, changed, [keyOf(0)])
    return statements
  }

  test('are discarded only if the table says of which records they are', async () => {
    expect((await settled(schema, 10, 3)).at(-1)).toContain('delete from')
    expect((await settled(schema, 4, 0)).at(-1)).toContain('delete from')
    await expect(settled(schema, 4, 3)).rejects.toThrow('have no value of kafka_offset [table=t, source=plant ticks-0]')
    const renamed = schema.columns.map((column) => (column.name === 'kafka_offset' ? { ...column, name: 'o' } : column))
    await expect(settled({ ...schema, columns: renamed }, 10, 3)).rejects.toThrow('have no value of kafka_offset')
    // Records without rows make no columns.
    expect(await settled({ ...schema, columns: renamed }, 10, 0)).toHaveLength(1)
  })

  test('are stored only in the table in which it began', () => {
    const sources = new LakeSources({
      ...{ positions: () => [], log: () => {} },
      lines: () => {
        throw new Error('nothing is stored')
      },
      execute: () => Promise.reject(new Error('nothing is asked')),
    })
    sources.share(source)
    expect(sources.ofTable('T')).toBe(source)
    const place = { topic: 'ticks', partition: 0 }
    const isOther = 'the table is not the one in which the connector began'
    expect(sources.refusal('plant', place, schema)).toContain(isOther)
    sources.began(source, schema)
    expect(sources.refusal('plant', place, schema)).toBe(null)
    expect(sources.refusal('plant', place, undefined)).toContain(isOther)
    expect(sources.refusal('plant', place, { ...schema, id: 8 })).toContain(isOther)
    expect(sources.refusal('plant', place, { ...schema, lake: { uuid: 'v' } })).toContain(isOther)
  })
})
