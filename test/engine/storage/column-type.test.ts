// Goal: ALTER COLUMN .. TYPE casts all values, including those inserted during the change, keeps the column's position,
// and is atomic in a crash. Also: rows that DEDUP has replaced do not reappear when DEDUP is switched off.

import { expect, test } from 'vitest'
import { internalSession } from '../../../engine/api/session.js'
import { InlineEngine, type InlineOptions } from '../../support/inline-engine.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

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

async function filled(disk: FaultyDisk): Promise<InlineEngine> {
  const engine = await open(disk, { settings: { flushRows: 4 } })
  await engine.run('create table t (ts timestamp, v int, k symbol, s varchar) timestamp(ts) partition by day wal')
  for (let from = 0; from < 12; from += 3) {
    const rows = [0, 1, 2].map((row) => `(${base + BigInt(from + row)}L, ${from + row}, 'k${row}', '${row}x')`)
    await engine.run(`insert into t values ${rows.join()}`)
  }
  return engine
}

test('symbols of parts that are cast one after the other are not mixed up', async () => {
  const engine = await open(newDisk())
  await engine.run('create table t (ts timestamp, k symbol) timestamp(ts) partition by day wal')
  const days = ['a', 'b', 'c', 'd']
  for (const [day, text] of days.entries()) {
    await engine.run(`insert into t values (${base + BigInt(day) * 86_400_000_000n}L, '${text}')`)
    await engine.run('checkpoint')
  }
  await engine.run('alter table t alter column k type string')
  await engine.run('alter table t alter column k type symbol')
  expect((await engine.rows('select k from t')).flat()).toEqual(days)
})

test('casts values and keeps the place', async () => {
  const disk = newDisk()
  let engine = await filled(disk)
  await engine.run('alter table t alter column v type long')
  expect(await engine.rows('select * from t limit 2')).toEqual([
    [base, 0n, 'k0', '0x'],
    [base + 1n, 1n, 'k1', '1x'],
  ])
  await engine.run('alter table t alter column v type varchar')
  await engine.run('alter table t alter column k type string')
  await engine.run('alter table t alter column s type symbol')
  await engine.run(`insert into t values (${base + 100n}L, 'text', 'fresh', 'new')`)
  await engine.run('alter table t alter column v type int')
  disk.crash(4)
  engine = await open(disk)
  expect(await engine.rows('select * from t limit 2')).toEqual([
    [base, 0, 'k0', '0x'],
    [base + 1n, 1, 'k1', '1x'],
  ])
  expect(await engine.rows(`select * from t where ts = ${base + 100n}L`)).toEqual([[base + 100n, null, 'fresh', 'new']])
  expect(await engine.rows(`select count() from t where s = '1x'`)).toEqual([[4n]])
  expect((await engine.rows('show columns from t')).map(([name, type]) => `${name} ${type}`)).toEqual([
    'ts TIMESTAMP',
    'v INT',
    'k STRING',
    's SYMBOL',
  ])
})

function begun(engine: InlineEngine, sql: string): Promise<unknown> {
  return engine.engine.execute(sql, {
    session: internalSession('admin'),
    encoding: { kind: 'values' },
    ...{ parameters: [], skip: 0, rowsMax: 1e9, countAll: false, columns: null, timeoutMs: 0, signal: null },
    explain: false,
  })
}

test('several columns and what comes with them', async () => {
  const disk = newDisk()
  let engine = await filled(disk)
  await engine.run(
    'alter table t alter column v type varchar, alter column k type string, drop column s, add column n int default 5',
  )
  await engine.run(`insert into t (ts, v, k) values (${base + 100n}L, 'text', 'fresh')`)
  disk.crash(4)
  engine = await open(disk)
  expect(await engine.rows(`select * from t where ts > ${base + 10n}L`)).toEqual([
    [base + 11n, '11', 'k2', null],
    [base + 100n, 'text', 'fresh', 5],
  ])
})

