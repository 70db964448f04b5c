// Goal: after a crash at any file operation, a materialized or live view has the rows of its query over the base table. A
// time bucket that has lost rows to DROP PARTITION is sealed: its stored rows are neither lost nor changed, but late rows
// are added to them, each one once, if the view's aggregates combine. The rows of a live view whose frames had such rows
// stay as they were. A query of the table has the same rows with and without stored buckets. Method: deterministic
// simulation. The whole engine runs on one thread, on a simulated disk that loses what was not synced. Random changes of
// the table and refreshes run until a file operation crashes; the recovery from a crash may crash, too.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/crash.test.ts            replays one seed
//   VIEW_SEEDS=200 VIEW_LIVES=20 npx vitest ...                           a long run

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Value } from '../../../engine/types/value.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createRandom, type Random } from '../../support/random.js'
import { type FaultPlan, planFaults } from '../../support/simulator/faults.js'
import { createFaultyDisk, type FaultyDisk, SimulatedCrash } from '../../support/simulator/faulty-files.js'
import { executeOptions } from '../../support/test-engine.js'
import { randomChanges } from './random-changes.js'

const only = process.env['VIEW_SEED']
const seeds = only === undefined ? Number(process.env['VIEW_SEEDS'] ?? 2) : 1
const first = Number(only ?? 1)
const lives = Number(process.env['VIEW_LIVES'] ?? 3)
const statementsMax = 15
const noFaults = { crashWithin: 0, failing: 0 }

const queries = [
  'select ts, sym, sum(n) sn, count() cnt, avg(n) mean, min(d) lo, max(d) hi, first(d) o, last(d) c, avg(d) md from base sample by 1h',
  "select ts, max(n) mx, count_distinct(s) cd from base where n > 100 sample by 1d align to calendar time zone 'Europe/Berlin'",
  'select ts, sym, sum(sn) sn, max(hi) hi from v0 sample by 6h',
  // Late rows are merged into its buckets.
  'select ts, sym, first(d) o, last(n) l, sum(n) sn, count() cnt, avg(d) md from base where n < 900 sample by 2h',
]

/** Each seed has one of them. */
const liveQueries = [
  'select ts, sym, cnt, sum(cnt) over (partition by sym order by ts rows 2 preceding) t from v0',
  'select ts, sym, n, lag(n) over (partition by sym order by ts) p, sum(n) over (partition by sym order by ts rows 3 preceding) t from base',
  "select ts, sym, max(n) over (partition by sym order by ts range 3 hour preceding) x, row_number() over w r, sum(n) over w t from base where n > 100 window w as (partition by sym order by ts anchor daily '09:30' 'Europe/Berlin')",
]

interface View {
  readonly name: string
  readonly isLive: boolean
  readonly query: string
  /** As materialized_views() or live_views() has it, and the view's rows in these buckets. */
  sealed: string
  frozen: readonly string[]
  /** The rows of the table in sealed buckets, in the order of their commits, if late rows are added to these. */
  kept: readonly BaseRow[] | null
}

interface BaseRow {
  readonly ts: bigint
  readonly sym: Value
  readonly d: number
  readonly n: number
}

/** The views whose sealed buckets get late rows. */
const adding: ReadonlySet<number> = new Set([0, 3])

interface Simulation {
  readonly disk: FaultyDisk
  readonly random: Random
  readonly views: readonly View[]
  host: InlineEngine
  plan: FaultPlan
}

// The refresher's timer is real time: refreshes run by statements only.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval'] }))
afterEach(() => void vi.useRealTimers())

for (let seed = first; seed < first + seeds; seed++) {
  test(`views are their queries after crashes [seed=${seed}]`, () => simulate(seed), 600_000)
}

