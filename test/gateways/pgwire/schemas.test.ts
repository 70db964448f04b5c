// Goal: programs with a schema of their own (loaders, staging areas) can create it, find it in the catalog and drop it.
// The server has no schemas: a table named `a.t` is shown to them as table t of schema a.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

async function rows(sql: string, values: readonly unknown[] = []): Promise<unknown[][]> {
  return (await client.query({ text: sql, values: [...values], rowMode: 'array' })).rows
}

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  await client.query('create schema if not exists lake')
  await client.query('create table lake.users (id int not null, name varchar(20))')
  await client.query('create table users (id int)')
  await client.query("insert into lake.users values (1, 'ann')")
  await client.query('create view lake.names as select name from lake.users')
})

afterAll(() => server.remove())

test('information_schema and pg_catalog tell the schema and the name within it', async () => {
  const found = 'select table_name, table_type from information_schema.tables where table_schema = $1 order by 1'
  expect(await rows(found, ['lake'])).toEqual([
    ['names', 'VIEW'],
    ['users', 'BASE TABLE'],
  ])
  expect(
    await rows(
      'select column_name, is_nullable from information_schema.columns where table_schema = $1 and table_name = $2',
      ['lake', 'users'],
    ),
  ).toEqual([
    ['id', 'NO'],
    ['name', 'YES'],
  ])
  expect(await rows("select 1 from information_schema.schemata where schema_name = 'lake'")).toEqual([[1]])
  const classes =
    'select n.nspname, c.relname, pg_table_is_visible(c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace'
  expect(await rows(`${classes} where c.relname = 'users' order by 1`)).toEqual([
    ['lake', 'users', false],
    ['public', 'users', true],
  ])
  expect(await rows("select 'lake.users'::regclass::text, 'lake'::regnamespace::text")).toEqual([
    ['lake.users', 'lake'],
  ])
  // Mappers put the names of all relations together, and TypeORM those of the catalog, too.
  const named = (
    heads: string,
  ): string => `select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where (${heads} quote_ident(n.nspname) || '.' || quote_ident(c.relname))::regclass::oid != c.oid`
  expect(await rows(named(''))).toEqual([])
  expect(await rows(named("'qdb.' ||"))).toEqual([])
  expect(await rows("select tablename from pg_tables where schemaname = 'lake'")).toEqual([['users']])
})

test('over HTTP it is the name that it is', async () => {
  const names = await server.rows("select table_name from tables() where table_name like '%users' order by 1")
  expect(names).toEqual([['lake.users'], ['users']])
  const found = "select table_schema, table_name from information_schema.tables where table_name = 'lake.users'"
  expect(await server.rows(found)).toEqual([['public', 'lake.users']])
})

test('a renamed table stays in its schema', async () => {
  await client.query('alter table lake.users rename to people')
  expect(await rows('select lake.people.name from lake.people')).toEqual([['ann']])
  await client.query('alter table lake.people rename to users')
})

test('DROP SCHEMA takes its tables and views with CASCADE alone', async () => {
  await expect(client.query('drop schema lake')).rejects.toMatchObject({ code: '2BP01' })
  await expect(client.query('drop schema public cascade')).rejects.toThrow('cannot be dropped')
  await client.query('drop schema lake cascade')
  expect(await rows("select 1 from information_schema.schemata where schema_name = 'lake'")).toEqual([])
  expect(await rows('select count(*)::int from users')).toEqual([[0]])
  await client.query('drop schema if exists lake cascade')
})

test('a temporary table is found with its schema and without it, and a notice says that it stays', async () => {
  const notices: string[] = []
  const listener = ({ message }: { message?: string | undefined }): number => notices.push(message ?? '')
  client.on('notice', listener)
  await client.query('create temporary table pg_temp.passing (id int)')
  client.off('notice', listener)
  expect(notices).toEqual([
    'a temporary table is one like others: all sessions see it, and it stays until it is dropped',
  ])
  await client.query('insert into "pg_temp"."passing" values (1)')
  expect(await rows('select id from passing')).toEqual([[1]])
  await client.query('drop table pg_temp.passing')
  await expect(rows('select id from passing')).rejects.toMatchObject({ code: '42P01' })
})
