// Runs one seed of the simulation of storage policies and lake commits: the whole engine with a simulated disk, a
// simulated object store, and half of the seeds with an external Iceberg catalog. Requests to these fail, are delayed,
// or are applied twice or after the client has given them up, and the services become unavailable; other programs
// commit to the tables of the catalog; the machine stops at any file operation or request. A model checks:
//
//   rows       a query returns the rows of all acknowledged statements, apart from partitions that DROP REMOTE drops, or
//              fails because the store is unavailable
//   snapshots  all that the newest metadata of an Iceberg table refers to is in the store, and the rows of the current
//              snapshot are those that the table had at some time
//   parts      the object of an uploaded part (Parquet file of a table) exists, and a part without a local file has its
//              sidecar, a small local file that describes it
//   in the end when the services work again, the lake has all rows, old parts are uploaded or dropped, and outside of
//              the lake no object is left that nothing refers to
//
// Timers are those of vitest's fake clock, which the simulation moves.

import { vi } from 'vitest'
import { identityOf } from '../../engine/lake/open-lake-table.js'
import type { TableMetadata } from '../../engine/lake/table-metadata.js'
import { dueParts } from '../../engine/session/uploader.js'
import { isOlder, lifeOf } from '../../engine/storage/schema/age.js'
import { isRemoteOnly, sidecarFileOf, type TableVersion } from '../../engine/storage/schema/schema.js'
import { InlineEngine } from '../support/inline-engine.js'
import { createRandom, type Random } from '../support/random.js'
import { type FaultPlan, planFaults } from '../support/simulator/faults.js'
import { createFaultyDisk, type FaultyDisk, SimulatedCrash } from '../support/simulator/faulty-files.js'
import { type SimulatedCatalog, simulatedCatalog } from '../support/simulator/simulated-catalog.js'
import { type SimulatedStore, simulatedStore } from '../support/simulator/simulated-store.js'
import { CurrentFaults, StoreLife, simulatedClient } from '../support/simulator/store.js'
import { checkState, type LakeState, ownState, rowsOfState, sharedState } from './store-sim-lake.js'
import {
  isFound,
  nextStatement,
  noteRows,
  type StoreModel,
  type StoreRows,
  type StoreTable,
  storeTables,
  textOf,
  wasHeld,
} from './store-sim-model.js'

const rootId = 'sim'
const url = 's3://simulated'
const startMicros = 1_700_000_000_000_000
const graceMs = 20_000
const operationsPerSeed = 40

export interface StoreSimStats {
  operations: number
  lives: number
  crashes: number
  storeCrashes: number
  failedQueries: number
  snapshots: number
  remoteParts: number
  removed: number
  /** Queries that lacked rows which DROP REMOTE had dropped. */
  dropped: number
  /** Of the external catalog. */
  sharedSnapshots: number
  foreignCommits: number
}

export function newStoreSimStats(): StoreSimStats {
  return {
    ...{ operations: 0, lives: 0, crashes: 0, storeCrashes: 0, failedQueries: 0 },
    ...{ snapshots: 0, remoteParts: 0, removed: 0, dropped: 0, sharedSnapshots: 0, foreignCommits: 0 },
  }
}

export interface StoreSimOptions {
  readonly seed: number
  readonly stats: StoreSimStats
  readonly trace?: (text: string) => void
}

interface Sim {
  readonly options: StoreSimOptions
  readonly random: Random
  readonly disk: FaultyDisk
  readonly driver: SimulatedStore
  /** Null: the server is the catalog. */
  readonly catalog: SimulatedCatalog | null
  readonly faults: CurrentFaults
  readonly model: StoreModel
  readonly trace: (text: string) => void
  /** Time of former lives. */
  ms: number
  operations: number
}

interface Life {
  readonly engine: InlineEngine
  readonly store: StoreLife
  readonly plan: FaultPlan
}

/** Runs one seed; rejects with an Error that says what is wrong. */
export async function simulateStore(options: StoreSimOptions): Promise<void> {
  const random = createRandom(options.seed)
  const disk = createFaultyDisk(options.seed)
  for (const path of ['/db', '/tmp', '/root']) disk.files.makeDirectory(path)
  disk.files.syncDirectory('/')
  const faults = new CurrentFaults(new StoreLife(random.fork()))
  const sim: Sim = {
    ...{
      options,
      random,
      disk,
      faults,
      driver: simulatedStore(faults),
      catalog: random.chance(0.5) ? simulatedCatalog(faults) : null,
      model: { tables: storeTables(random), lastX: 0 },
    },
    ...{ trace: options.trace ?? (() => {}), ms: 0, operations: 0 },
  }
  while (sim.operations < operationsPerSeed) await live(sim)
  await finish(sim)
  options.stats.operations += sim.operations
  options.stats.foreignCommits += sim.catalog?.foreignCommits() ?? 0
}