async function simulate(seed: number): Promise<void> {
  const random = createRandom(seed + 4500)
  const disk = createFaultyDisk(seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const liveQuery = liveQueries[seed % liveQueries.length] ?? ''
  const views = [...queries, liveQuery].map((query, index): View => {
    const isLive = index >= queries.length
    return { name: `v${index}`, isLive, query, sealed: '', frozen: [], kept: adding.has(index) ? [] : null }
  })
  const simulation: Simulation = { disk, random, views, host: engineOn(disk), plan: planFaults(disk, random, noFaults) }
  const unit = random.pick(['hour', 'day', 'month'])
  await run(
    simulation,
    `create table base (ts timestamp, sym symbol, d double, n long, s varchar) timestamp(ts) partition by ${unit}`,
  )
  for (const { name, isLive, query } of views) {
    const options = isLive ? 'flush every 60m start from beginning' : 'refresh manual deferred'
    await run(simulation, `create ${kindOf(isLive)} view ${name} ${options} as (${query})`)
  }
  const changes = randomChanges(random)
  let crashes = 0
  for (let life = 0; life < lives; life++) {
    simulation.plan = planFaults(disk, random, { crashWithin: random.pick([30, 150, 600]), failing: 0 })
    const done: string[] = []
    while (!hasCrashed(simulation) && done.length < statementsMax)
      for (const made of changes.change('base', views)) {
        const change = ofKind(simulation, made)
        const isDrop = change.includes('drop partition')
        await settled(simulation)
        const before = isDrop ? await expectedRows(simulation) : null
        const rows = isDrop ? await baseRows(simulation) : []
        const count = await rowCount(simulation)
        if (hasCrashed(simulation)) break
        done.push(change)
        await run(simulation, change)
        if (hasCrashed(simulation)) {
          await restart(simulation)
          crashes++
        }
        if (change.startsWith('insert into') && (await rowCount(simulation)) > count) await keepLate(simulation, change)
        await noteSealed(simulation, before, rows)
        await expectSame(simulation, `seed ${seed}, life ${life}, after ${done.slice(-3).join('; ')}`)
      }
    if (hasCrashed(simulation)) await restart(simulation)
    await expectSame(simulation, `seed ${seed}, life ${life}, at its end`)
  }
  expect(crashes).toBeGreaterThan(0)
}

function kindOf(isLive: boolean): 'live' | 'materialized' {
  return isLive ? 'live' : 'materialized'
}

/** REFRESH of a live view has another form. */
function ofKind({ views, random }: Simulation, change: string): string {
  const [, name] = /^refresh materialized view (\S+)/.exec(change) ?? []
  const isLive = views.find((view) => view.name === name)?.isLive === true
  return isLive ? `refresh live view ${name} ${random.pick(['', '', 'full'])}` : change
}

function engineOn({ files }: FaultyDisk): InlineEngine {
  return new InlineEngine({ files, settings: { compactionPartsMin: 2 } })
}

function hasCrashed({ plan }: Simulation): boolean {
  return plan.crashedAt !== undefined
}

/** Half of the starts crash once, too. */
async function restart(simulation: Simulation): Promise<void> {
  const { disk, random } = simulation
  for (let attempt = 0; ; attempt++) {
    if (random.chance(0.5)) disk.crash(random.below(0xffff_ffff))
    else disk.kill()
    simulation.plan = planFaults(
      disk,
      random,
      attempt === 0 ? { ...noFaults, crashWithin: random.pick([0, 40]) } : noFaults,
    )
    try {
      simulation.host = engineOn(disk)
      await simulation.host.settle()
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    if (!hasCrashed(simulation)) break
  }
  // What follows is to be compared, without a crash in between.
  simulation.plan = planFaults(disk, random, noFaults)
  // Of two statements that drop the column and add it again, or change a type and change it back.
  await run(simulation, 'alter table base add column s varchar')
  await run(simulation, 'alter table base alter column n type long')
}

/** The query of a view has a column that was dropped. */
const unknownColumn = 'unknown column'

/** The rows of the statement; none if it fails, or if the disk crashes. */
async function run(simulation: Simulation, sql: string): Promise<readonly (readonly Value[])[]> {
  const { host } = simulation
  let isDone = false
  const rows: (readonly Value[])[] = []
  const work = async (): Promise<void> => {
    const result = await host.engine.execute(sql, executeOptions)
    if (result.kind === 'rows') for await (const some of result.values) rows.push(...some)
  }
  const ended = work().finally(() => {
    isDone = true
  })
  ended.catch(() => {})
  for (let turn = 1; !isDone && !hasCrashed(simulation); turn++) {
    try {
      host.turn()
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
      return []
    }
    for (let tick = 0; tick < 4; tick++) await Promise.resolve()
    if (turn % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
    if (turn > 1_000_000) throw new Error(`nothing came of ${sql} [log=${host.logged.join('; ')}]`)
  }
  if (hasCrashed(simulation)) return []
  await ended.catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    expect(message, sql).toMatch(/partition|detach|attach|deduplicat|Invalid column|expected, found|already/i)
    if (message.startsWith('Invalid column')) rows.push([unknownColumn])
  })
  return rows
}

async function sortedRows(simulation: Simulation, sql: string): Promise<readonly string[]> {
  const rows = await run(simulation, sql)
  return rows
    .map((row) =>
      JSON.stringify(row, (_, value) => (typeof value === 'bigint' || typeof value === 'number' ? `${value}` : value)),
    )
    .sort()
}

/** The rows of each view: those of sealed buckets as they were, the others as the query has them. */
async function expectedRows(simulation: Simulation): Promise<readonly (readonly string[])[]> {
  const all: (readonly string[])[] = []
  for (const { query, sealed, frozen, kept } of simulation.views) {
    const ranges = rangesOf(sealed)
    const rows = await sortedRows(simulation, query)
    const isUnknown = rows[0]?.includes(unknownColumn) === true
    const old = kept === null ? frozen : bucketsOf(kept, query === queries[0])
    all.push(isUnknown ? rows : [...old, ...rows.filter((row) => !isWithin(row, ranges))].sort())
  }
  return all
}

/** Lets jobs end: a compaction of a table whose DEDUP is new removes repeated rows, between the reads of a comparison. */
async function settled(simulation: Simulation): Promise<void> {
  const { host } = simulation
  for (let idle = 0, count = 0; idle < 5 && count < 2000 && !hasCrashed(simulation); count++) {
    try {
      idle = host.turn() ? 0 : idle + 1
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
      return
    }
    await Promise.resolve()
  }
}

async function expectSame(simulation: Simulation, message: string): Promise<void> {
  await settled(simulation)
  const expected = await expectedRows(simulation)
  for (const [index, { name }] of simulation.views.entries()) {
    const found = await sortedRows(simulation, `select * from ${name}`)
    if (hasCrashed(simulation)) return
    expect(found, `${name}: ${message}`).toEqual(expected[index])
  }
  const daily = 'select ts, sym, sum(n) sn, count() cnt, avg(d) md, max(d) hi'
  const combined = await sortedRows(simulation, `${daily} from base sample by 1d`)
  // No view has the last aggregate, so that no stored bucket is read.
  const plain = `select ts, sym, sn, cnt, md, hi from (${daily}, count_distinct(n) other from base sample by 1d)`
  const computed = await sortedRows(simulation, plain)
  if (hasCrashed(simulation)) return
  expect(combined, `days: ${message}`).toEqual(computed)
}

/** Takes note of newly sealed buckets; `before` has the rows before the statement, if it drops partitions. */
async function noteSealed(
  simulation: Simulation,
  before: readonly (readonly string[])[] | null,
  rows: readonly BaseRow[],
): Promise<void> {
  const listed = await run(
    simulation,
    'select view_name, sealed_buckets from materialized_views() union all select view_name, frozen_ranges from live_views()',
  )
  if (hasCrashed(simulation)) return
  for (const [index, view] of simulation.views.entries()) {
    const [, text = null] = listed.find(([name]) => name === view.name) ?? []
    const sealed = text === null ? '' : String(text)
    if (sealed === view.sealed) continue
    const ranges = rangesOf(sealed)
    if (sealed === '') view.frozen = []
    else view.frozen = (before?.[index] ?? view.frozen).filter((row) => isWithin(row, ranges))
    if (view.kept !== null) {
      const known = rangesOf(view.sealed)
      const added = rows.filter(({ ts }) => isIn(ts, ranges) && !isIn(ts, known))
      view.kept = sealed === '' ? [] : [...view.kept, ...added]
    }
    view.sealed = sealed
  }
}

type Ranges = readonly (readonly [lo: bigint, hi: bigint])[]

/** `2024-01-01T00:00:00.000000Z..2024-01-07T23:59:59.999999Z, ..` in microseconds. */
function rangesOf(sealed: string): Ranges {
  if (sealed === '') return []
  const micros = (text: string): bigint => {
    const seconds = BigInt(Date.parse(`${text.slice(0, 19)}Z`)) * 1000n
    return seconds + BigInt(text.slice(20, 26))
  }
  return sealed.split(', ').map((range) => {
    const [lo = '', hi = ''] = range.split('..')
    return [lo === '' ? -(2n ** 62n) : micros(lo), micros(hi)] as const
  })
}

function isWithin(row: string, ranges: Ranges): boolean {
  return isIn(BigInt(/^\["(-?\d+)"/.exec(row)?.[1] ?? 0), ranges)
}

function isIn(ts: bigint, ranges: Ranges): boolean {
  return ranges.some(([lo, hi]) => lo <= ts && ts <= hi)
}

// The view whose sealed buckets get late rows ---------------------------------------------------------------------------

/** The table's rows, in the order of time and of commits. */
async function baseRows(simulation: Simulation): Promise<BaseRow[]> {
  const rows = await run(simulation, 'select ts, sym, d, n from base')
  return rows.map(([ts, sym = null, d, n]) => ({ ts: BigInt(String(ts)), sym, d: Number(d), n: Number(n) }))
}

async function rowCount(simulation: Simulation): Promise<number> {
  return Number((await run(simulation, 'select count() from base'))[0]?.[0] ?? 0)
}

/** Takes note of inserted rows in sealed buckets, unless the table has DEDUP keys. */
async function keepLate(simulation: Simulation, insert: string): Promise<void> {
  const [[dedup] = []] = await run(simulation, "select dedup from tables() where table_name = 'base'")
  if (dedup === true) return
  const row = /\('(.*?)', (null|'\w+'), ([\d.]+), (\d+), '\w'\)/g
  for (const view of simulation.views) {
    if (view.kept === null) continue
    const rows = [...insert.matchAll(row)].map(([, ts = '', sym = '', d, n]): BaseRow => {
      return {
        ts: BigInt(Date.parse(ts)) * 1000n,
        sym: sym === 'null' ? null : sym.slice(1, -1),
        d: Number(d),
        n: Number(n),
      }
    })
    view.kept = [...view.kept, ...rows.filter(({ ts }) => isIn(ts, rangesOf(view.sealed)))]
  }
}

const hourMicros = 3_600_000_000n

/** The first or the last of the queries over the rows. */
function bucketsOf(rows: readonly BaseRow[], isFirst: boolean): string[] {
  const micros = isFirst ? hourMicros : hourMicros * 2n
  const groups = new Map<string, BaseRow[]>()
  for (const row of rows.filter(({ n }) => isFirst || n < 900)) {
    const key = `${row.ts / micros}/${String(row.sym)}`
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  return [...groups.values()].map((group) => {
    const sorted = [...group].sort((x, y) => (x.ts < y.ts ? -1 : x.ts > y.ts ? 1 : 0))
    const [first, last] = [sorted[0], sorted.at(-1)]
    const total = group.reduce((sum, { n }) => sum + n, 0)
    const mean = group.reduce((sum, { d }) => sum + d, 0) / group.length
    const all = group.map(({ d }) => d)
    const key = [((first?.ts ?? 0n) / micros) * micros, first?.sym ?? null]
    const values = isFirst
      ? [total, group.length, total / group.length, Math.min(...all), Math.max(...all), first?.d, last?.d, mean]
      : [first?.d, last?.n, total, group.length, mean]
    const text = (value: unknown): unknown =>
      typeof value === 'bigint' || typeof value === 'number' ? `${value}` : value
    return JSON.stringify([...key, ...values].map(text))
  })
}
