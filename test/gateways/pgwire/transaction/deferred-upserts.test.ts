// Goal: MERGE and INSERT .. ON CONFLICT within BEGIN return the command tags and errors of PostgreSQL, take effect at
// COMMIT in the order of the statements, and are discarded by ROLLBACK and ROLLBACK TO SAVEPOINT. Statements that
// cannot be deferred are rejected, or stored at once with a warning.

import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
let client: pg.Client
let other: pg.Client
const warnings: string[] = []

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
  client.on('notice', ({ message, severity }) => severity === 'WARNING' && warnings.push(message ?? ''))
})
afterAll(() => server.remove())

beforeEach(async () => {
  await client.query('rollback')
  for (const table of ['t', 'u', 's']) await client.query(`drop table if exists ${table}`)
  for (const table of ['t', 'u'])
    await client.query(`create table ${table} (k int primary key, n int, ts timestamp) timestamp(ts) partition by day`)
  await client.query("insert into t values (1, 10, '2024-01-01'), (2, 20, '2024-01-02')")
  await client.query('create table s (k int, n int)')
  await client.query('insert into s values (2, 200), (3, 300)')
  warnings.length = 0
})

async function tag(text: string, values: readonly unknown[] = []): Promise<string> {
  const { command, rowCount } = await client.query({ text, values: [...values] })
  return `${command} ${rowCount}`
}

async function code(text: string): Promise<string> {
  return client.query(text).then(
    () => 'none',
    (error: { code?: string }) => error.code ?? 'no code',
  )
}

const rowsBy = async (by: pg.Client, table = 't'): Promise<unknown[]> =>
  (await by.query({ text: `select k, n from ${table} order by k`, rowMode: 'array' })).rows

const update = 'insert into t values ($1, $2, $3) on conflict (k) do update set n = excluded.n'
const time = '2024-01-05T00:00:00Z'
const before = [
  [1, 10],
  [2, 20],
]

test('many of them are one after the other at COMMIT', async () => {
  await client.query('begin')
  for (const [k, n] of [
    [1, 11],
    [5, 50],
    [5, 51],
    [1, 12],
  ])
    expect(await tag(update, [k, n, time])).toBe('INSERT 1')
  expect(await rowsBy(other)).toEqual(before)
  await client.query('commit')
  expect(warnings).toEqual([])
  expect(await rowsBy(other)).toEqual([
    [1, 12],
    [2, 20],
    [5, 51],
  ])
})

test('of several tables', async () => {
  await client.query('begin')
  expect(await tag("insert into u values (2, 1, '2024-01-01') on conflict (k) do nothing")).toBe('INSERT 1')
  const merge = `merge into t using s on t.k = s.k when matched then update set n = s.n
    when not matched then insert values (s.k, s.n, '2024-01-09')`
  expect(await tag(merge)).toBe('MERGE 2')
  await client.query('commit')
  expect(await rowsBy(other)).toEqual([
    [1, 10],
    [2, 200],
    [3, 300],
  ])
  expect(await rowsBy(other, 'u')).toEqual([[2, 1]])
  expect(warnings).toEqual([])
})

test('ROLLBACK, ROLLBACK TO and an error discard them', async () => {
  await client.query('begin')
  await tag(update, [1, 11, time])
  await client.query('rollback')
  expect(await rowsBy(other)).toEqual(before)
  await client.query('begin')
  await tag(update, [1, 12, time])
  await client.query('savepoint a')
  await tag(update, [2, 22, time])
  await client.query('rollback to a')
  await client.query('commit')
  expect(await rowsBy(other)).toEqual([
    [1, 12],
    [2, 20],
  ])
  await client.query('begin')
  await tag(update, [1, 13, time])
  expect(await code('select * from nothing')).toBe('42P01')
  await client.query('commit')
  expect(await rowsBy(other)).toEqual([
    [1, 12],
    [2, 20],
  ])
  expect(warnings).toEqual([])
})

test('rows that the transaction has inserted before are there', async () => {
  await client.query('begin')
  await client.query("insert into t values (7, 70, '2024-01-07')")
  expect(await tag(update, [7, 71, time])).toBe('INSERT 1')
  await client.query("insert into t values (8, 80, '2024-01-08')")
  await client.query('commit')
  expect(await rowsBy(other)).toEqual([...before, [7, 71], [8, 80]])
  expect(warnings).toEqual([])
})

test('errors come with the statement', async () => {
  const twice = "insert into t values (1, 1, '2024-01-01'), (1, 2, '2024-01-01') on conflict (k) do update set n = 0"
  for (const [text, wanted] of [
    [twice, '21000'],
    ["insert into t values (1, 1, '2024-01-01') on conflict (n) do nothing", '42P10'],
    ["insert into t values (1, 'x', '2024-01-01') on conflict (k) do nothing", '22P02'],
    ["insert into t values (1, 1, '2024-01-01') on conflict (k) do nothing returning k", '0A000'],
  ] as const) {
    await client.query('begin')
    expect(await code(text)).toBe(wanted)
    await client.query('rollback')
  }
  await client.query('begin; create table v (k int primary key)')
  expect(await code('insert into v values (1) on conflict (k) do nothing')).toBe('0A000')
  await client.query('rollback')
  expect(await rowsBy(other)).toEqual(before)
})

test('a query of the table has them stored first, with a warning', async () => {
  await client.query('begin')
  await tag(update, [1, 11, time])
  expect(await rowsBy(client)).toEqual([
    [1, 11],
    [2, 20],
  ])
  expect(warnings.length).toBe(1)
  expect(await tag("insert into t values (1, 1, '2024-01-01') on conflict (k) do nothing")).toBe('INSERT 0')
  await client.query('commit')
})

test('a count that depends on what is pending has that stored first', async () => {
  await client.query('begin')
  const nothing = "insert into t values (9, 9, '2024-01-09') on conflict (k) do nothing"
  expect(await tag(nothing)).toBe('INSERT 1')
  expect(warnings).toEqual([])
  expect(await tag(nothing)).toBe('INSERT 0')
  expect(warnings.length).toBe(1)
  await client.query('rollback')
  expect(await rowsBy(other)).toEqual([...before, [9, 9]])
})
