// Goal: UPDATE and DELETE change exactly the rows that satisfy their condition, atomically, during concurrent
// ingestion, flushes, compactions and other changes, and with a crash at any file operation. Method: single cases, then
// random statements compared with a model, with restarts and crashes.

import { describe, expect, test } from 'vitest'
import { internalSession } from '../../../../engine/api/session.js'
import { InlineEngine, type InlineOptions } from '../../../support/inline-engine.js'
import { createRandom, type Random } from '../../../support/random.js'
import { createFaultyDisk, type FaultyDisk } from '../../../support/simulator/faulty-files.js'

const seeds = Number(process.env['REWRITE_SEEDS'] ?? 5)
const base = 1_704_067_200_000_000n

function newDisk(seed = 1): FaultyDisk {
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

async function filled(options: Partial<InlineOptions> = {}): Promise<InlineEngine> {
  const engine = await open(newDisk(), options)
  await engine.run(
    'create table t (ts timestamp, k symbol, v long, s varchar, d double) timestamp(ts) partition by day wal',
  )
  const rows = Array.from({ length: 10 }, (_, row) => {
    return `(${base + BigInt(row) * 43_200_000_000n}L, '${'abc'[row % 3]}', ${row}, 'text ${row}', ${row}.5)`
  })
  await engine.run(`insert into t values ${rows.join()}`)
  return engine
}

const all = 'select v, k, s, d from t'

test('UPDATE and DELETE are transactions, also those that change no row', async () => {
  const engine = await filled()
  const txn = async (): Promise<unknown> => (await engine.rows('select sequencerTxn from wal_tables()'))[0]?.[0]
  const before = BigInt((await txn()) as bigint)
  await engine.run('update t set v = 1 where v = 2')
  expect(await txn()).toBe(before + 1n)
  await engine.run('delete from t where v = 3')
  await engine.run('update t set v = 1 where v = 777')
  expect(await txn()).toBe(before + 3n)
  expect(await engine.rows(`select max(sequencerTxn) from wal_transactions('t')`)).toEqual([[before + 3n]])
})

describe('update', () => {
  test('by a condition, with expressions over old values', async () => {
    const engine = await filled()
    expect((await engine.run(`update t set v = v * 10, s = concat(s, '!') where k = 'a'`)).affected).toBe(4)
    expect(await engine.rows('select v, s from t limit 4')).toEqual([
      [0n, 'text 0!'],
      [1n, 'text 1'],
      [2n, 'text 2'],
      [30n, 'text 3!'],
    ])
    expect((await engine.run('update t set d = null where v > 1000')).affected).toBe(0)
    expect((await engine.run('update t set d = v')).affected).toBe(10)
    expect(await engine.rows('select sum(d) from t')).toEqual([[207]])
  })

  test('symbols that are new, known and computed', async () => {
    const disk = newDisk()
    let engine = await open(disk)
    await engine.run('create table t (ts timestamp, k symbol, n symbol) timestamp(ts) partition by day wal')
    await engine.run(`insert into t values (${base}L, 'a', 'x'), (${base + 1n}L, 'b', 'y'), (${base + 2n}L, null, 'x')`)
    await engine.run(`update t set k = 'new' where k = 'a'`)
    await engine.run(`update t set n = concat(k, '-', n)`)
    await engine.run(`update t set k = n where k is null`)
    const expected = [
      ['new', 'new-x'],
      ['b', 'b-y'],
      ['-x', '-x'],
    ]
    expect(await engine.rows('select k, n from t')).toEqual(expected)
    await engine.run(`insert into t values (${base + 3n}L, 'last', 'new-x')`)
    disk.crash(2)
    engine = await open(disk)
    expect(await engine.rows('select k, n from t')).toEqual([...expected, ['last', 'new-x']])
  })

  test('from another table', async () => {
    const engine = await filled()
    await engine.run('create table u (k symbol, v long)')
    await engine.run(`insert into u values ('a', 100), ('b', 200)`)
    expect((await engine.run('update t set v = u.v + t.v from u where t.k = u.k')).affected).toBe(7)
    expect(await engine.rows('select v from t limit 4')).toEqual([[100n], [201n], [2n], [103n]])
    expect((await engine.run('update t set v = b.v from t b where t.ts = b.ts and b.v < 3')).affected).toBe(1)
  })

  test('of a table without designated timestamp, and with conditions over sub-queries', async () => {
    const engine = await open(newDisk())
    await engine.run('create table t (a int, b varchar)')
    await engine.run(`insert into t values (1, 'x'), (2, 'y'), (3, null), (null, 'z')`)
    expect((await engine.run(`update t set b = 'seen' where a in (select a from t where a > 1)`)).affected).toBe(2)
    expect(await engine.rows('select a, b from t')).toEqual([
      [1, 'x'],
      [2, 'seen'],
      [3, 'seen'],
      [null, 'z'],
    ])
  })

  test.each([
    [`update t set ts = '2024-01-01'`, 'Designated timestamp column cannot be updated', 13],
    ['update t set nope = 1', 'Invalid column: nope', 13],
    ['update nope_t set a = 1', 'table does not exist [table=nope_t]', 7],
    ['update t set v = 1 where nope = 1', 'Invalid column: nope', 25],
    ['update t set v = 1, v = 2', 'Duplicate column [name=v] in SET clause', 20],
    [`update t set v = 'abc'`, 'inconvertible value: `abc` [STRING -> LONG]', 17],
    ['delete from t where nope = 1', 'Invalid column: nope', 20],
  ])('refuses %s', async (sql, message, position) => {
    const engine = await filled()
    await expect(engine.run(sql)).rejects.toMatchObject({ message, position })
  })

  test('a value that cannot be converted changes nothing', async () => {
    const engine = await filled()
    const before = await engine.rows(all)
    await expect(engine.run('update t set v = s')).rejects.toThrow('inconvertible value')
    expect(await engine.rows(all)).toEqual(before)
    expect((await engine.run('update t set v = 1')).affected).toBe(10)
  })
})

describe('delete', () => {
  test('some rows, whole parts, everything', async () => {
    const engine = await filled()
    expect((await engine.run(`delete from t where k = 'b'`)).affected).toBe(3)
    expect(await engine.rows('select v from t')).toEqual([[0n], [2n], [3n], [5n], [6n], [8n], [9n]])
    expect((await engine.run(`delete from t where ts < ${base + 86_400_000_000n}L`)).affected).toBe(1)
    expect(engine.view.table('t')?.parts.length).toBe(4)
    expect((await engine.run('delete from t')).affected).toBe(6)
    expect(await engine.rows('select count() from t')).toEqual([[0n]])
    expect(engine.view.table('t')?.parts).toEqual([])
  })

  test('rows that come meanwhile are later', async () => {
    const engine = await filled()
    engine.jobsRun = false
    const deleted = engine.engine.execute('delete from t where v >= 5', executeOptions)
    for (let turn = 0; turn < 20; turn++) engine.turn()
    await engine.run(`insert into t values (${base}L, 'z', 50, 'later', 1)`)
    engine.jobsRun = true
    expect(await engine.until(deleted)).toMatchObject({ rows: 5 })
    expect(await engine.rows('select v from t')).toEqual([[0n], [50n], [1n], [2n], [3n], [4n]])
  })

  test('other changes of the table wait; a drop does not', async () => {
    const engine = await filled()
    engine.jobsRun = false
    const first = engine.engine.execute('update t set v = v + 1', executeOptions)
    const second = engine.engine.execute('update t set v = v * 2', executeOptions)
    const third = engine.engine.execute('alter table t rename column v to w', executeOptions)
    for (let turn = 0; turn < 20; turn++) engine.turn()
    engine.jobsRun = true
    await engine.until(Promise.all([first, second, third]))
    expect(await engine.rows('select sum(w) from t')).toEqual([[110n]])
    engine.jobsRun = false
    const last = engine.engine.execute('update t set w = 0', executeOptions)
    last.catch(() => {})
    for (let turn = 0; turn < 20; turn++) engine.turn()
    const dropped = engine.engine.execute('drop table t', executeOptions)
    for (let turn = 0; turn < 20; turn++) engine.turn()
    engine.jobsRun = true
    await engine.until(dropped)
    await expect(engine.until(last)).rejects.toThrow()
  })

  test('a superseded row of a dedup table does not come back', async () => {
    const engine = await open(newDisk(), { noCompactions: true })
    await engine.run('create table t (ts timestamp, v long) timestamp(ts) partition by day wal dedup upsert keys(ts)')
    for (const v of [1, 2]) {
      await engine.run(`insert into t values (${base}L, ${v}), (${base + BigInt(v)}L, 9)`)
      await engine.run('checkpoint')
    }
    expect((await engine.run('update t set v = 5 where v = 1')).affected).toBe(0)
    expect((await engine.run('delete from t where v = 2')).affected).toBe(1)
    expect(await engine.rows('select v from t')).toEqual([[9n], [9n]])
  })
})

const executeOptions = {
  session: internalSession('admin'),
  encoding: { kind: 'values' },
  ...{ parameters: [], skip: 0, rowsMax: 1e9, countAll: false, columns: null, timeoutMs: 0, signal: null },
  explain: false,
} as const

interface Row {
  readonly id: number
  k: string | null
  v: number
}

/** Statement, its effect on the model, or null when it was in doubt at a crash. */
type Effect = (rows: readonly Row[]) => Row[]

function randomStatement(random: Random, nextId: () => number): { sql: string; effect: Effect } {
  const kind = random.between(0, 9)
  if (kind < 5) {
    const added: Row[] = Array.from({ length: random.between(1, 60) }, () => {
      return { id: nextId(), k: random.pick(['a', 'b', 'c', null]), v: random.between(0, 20) }
    })
    const values = added.map(({ id, k, v }) => {
      const ts = base + BigInt(random.between(0, 3)) * 86_400_000_000n + BigInt(random.between(0, 50))
      return `(${ts}L, ${id}, ${k === null ? 'null' : `'${k}'`}, ${v})`
    })
    return { sql: `insert into t values ${values.join()}`, effect: (rows) => [...rows, ...added] }
  }
  const limit = random.between(0, 22)
  const k = random.pick(['a', 'b', `s${random.between(0, 5)}`])
  if (kind < 7) {
    const effect: Effect = (rows) => rows.map((row) => (row.v > limit ? { ...row, v: row.v - 3 } : row))
    return { sql: `update t set v = v - 3 where v > ${limit}`, effect }
  }
  if (kind < 9) {
    const effect: Effect = (rows) => rows.map((row) => (row.v === limit || row.k === 'c' ? { ...row, k } : row))
    return { sql: `update t set k = '${k}' where v = ${limit} or k = 'c'`, effect }
  }
  return {
    sql: `delete from t where v = ${limit} or k = '${k}'`,
    effect: (rows) => rows.filter((row) => row.v !== limit && row.k !== k),
  }
}

async function shown(engine: InlineEngine): Promise<string[]> {
  const rows = await engine.rows('select id, k, v from t')
  return rows.map((row) => row.join()).sort()
}

const textOf = (rows: readonly Row[]): string[] => rows.map(({ id, k, v }) => [id, k, v].join()).sort()

test.each(Array.from({ length: seeds }, (_, index) => index + 1))('model, seed %i', async (seed) => {
  const random = createRandom(seed)
  const disk = newDisk(seed)
  const options = { settings: { flushRows: random.pick([40, 1000]) } }
  let id = 0
  let engine = await open(disk, options)
  await engine.run('create table t (ts timestamp, id int, k symbol, v int) timestamp(ts) partition by day wal')
  let rows: Row[] = []
  for (let round = 0; round < 6; round++) {
    const crashAt = disk.operations + random.between(10, random.pick([60, 400]))
    let stopped = false
    disk.inject((operation) => {
      if (operation.index !== crashAt) return undefined
      stopped = true
      return { kind: 'crash' }
    })
    let doubtful: Row[] = rows
    try {
      for (let step = 0; step < 15; step++) {
        const { sql, effect } = randomStatement(random, () => ++id)
        doubtful = effect(rows)
        await engine.run(sql)
        rows = doubtful
        if (random.chance(0.2)) expect(await shown(engine)).toEqual(textOf(rows))
        if (random.chance(0.1)) await engine.run('checkpoint')
      }
    } catch (thrown) {
      // A job reports the crash as its failure.
      if (!stopped) throw thrown
    }
    disk.inject(undefined)
    disk.crash(random.between(1, 1e9))
    engine = await open(disk, options)
    const found = await shown(engine)
    if (JSON.stringify(found) === JSON.stringify(textOf(doubtful))) rows = doubtful
    expect(found).toEqual(textOf(rows))
  }
})