test('a column that comes meanwhile may be one that the statement adds: nothing is changed then', async () => {
  const engine = await filled(newDisk())
  const changed = begun(engine, 'alter table t alter column v type double, drop column s, add column extra varchar')
  const refused = expect(changed).rejects.toThrow('column already exists [table=t, column=extra]')
  // The columns are being written by then.
  expect((await engine.lines(`t,k=line v=0i ${(base + 999n) * 1000n}\n`)).error).toBe(null)
  expect((await engine.lines(`t,k=line v=1i,extra=1i ${(base + 1000n) * 1000n}\n`)).error).toBe(null)
  await engine.until(refused)
  expect((await engine.rows('show columns from t')).map(([name, type]) => `${name} ${type}`)).toEqual([
    ...['ts TIMESTAMP', 'v INT', 'k SYMBOL', 's VARCHAR', 'extra LONG'],
  ])
  await engine.run('alter table t alter column v type double')
  expect(await engine.rows('select sum(v) from t')).toEqual([[67]])
})

test('rows that come meanwhile are cast as well', async () => {
  const disk = newDisk()
  const engine = await filled(disk)
  const changed = begun(engine, 'alter table t alter column v type double')
  for (let row = 0; row < 30; row++) {
    const line = `t,k=line v=${row}i,extra=${row}i ${(base + BigInt(1000 + row)) * 1000n}\n`
    expect((await engine.lines(line)).error).toBe(null)
  }
  await engine.until(changed)
  expect(await engine.rows('select count(v), sum(v), count(extra) from t')).toEqual([[42n, 66 + 435, 30n]])
  const last = `t,k=line v=1.5 ${(base + 5000n) * 1000n}\n`
  expect((await engine.lines(last)).error).toBe(null)
})

test('all or nothing at a crash', async () => {
  let changes = 0
  for (let crash = 1; crash < 270; crash += 9) {
    const disk = newDisk(crash)
    const engine = await filled(disk)
    await engine.settle()
    const at = disk.operations + crash
    let stopped = false
    disk.inject((operation) => {
      if (operation.index !== at) return undefined
      stopped = true
      return { kind: 'crash' }
    })
    let done = false
    try {
      await engine.run('alter table t alter column k type varchar, drop column s, add column n int')
      done = true
    } catch (thrown) {
      if (!stopped) throw thrown
    }
    disk.inject(undefined)
    disk.crash(crash)
    const again = await open(disk)
    const [type] = (await again.rows('show columns from t')).filter(([name]) => name === 'k').map((row) => row[1])
    if (done) expect(type).toBe('VARCHAR')
    if (type === 'VARCHAR') changes++
    const names = (await again.rows('show columns from t')).map(([name]) => name).join()
    expect(names).toBe(type === 'VARCHAR' ? 'ts,v,k,n' : 'ts,v,k,s')
    expect((await again.rows('select v, k from t')).map(([v, k]) => `${v}${k}`)).toEqual(
      Array.from({ length: 12 }, (_, row) => `${row}k${row % 3}`),
    )
  }
  expect(changes).toBeGreaterThan(0)
  expect(changes).toBeLessThan(30)
})

test('dedup goes without bringing rows back', async () => {
  const engine = await open(newDisk(), { noCompactions: true })
  await engine.run('create table t (ts timestamp, v int) timestamp(ts) partition by day wal dedup upsert keys(ts)')
  for (const v of [1, 2, 3]) {
    await engine.run(`insert into t values (${base}L, ${v}), (${base + BigInt(v)}L, 9)`)
    await engine.run('checkpoint')
  }
  await engine.run('alter table t dedup disable')
  expect(await engine.rows('select v from t')).toEqual([[3], [9], [9], [9]])
  await engine.run(`insert into t values (${base}L, 4)`)
  expect(await engine.rows('select v from t')).toEqual([[3], [4], [9], [9], [9]])
})
