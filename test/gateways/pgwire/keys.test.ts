// Goal: keys declared by CREATE and ALTER TABLE are stored, can be altered as in PostgreSQL, and are found by the
// queries of tools; a table with DEDUP UPSERT KEYS has a key without a declaration.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

async function connect(): Promise<void> {
  client = await server.connect()
}

beforeAll(async () => {
  await server.start()
  await connect()
})

afterAll(() => server.remove())

async function rowsOf(text: string, values: unknown[] = []): Promise<unknown[]> {
  return (await client.query({ text, values, rowMode: 'array' })).rows.map((row) => (row.length === 1 ? row[0] : row))
}

async function refused(code: string, text: string): Promise<void> {
  await expect(client.query(text), text).rejects.toMatchObject({ code })
}

/** `name: definition` */
function keysOf(table: string): Promise<unknown[]> {
  return rowsOf(
    `select conname || ': ' || pg_get_constraintdef(oid) from pg_constraint
     where conrelid = $1::text::regclass order by conname`,
    [table],
  )
}

const columns = 'select column_name, is_nullable from information_schema.columns where table_name = $1'

test('keys stay, and go where their columns and tables go', async () => {
  await client.query(`create table books (isbn text, "Part" int constraint given not null, author int unique, title text,
    constraint books_pk primary key ("Part", isbn), unique nulls not distinct (title, author))`)
  await client.query('alter table books rename column isbn to number')
  await client.query('alter table books alter column "Part" type bigint')
  await client.query('alter table books rename to volumes')
  await client.end()
  await server.restart()
  await connect()
  const first = [
    'books_author_key: UNIQUE (author)',
    'books_pk: PRIMARY KEY ("Part", number)',
    'books_title_author_key: UNIQUE NULLS NOT DISTINCT (title, author)',
  ]
  expect(await keysOf('volumes')).toEqual(first)
  expect(await rowsOf(columns, ['volumes'])).toEqual([
    ['number', 'NO'],
    ['Part', 'NO'],
    ['author', 'YES'],
    ['title', 'YES'],
  ])
  await client.query('create table copied (like volumes)')
  await client.query('create table bare (like volumes including all excluding indexes)')
  await client.query('alter table volumes drop column title')
  expect(await keysOf('volumes')).toEqual(first.slice(0, 2))
  expect(await keysOf('copied')).toEqual([
    'copied_author_key: UNIQUE (author)',
    'copied_pkey: PRIMARY KEY ("Part", number)',
    'copied_title_author_key: UNIQUE NULLS NOT DISTINCT (title, author)',
  ])
  expect(await keysOf('bare')).toEqual([])
  await client.query('insert into volumes values (null, 1, 1), (null, 1, 1)')
})

test('ALTER TABLE adds, renames and drops keys', async () => {
  await client.query('create table altered (a int, b int)')
  await client.query('alter table only altered add constraint altered_pk primary key (a), add unique (b)')
  await client.query('alter table altered add column c bigserial unique')
  await client.query('alter table altered rename constraint altered_pk to "Renamed"')
  const names = ['Renamed: PRIMARY KEY (a)', 'altered_b_key: UNIQUE (b)', 'altered_c_key: UNIQUE (c)']
  expect(await keysOf('altered')).toEqual(names)
  await client.query('alter index "Renamed" rename to again')
  await client.query('alter index if exists nothing rename to altered_b_key')
  await refused('42P07', 'alter index public.again rename to altered_b_key')
  expect((await keysOf('altered'))[0]).toBe('again: PRIMARY KEY (a)')
  await client.query('alter table altered drop constraint again')
  await client.query('alter table altered drop b, add column d int primary key')
  expect(await keysOf('altered')).toEqual(['altered_c_key: UNIQUE (c)', 'altered_pkey: PRIMARY KEY (d)'])
  await client.query('alter table altered add column if not exists d int primary key')
  await client.query('create table other (a int constraint altered_other_key unique)')
  await client.query('alter table altered add column other int unique')
  expect(await keysOf('altered')).toContain('altered_other_key1: UNIQUE (other)')
})

