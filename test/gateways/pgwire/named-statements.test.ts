// Goal: prepared statements and cursors are listed in pg_prepared_statements and pg_cursors, for their own session
// only, and end without a running query left behind; two-phase transactions are rejected as in PostgreSQL. A prepared
// statement whose columns have changed is refused.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
const notices: string[] = []
let client: pg.Client
let other: pg.Client

async function connect(): Promise<pg.Client> {
  const made = new pg.Client(server.login)
  made.on('notice', ({ message }) => notices.push(message ?? ''))
  await made.connect()
  return made
}

async function rows(sql: string, of = client): Promise<unknown[][]> {
  return (await of.query({ text: sql, rowMode: 'array' })).rows
}

async function codeOf(sql: string): Promise<string | null> {
  return client.query(sql).then(
    () => null,
    ({ code }) => code,
  )
}

beforeAll(async () => {
  await server.start()
  client = await connect()
  other = await connect()
  await client.query('create table named (a int, b text, c timestamp)')
})

afterAll(async () => {
  await client?.end()
  await other?.end()
  await server.remove()
})

test('prepared statements, of SQL and of the protocol', async () => {
  await client.query('prepare one as select 1')
  await client.query({ name: 'two', text: 'select a from named where a = $1 and b = $2', values: [1, 'x'] })
  const shown = `select name, statement, parameter_types, from_sql, prepare_time > now() - 60_000_000 recent
    from pg_prepared_statements order by name`
  expect(await rows(shown)).toEqual([
    ['one', 'prepare one as select 1', '{}', true, true],
    ['two', 'select a from named where a = $1 and b = $2', '{integer,"character varying"}', false, true],
  ])
  expect(await rows(shown, other)).toEqual([])
  await client.query('deallocate all')
  expect(await rows(shown)).toEqual([])
})

test('types that PREPARE names are those of its parameters', async () => {
  await client.query(
    'prepare typed (int, double precision, varchar(5), timestamp, int[], symbol) as select $1 a, $2 b, $3 c, $4 d, $5 e, $6 f',
  )
  expect(await rows("select parameter_types from pg_prepared_statements where name = 'typed'")).toEqual([
    ['{integer,"double precision","character varying","timestamp without time zone",integer[],"character varying"}'],
  ])
  expect(await rows("execute typed (5, 1.5, 'x', '2024-01-01', '{1,2}', 's')")).toEqual([
    [5, 1.5, 'x', new Date('2024-01-01'), expect.anything(), 's'],
  ])
  await client.query('deallocate typed')
})

test('a statement whose table is gone is still listed', async () => {
  await client.query('create table gone (a int)')
  await client.query('prepare lost as select a from gone where a = $1')
  await client.query('drop table gone')
  expect(await rows('select name, parameter_types from pg_prepared_statements')).toEqual([['lost', '{}']])
  await client.query('deallocate lost')
})

test('cursors, until they end', async () => {
  const shown = 'select name, statement, is_holdable, is_binary, is_scrollable from pg_cursors order by name'
  await client.query('begin')
  await client.query('declare a no scroll cursor for select 1')
  await client.query('declare b binary scroll cursor with hold for select 2')
  expect(await rows(shown)).toEqual([
    ['a', 'declare a no scroll cursor for select 1', false, false, false],
    ['b', 'declare b binary scroll cursor with hold for select 2', true, true, true],
  ])
  await client.query('commit')
  expect((await rows(shown)).map(([name]) => name)).toEqual(['b'])
  await client.query('close b')
  expect(await rows(shown)).toEqual([])
})

test('ROLLBACK takes back the cursors of its transaction, also those that are held, as psqlODBC expects', async () => {
  const names = async () => (await rows('select name from pg_cursors order by name')).flat()
  await client.query('declare before cursor with hold for select 1')
  await client.query('begin; declare held cursor with hold for select 1; fetch 7 in held')
  await client.query('rollback')
  expect(await names()).toEqual(['before'])
  await client.query('begin; declare held cursor with hold for select 2; savepoint s')
  await client.query('declare inner cursor for select 3; close before; declare before cursor with hold for select 4')
  await client.query('rollback to s')
  expect(await names()).toEqual(['held'])
  await client.query('commit')
  await client.query('begin; rollback')
  expect(await rows('fetch held')).toEqual([[2]])
  await client.query('begin')
  await client.query('declare failed cursor with hold for select 1')
  expect(await codeOf('select nope')).toBe('42703')
  await client.query('commit')
  expect(await names()).toEqual(['held'])
  await client.query('close all')
})

test('there are no prepared transactions', async () => {
  expect(await rows('show max_prepared_transactions')).toEqual([['0']])
  expect(await rows('select * from pg_prepared_xacts')).toEqual([])
  await client.query('begin')
  await client.query("insert into named values (1, 'x', '2024-01-01')")
  expect(await codeOf("prepare transaction 'foo'")).toBe('55000')
  // The transaction is over, and nothing of it is stored.
  expect(await rows('select count() from named')).toEqual([['0']])
  await client.query('rollback')
  expect(notices.splice(0)).toEqual(['there is no transaction in progress'])
  expect((await client.query("prepare transaction 'foo'")).command).toBe('ROLLBACK')
  expect(notices.splice(0)).toEqual(['there is no transaction in progress'])
  expect(await codeOf("commit prepared 'foo'")).toBe('42704')
  expect(await codeOf("rollback prepared 'foo'")).toBe('42704')
  await client.query('begin')
  expect(await codeOf("commit prepared 'foo'")).toBe('25001')
  await client.query('rollback')
  // A statement may have that name.
  await client.query('prepare transaction as select 5 n')
  expect(await rows('execute transaction')).toEqual([[5]])
})

/** Number of queries that run, after those that are about to end. */
async function running(): Promise<number> {
  for (let trial = 0; ; trial++) {
    const text = await (await fetch(`http://${server.address('http')}/metrics`)).text()
    const count = Number(/^svc_queries_running (\d+)$/m.exec(text)?.[1])
    if (count === 0 || trial === 20) return count
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

test('a query of which nobody reads a row ends', async () => {
  await client.query("create table unread as (select x::int a, 'text' || x b from long_sequence(100000))")
  const stale = { name: 'stale', text: 'select a, b from unread order by b' }
  await client.query(stale)
  await client.query('alter table unread alter column a type bigint')
  for (let trial = 0; trial < 5; trial++) {
    await expect(client.query(stale)).rejects.toThrow('cached plan must not change result type')
  }
  expect(await running()).toBe(0)
  await client.query('begin')
  for (let trial = 0; trial < 5; trial++) {
    await client.query('declare unfetched cursor for select a, b from unread order by b desc')
    await client.query('close unfetched')
  }
  await client.query('commit')
  expect(await running()).toBe(0)
})

test('a PIVOT over a query of values has the columns of the present data, or is refused where they were announced', async () => {
  await client.query('create table varied (s string, v long)')
  await client.query("insert into varied values ('a', 1), ('b', 2)")
  const named = { name: 'varied', text: 'select * from varied pivot (sum(v) for s in any)' }
  const { fields } = await client.query(named)
  expect(fields.map(({ name }) => name)).toEqual(['a', 'b'])
  await client.query("insert into varied values ('c', 3)")
  await expect(client.query(named)).rejects.toThrow('cached plan must not change result type')
  for (let round = 0; round < 20; round++) {
    await client.query(`insert into varied values ('r${round}', ${round})`)
    const { rows: found } = await client.query('select * from varied pivot (sum(v) for s in any)')
    expect(Object.keys(found[0] as object)).toHaveLength(4 + round)
  }
})
