// Goal: COMMENT ON TABLE and COLUMN store their comments, and the catalog queries of ORMs find them.

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

async function rowsOf(text: string, values: unknown[] = []): Promise<unknown[]> {
  return (await client.query({ text, values, rowMode: 'array' })).rows.map((row) => (row.length === 1 ? row[0] : row))
}

const described = `select objsubid, description from pg_description
  where classoid = 'pg_class'::regclass and objoid = '"Told"'::regclass order by objsubid`
const requested = `select obj_description('"Told"'::regclass, 'pg_class'), col_description('"Told"'::regclass, attnum)
  from pg_attribute where attrelid = '"Told"'::regclass and attnum > 0 order by attnum`

test('comments stay', async () => {
  await client.query('create table "Told" (id int, "B" varchar(9), c int)')
  expect(await rowsOf(requested)).toEqual([
    [null, null],
    [null, null],
    [null, null],
  ])
  expect((await client.query(`comment on table public."Told" is 'it''s told'`)).command).toBe('COMMENT')
  await client.query(`comment on column "Told"."B" is 'a name'`)
  await client.query(`comment on column "public"."Told".c is E'of\\nlines'`)
  await client.end()
  await server.restart()
  client = await server.connect()
  expect(await rowsOf(described)).toEqual([
    [0, "it's told"],
    [2, 'a name'],
    [3, 'of\nlines'],
  ])
  expect(await rowsOf(requested)).toEqual([
    ["it's told", null],
    ["it's told", 'a name'],
    ["it's told", 'of\nlines'],
  ])
})

test('a column that is changed keeps its own, one that is dropped takes it away', async () => {
  await client.query('alter table "Told" alter column "B" type varchar(20)')
  await client.query('alter table "Told" alter column c set not null')
  await client.query('alter table "Told" alter column c type bigint')
  await client.query('alter table "Told" drop column id')
  expect(await rowsOf(described)).toEqual([
    [0, "it's told"],
    [1, 'a name'],
    [2, 'of\nlines'],
  ])
})

test('NULL and an empty text take them away', async () => {
  await client.query('comment on table "Told" is null')
  await client.query(`comment on column "Told".c is ''`)
  expect(await rowsOf(described)).toEqual([[1, 'a name']])
  // A statement that was prepared sees what was said later.
  const prepared = { name: 'told', text: `select obj_description('"Told"'::regclass) d` }
  expect((await client.query(prepared)).rows).toEqual([{ d: null }])
  await client.query(`comment on table "Told" is 'again'`)
  expect((await client.query(prepared)).rows).toEqual([{ d: 'again' }])
})

test('of other objects nothing is kept', async () => {
  for (const object of ['database qdb', 'schema public', 'extension plpgsql'])
    expect((await client.query(`comment on ${object} is 'x'`)).command).toBe('COMMENT')
  await expect(client.query(`comment on table nope is 'x'`)).rejects.toMatchObject({ code: '42P01' })
  await expect(client.query(`comment on column "Told".nope is 'x'`)).rejects.toMatchObject({ code: '42703' })
  await expect(client.query(`comment on column nope is 'x'`)).rejects.toMatchObject({ code: '42601' })
  expect(await rowsOf("select obj_description(1242, 'pg_proc')")).toEqual(['I/O'])
})