test('what cannot be a key is refused', async () => {
  await client.query('create table refused (a int primary key unique, b int, unique (a), unique (b), unique (b))')
  expect(await keysOf('refused')).toEqual(['refused_b_key: UNIQUE (b)', 'refused_pkey: PRIMARY KEY (a)'])
  await refused('42P16', 'alter table refused add primary key (b)')
  await refused('42P16', 'create table two (a int primary key, b int primary key)')
  await refused('42703', 'create table two (a int, primary key (b))')
  await refused('42703', 'alter table refused add unique (c)')
  await refused('42701', 'create table two (a int, primary key (a, "A"))')
  await refused('42P07', 'alter table refused add constraint refused_pkey unique (b)')
  await client.query('create table if not exists refused (a int constraint refused_pkey primary key)')
  await client.query('alter table refused drop constraint refused_pkey, add constraint refused_pkey primary key (b)')
  await refused('42P07', 'create table two (a int constraint refused_pkey primary key)')
  await refused('42704', 'alter table refused rename constraint nothing to something')
})

test('notices say what keys are, and that there is none to drop', async () => {
  const notices: string[] = []
  client.on('notice', ({ message }) => notices.push(message ?? ''))
  await client.query('create table told (id int primary key, n int unique)')
  await client.query('alter table told drop constraint told_pkey')
  await client.query('alter table told drop constraint if exists told_fk')
  expect(notices).toEqual([
    'keys are shown to clients and not enforced: rows are not unique; DEDUP UPSERT KEYS makes them so',
    'no key has that name, and other constraints are not kept: there is none to drop',
  ])
})

test('DEDUP UPSERT KEYS are a unique key, unless one is declared', async () => {
  const tail = 'timestamp(ts) partition by day wal dedup upsert keys(ts, sensor)'
  await client.query(`create table measured (ts timestamp, sensor symbol, v double) ${tail}`)
  expect(await keysOf('measured')).toEqual(['measured_ts_sensor_key: UNIQUE NULLS NOT DISTINCT (ts, sensor)'])
  const enforced = 'select constraint_type, enforced from information_schema.table_constraints where table_name = $1'
  expect(await rowsOf(enforced, ['measured'])).toEqual([['UNIQUE', 'YES']])
  expect(await rowsOf("select indisprimary from pg_index where indrelid = 'measured'::regclass")).toEqual([false])
  await client.query('alter table measured add primary key (sensor, ts)')
  expect(await keysOf('measured')).toEqual(['measured_pkey: PRIMARY KEY (sensor, ts)'])
  expect(await rowsOf(enforced, ['measured'])).toEqual([['PRIMARY KEY', 'NO']])
  await client.query('alter table measured drop constraint measured_pkey')
  await client.query('alter table measured dedup disable')
  expect(await keysOf('measured')).toEqual([])
})

