// Goal: transaction modes, such as READ ONLY, options of the startup message, and settings with names of the client's
// own are stored, shown and applied as in PostgreSQL; errors have PostgreSQL's codes.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

async function connect(options?: string): Promise<pg.Client> {
  const made = new pg.Client({ ...server.login, options })
  // A connection that is refused says so by connect().
  made.on('error', () => {})
  await made.connect()
  return made
}

beforeAll(async () => {
  await server.start()
  client = await connect()
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

/** Of the transaction, then of those to come: `read committed off off, ..`. */
async function modes(of = client): Promise<string> {
  const { rows } = await of.query(`select string_agg(setting, ' ') as s from (
    select name, setting from pg_settings where name in ('transaction_isolation', 'transaction_read_only',
      'transaction_deferrable') order by name desc)`)
  const later = await of.query(`select current_setting('default_transaction_isolation') s`)
  return `${rows[0].s}, ${later.rows[0].s}`
}

test('modes of a transaction are those of BEGIN, else those of the session', async () => {
  expect(await modes()).toBe('off read committed off, read committed')
  await client.query('begin isolation level repeatable read, read only deferrable')
  expect(await modes()).toBe('on repeatable read on, read committed')
  await client.query('set session characteristics as transaction isolation level serializable')
  expect(await modes()).toBe('on repeatable read on, serializable')
  await client.query('commit and chain')
  expect(await modes()).toBe('on repeatable read on, serializable')
  await client.query('commit and chain')
  await client.query('set transaction isolation level read uncommitted')
  expect(await modes()).toBe('on read uncommitted on, serializable')
  await client.query('rollback')
  expect(await modes()).toBe('off serializable off, serializable')
  await client.query('reset default_transaction_isolation')
  expect(await modes()).toBe('off read committed off, read committed')
})

test('what is said of the session within a transaction is about the next one', async () => {
  await client.query('begin')
  await client.query('set session characteristics as transaction read only')
  await client.query('create table in_block (a int)')
  await client.query('commit')
  await expect(client.query('create table behind (a int)')).rejects.toMatchObject({ code: '25006' })
  await client.query('set session characteristics as transaction read write')
})

test('modes of the transaction that are set without BEGIN are gone behind the statement', async () => {
  await client.query("set transaction_isolation = 'serializable'; set transaction_read_only = on")
  expect(await modes()).toBe('off read committed off, read committed')
  await expect(client.query('set transaction_isolation = nonsense')).rejects.toMatchObject({ code: '22023' })
  await client.query('begin; set transaction_read_only = on')
  expect(await modes()).toBe('on read committed off, read committed')
  await client.query('reset all')
  expect(await modes()).toBe('on read committed off, read committed')
  await client.query('rollback')
})

test('modes that do not exist are refused where they stand', async () => {
  const refused = async (sql: string): Promise<unknown> =>
    client.query(sql).then(
      () => null,
      ({ position, message }) => `${position}: ${message}`,
    )
  expect(await refused('begin isolation level nonsense')).toBe('23: unexpected token [nonsense]')
  expect(await refused('begin read')).toBe("11: 'write' expected")
  expect(await refused('set transaction snapshot x')).toBe('26: identifier of a snapshot expected')
  expect(await refused('set session characteristics as foo')).toBe("32: 'transaction' expected")
  expect(await refused('commit chain')).toBe('8: unexpected token [chain]')
})

test('options of the start are settings', async () => {
  const other = await connect(
    '-c statement_timeout=7s --application-name=a\\ b -cdefault_transaction_isolation=serializable -c default_transaction_read_only=on',
  )
  expect(await modes(other)).toBe('on serializable off, serializable')
  const { rows } = await other.query(
    "select current_setting('application_name') a, current_setting('statement_timeout') t",
  )
  expect(rows).toEqual([{ a: 'a b', t: '7s' }])
  await expect(other.query('create table nothing (a int)')).rejects.toMatchObject({ code: '25006' })
  await other.query('set default_transaction_read_only = off; reset all')
  expect(await modes(other)).toBe('on serializable off, serializable')
  await other.end()
  await expect(connect('nonsense')).rejects.toMatchObject({
    code: '42601',
    message: 'invalid command-line argument for server process: nonsense',
  })
  await expect(connect('-c statement_timeout=bad')).rejects.toMatchObject({ code: '22023' })
})

test("settings of the client's own are kept, for the transaction or the session", async () => {
  const setting = async (name: string): Promise<unknown> =>
    (await client.query(`select current_setting('${name}', true) s`)).rows[0]?.s
  await client.query("set app.tenant = 'a'")
  await client.query('set session "app"."number" to 7')
  expect(await setting('app.tenant')).toBe('a')
  expect((await client.query('show app.number')).rows).toEqual([{ 'app.number': '7' }])
  await client.query('begin')
  await client.query("set local app.tenant = 'b'")
  expect(await setting('app.tenant')).toBe('b')
  await client.query('commit')
  expect(await setting('app.tenant')).toBe('a')
  await client.query('reset app.tenant')
  expect(await setting('app.tenant')).toBe(null)
})

test('mistakes that PostgreSQL has codes for have them', async () => {
  for (const [text, code] of [
    ['select sum(count(*)) from long_sequence(1)', '42803'],
    ['select x from long_sequence(1) where count(*) > 1', '42803'],
    ['select x from long_sequence(1) order by 2', '42P10'],
    ['select count(*) from long_sequence(1) group by 2', '42P10'],
    ['select extract(fortnight from now())', '22023'],
    ['create database other', '0A000'],
    ['merge into a using b on a.x = b.x when not matched by source then delete', '0A000'],
  ])
    await expect(client.query(text as string), text).rejects.toMatchObject({ code })
})
