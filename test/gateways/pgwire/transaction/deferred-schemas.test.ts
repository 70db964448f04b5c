// Goal: DDL within BEGIN is visible only to its transaction, is discarded by ROLLBACK and ROLLBACK TO SAVEPOINT, and is
// stored by COMMIT together with its rows; a concurrent change of the same table makes COMMIT fail without storing
// anything; statements that cannot be deferred are refused.

import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'

const server = new TestServer(['query.threads=1'])
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
  for (const view of ['v', 'w']) await client.query(`drop view if exists ${view}`)
  for (const table of ['t', 'n', 'm', 'mm', 'u']) await client.query(`drop table if exists ${table}`)
  await client.query('create table t (ts timestamp, a int) timestamp(ts) partition by day')
  await client.query("insert into t values ('2024-01-01', 1), ('2024-01-02', 2)")
  warnings.length = 0
})

type Rows = readonly (readonly unknown[])[]

async function rows(by: pg.Client, text: string): Promise<Rows> {
  return (await by.query({ text, rowMode: 'array' })).rows
}

async function code(by: pg.Client, text: string): Promise<string> {
  return by.query(text).then(
    () => 'none',
    (error: { code?: string }) => error.code ?? 'no code',
  )
}

/** Each with a query that shows it, and what that shows within the transaction; behind ROLLBACK it is as before. */
const changes: readonly (readonly [statements: readonly string[], shown: string, within: Rows | string])[] = [
  [
    ['alter table t add column b text'],
    'select a, b from t',
    [
      [1, null],
      [2, null],
    ],
  ],
  [['alter table t drop column a'], 'select a from t', '42703'],
  [['alter table t rename column a to b'], 'select b from t', [[1], [2]]],
  [['alter table t alter column a type text'], "select a || '!' from t", [['1!'], ['2!']]],
  [['alter table t alter column a type double precision'], 'select a / 2 from t', [[0.5], [1]]],
  [['alter table t rename to n'], 'select a from n', [[1], [2]]],
  [['rename table t to n'], 'select a from t', '42P01'],
  [['drop table t'], 'select a from t', '42P01'],
  [['truncate table t'], 'select a from t', []],
  [['create table n (x int)', 'insert into n values (7)'], 'select x from n', [[7]]],
  [['create table if not exists t (x int)'], 'select a from t', [[1], [2]]],
  [['create temporary table n (x int)'], 'select x from n', []],
  [['create table n as select a from t where a > 1'], 'select a from n', [[2]]],
  [['create view v as select a from t'], 'select a from v', [[1], [2]]],
  [['create view v as select a from t', 'drop view v'], 'select a from v', '42P01'],
  [
    ["create type mood as enum ('ok', 'bad')", 'create table n (m mood)', "insert into n values ('ok')"],
    'select m::text from n',
    [['ok']],
  ],
  [['create sequence s start 5'], "select nextval('s')", [['5']]],
  [["comment on table t is 'said'"], "select obj_description('t'::regclass)", [['said']]],
  [['create index i on t (a)'], 'select a from t', [[1], [2]]],
  [['create table n (id serial, x int)', 'insert into n (x) values (1), (2)'], 'select id from n', [[1], [2]]],
]

test('a transaction sees its changes, nobody else does, and ROLLBACK leaves nothing', async () => {
  for (const [statements, shown, within] of changes) {
    const before = await rows(other, shown).catch((error: { code: string }) => error.code)
    await client.query('begin')
    for (const statement of statements) await client.query(statement)
    await client.query('savepoint s')
    const seen = await rows(client, shown).catch((error: { code: string }) => error.code)
    expect(seen, statements.join('; ')).toEqual(within)
    await client.query('rollback to s')
    if (!shown.includes('nextval')) {
      const others = await rows(other, shown).catch((error: { code: string }) => error.code)
      expect(others, statements.join('; ')).toEqual(before)
    }
    await client.query('rollback')
    const after = await rows(other, shown).catch((error: { code: string }) => error.code)
    expect(after, statements.join('; ')).toEqual(before)
  }
  expect(warnings).toEqual([])
})

