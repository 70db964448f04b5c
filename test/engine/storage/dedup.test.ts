// Goal: queries of a table with DEDUP, in which a row replaces the one with equal keys, see one row per key, that of
// the last transaction (DEDUP SKIP: the first one), wherever the versions of the row are stored: in one memtable, in
// several, in overlapping Parquet files, compacted or not, after a restart. Rows with equal keys that were stored before
// DEDUP was declared all stay, until a later row supersedes them. Method: random inserts, deletions, changes of DEDUP,
// flushes, compactions and restarts of the whole engine, compared with a Map by every form of query.

import { describe, expect, test } from 'vitest'
import { formats } from '../../../engine/storage/manifest/manifest-format.js'
import { InlineEngine, type InlineOptions } from '../../support/inline-engine.js'
import { createRandom, type Random } from '../../support/random.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

const seeds = Number(process.env['DEDUP_SEEDS'] ?? 2)
const base = 1_704_067_200_000_000n
const day = 86_400_000_000n

function newDisk(seed: number): FaultyDisk {
  const disk = createFaultyDisk(seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

async function open(disk: FaultyDisk, options: Partial<InlineOptions> = {}): Promise<InlineEngine> {
  const engine = new InlineEngine({ files: disk.files, ...options })
  await engine.settle()
  return engine
}

const create =
  'create table t (ts timestamp, k symbol, n int, s varchar, v long) timestamp(ts) partition by day wal dedup upsert keys(ts, k, n, s)'

test('tables() counts a repeated row once', async () => {
  const engine = await open(newDisk(1))
  await engine.run(create)
  for (const v of [1, 2, 3])
    await engine.run(`insert into t values (${base}L, 'a', 1, 's', ${v}), (${base + 9n}L, 'b', ${v}, 's', 0)`)
  expect(await engine.rows('select table_row_count from tables()')).toEqual([[4n]])
  await engine.run('checkpoint')
  expect(await engine.rows('select table_row_count from tables()')).toEqual([[4n]])
})

test.each(['create table', 'alter table'])('%s with DEDUP SKIP makes earlier versions refuse the root', async (how) => {
  const disk = newDisk(1)
  const engine = await open(disk)
  const formatOf = (): number => {
    const name = disk.files.list('/db/manifest').findLast((entry) => entry.endsWith('.log'))
    const file = disk.files.open(`/db/manifest/${name}`, 'read')
    const header = Buffer.alloc(8)
    file.read(header, 0)
    file.close()
    return header.readUInt32LE(4)
  }
  await engine.run(create)
  expect(formatOf()).toBe(formats.plain)
  if (how === 'create table') await engine.run(create.replace('table t', 'table u').replace('upsert', 'skip'))
  else await engine.run('alter table t dedup enable skip keys(ts, k)')
  expect(formatOf()).toBe(formats.dedupSkip)
})

/** Key to values. */
type Model = Map<string, bigint[]>

type Mode = 'upsert' | 'skip' | 'off'

/** Several rows of one transaction; few keys, so that they repeat. */
async function insert(
  engine: InlineEngine,
  random: Random,
  model: Model,
  next: () => bigint,
  mode: Mode,
): Promise<void> {
  const rows: string[] = []
  for (let count = random.between(1, random.pick([2, 30, 200])); count > 0; count--) {
    const ts = base + BigInt(random.between(0, random.pick([3, 400]))) * random.pick([1n, 3_600_000_000n])
    const k = random.pick(['null', `'a'`, `'b'`, `'c'`])
    const n = random.pick(['null', '0', '7'])
    const s = random.pick(['null', `''`, `'text'`, `'a longer text than others'`])
    const v = next()
    rows.push(`(${ts}L, ${k}, ${n}, ${s}, ${v})`)
    const key = [ts, k, n, s].join()
    const known = model.get(key) ?? []
    model.set(key, mode === 'off' ? [...known, v] : mode === 'skip' && known.length > 0 ? known : [v])
  }
  await engine.run(`insert into t values ${rows.join()}`)
}

async function check(engine: InlineEngine, model: Model): Promise<void> {
  const text = (value: unknown): string => (value === null ? 'null' : `'${value}'`)
  const shown = (await engine.rows('select ts, k, n, s, v from t')).map(([ts, k, n, s, v]) => {
    return [[ts, text(k), n ?? 'null', text(s)].join(), v] as const
  })
  const order = shown.map(([key]) => BigInt(key.split(',')[0] as string))
  expect(order).toEqual(order.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)))
  const rows = [...model].flatMap(([key, values]) => values.map((value) => [key, value] as const))
  expect(shown.toSorted(byKey)).toEqual(rows.toSorted(byKey))
  const sum = rows.reduce((total, [, value]) => total + value, 0n)
  const count = BigInt(rows.length)
  if (model.size === 0) return
  expect(await engine.rows('select count() from t')).toEqual([[count]])
  expect(await engine.rows('select count(), sum(v) from t')).toEqual([[count, sum]])
  expect(await engine.rows('select count() from t where v >= 0')).toEqual([[count]])
  const half = base + 7_200_000_000n
  const early = rows.filter(([key]) => BigInt(key.split(',')[0] as string) < half).length
  expect(await engine.rows(`select count() from t where ts < ${half}L`)).toEqual([[BigInt(early)]])
}

