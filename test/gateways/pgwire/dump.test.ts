// Goal: what pg_dump and pgbench send besides queries of the catalog does what they expect of it.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['query.threads=1'])
let client: pg.Client

beforeAll(async () => {
  await server.start()
  const [host = '', port = ''] = server.address('postgres').split(':')
  client = new pg.Client({ host, port: Number(port), user: 'admin', password: 'quest', database: 'qdb' })
  await client.connect()
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

async function tables(like: string): Promise<string[]> {
  const { rows } = await client.query('select relname from pg_class where relname like $1 order by 1', [like])
  return rows.map(({ relname }) => relname)
}

test('DROP TABLE takes a list, within a transaction too', async () => {
  for (const name of ['list_a', 'list_b', 'list_c']) await client.query(`create table ${name} (n int)`)
  await expect(client.query('drop table list_a, list_none')).rejects.toThrow('list_none')
  expect(await tables('list_%')).toEqual(['list_a', 'list_b', 'list_c'])
  await client.query('begin')
  await client.query('drop table if exists list_a, list_none, list_b')
  await client.query('rollback')
  expect(await tables('list_%')).toEqual(['list_a', 'list_b', 'list_c'])
  await client.query('begin')
  await client.query('drop table if exists list_a, list_none, list_b, list_a')
  await client.query('commit')
  expect(await tables('list_%')).toEqual(['list_c'])
})

test('fillfactor is told to mean nothing, and other options stay errors', async () => {
  const notices: string[] = []
  client.on('notice', ({ message }) => notices.push(message ?? ''))
  await client.query('create table filled (n int) with (fillfactor=100)')
  expect(notices).toEqual(['fillfactor is ignored: parts are written full and never changed'])
  await expect(client.query('create table other (n int) with (fillfactor=100, oids=true)')).rejects.toThrow('oids')
})

test('a cursor reads ONLY a table, and `only` may still name one', async () => {
  await client.query('create table only (n int)')
  await client.query('insert into only values (7)')
  await client.query('begin')
  await client.query('declare of_dump cursor for select n from only public.only')
  expect((await client.query('fetch 100 from of_dump')).rows).toEqual([{ n: 7 }])
  await client.query('commit')
  expect((await client.query('select o.n from only o')).rows).toEqual([{ n: 7 }])
})

test('a setting of each row is none, and where there is one it is refused', async () => {
  const asked = "select set_config(name, 'view', false) from pg_settings where name = "
  expect((await client.query(`${asked}'restrict_nonsystem_relation_kind'`)).rows).toEqual([])
  await expect(client.query(`${asked}'search_path'`)).rejects.toThrow('set_config() takes a constant name')
})

test('options of foreign tables are pairs, the text of a view ends as a statement does', async () => {
  const options = "select * from pg_options_to_table('{host=db.example,filter=a=b}'::text[])"
  expect((await client.query(options)).rows).toEqual([
    { option_name: 'host', option_value: 'db.example' },
    { option_name: 'filter', option_value: 'a=b' },
  ])
  await client.query('create view seven as (select 7 n)')
  expect((await client.query("select pg_get_viewdef('seven'::regclass) text")).rows).toEqual([{ text: 'select 7 n;' }])
})

test('a column is renamed without the word COLUMN, as query builders do it', async () => {
  await client.query('create table renamed (a int, "to" int)')
  await client.query('alter table "renamed" rename "a" to "b"')
  await client.query('alter table renamed rename column "to" to c')
  expect((await client.query('select * from renamed')).fields.map(({ name }) => name)).toEqual(['b', 'c'])
})