test('COMMIT stores changes and rows', async () => {
  for (const [statements, shown, within] of changes) {
    await client.query('begin')
    for (const statement of statements) await client.query(statement)
    await client.query('commit')
    if (!shown.includes('nextval')) {
      const after = await rows(other, shown).catch((error: { code: string }) => error.code)
      expect(after, statements.join('; ')).toEqual(within)
    }
    await client.query('drop view if exists v; drop table if exists n; drop table if exists t')
    await client.query('drop sequence if exists s')
    await client.query('drop type if exists mood')
    await client.query('create table t (ts timestamp, a int) timestamp(ts) partition by day')
    await client.query("insert into t values ('2024-01-01', 1), ('2024-01-02', 2)")
  }
})

test('rows before and behind changes are stored in their order', async () => {
  await client.query('begin')
  await client.query("insert into t values ('2024-01-03', 3)")
  await client.query('alter table t add column b symbol')
  await client.query("insert into t values ('2024-01-04', 4, 'x')")
  await client.query('alter table t rename column a to c')
  await client.query("insert into t (ts, c) values ('2024-01-05', 5)")
  await client.query("update t set b = 'y' where c > 3")
  await client.query('alter table t alter column c type text')
  await client.query("insert into t (ts, c) values ('2024-01-06', '6')")
  await client.query('delete from t where c = $1', ['2'])
  const expected = [
    ['1', null],
    ['3', null],
    ['4', 'y'],
    ['5', 'y'],
    ['6', null],
  ]
  expect(await rows(client, 'select c, b from t')).toEqual(expected)
  await client.query('create table n (x int, y text)')
  await client.query("insert into n values (1, 'a'), (2, 'b')")
  await client.query("update n set y = 'z' where x = 2")
  await client.query('truncate table n')
  await client.query("insert into n values (3, 'c')")
  await client.query('alter table n rename to m')
  expect(await rows(client, 'select * from m')).toEqual([[3, 'c']])
  await client.query('commit')
  expect(await rows(other, 'select c, b from t')).toEqual(expected)
  expect(await rows(other, 'select * from m')).toEqual([[3, 'c']])
  expect(warnings).toEqual([])
})

test('ROLLBACK TO takes back what came behind the savepoint', async () => {
  await client.query('begin')
  await client.query('alter table t add column b int')
  await client.query("insert into t values ('2024-01-03', 3, 30)")
  await client.query('savepoint one')
  await client.query('alter table t add column c int; alter table t drop column b; create table n (x int)')
  await client.query('truncate table t')
  expect(await rows(client, 'select * from t')).toEqual([])
  await client.query('savepoint two')
  expect(await code(client, 'select b from t')).toBe('42703')
  await client.query('rollback to one')
  expect(await rows(client, 'select a, b from t')).toEqual([
    [1, null],
    [2, null],
    [3, 30],
  ])
  expect(await code(client, 'select x from n')).toBe('42P01')
  await client.query('rollback to one')
  await client.query('release one')
  await client.query('commit')
  expect(await rows(other, 'select a, b from t')).toEqual([
    [1, null],
    [2, null],
    [3, 30],
  ])
})

test('the catalog of the transaction has its tables and columns', async () => {
  const columns =
    "select column_name, data_type from information_schema.columns where table_name = '%' order by ordinal_position"
  await client.query('begin')
  await client.query('alter table t add column b double precision; create table n (x bigint primary key)')
  expect(await rows(client, columns.replace('%', 't'))).toEqual([
    ['ts', 'timestamp without time zone'],
    ['a', 'integer'],
    ['b', 'double precision'],
  ])
  expect(await rows(client, columns.replace('%', 'n'))).toEqual([['x', 'bigint']])
  expect(await rows(other, columns.replace('%', 'n'))).toEqual([])
  expect(await rows(client, "select count(*) from pg_class where relname = 'n'")).toEqual([['1']])
  expect(await rows(client, "select attname from pg_attribute where attrelid = 'n'::regclass and attnum > 0")).toEqual([
    ['x'],
  ])
  await client.query('commit')
  expect(await rows(other, columns.replace('%', 'n'))).toEqual([['x', 'bigint']])
})