// ---- lives

async function live(sim: Sim): Promise<void> {
  const { random, options } = sim
  const isFirst = sim.operations === 0
  const life = start(sim, isFirst ? 0 : random.pick([150, 600, 3000, 3000]))
  options.stats.lives++
  if (life === null) return
  const { store } = life
  store.crashAt = random.chance(0.5) ? random.between(1, 120) : 0
  store.chance = random.pick([0, 0.02, 0.1, 0.3])
  store.delays = random.pick([0, 0.05, 0.3])
  try {
    await checkRows(sim, life)
    for (let left = random.between(5, 25); left > 0; left--) await act(sim, life)
    await checkAll(sim, life)
    if (random.chance(0.3)) await life.engine.close()
  } catch (error) {
    if (!isStop(life, error)) throw error
    options.stats.crashes++
    if (!life.plan.struck) options.stats.storeCrashes++
  }
  await end(sim, life)
}

/** The machine has stopped: also when somebody has caught the exception. */
function isStop({ plan, store }: Life, error: unknown): boolean {
  return error instanceof SimulatedCrash || plan.struck || store.struck
}

/** Null: the machine stopped during the start. */
function start(sim: Sim, crashWithin: number): Life | null {
  const { disk, driver, random, faults, trace } = sim
  const store = new StoreLife(random.fork())
  faults.life = store
  const plan = planFaults(disk, random, { crashWithin, failing: 0 })
  let engine: InlineEngine | null = null
  const files = store.filesOf(disk.files)
  const client = simulatedClient(driver, { life: store, files, blocks: '/tmp/parts', nowMs: () => engine?.ms ?? 0 })
  const ignored = (): void => {}
  try {
    engine = new InlineEngine({
      ...{ files: disk.files, storeFiles: files, startMicros: startMicros + sim.ms * 1000, walBytesMax: 1024 * 1024 },
      settings: { flushRows: random.pick([20, 100]), flushAgeMs: random.pick([3000, 600_000]) },
      turning: () => {
        vi.advanceTimersByTime(1)
        if (plan.struck || store.struck) throw new SimulatedCrash()
      },
      objectStore: {
        ...{ store: client, ready: () => true, rootId, blocks: '/tmp/parts', report: ignored },
        lake: { directory: '/tmp/lake', lagMs: () => 1000, catalog: sim.catalog?.options ?? null, report: ignored },
        sweep: {
          ...{ graceMs: () => graceMs, directory: '/root', fingerprint: 'root' },
          report: ({ removed }) => {
            if (removed > 0) sim.options.stats.removed++
          },
        },
      },
    })
    return { engine, store, plan }
  } catch (error) {
    if (!(error instanceof SimulatedCrash)) throw error
    trace('the machine stopped during the start')
    fall(sim, store, plan)
    return null
  }
}

async function end(sim: Sim, { engine, store, plan }: Life): Promise<void> {
  sim.ms += engine.ms
  fall(sim, store, plan)
  // What the life has begun sees that it has ended.
  for (let tick = 0; tick < 10; tick++) await others()
  checkSnapshots(sim, engine)
  engine.view.close()
}

/** Power loss, or the end of the process alone. */
function fall({ random, disk, trace }: Sim, store: StoreLife, { crashedAt }: FaultPlan): void {
  store.ended = true
  vi.clearAllTimers()
  const isPower = random.chance(0.7)
  if (isPower) disk.crash(random.below(0xffff_ffff))
  else disk.kill()
  trace(`${isPower ? 'power lost' : 'process ended'} ${crashedAt === undefined ? '' : JSON.stringify(crashedAt)}`)
}

// ---- operations

async function act(sim: Sim, life: Life): Promise<void> {
  const { random, trace, driver, catalog } = sim
  const { engine } = life
  sim.operations++
  const choice = random.next()
  if (choice < 0.08) {
    driver.isAway = random.chance(0.4)
    if (catalog !== null) catalog.isAway = random.chance(0.2)
    trace(`the store is ${driver.isAway ? 'away' : 'back'}, the catalog ${catalog?.isAway === true ? 'away' : 'back'}`)
  } else if (choice < 0.2) await checkRows(sim, life)
  else if (choice < 0.45) await pass(life, random.pick(catalog === null ? [300, 1500, 6000] : [1500, 6000, 12_000]))
  else if (choice < 0.5) await checkAll(sim, life)
  else await run(sim, life)
  for (let turns = random.below(random.pick([3, 30])); turns > 0; turns--) {
    engine.turn()
    await others()
  }
  sim.driver.requests.length = 0
}

