// Goal: partitions are dropped, detached and attached atomically and durably, without a flush of other partitions; TTL
// drops expired partitions and nothing else. Options of symbol columns are stored and shown.

import { expect, test } from 'vitest'
import { InlineEngine, type InlineOptions } from '../../support/inline-engine.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

const day = 86_400_000_000n
/** 2024-01-01. */
const base = 1_704_067_200_000_000n

function newDisk(): FaultyDisk {
  const disk = createFaultyDisk(2)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

async function open(disk: FaultyDisk, options: Partial<InlineOptions> = {}): Promise<InlineEngine> {
  const engine = new InlineEngine({ files: disk.files, ...options })
  await engine.settle()
  return engine
}

async function filled(disk: FaultyDisk, options: Partial<InlineOptions> = {}, rest = ''): Promise<InlineEngine> {
  const engine = await open(disk, options)
  await engine.run(`create table t (ts timestamp, k symbol, v int) timestamp(ts) partition by day ${rest} wal`)
  const rows = Array.from({ length: 10 }, (_, row) => `(${base + (BigInt(row) * day) / 2n}L, 'k${row}', ${row})`)
  await engine.run(`insert into t values ${rows.join()}`)
  return engine
}

async function numbers(engine: InlineEngine): Promise<unknown[]> {
  return (await engine.rows('select v from t')).map(([v]) => v)
}

test('drop, of flushed and unflushed rows, by name and by condition', async () => {
  const disk = newDisk()
  let engine = await filled(disk)
  await engine.run(`alter table t drop partition list '2024-01-02', '2024-01-04'`)
  expect(await numbers(engine)).toEqual([0, 1, 4, 5, 8, 9])
  await engine.run(`alter table t drop partition where ts < '2024-01-02'`)
  expect(await numbers(engine)).toEqual([4, 5, 8, 9])
  disk.crash(1)
  engine = await open(disk)
  expect(await numbers(engine)).toEqual([4, 5, 8, 9])
})

test('detach and attach', async () => {
  const disk = newDisk()
  let engine = await filled(disk)
  await engine.run(`alter table t detach partition list '2024-01-01', '2024-01-03'`)
  expect(await numbers(engine)).toEqual([2, 3, 6, 7, 8, 9])
  disk.crash(1)
  engine = await open(disk)
  expect(await numbers(engine)).toEqual([2, 3, 6, 7, 8, 9])
  await expect(engine.run(`alter table t attach partition list '2024-01-09'`)).rejects.toThrow('it is not detached')
  await engine.run(`alter table t attach partition list '2024-01-03'`)
  expect(await numbers(engine)).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
  await engine.run(`insert into t values (${base + 5n}L, 'x', 100)`)
  await expect(engine.run(`alter table t attach partition list '2024-01-01'`)).rejects.toThrow('it exists')
  await engine.run(`alter table t drop partition list '2024-01-01'`)
  await engine.run(`alter table t attach partition list '2024-01-01'`)
  disk.crash(2)
  engine = await open(disk)
  expect(await numbers(engine)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(await engine.rows(`select v from t where k = 'k1'`)).toEqual([[1]])
})

async function pass(engine: InlineEngine): Promise<void> {
  for (let turn = 0; turn < 2500; turn++) engine.turn()
  await engine.settle()
}

test('what is about partitions without rows in memory flushes nothing', async () => {
  const disk = newDisk()
  const engine = await filled(disk)
  await engine.run(`alter table t detach partition list '2024-01-01'`)
  await engine.run(`insert into t values (${base + 30n * day}L, 'x', 100), (${base - 30n * day}L, 'y', 101)`)
  const stored = (): string[] => {
    const [folder] = disk.files.list('/db').filter((name) => /^\d+$/.test(name))
    return disk.files
      .list(`/db/${folder}`)
      .filter((name) => /^20/.test(name))
      .map((name) => name.slice(0, 10))
      .sort()
  }
  const before = stored()
  await engine.run(`alter table t attach partition list '2024-01-01'`)
  await engine.run(`alter table t detach partition list '2024-01-02'`)
  await engine.run(`alter table t drop partition list '2024-01-03'`)
  expect(await numbers(engine)).toEqual([101, 0, 1, 6, 7, 8, 9, 100])
  expect(stored().filter((name) => !before.includes(name))).toEqual([])
})

test('TTL counts from the newest row, not beyond now', async () => {
  // Rows lie on January 1st to 5th.
  const late = { startMicros: Number(base + 100n * day) }
  const engine = await filled(newDisk(), late, 'ttl 2 days')
  await engine.run('checkpoint')
  await pass(engine)
  expect(await numbers(engine)).toEqual([4, 5, 6, 7, 8, 9])
  await engine.run(`insert into t values (${base + 90n * day}L, 'x', 100)`)
  await pass(engine)
  expect(await numbers(engine)).toEqual([100])
  const early = await filled(newDisk(), { startMicros: Number(base + 4n * day) }, 'ttl 2 days')
  await early.run(`insert into t values (${base + 1000n * day}L, 'x', 100)`)
  await early.run('checkpoint')
  await pass(early)
  expect(await numbers(early)).toEqual([4, 5, 6, 7, 8, 9, 100])
  await early.run('alter table t set ttl 1 month')
  expect(await numbers(early)).toEqual([4, 5, 6, 7, 8, 9, 100])
})

test('TTL drops rows that were never flushed by anybody', async () => {
  const engine = await filled(newDisk(), { startMicros: Number(base + 100n * day) }, 'ttl 2 days')
  await pass(engine)
  expect(await numbers(engine)).toEqual([4, 5, 6, 7, 8, 9])
})

test('options of symbols are kept and shown', async () => {
  const disk = newDisk()
  let engine = await filled(disk)
  const shown = async () => String((await engine.rows('show create table t'))[0]?.[0])
  await engine.run('alter table t alter column k add index capacity 512')
  await engine.run('alter table t alter column k nocache')
  expect(await shown()).toContain('k SYMBOL NOCACHE INDEX CAPACITY 512')
  disk.crash(1)
  engine = await open(disk)
  expect(await shown()).toContain('k SYMBOL NOCACHE INDEX CAPACITY 512')
  await engine.run('alter table t alter column k drop index')
  await engine.run('alter table t alter column k cache')
  expect(await shown()).toContain('k SYMBOL,')
})

/** 100 hourly partitions, two rows each, far from each other in the order of commits. */
async function hourly(disk: FaultyDisk, rest = ''): Promise<InlineEngine> {
  const engine = await open(disk)
  await engine.run(
    `create table h (ts timestamp, k symbol, s varchar, v int) timestamp(ts) partition by hour ${rest} wal`,
  )
  for (const half of [0, 1]) {
    const row = (hour: number): string =>
      `(${base + BigInt(hour * 60 + half) * 60_000_000n}L, 'k${hour}', 's${half}', ${hour})`
    await engine.run(`insert into h values ${Array.from({ length: 100 }, (_, hour) => row(hour)).join()}`)
  }
  return engine
}

function filesOf(disk: FaultyDisk): number {
  if (!disk.files.exists('/db/1')) return 0
  return disk.files.list('/db/1').filter((name) => name.startsWith('2024-')).length
}

test.each(['', 'ttl 100 weeks'])('a drop of fresh partitions flushes no others (%s)', async (rest) => {
  const disk = newDisk()
  let engine = await hourly(disk, rest)
  await engine.run(`alter table h drop partition list '2024-01-01T01', '2024-01-02T05'`)
  await engine.run(`insert into h values (${base + 3_600_000_001n}L, 'new', 'x', 1000)`)
  await engine.run(`alter table h drop partition list '2024-01-01T02'`)
  const left = [...Array(100).keys()].filter((hour) => ![1, 2, 29].includes(hour))
  const expected = left.flatMap((hour) => [
    [hour, `k${hour}`, 's0'],
    [hour, `k${hour}`, 's1'],
  ])
  expected.splice(2, 0, [1000, 'new', 'x'])
  expect(filesOf(disk)).toBe(0)
  expect(await engine.rows('select v, k, s from h')).toEqual(expected)
  disk.crash(1)
  engine = await open(disk)
  expect(await engine.rows('select v, k, s from h')).toEqual(expected)
  await engine.run('checkpoint')
  expect(filesOf(disk)).toBe(98)
  expect(await engine.rows('select v, k, s from h')).toEqual(expected)
})
