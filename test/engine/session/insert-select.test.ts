// Goal: INSERT .. SELECT and CREATE TABLE AS store the rows of their query, for all types and transaction sizes, and
// long INSERT .. VALUES its rows. They leave no partial table when the query fails or is cancelled.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine, ExecuteOptions } from '../../../engine/engine.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'insert-select-'))
let engine: Engine
beforeAll(async () => {
  engine = await openTestEngine(directory)
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

function run(sql: string, options: Partial<ExecuteOptions> = {}): Promise<unknown[]> {
  return rowsFrom(engine, sql, options)
}

const everyType = `select x l, rnd_boolean() bo, rnd_byte() b, rnd_short() sh, rnd_char() ch, rnd_int(0, 9, 2) i, rnd_float(2) f,
  rnd_double(2) d, rnd_str(0, 40, 2) s, rnd_varchar(1, 70, 2) v, rnd_symbol('a', 'bé', null) sy, rnd_uuid4(2) u, rnd_ipv4() ip,
  rnd_long256() l2, rnd_geohash(20) g, rnd_bin(1, 30, 2) bi, rnd_date() da, rnd_double_array(2, 0) ar, rnd_decimal(30, 2, 2) de,
  timestamp_sequence(0, 1000000) ts from long_sequence(20000)`

describe('rows of a query in a table', () => {
  test('of every type', async () => {
    await run(`create table source as (${everyType}) timestamp(ts) partition by day`)
    await run('create table target as (select * from source) timestamp(ts) partition by day')
    const ordered = (name: string): Promise<unknown[]> => run(`select * from ${name} where l % 97 = 0 order by l`)
    expect(await ordered('target')).toEqual(await ordered('source'))
    expect(await run('select count(), sum(l) from target')).toEqual([[20_000n, 200_010_000n]])
  })

  test.each([
    ['insert', 2],
    ['insert batch 7000', 15],
    ['insert batch 16384', 7],
    ['insert atomic', 1],
  ])('%s', async (head, transactions) => {
    await run('create table cut (ts timestamp, v long, s varchar) timestamp(ts) partition by day')
    await run(`${head} into cut select timestamp_sequence(0, 1000), x, 'v' || x from long_sequence(100001)`)
    expect(await run('select count(), sum(v), count_distinct(s) from cut')).toEqual([
      [100_001n, 5_000_150_001n, 100_001n],
    ])
    expect(await run("select writerTxn from wal_tables() where name = 'cut'")).toEqual([[BigInt(transactions)]])
    await run('drop table cut')
  })

  test('a time that no table takes', async () => {
    await run('create table times (ts timestamp) timestamp(ts) partition by day')
    const insert = (value: string): Promise<unknown> => run(`insert into times select ${value} from long_sequence(3)`)
    await expect(insert('(case when x = 2 then null else x end)::timestamp')).rejects.toThrow('cannot be NULL')
    await expect(insert('(x - 3)::timestamp')).rejects.toThrow('before 1970-01-01')
    expect(await run('select count() from times')).toEqual([[0n]])
  })

  test('more than the memory of a transaction, and fewer columns than the table has', async () => {
    await run(
      'create table outgrown (ts timestamp, n int, v long, s varchar, sy symbol, d double) timestamp(ts) partition by day',
    )
    await run(`insert atomic into outgrown (ts, v, s, sy) select timestamp_sequence(0, 1000000), x,
      case when x % 10 = 0 then null else x || 'é' || repeat('.', 600) end, rnd_symbol('a', 'b', null) from long_sequence(60000)`)
    const sums = 'count(), sum(v), count(s), sum(length(s)), count(sy), count(n), count(d), count_distinct(ts)'
    const [all, [a, b, none]] = [
      await run(`select ${sums} from outgrown`),
      await run('select * from outgrown limit 3'),
    ] as [unknown, [unknown[], unknown[], unknown[]]]
    expect(all).toEqual([[60_000n, 1_800_030_000n, 54_000n, 32_708_001n, expect.anything(), 0n, 0n, 60_000n]])
    expect([a, b, none].map((row: unknown[]) => row.slice(1, 4))).toEqual(
      [1, 2, 3].map((x) => [null, BigInt(x), `${x}é${'.'.repeat(600)}`]),
    )
    expect(await run("select writerTxn from wal_tables() where name = 'outgrown'")).toEqual([[1n]])
    await run('drop table outgrown')
  })
})

describe('long INSERT .. VALUES', () => {
  const rows = Array.from({ length: 20_000 }, (_, index) => `(${index}, ${index}, 'text ${index}')`)
  test.each([
    ['of literals', rows.join(', ')],
    ['with an end', `${rows.join(',\n')} ; `],
    ['with an expression far behind', rows.with(15_000, "(15000, 14999 + 1, 'text 15000')").join()],
  ])('%s', async (_, text) => {
    await run('create table literals (ts timestamp, v long, s varchar) timestamp(ts) partition by day')
    const insert = run(`insert into literals values ${text}`)
    expect(await run('select 1')).toEqual([[1]])
    await insert
    expect(await run('select count(), sum(v), count_distinct(s) from literals')).toEqual([
      [20_000n, 199_990_000n, 20_000n],
    ])
    await run('drop table literals')
  })

  test('with a mistake far behind', async () => {
    await run('create table literals (ts timestamp, v long, s varchar) timestamp(ts) partition by day')
    const mistaken = `insert into literals values ${rows.join()}, (1, 'no number', '')`
    await expect(run(mistaken)).rejects.toThrow('inconvertible value')
    expect(await run('select count() from literals')).toEqual([[0n]])
    await run('drop table literals')
  })
})

describe('no half of a table', () => {
  const made = async (name: string): Promise<unknown[]> =>
    run(`select table_name from tables() where table_name = '${name}'`)

  test('when the query fails', async () => {
    const failing = 'create table failed as (select rnd_int(0, 150000 - x::int, 0) r from long_sequence(1000000))'
    await expect(run(failing)).rejects.toThrow('invalid range')
    expect(await made('failed')).toEqual([])
  })

  test('when it is cancelled', async () => {
    const abort = new AbortController()
    const endless = run('create table cancelled as (select x from long_sequence(1000000000000))', {
      signal: abort.signal,
    })
    endless.catch(() => {})
    while ((await made('cancelled')).length === 0);
    abort.abort()
    await expect(endless).rejects.toThrow('the client disconnected')
    expect(await made('cancelled')).toEqual([])
    expect(await run("select query from query_activity() where query like 'create table%'")).toEqual([])
  })

  test('when its time is over', async () => {
    const long = 'create table late as (select x from long_sequence(1000000000000))'
    await expect(run(long, { timeoutMs: 50 })).rejects.toThrow('timeout')
    expect(await made('late')).toEqual([])
  })
})
