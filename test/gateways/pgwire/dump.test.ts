// Goal: the statements that pg_dump, pgbench and some drivers send, other than the large queries of the catalog, have
// the effect that these tools expect.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
})

afterAll(() => server.remove())

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

test('fillfactor gets a notice that it means nothing, and other options stay errors', async () => {
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
  const requested = "select set_config(name, 'view', false) from pg_settings where name = "
  expect((await client.query(`${requested}'restrict_nonsystem_relation_kind'`)).rows).toEqual([])
  await expect(client.query(`${requested}'search_path'`)).rejects.toThrow('set_config() takes a constant name')
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

test('owners of views, sequences and schemas, options of VACUUM and of LIKE are read over', async () => {
  await client.query('create table owned (id serial, n int default 5)')
  await client.query('create view owned_view as (select n from owned)')
  await client.query('create sequence owned_seq')
  for (const relation of ['owned', 'owned_view', 'owned_seq', 'owned_id_seq'])
    expect((await client.query(`alter table public.${relation} owner to admin`)).command).toBe('ALTER')
  expect((await client.query('alter view owned_view owner to admin')).command).toBe('ALTER')
  await client.query('alter schema public owner to admin')
  await expect(client.query('alter table owned_none owner to admin')).rejects.toThrow('owned_none')
  await client.query('vacuum (full, parallel 2, analyze false) public.owned')
  await client.query('vacuum pg_catalog.pg_class')
  await expect(client.query('vacuum pg_catalog.owned')).rejects.toThrow('owned')
  await client.query('create table owned_like (like owned including all excluding indexes)')
  expect((await client.query('insert into owned_like (id) values (1) returning n')).rows).toEqual([{ n: 5 }])
  await expect(client.query('create table other (like owned including nothing)')).rejects.toThrow('nothing')
})

test('a counted column comes back with its numbers', async () => {
  await client.query('create table counted (id serial, n int)')
  await client.query('insert into counted (n) values (1), (2)')
  const owned = `select d.refobjid::regclass::text t, d.refobjsubid::int place, s.seqtypid::regtype::text type
    from pg_class c join pg_depend d on d.objid = c.oid and d.deptype = 'a' join pg_sequence s on s.seqrelid = c.oid
    where c.relkind = 'S' and c.relname = 'counted_id_seq'`
  expect((await client.query(owned)).rows).toEqual([{ t: 'counted', place: 1, type: 'integer' }])
  const asks = `select d.refobjid::regclass::text s from pg_attrdef a join pg_depend d on d.objid = a.oid
    where a.adrelid = 'counted'::regclass and d.deptype = 'n'`
  expect((await client.query(asks)).rows).toEqual([{ s: 'counted_id_seq' }])
  await client.query('drop table counted')
  // As pg_dump writes it.
  await client.query('create table public.counted (id integer not null, n integer)')
  await client.query('create sequence public.counted_id_seq as integer start with 1')
  const requested = "set default nextval('public.counted_id_seq'::regclass)"
  await client.query(`alter table only public.counted alter column id ${requested}`)
  await client.query("select pg_catalog.setval('public.counted_id_seq', 2, true)")
  expect((await client.query('insert into counted (n) values (3) returning id')).rows).toEqual([{ id: 3 }])
  await client.query("create table again (id integer default nextval('public.again_id_seq'::regclass) not null, n int)")
  expect((await client.query('insert into again (n) values (3) returning id')).rows).toEqual([{ id: 1 }])
})

test('defaults are shown as PostgreSQL shows them', async () => {
  await client.query(`create table shown_defaults (a int default '5', b boolean default '1', c varchar(9) default 'x',
    d uuid default (gen_random_uuid()), e timestamp default ((now())), f jsonb default '{}', g int default (1) + (2),
    h boolean default TRUE, i timestamp default current_timestamp, j timestamp default NOW())`)
  const { rows } = await client.query(
    "select pg_get_expr(adbin, adrelid) d from pg_attrdef where adrelid = 'shown_defaults'::regclass order by adnum",
  )
  expect(rows.map(({ d }) => d)).toEqual([
    ...['5', 'true', "'x'::character varying", 'gen_random_uuid()', 'now()', "'{}'::jsonb", '(1) + (2)'],
    ...['true', 'CURRENT_TIMESTAMP', 'now()'],
  ])
})

test('a table has a type of its rows', async () => {
  await client.query('create table typed (a int, b varchar)')
  const attributes = `select attname from pg_type t join pg_attribute on attrelid = typrelid
    where typname = 'typed' and typtype = 'c' and t.oid = (select reltype from pg_class where relname = 'typed')`
  expect((await client.query(attributes)).rows).toEqual([{ attname: 'a' }, { attname: 'b' }])
  // As pgx loads it.
  const loaded =
    'select typtype::text kind, typrelid = $2::regclass same from pg_type where oid = $1::text::regtype::oid'
  expect((await client.query(loaded, ['typed', 'typed'])).rows).toEqual([{ kind: 'c', same: true }])
  expect(
    (await client.query("select 'public.typed'::regtype::oid = t.reltype ok from pg_class t where relname = 'typed'"))
      .rows,
  ).toEqual([{ ok: true }])
  expect((await client.query("select 'typed'::regtype::text shown, 'int4'::regtype::text known")).rows).toEqual([
    { shown: 'typed', known: 'integer' },
  ])
})

test('a column is renamed without the word COLUMN, as query builders do it', async () => {
  await client.query('create table renamed (a int, "to" int)')
  await client.query('alter table "renamed" rename "a" to "b"')
  await client.query('alter table renamed rename column "to" to c')
  expect((await client.query('select * from renamed')).fields.map(({ name }) => name)).toEqual(['b', 'c'])
})