function byKey([a, v]: readonly [string, unknown], [b, w]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : Number(v) - Number(w)
}

/** Deletes the rows with the key 'b' that are shown. */
async function deleteSome(engine: InlineEngine, model: Model): Promise<void> {
  const gone = [...model.keys()].filter((key) => key.split(',')[1] === `'b'`)
  for (const key of gone) model.delete(key)
  await engine.run(`delete from t where k = 'b'`)
}

const models = Array.from({ length: seeds }, (_, index) =>
  ['upsert', 'skip', 'changing'].map((kind) => [kind, index + 1] as const),
)

describe('dedup', () => {
  test.each(models.flat())('%s: model, seed %i', async (kind, seed) => {
    const random = createRandom(seed)
    const disk = newDisk(seed)
    const options = { settings: { flushRows: random.pick([150, 2000]) }, noCompactions: random.chance(0.4) }
    let engine = await open(disk, options)
    let mode: Mode = kind === 'skip' ? 'skip' : kind === 'changing' ? 'off' : 'upsert'
    await engine.run(mode === 'off' ? create.replace(/dedup.*/, '') : create.replace('upsert', mode))
    const model: Model = new Map()
    let value = 0n
    for (let step = 0; step < 40; step++) {
      engine.jobsRun = random.chance(0.7)
      if (kind === 'changing' && random.chance(0.15)) {
        if (mode !== 'off') engine.jobsRun = true
        mode = random.pick(['upsert', 'skip', 'off'] as const)
        await engine.run(`alter table t dedup ${mode === 'off' ? 'disable' : `enable ${mode} keys(ts, k, n, s)`}`)
      }
      await insert(engine, random, model, () => ++value, mode)
      if (random.chance(0.2)) {
        engine.jobsRun = true
        await engine.run('checkpoint')
      }
      if (random.chance(0.1)) await engine.settle()
      if (random.chance(0.05)) {
        engine.jobsRun = true
        await deleteSome(engine, model)
      }
      if (random.chance(0.3)) await check(engine, model)
      if (random.chance(0.08)) {
        disk.crash(step + 1)
        engine = await open(disk, options)
      }
    }
    engine.jobsRun = true
    await engine.settle()
    await check(engine, model)
  })

  test('rows behind everything do not make readers compare', async () => {
    const engine = await open(newDisk(1), { noCompactions: true })
    await engine.run(create)
    for (let round = 0n; round < 3n; round++) {
      await engine.run(`insert into t values (${base + round * 10n}L, 'a', 1, 'x', ${round})`)
      await engine.run('checkpoint')
    }
    const { parts, schema } = engine.view.table('t') ?? { parts: [], schema: undefined }
    expect(parts.length).toBe(3)
    expect(schema?.dedupKeys.length).toBe(4)
    // Counted from what the parts say: no two of them meet.
    expect(await engine.rows('select count() from t')).toEqual([[3n]])
  })

  test('a reader of before sees what was there before', async () => {
    const engine = await open(newDisk(1))
    await engine.run(create)
    await engine.run(`insert into t values (${base}L, 'a', 1, 'x', 1)`)
    await engine.run('checkpoint')
    const version = engine.view.table('t')
    const held = engine.view.hold([version?.schema.id ?? 0])
    await engine.run(`insert into t values (${base}L, 'a', 1, 'x', 2)`)
    expect(held.snapshots[0]?.visibleRows.every((rows) => rows === 0)).toBe(true)
    expect(await engine.rows('select v from t')).toEqual([[2n]])
    held.release()
  })

  const replayed = 'rows that precede DEDUP stay when the log is replayed behind a manifest that knows it'
  test.each([true, false])(`${replayed}, others behind them: %s`, async (isFollowed) => {
    const disk = newDisk(1)
    let engine = await open(disk)
    await engine.run(create.replace(/dedup.*/, ''))
    await engine.run(`insert into t values (${base}L, 'a', 1, 'x', 1), (${base + day}L, 'a', 1, 'x', 1)`)
    await engine.run('checkpoint')
    engine.jobsRun = false
    await engine.run(`insert into t values (${base + day}L, 'a', 1, 'x', 2), (${base + day}L, 'a', 1, 'x', 3)`)
    await engine.run('alter table t dedup enable upsert keys(ts, k, n, s)')
    if (isFollowed)
      for (const v of [4, 5]) await engine.run(`insert into t values (${base + day + 1n}L, 'b', 1, 'x', ${v})`)
    await engine.run(`alter table t drop partition list '2024-01-01'`)
    const expected = [[1n], [2n], [3n], [5n]]
    const before = isFollowed ? expected : expected.slice(0, 3)
    expect(await engine.rows('select v from t order by v')).toEqual(before)
    disk.crash(7)
    engine = await open(disk)
    expect(await engine.rows('select v from t order by v')).toEqual(before)
    // The rows from before are in a memtable of their own, also if none came behind them.
    for (const v of [7, 5]) await engine.run(`insert into t values (${base + day + 1n}L, 'b', 1, 'x', ${v})`)
    expect(await engine.rows('select v from t order by v')).toEqual(expected)
    await engine.run('checkpoint')
    await engine.settle()
    expect(await engine.rows('select v from t order by v')).toEqual(expected)
    await engine.run(`insert into t values (${base + day}L, 'a', 1, 'x', 6)`)
    await engine.run('checkpoint')
    await engine.settle()
    expect(await engine.rows('select v from t order by v')).toEqual([[5n], [6n]])
  })

  test('DEDUP of an emptied table counts later rows as later, also after a restart', async () => {
    const disk = newDisk(1)
    let engine = await open(disk)
    await engine.run(create.replace(/dedup.*/, ''))
    for (const v of [1, 2, 3]) await engine.run(`insert into t values (${base}L, 'a', 1, 'x', ${v})`)
    await engine.run('truncate table t')
    await engine.run('alter table t dedup enable upsert keys(ts, k, n, s)')
    await engine.run('checkpoint')
    disk.crash(3)
    engine = await open(disk)
    for (const v of [4, 5]) {
      await engine.run(`insert into t values (${base}L, 'a', 1, 'x', ${v})`)
      await engine.run('checkpoint')
    }
    expect(await engine.rows('select v from t')).toEqual([[5n]])
    await engine.run('alter table t add column later int')
    expect(await engine.rows('select v from t')).toEqual([[5n]])
  })

  test('rows that an upsert has removed do not keep rows of DEDUP SKIP away', async () => {
    const engine = await open(newDisk(1))
    await engine.run('create table m (ts timestamp, k int, v long, primary key (ts, k)) timestamp(ts) partition by day')
    await engine.run(`insert into m select ${base}L::timestamp, x::int, x from long_sequence(10)`)
    await engine.run('checkpoint')
    await engine.run(
      `merge into m using (select ${base}L::timestamp ts, 1 k) s on m.ts = s.ts and m.k = s.k when matched then delete`,
    )
    await engine.run('alter table m dedup enable skip keys(ts, k)')
    await engine.run(`insert into m values (${base}L, 1, 20), (${base}L, 2, 20)`)
    expect(await engine.rows('select v from m where k < 3 order by k')).toEqual([[20n], [2n]])
    await engine.run('checkpoint')
    await engine.settle()
    expect(await engine.rows('select v from m where k < 3 order by k')).toEqual([[20n], [2n]])
  })

  test('very many stored rows with equal keys are joined with later ones', async () => {
    const engine = await open(newDisk(1))
    await engine.run('create table m (ts timestamp, v long) timestamp(ts) partition by day')
    await engine.run(`insert into m select ${base}L::timestamp, x from long_sequence(200000)`)
    await engine.run('checkpoint')
    await engine.run('alter table m dedup enable upsert keys(ts)')
    await engine.run(`insert into m values (${base + 1n}L, 1)`)
    await engine.run('checkpoint')
    await engine.settle()
    expect(await engine.rows('select count() from m')).toEqual([[200_001n]])
    await engine.run(`insert into m values (${base}L, 2)`)
    expect(await engine.rows('select count() from m')).toEqual([[2n]])
    await engine.run('checkpoint')
    await engine.settle()
    expect(await engine.rows('select count() from m')).toEqual([[2n]])
  })
})
