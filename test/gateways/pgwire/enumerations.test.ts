// Goal: types created by CREATE TYPE .. AS ENUM are stored, are in the catalog, and restrict the values of their
// columns, whichever SQL inserts them; they can be altered as ORMs do.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
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

async function refused(code: string, text: string, values: unknown[] = []): Promise<void> {
  await expect(client.query(text, values), text).rejects.toMatchObject({ code })
}

const labels = 'select enumlabel from pg_enum where enumtypid = $1::regtype order by enumsortorder'

test('a type stays, and is shown', async () => {
  await client.query(`create type "public"."Mood" as enum ('sad', 'it''s ok', 'happy')`)
  await client.query(`create table people (id int, m "Mood" not null default 'happy', l "public"."Mood"[])`)
  await client.end()
  await server.restart()
  await connect()
  expect(await rowsOf(labels, ['"Mood"'])).toEqual(['sad', "it's ok", 'happy'])
  expect(
    await rowsOf(
      "select typname, typtype, nspname from pg_type t, pg_namespace n where typtype = 'e' and n.oid = typnamespace",
    ),
  ).toEqual([['Mood', 'e', 'public']])
  expect(
    await rowsOf("select data_type, udt_schema, udt_name from information_schema.columns where table_name = 'people'"),
  ).toEqual([
    ['integer', 'pg_catalog', 'int4'],
    ['USER-DEFINED', 'public', 'Mood'],
    ['ARRAY', 'public', '_Mood'],
  ])
  expect(
    await rowsOf(
      "select format_type(atttypid, atttypmod), atttypid::regtype from pg_attribute where attrelid = 'people'::regclass and attname = 'm'",
    ),
  ).toEqual([['"Mood"', '"Mood"']])
  // TypeORM puts the name of each column's type together.
  const named = `select ('"' || udt_schema || '"."' || udt_name || '"')::regtype::text
    from information_schema.columns where table_name = 'people'`
  expect(await rowsOf(named)).toEqual(['integer', '"Mood"', '"Mood"[]'])
  await refused('42710', `create type "Mood" as enum ('a')`)
  await refused('42601', 'create type pair as (a int)')
  await refused('42704', 'drop type "Moods"')
})

test('a list of labels is of a type of its own', async () => {
  const types = `select e.typname, a.typname, a.typcategory, a.oid = e.typarray, a.typelem = e.oid, a.oid = atttypid
    from pg_type e, pg_type a, pg_attribute where e.typname = 'Mood' and a.typname = '_Mood'
    and attrelid = 'people'::regclass and attname = 'l'`
  expect(await rowsOf(types)).toEqual([['Mood', '_Mood', 'A', true, true, true]])
  const names = `select '"Mood"[]'::regtype::text, '"_Mood"'::regtype::text, '"public"."_Mood"'::regtype::oid - typarray
    from pg_type where typname = 'Mood'`
  expect(await rowsOf(names)).toEqual([['"Mood"[]', '"Mood"[]', 0]])
  await client.query('insert into people (id, l) values (0, $1)', [['sad', "it's ok"]])
  // Drivers of Node.js know no such type: TypeORM takes the text apart itself.
  const { rows, fields } = await client.query(`select l from people where 'sad' = any(l)`)
  expect(rows).toEqual([{ l: `{sad,"it's ok"}` }])
  expect(await rowsOf(`select typname from pg_type where oid = ${fields[0]?.dataTypeID}`)).toEqual(['_Mood'])
  await client.query('create view moods as select l from people')
  expect(await rowsOf('select l::text from moods')).toEqual([`{sad,"it's ok"}`])
  await client.query('drop view moods')
  await client.query('truncate table people')
})

test('its columns take its labels alone', async () => {
  const insert = 'insert into people (id, m) values ($1, $2)'
  for (const name of ['', 'named'])
    for (const label of ['sad', "it's ok"]) await client.query({ name, text: insert, values: [1, label] })
  await client.query("insert into people (id, m, l) values (2, 'sad', '{sad}'), (2, 'happy'::\"Mood\", null)")
  await client.query('insert into people (id) values (2)')
  await client.query('insert into people (id, m) select 3, m from people where id = 2')
  await client.query('insert into people (id, m) select 3, cast($1::text as "public"."Mood")', ['sad'])
  await pipeline(Readable.from(['4\thappy\n']), client.query(copyFrom('copy people (id, m) from stdin')))
  await client.query("update people set m = 'sad' where id = 3 and m = any($1)", [['happy']])
  expect(await rowsOf('select m, count(*)::int from people group by m order by m')).toEqual([
    ['happy', 3],
    ["it's ok", 2],
    ['sad', 7],
  ])
  await refused('22P02', insert, [1, 'no'])
  await refused('22P02', "insert into people (id, m) values (1, 'SAD')")
  await refused('22P02', "insert into people (id, m) select 1, m || '!' from people")
  await refused('22P02', "update people set m = 'no'")
  await refused('22P02', "update people set m = m || '!'")
  await refused('22P02', 'select \'no\'::"Mood"')
  await refused('22P02', 'select $1::"Mood"', ['no'])
  await refused('22P02', 'create table no (m "Mood" default \'no\')')
  for (const form of ['text', 'csv']) {
    const lines = Readable.from([form === 'csv' ? '4,no\n' : '4\tno\n'])
    const copied = pipeline(lines, client.query(copyFrom(`copy people (id, m) from stdin (format ${form})`)))
    await expect(copied).rejects.toMatchObject({ code: '22P02' })
  }
  expect(await rowsOf('select count(*)::int from people')).toEqual([12])
})

test('it is changed as mappers do', async () => {
  await client.query(`alter type "Mood" add value 'great' after 'happy'`)
  await client.query(`alter type "Mood" add value if not exists 'great'`)
  await client.query(`alter type "Mood" add value 'low' before 'sad'`)
  expect(await rowsOf(labels, ['"Mood"'])).toEqual(['low', 'sad', "it's ok", 'happy', 'great'])
  await client.query("insert into people (id, m) values (5, 'great')")
  await refused('2BP01', 'drop type "Mood"')
  await client.query('alter type "Mood" rename to "Mood_old"')
  await client.query(`create type "Mood" as enum ('sad', 'great')`)
  await client.query('alter table people alter column m drop default')
  await client.query('alter table people alter column m type "Mood" using "m"::"text"::"Mood"')
  await client.query('alter table people add column n "Mood"')
  // A list is of the type, too, and is renamed with it.
  await refused('2BP01', 'drop type "Mood_old"')
  const typeOfList =
    "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'people'::regclass and attname = 'l'"
  expect(await rowsOf(typeOfList)).toEqual(['"Mood_old"[]'])
  await client.query('alter table people alter column l type "Mood"[] using "l"::"text"::"Mood"[]')
  expect(await rowsOf(typeOfList)).toEqual(['"Mood"[]'])
  await client.query('drop type "Mood_old"')
  await refused('22P02', "insert into people (id, m) values (6, 'happy')")
  await refused('22P02', "insert into people (id, n) values (6, 'happy')")
  await client.query("insert into people (id, m, n) values (6, 'great', 'sad')")
  await client.query('drop table people')
  const block = `do $$ begin create type "Mood" as enum ('sad', 'great'); exception when duplicate_object then null; end $$`
  await client.query(block)
  await client.query('drop type "Mood"')
  await client.query(block)
  await client.query('drop type if exists "Mood", other cascade')
  expect(await rowsOf('select count(*)::int from pg_enum')).toEqual([0])
})