async function run(sim: Sim, { engine, store, plan }: Life): Promise<void> {
  const { model, random, trace } = sim
  const { table, sql, after } = nextStatement(model, random)
  trace(sql.slice(0, 120))
  // A statement that the crash interrupts is done or not: the next life finds out.
  table.pending = after
  noteRows(table, after)
  try {
    await engine.run(sql)
    table.rows = after
    table.isCreated = true
  } catch (error) {
    if (error instanceof SimulatedCrash || plan.struck || store.struck) throw error
    trace(`    ${error instanceof Error ? error.message : error}`)
    if (!/object storage|partition/.test(String(error))) throw error
  }
  table.pending = null
}

/** Time passes, with the work that its timers begin. */
async function pass({ engine }: Life, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    engine.ms += 50
    vi.advanceTimersByTime(50)
    for (let idle = 0, turns = 0; idle < 3 && turns < 40; turns++) {
      idle = engine.turn() ? 0 : idle + 1
      await others()
    }
  }
}

/** What waits for promises and for modules goes on. */
function others(): Promise<void> {
  return new Promise((later) => setImmediate(later))
}

// ---- checks

/** A query has all rows, or fails because the store is away. */
async function checkRows(sim: Sim, { engine, plan, store }: Life): Promise<void> {
  for (const table of sim.model.tables) {
    const version = engine.view.table(table.name)
    if (version === undefined) {
      if (table.isCreated) throw new Error(`a table is gone [table=${table.name}]`)
      table.pending = null
      continue
    }
    table.isCreated = true
    const found = await queried(engine, table).catch((error: unknown) => {
      if (error instanceof SimulatedCrash || plan.struck || store.struck) throw error
      if (/object storage/.test(String(error))) return null
      throw error
    })
    if (found === null) {
      sim.options.stats.failedQueries++
      continue
    }
    if (table.pending !== null && isFound(table, table.pending, found)) table.rows = table.pending
    else if (!isFound(table, table.rows, found))
      throw new Error(`other rows [table=${table.name}, found=${textOf(found)}, expected=${textOf(table.rows)}]`)
    if ([...table.rows.keys()].some((x) => !found.has(x))) sim.options.stats.dropped++
    table.pending = null
  }
}

async function queried(engine: InlineEngine, { name }: Pick<StoreTable, 'name'>): Promise<StoreRows> {
  const rows = await engine.rows(`select x, v from ${name}`)
  return new Map(rows.map(([x, v]) => [Number(x), String(v)]))
}

async function checkAll(sim: Sim, life: Life): Promise<void> {
  checkParts(sim, life.engine)
  checkSnapshots(sim, life.engine)
  for (const { schema } of lakeTables(life.engine)) await checkLakeRows(sim, life.engine, schema.name)
}

function checkParts({ driver, disk, options }: Sim, { view }: InlineEngine): void {
  for (const { schema, parts } of view.tables()) {
    for (const part of [...parts, ...(schema.detached ?? [])]) {
      const { remote } = part
      if (remote === undefined) continue
      if (driver.objects.get(remote.key)?.checksum !== remote.checksum)
        throw new Error(`the object of an uploaded part is not there [table=${schema.name}, key=${remote.key}]`)
      if (!isRemoteOnly(part)) continue
      options.stats.remoteParts++
      disk.peek(`/db/${sidecarFileOf(part)}`)
    }
  }
}

function lakeTables({ view }: InlineEngine): TableVersion[] {
  return view.tables().filter(({ schema }) => schema.lake != null)
}

function contentOf({ driver }: Sim, uri: string): Buffer {
  const found = driver.objects.get(uri.slice(url.length + 1))
  if (found === undefined) throw new Error(`an object is named and not there [uri=${uri}]`)
  return Buffer.from(found.content)
}

