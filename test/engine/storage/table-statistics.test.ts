// Goal: the system relations tables(), table_partitions(), wal_tables() and wal_transactions() show correct statistics
// of rows in memory and on disk, and of transactions; wal_transactions() also after a restart. Method: row counts and
// bounds of time are compared with queries over the rows, other statistics with constants.

import { expect, test } from 'vitest'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'

const day = '2024-01-0'

async function open(disk = newDisk()): Promise<InlineEngine> {
  const engine = new InlineEngine({ files: disk.files, settings: { flushAgeMs: 1e9 } })
  await engine.settle()
  return engine
}

function newDisk(): ReturnType<typeof createFaultyDisk> {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

const transactions = `select sequencerTxn, timestamp is not null, minTimestamp, maxTimestamp, rowCount
  from wal_transactions('t')`

test('transactions have their time, bounds and rows; after a restart those of the log have bounds and rows', async () => {
  const disk = newDisk()
  const engine = await open(disk)
  await engine.run('create table t (ts timestamp, v long) timestamp(ts) partition by day wal')
  await engine.run(`insert into t values ('${day}2', 1), ('${day}1', 2), ('${day}3', 3)`)
  await engine.run('alter table t add column w int')
  await engine.run(`insert into t values ('${day}5', 1, 1)`)
  const micros = (dayOfMonth: number): bigint => BigInt(Date.UTC(2024, 0, dayOfMonth)) * 1000n
  const change = (known: boolean): unknown[] => [known, null, null, null]
  const [first, second] = [
    [micros(1), micros(3), 3n],
    [micros(5), micros(5), 1n],
  ]
  const numbered = (rows: unknown[][]): unknown[][] => rows.map((row, index) => [BigInt(index + 1), ...row])
  const before = numbered([[true, ...first], change(true), [true, ...second]])
  expect(await engine.rows(transactions)).toEqual(before)
  disk.crash(2)
  // Behind which rows a change came is forgotten.
  const after = numbered([change(false), [false, ...first], [false, ...second]])
  expect(await (await open(disk)).rows(transactions)).toEqual(after)
})

test('a table in nanoseconds shows microseconds', async () => {
  const engine = await open()
  await engine.run('create table t (ts timestamp_ns, v long) timestamp(ts) partition by day wal')
  await engine.run(`insert into t values ('2024-01-01T00:00:00.000001999Z', 1)`)
  const [row] = await engine.rows(transactions)
  expect(row?.[2]).toBe(BigInt(Date.UTC(2024, 0, 1)) * 1000n + 1n)
})

test.each([
  ['without keys', ''],
  ['with keys, replaced rows among them', 'dedup upsert keys(ts, k)'],
])('rows and bounds are those of queries: %s', async (_, dedup) => {
  const engine = await open()
  await engine.run(`create table t (ts timestamp, k long) timestamp(ts) partition by day wal ${dedup}`)
  const insert = (first: number, rows: number, step: number): Promise<unknown> =>
    engine.run(`insert into t select timestamp_sequence('${day}1'::timestamp + ${first * step}, ${step}), x % 3
      from long_sequence(${rows})`)
  for (const settled of [false, true]) {
    await insert(0, 1000, 200_000_000)
    await insert(500, 1000, 200_000_000)
    await insert(3, 5, 1000)
    if (settled) {
      await engine.run('checkpoint')
      await insert(100, 10, 200_000_000)
    }
    const [seen] = await engine.rows('select count(), min(ts), max(ts) from t')
    const statistics = 'select table_row_count, table_min_timestamp, table_max_timestamp from tables()'
    expect(await engine.rows(statistics)).toEqual([seen])
    const days = await engine.rows(`select to_str(ts, 'yyyy-MM-dd') d, count(), min(ts), max(ts) from t order by d`)
    const partitions = `select name, numRows, minTimestamp, maxTimestamp from table_partitions('t')`
    expect(await engine.rows(partitions)).toEqual(days)
  }
})

test('rows that newer ones replaced are counted where they are found: in memory at once, between parts by merges', async () => {
  const engine = await open()
  await engine.run('create table t (ts timestamp, k long) timestamp(ts) partition by day wal dedup upsert keys(ts, k)')
  const insert = (...keys: number[]): Promise<unknown> =>
    engine.run(`insert into t values ${keys.map((key) => `('${day}1', ${key})`).join()}`)
  const replaced = 'select wal_dedup_row_count_since_start from tables()'
  await insert(1, 2, 3, 1)
  await insert(2, 4)
  expect(await engine.rows(replaced)).toEqual([[2n]])
  await engine.run('checkpoint')
  expect(await engine.rows(replaced)).toEqual([[2n]])
  await insert(1, 3, 9)
  await engine.run('checkpoint')
  await engine.settle()
  expect(await engine.rows(replaced)).toEqual([[4n]])
  // Four rows were written, then three, and five by the merge behind them.
  const amplification = 'select table_write_amp_count, table_write_amp_max, table_merge_rate_count from tables()'
  expect(await engine.rows(amplification)).toEqual([[2n, 1, 1n]])
  await insert(7)
  await engine.run('checkpoint')
  const [[count, max] = []] = await engine.rows(amplification)
  expect([count, max]).toEqual([3n, 6])
})

test('statements are transactions: a change of a type is one, DROP PARTITION too', async () => {
  const engine = await open()
  await engine.run('create table t (ts timestamp, v int) timestamp(ts) partition by day wal')
  await engine.run(`insert into t values ('${day}1', 1), ('${day}2', 2)`)
  await engine.run('alter table t alter column v type long')
  await engine.run('alter table t add column w int')
  await engine.run(`alter table t drop partition list '${day}1'`)
  await engine.run('update t set v = 5')
  expect(await engine.rows('select sequencerTxn from wal_tables()')).toEqual([[5n]])
  const kinds = `select sequencerTxn, walId, structureVersion from wal_transactions('t')`
  const [first, type, column, ...rest] = await engine.rows(kinds)
  expect([first, type, column]).toEqual([
    [1n, 1, 0n],
    [2n, -1, 1n],
    [3n, -1, 2n],
  ])
  expect(rest).toHaveLength(2)
})