test('names may be exchanged and used again', async () => {
  await client.query('create table n (x int); insert into n values (5)')
  await client.query('begin')
  await client.query('alter table t rename to u; alter table n rename to t; alter table u rename to n')
  await client.query('commit')
  expect(await rows(other, 'select x from t')).toEqual([[5]])
  expect(await rows(other, 'select a from n')).toEqual([[1], [2]])
  await client.query('begin; drop table t; create table t (z int); insert into t values (9); commit')
  expect(await rows(other, 'select * from t')).toEqual([[9]])
})

test('COPY fills columns and tables of the transaction', async () => {
  const copy = (text: string, data: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const stream = client.query(copyFrom(text))
      stream.on('error', reject).on('finish', resolve)
      stream.end(data)
    })
  await client.query('begin')
  await client.query('alter table t add column b text; create table n (x int, y text)')
  await copy('copy t (ts, a, b) from stdin', '2024-01-03\t3\tc\n')
  await copy('copy n from stdin (format csv)', '1,one\n2,two\n')
  expect(await rows(client, 'select a, b from t')).toEqual([
    [1, null],
    [2, null],
    [3, 'c'],
  ])
  await client.query('commit')
  expect(await rows(other, 'select * from n')).toEqual([
    [1, 'one'],
    [2, 'two'],
  ])
  expect(await rows(other, 'select a, b from t where b is not null')).toEqual([[3, 'c']])
})

test('RETURNING, ON CONFLICT and INSERT .. SELECT fill tables of the transaction', async () => {
  await client.query('begin')
  await client.query('create table n (id bigint generated by default as identity primary key, x int)')
  expect(await rows(client, 'insert into n (x) values (7), (8) returning id, x')).toEqual([
    ['1', 7],
    ['2', 8],
  ])
  await client.query('insert into n (x) select a from t')
  await client.query('create table u (k int, z int)')
  await client.query('insert into u values (1, 1) on conflict do nothing')
  await client.query('commit')
  expect(await rows(other, 'select x from n')).toEqual([[7], [8], [1], [2]])
  expect(await rows(other, 'select * from u')).toEqual([[1, 1]])
  expect(await rows(client, 'insert into n (x) values (9) returning id')).toEqual([['5']])
})

test('somebody else changes the table meanwhile: COMMIT stores nothing', async () => {
  await client.query('begin')
  await client.query('alter table t add column b int; create table n (x int)')
  await client.query("insert into t values ('2024-01-03', 3, 30)")
  await other.query('alter table t add column c int')
  expect(await code(client, 'commit')).toBe('40001')
  expect(await rows(other, 'select * from t where a > 2')).toEqual([])
  expect(await code(other, 'select * from n')).toBe('42P01')
  await client.query('begin; create table n (x int); insert into n values (1)')
  await other.query('create table n (y int)')
  expect(await code(client, 'commit')).toBe('40001')
  expect(await rows(other, 'select y from n')).toEqual([])
  await client.query('begin; truncate table t')
  await other.query('drop table t')
  expect(await code(client, 'commit')).toBe('40001')
  // Rows that others add are no conflict, where the transaction changes no rows that are there.
  await client.query('begin; alter table n add column z int; insert into n values (1, 2)')
  await other.query('insert into n values (3)')
  await client.query('commit')
  expect(await rows(other, 'select * from n order by y')).toEqual([
    [1, 2],
    [3, null],
  ])
})