/** The newest metadata below a prefix, or null. */
function newestMetadata(sim: Sim, prefix: string): TableMetadata | null {
  let newest = 0
  for (const key of sim.driver.objects.keys()) {
    const [, version] = /\/metadata\/v(\d+)\.metadata\.json$/.exec(key.startsWith(prefix) ? key : '') ?? []
    newest = Math.max(newest, Number(version ?? 0))
  }
  if (newest === 0) return null
  const metadata: TableMetadata = JSON.parse(
    contentOf(sim, `${url}/${prefix}/metadata/v${newest}.metadata.json`).toString(),
  )
  return metadata
}

/** The Iceberg tables of tables that are in the lake, and all of the external catalog. */
function lakeStates(sim: Sim, engine: InlineEngine): LakeState[] {
  const { catalog } = sim
  if (catalog !== null)
    return [...catalog.tables].map(([name, metadata]) => sharedState(name.replace('qdb.', ''), metadata))
  return lakeTables(engine).flatMap((version) => {
    const metadata = newestMetadata(sim, `${rootId}/lake/${identityOf(version)}`)
    return metadata === null ? [] : [ownState(version.schema.name, metadata)]
  })
}

function checkSnapshots(sim: Sim, engine: InlineEngine): void {
  const { stats } = sim.options
  for (const state of lakeStates(sim, engine)) {
    checkState(state, (uri) => contentOf(sim, uri))
    stats.snapshots += state.lists.length
    if (sim.catalog !== null) stats.sharedSnapshots += state.lists.length
  }
}

/** The rows of the current snapshot are those that the table had at some time. Null: there is no snapshot. */
async function checkLakeRows(sim: Sim, engine: InlineEngine, name: string): Promise<StoreRows | null> {
  const state = lakeStates(sim, engine).find((one) => one.name === name)
  const rows = state === undefined ? null : await rowsOfState(state, (uri) => contentOf(sim, uri))
  const table = sim.model.tables.find((one) => one.name === name)
  if (rows !== null && table !== undefined && !wasHeld(table, rows))
    throw new Error(`the lake has rows that the table never had [table=${name}, rows=${textOf(rows)}]`)
  return rows
}

/** The store works: all is uploaded and committed, and what nothing names is removed. */
async function finish(sim: Sim): Promise<void> {
  sim.driver.isAway = false
  if (sim.catalog !== null) sim.catalog.isAway = false
  const life = start(sim, 0)
  if (life === null) throw new Error('the last start failed')
  await checkRows(sim, life)
  for (let round = 0; (await openWork(sim, life)) !== null; round++) {
    if (round > 60)
      throw new Error(`work is left [${await openWork(sim, life)}, log=${life.engine.logged.slice(-3).join('; ')}]`)
    await pass(life, 2000)
  }
  await pass(life, 3 * graceMs)
  await checkAll(sim, life)
  await checkRows(sim, life)
  checkNamed(sim, life)
  await life.engine.close()
  await end(sim, life)
}

function hasExpired({ schema, parts }: TableVersion, nowMicros: bigint): boolean {
  const age = lifeOf(schema)
  let newest = 0n
  for (const { maxTs } of parts) if (maxTs > newest) newest = maxTs
  return age !== null && parts.some(({ maxTs }) => isOlder(schema, newest, nowMicros, age)(maxTs))
}

async function openWork(sim: Sim, { engine }: Life): Promise<string | null> {
  const nowMicros = BigInt(startMicros + (sim.ms + engine.ms) * 1000)
  for (const version of engine.view.tables()) {
    const { name } = version.schema
    if (dueParts(version, nowMicros).length > 0) return `upload of ${name}`
    if (hasExpired(version, nowMicros)) return `drop of old partitions of ${name}`
    if (version.schema.lake == null) continue
    const rows = await checkLakeRows(sim, engine, name)
    if (textOf(rows ?? new Map()) !== textOf(await queried(engine, { name }))) return `commit of ${name}`
  }
  return null
}

function checkNamed(sim: Sim, { engine }: Life): void {
  const named = new Set([`${rootId}/owner`])
  const tables = engine.view.tables()
  for (const { remote } of tables.flatMap(({ parts }) => parts)) if (remote !== undefined) named.add(remote.key)
  const prefixes = [
    ...lakeTables(engine).map((version) => `${rootId}/lake/${identityOf(version)}/`),
    // Of tables that are not in the lake any more, the catalog may still name them.
    ...(sim.catalog === null ? [] : [`iceberg/${rootId}/`]),
  ]
  for (const key of sim.driver.objects.keys()) {
    if (named.has(key) || prefixes.some((prefix) => key.startsWith(prefix))) continue
    throw new Error(`an object that nothing names is left [key=${key}]`)
  }
}
