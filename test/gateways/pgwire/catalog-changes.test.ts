// Goal: cached rows and plans of pg_catalog are never stale: a committed change by any session is visible to the next
// statement with the same text, and an uncommitted change only to its transaction.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client
let other: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
  for (let index = 0; index < 10; index++)
    await client.query(`create table c${index} (id bigint primary key, a text, b double precision)`)
})
afterAll(() => server.remove())

const questions = {
  tables: "select relname from pg_class where relkind = 'r' and relname like 'c_' order by 1",
  columns: `select a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relname = 'c1' and a.attnum > 0 and not a.attisdropped order by a.attnum`,
  types: `select t.typname from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
    where c.relname = 'c1' and a.attnum > 0 order by a.attnum`,
  keys: "select conname from pg_constraint k join pg_class c on c.oid = k.conrelid where c.relname = 'c1' order by 1",
  indexes: "select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'c1'::regclass",
  comments: `select description from pg_class c join pg_description d on d.objoid = c.oid where c.relname = 'c1'`,
  views:
    "select attname from pg_attribute where attrelid = (select oid from pg_class where relname = 'v1') order by attnum",
  sequences: "select relname from pg_class where relkind = 'S' and relname like 's_' order by 1",
  labels: 'select enumlabel from pg_enum order by enumsortorder',
  schemas: "select nspname from pg_namespace where nspname like 'own%' order by 1",
  standard: "select column_name from information_schema.columns where table_name = 'c1' order by ordinal_position",
  names: "select to_regclass('c1') is null",
} as const
type Question = keyof typeof questions

/** The second time with a plan that is kept. Extended as drivers ask, which describe before they execute. */
async function answer(by: pg.Client, question: Question): Promise<unknown[]> {
  const text = questions[question]
  const simple = (await by.query({ text, rowMode: 'array' })).rows.flat()
  const extended = (
    await by.query({ text, rowMode: 'array', queryMode: 'extended' } as pg.QueryArrayConfig)
  ).rows.flat()
  expect(extended).toEqual(simple)
  return simple
}

const changes: readonly (readonly [statement: string, question: Question, found: readonly unknown[]])[] = [
  ['alter table c1 add column d timestamp', 'columns', ['id', 'a', 'b', 'd']],
  ['alter table c1 rename column d to e', 'columns', ['id', 'a', 'b', 'e']],
  ['alter table c1 rename column e to f', 'standard', ['id', 'a', 'b', 'f']],
  ['alter table c1 drop column f', 'columns', ['id', 'a', 'b']],
  ['alter table c1 alter column b type text', 'types', ['int8', 'text', 'text']],
  ['alter table c1 add constraint only_a unique (a)', 'keys', ['c1_pkey', 'only_a']],
  ['alter table c1 drop constraint only_a', 'indexes', ['CREATE UNIQUE INDEX c1_pkey ON public.c1 USING btree (id)']],
  ["comment on table c1 is 'said'", 'comments', ['said']],
  ["comment on table c1 is 'said anew'", 'comments', ['said anew']],
  ['create view v1 as select id, a from c1', 'views', ['id', 'a']],
  ['alter table c1 rename column a to z', 'columns', ['id', 'z', 'b']],
  ['alter table c1 rename column z to a', 'views', ['id', 'a']],
  ['drop view v1', 'views', []],
  ['create sequence s1', 'sequences', ['s1']],
  ['drop sequence s1', 'sequences', []],
  ["create type mood as enum ('sad', 'ok')", 'labels', ['sad', 'ok']],
  ["alter type mood add value 'happy'", 'labels', ['sad', 'ok', 'happy']],
  ['create table own1.t (a int)', 'schemas', ['own1']],
  ['drop table own1.t', 'schemas', []],
  ['drop table c9', 'tables', ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8']],
  ['alter table c8 rename to c9', 'tables', ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c9']],
  ['create table c8 (id bigint)', 'tables', ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9']],
  ['drop table c1', 'names', [true]],
]

test.each(changes)('%s', async (statement, question, found) => {
  const [before] = [await answer(client, question), await answer(other, question)]
  await client.query('begin')
  await client.query(statement)
  expect(await answer(client, question), 'within').toEqual(found)
  expect(await answer(other, question), 'elsewhere').toEqual(before)
  await client.query('rollback')
  expect(await answer(client, question), 'rolled back').toEqual(before)
  await client.query(statement)
  expect(await answer(other, question), 'elsewhere, afterwards').toEqual(found)
  expect(await answer(client, question), 'afterwards').toEqual(found)
})

test('users are none of the catalog: they are looked up each time', async () => {
  const requested =
    "select usename, usesysid::regrole, pg_get_userbyid(usesysid) from pg_user where usename = 'reader' order by 1"
  const rows = async (): Promise<unknown[]> => (await other.query({ text: requested, rowMode: 'array' })).rows
  for (let round = 0; round < 2; round++) {
    expect(await rows()).toEqual([])
    await client.query("create user reader with password 'secret'")
    expect(await rows()).toEqual([['reader', 'reader', 'reader']])
    await client.query('drop user reader')
  }
})

test('a prepared statement sees what has changed', async () => {
  const columnsOf = async (table: string): Promise<unknown[]> => {
    const text = 'select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 order by attnum'
    return (await other.query({ name: 'columns', text, values: [table], rowMode: 'array' })).rows.flat()
  }
  for (let round = 0; round < 3; round++) {
    expect(await columnsOf('c2')).toEqual(['id', 'a', 'b'])
    expect(await columnsOf('c3')).toEqual(['id', 'a', 'b'])
    await client.query('alter table c2 add column extra int')
    expect(await columnsOf('c2')).toEqual(['id', 'a', 'b', 'extra'])
    expect(await columnsOf('c3')).toEqual(['id', 'a', 'b'])
    await client.query('alter table c2 drop column extra')
  }
})