test('rows that are written anew are those of the moment of COMMIT', async () => {
  await client.query('begin')
  await client.query('alter table t alter column a type text')
  await other.query("insert into t values ('2024-01-03', 3)")
  await client.query('commit')
  expect(await rows(other, 'select a from t')).toEqual([['1'], ['2'], ['3']])
  await client.query('begin; alter table t add column b int; update t set b = 1')
  await other.query("insert into t values ('2024-01-04', '4')")
  await client.query('commit')
  expect(await rows(other, 'select a, b from t')).toEqual([
    ['1', 1],
    ['2', 1],
    ['3', 1],
    ['4', 1],
  ])
})

test('a sequence of the transaction gives no number twice', async () => {
  await client.query('begin')
  await client.query('create sequence s')
  expect(await rows(client, "select nextval('s')")).toEqual([['1']])
  await client.query('commit')
  expect(await rows(other, "select nextval('s')")).toEqual([['2']])
  await Promise.all([client.end(), other.end()])
  await server.restart()
  client = await server.connect()
  other = await server.connect()
  expect(Number((await rows(client, "select nextval('s')"))[0]?.[0])).toBeGreaterThan(2)
  await client.query('drop sequence s')
})

test('what is too much to wait is refused, and nothing is done', async () => {
  await client.query('begin; alter table t add column b int')
  expect(await code(client, 'update t set b = 1 from t x where x.a = t.a')).toBe('0A000')
  await client.query('rollback')
  await client.query("create table n as select timestamp_sequence('2024-01-01', 1000) ts, x from long_sequence(200001)")
  await client.query('begin; alter table n add column y int; create table u (z int)')
  await client.query('alter table n alter column x type text')
  expect(await code(client, 'commit')).toBe('0A000')
  expect(await code(other, 'select * from u')).toBe('42P01')
  // Alone it is stored as outside of a transaction.
  await client.query('begin; alter table n alter column x type text; commit')
  expect(await rows(other, 'select max(length(x)) from n')).toEqual([[6]])
  // So is an UPDATE that comes behind the rest.
  await client.query('begin; alter table n add column y int; create table u (z int); update n set y = 2')
  expect(await rows(client, 'select sum(y) from n')).toEqual([['400002']])
  await client.query('commit')
  expect(await rows(other, 'select sum(y) from n')).toEqual([['400002']])
  await client.query('begin; alter table n drop column y; update n set x = 1; alter table n rename column x to z')
  expect(await code(client, 'commit')).toBe('0A000')
  expect(await rows(other, 'select sum(y) from n')).toEqual([['400002']])
})

test('DEDUP of a transaction leaves the stored rows alone, or is refused', async () => {
  const all = 'select a from t order by a'
  await client.query("insert into t values ('2024-01-01', 3)")
  await client.query('begin; alter table t dedup enable upsert keys(ts); commit')
  expect(await rows(client, all)).toEqual([[1], [2], [3]])
  await client.query('begin')
  await client.query('alter table t add column b int')
  await client.query('update t set b = 1')
  expect(await code(client, 'commit')).toBe('0A000')
  expect(await rows(other, all)).toEqual([[1], [2], [3]])
  await client.query('begin; alter table t dedup enable upsert keys(ts, a)')
  expect(await code(client, 'commit')).toBe('0A000')
  await client.query('alter table t dedup enable upsert keys(ts, a)')
  await client.query("insert into t values ('2024-01-01', 3)")
  expect(await rows(other, all)).toEqual([[1], [2], [3]])
  // A key column with another type is still the same key.
  await client.query('create table m (ts timestamp, k int) timestamp(ts) partition by day dedup upsert keys(ts, k)')
  for (let time = 0; time < 2; time++) await client.query("insert into m values ('2024-01-01', 3)")
  for (const type of ['integer', 'bigint'])
    await client.query(`begin; alter table m alter column k type ${type}; commit`)
  await client.query("insert into m values ('2024-01-01', 3)")
  expect(await rows(other, 'select k from m')).toEqual([['3']])
  await client.query("insert into m values ('2024-01-01', 70000)")
  await client.query('begin; alter table m alter column k type smallint')
  expect(await code(client, 'commit')).toBe('0A000')
  expect(await rows(other, 'select k from m order by k')).toEqual([['3'], ['70000']])
})