test('a key is an index to tools', async () => {
  await client.query('create table "Keyed" (a int, "B" text, c bigint, primary key (c, "B"))')
  // Ruby on Rails.
  const rails = `select a.attname from (select indrelid, indkey, generate_subscripts(indkey, 1) idx from pg_index
    where indrelid = '"Keyed"'::regclass and indisprimary) i
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[i.idx] order by i.idx`
  expect(await rowsOf(rails)).toEqual(['c', 'B'])
  // PostgreSQL's wiki.
  const wiki = `select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
    where i.indrelid = '"Keyed"'::regclass and i.indisprimary order by array_position(i.indkey, a.attnum)`
  expect(await rowsOf(wiki)).toEqual(['c', 'B'])
  const standard = `select k.column_name from information_schema.table_constraints t
    join information_schema.key_column_usage k using (constraint_schema, constraint_name)
    where t.table_name = 'Keyed' and t.constraint_type = 'PRIMARY KEY' order by k.ordinal_position`
  expect(await rowsOf(standard)).toEqual(['c', 'B'])
  expect(await rowsOf("select indexname, indexdef from pg_indexes where tablename = 'Keyed'")).toEqual([
    ['Keyed_pkey', 'CREATE UNIQUE INDEX "Keyed_pkey" ON public."Keyed" USING btree (c, "B")'],
  ])
  const index = `select c.relkind, c.oid::regclass::text, t.relhasindex, pg_get_indexdef(c.oid, 2, true), o.opcname,
      indkey[0]::int first, (indkey[1:1])::text rest, array_upper(indkey, 1) last
    from pg_class c join pg_index i on i.indexrelid = c.oid join pg_class t on t.oid = i.indrelid
    join pg_opclass o on o.oid = i.indclass[0] where c.relname = 'Keyed_pkey'`
  expect(await rowsOf(index)).toEqual([['i', '"Keyed_pkey"', true, '"B"', 'int8_ops', 3, '{2}', 1]])
  expect(await rowsOf('select count(*)::int from "Keyed_pkey"').catch(({ code }) => code)).toBe('42P01')
  const attributes =
    'select attname, attnum from pg_attribute where attrelid = \'"Keyed_pkey"\'::regclass order by attnum'
  expect(await rowsOf(attributes)).toEqual([
    ['c', 1],
    ['B', 2],
  ])
  // Sequelize, which takes a list of names apart itself: it wants its text.
  const sequelize = `select i.relname as name, ix.indkey, array_agg(a.attname order by a.attnum) as names,
      pg_get_indexdef(ix.indexrelid) as definition, ix.indexrelid::regclass::text as shown
    from pg_class t, pg_class i, pg_index ix, pg_attribute a
    where t.oid = ix.indrelid and i.oid = ix.indexrelid and a.attrelid = t.oid and t.relname = 'Keyed'
    group by i.relname, ix.indexrelid, ix.indkey`
  expect(await rowsOf(sequelize)).toEqual([
    [
      ...['Keyed_pkey', '3 2', '{a,B,c}'],
      ...['CREATE UNIQUE INDEX "Keyed_pkey" ON public."Keyed" USING btree (c, "B")', '"Keyed_pkey"'],
    ],
  ])
  // Places of columns are int2vector and an array.
  const { fields } = await client.query('select indkey, indclass, conkey from pg_index, pg_constraint')
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([22, 30, 1007])
  expect(await rowsOf("select conkey from pg_constraint where conname = 'Keyed_pkey'")).toEqual([[3, 2]])
})

test('tables of other schemas have their keys there', async () => {
  await client.query('create table lake.users (id int primary key)')
  await client.query('create table users (id int primary key)')
  const found = `select n.nspname, c.relname, pg_get_indexdef(c.oid), pg_table_is_visible(c.oid), c.oid::regclass::text
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relname = 'users_pkey' order by 1`
  expect(await rowsOf(found)).toEqual([
    ['lake', 'users_pkey', 'CREATE UNIQUE INDEX users_pkey ON lake.users USING btree (id)', false, 'lake.users_pkey'],
    ['public', 'users_pkey', 'CREATE UNIQUE INDEX users_pkey ON public.users USING btree (id)', true, 'users_pkey'],
  ])
  expect(await rowsOf("select 'lake.users_pkey'::regclass = 'users_pkey'::regclass")).toEqual([false])
})

test('SHOW CREATE TABLE and other protocols know no keys', async () => {
  await client.query('create table plain (id int primary key)')
  expect(await server.rows('show create table plain')).toEqual([["CREATE TABLE 'plain' ( \n\tid INT\n);"]])
  expect(await server.rows("select relname from pg_class where relkind = 'i'")).toEqual([])
  expect(await server.rows('select indexrelid from pg_index')).toEqual([])
})

test('labels of the catalog are in small letters, as its clients look for them', async () => {
  const { fields } = await client.query(`select null::text as PKTABLE_CAT, n.nspname as FKTABLE_SCHEM, 1 as "Kept"
    from pg_catalog.pg_namespace n, pg_catalog.pg_class c where c.relnamespace = n.oid order by FKTABLE_SCHEM limit 1`)
  expect(fields.map(({ name }) => name)).toEqual(['pktable_cat', 'fktable_schem', 'Kept'])
  const own = await client.query('select 1 as KeySeq')
  expect(own.fields.map(({ name }) => name)).toEqual(['KeySeq'])
})
