// Goal: a sequence returns each number once, whichever statement calls it, and even if the server is killed in between;
// describing a statement does not draw a number. The catalog shows the sequences of serial and identity columns so that
// ORMs and dump tools find them.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['query.threads=1', 'pg.readonly.user.enabled=true'])
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
})

afterAll(() => server.remove())

async function restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const lost = new Promise((resolve) => client.once('end', resolve))
  client.on('error', () => {})
  await server.end(signal)
  await lost
  await server.start()
  client = await server.connect()
}

const next = { name: 'next', text: "select nextval('block_seq') n" }

async function nextOf(by: pg.Client): Promise<number> {
  return Number((await by.query(next)).rows[0].n)
}

test('numbers of the extended protocol follow each other, and none comes twice behind a kill', async () => {
  await client.query('create sequence block_seq start with 1 increment by 50')
  expect([await nextOf(client), await nextOf(client), await nextOf(client)]).toEqual([1, 51, 101])
  const given = new Set<number>([1, 51, 101])
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    const other = await server.connect()
    for (let requested = 0; requested < 60; requested++) {
      const number = await nextOf(requested % 2 === 0 ? client : other)
      expect(given.has(number)).toBe(false)
      given.add(number)
    }
    await other.end()
    await restart(signal)
  }
  expect(given.has(await nextOf(client))).toBe(false)
})

test('a default asks the sequence by every way, and rows keep their numbers behind a kill', async () => {
  await client.query('create sequence row_seq')
  await client.query("create table r (id bigint default nextval('row_seq'::regclass), ts timestamp) timestamp(ts)")
  const insert = { name: 'insert', text: "insert into r (ts) values ('2024-01-01') returning id" }
  expect((await client.query(insert)).rows).toEqual([{ id: '1' }])
  const plain = { name: 'plain', text: 'insert into r (ts) values ($1)' }
  await Promise.all(Array.from({ length: 100 }, () => client.query({ ...plain, values: ['2024-01-02'] })))
  await restart('SIGKILL')
  await client.query("insert into r (ts) values ('2024-01-03'), ('2024-01-03')")
  const { rows } = await client.query('select count() n, count_distinct(id) numbers, max(id) last from r')
  expect(rows[0]).toMatchObject({ n: '103', numbers: '103' })
  expect((await client.query("select setval('row_seq', 5000) n")).rows).toEqual([{ n: '5000' }])
  await restart('SIGKILL')
  expect((await client.query(insert)).rows).toEqual([{ id: '5001' }])
})

test('each row of a query that an INSERT reads has a number of its own', async () => {
  await client.query('create sequence many_seq start with 10 increment by 5')
  await client.query('create table many (id bigint, name varchar, ts timestamp, n int)')
  // As SQLAlchemy sends several objects at once.
  const values = "(values ('a', 0), ('b', 1), ('c', 2)) as imp_sen(p0, sen_counter) order by sen_counter"
  const insert = `insert into many (id, name) select nextval('many_seq'), p0::varchar from ${values} returning id, name`
  const { rows } = await client.query(insert)
  expect(rows).toEqual([
    { id: '10', name: 'a' },
    { id: '15', name: 'b' },
    { id: '20', name: 'c' },
  ])
  const prepared = {
    name: 'many',
    text: "insert into many (n, id) select x::int, nextval('many_seq') from long_sequence($1)",
  }
  expect((await client.query({ ...prepared, values: [1000] })).rowCount).toBe(1000)
  await client.query("insert into many (id, name) select nextval('many_seq') as id, name from many where name = 'a'")
  const { rows: counted } = await client.query('select count() n, count_distinct(id) numbers, max(id) last from many')
  expect(counted[0]).toMatchObject({ n: '1004', numbers: '1004', last: '5025' })
  const unknown = "insert into many (id, name) select nextval('no_seq'), name from many"
  await expect(client.query(unknown)).rejects.toThrow('no_seq')
})

test('a key that its counter numbers has no conflicts', async () => {
  await client.query('create table keyed (id serial primary key, v int)')
  const insert = 'insert into keyed (v) values (1), (2) on conflict (id) do update set v = excluded.v returning id'
  expect((await client.query(insert)).rows).toEqual([{ id: 1 }, { id: 2 }])
  await client.query('insert into keyed (v) select v from keyed on conflict (id) do nothing')
  expect((await client.query('select count(*) n from keyed')).rows).toEqual([{ n: '4' }])
  const written = 'insert into keyed (id, v) values (1, 1) on conflict (id) do nothing'
  expect((await client.query(written)).rowCount).toBe(0)
})

test('who may not write makes no sequence and takes no number', async () => {
  const reader = await server.connect({ user: 'user' })
  for (const sql of [
    'create sequence s',
    'alter sequence row_seq restart',
    'drop sequence row_seq',
    "select nextval('row_seq')",
  ])
    await expect(reader.query(sql)).rejects.toMatchObject({ code: '42501' })
  await reader.end()
})

test('lastval() is the last number that the connection was given', async () => {
  await client.query('create sequence last_seq start with 5')
  await client.query('create table last (id serial, name varchar)')
  const other = await server.connect()
  const last = async (by: pg.Client): Promise<unknown> => (await by.query('select lastval() n')).rows[0]
  await expect(last(other)).rejects.toThrow('lastval is not yet defined in this session')
  await client.query("select nextval('last_seq')")
  expect(await last(client)).toEqual({ n: '5' })
  await other.query("insert into last (name) values ('a'), ('b')")
  expect([await last(client), await last(other)]).toEqual([{ n: '5' }, { n: '2' }])
  const insert = { name: 'last', text: 'insert into last (name) values ($1)' }
  for (const name of ['c', 'd', 'e', 'f']) await client.query({ ...insert, values: [name] })
  await client.query("select setval('last_seq', 100), currval('last_seq')")
  expect([await last(client), await last(other)]).toEqual([{ n: '6' }, { n: '2' }])
  await other.end()
})

test('a sequence and the counter of a column are read as tables', async () => {
  await client.query('create sequence read_seq start with 7')
  await client.query('create table counted (id serial, ts timestamp)')
  const state = async (name: string): Promise<unknown> =>
    (await client.query(`select last_value, is_called from "${name}"`)).rows[0]
  for (const [name, first] of [
    ['read_seq', '7'],
    ['counted_id_seq', '1'],
  ] as const) {
    expect(await state(name)).toEqual({ last_value: first, is_called: false })
    await client.query(`select nextval('${name}')`)
    expect(await state(name)).toEqual({ last_value: first, is_called: true })
  }
  await expect(client.query('select last_value from no_seq')).rejects.toMatchObject({ code: '42P01' })
})

test('what dumps say of owners is read over, with a notice', async () => {
  const notices: string[] = []
  const listener = ({ message }: { message?: string | undefined }): number => notices.push(message ?? '')
  client.on('notice', listener)
  await client.query('create table owned (id bigint, ts timestamp)')
  for (const sql of [
    'create sequence owned_seq owned by owned.id',
    'alter sequence owned_seq owned by public.owned.id',
    'alter sequence owned_seq owner to admin',
  ])
    await client.query(sql)
  await client.query('alter table owned owner to admin')
  client.off('notice', listener)
  const free = 'sequences have no owner and belong to no column: one stays when the table goes'
  expect(notices).toEqual([free, free, free, 'owners are ignored: rights of users are about all tables'])
  await client.query('drop table owned')
  expect((await client.query("select nextval('owned_seq') n")).rows).toEqual([{ n: '1' }])
})

test('mappers find the counter of a column', async () => {
  await client.query('create table mapped (id serial, ts timestamp)')
  const { rows } = await client.query(
    "select column_default from information_schema.columns where table_name = 'mapped' and column_name = 'id'",
  )
  expect(rows).toEqual([{ column_default: "nextval('mapped_id_seq'::regclass)" }])
  // Alembic: a sequence that belongs to the column.
  const owned = `select c.relname, a.attname from pg_class c
    join pg_depend d on d.objid = c.oid and d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
    join pg_class t on t.oid = d.refobjid join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
    where c.relkind = 'S' and c.oid = cast('mapped_id_seq' as regclass)`
  expect((await client.query(owned)).rows).toEqual([{ relname: 'mapped_id_seq', attname: 'id' }])
})

test('the schema of a migration is a part of names', async () => {
  const notices: string[] = []
  const listener = ({ message }: { message?: string | undefined }): number => notices.push(message ?? '')
  client.on('notice', listener)
  await client.query('create schema if not exists "drizzle"')
  client.off('notice', listener)
  expect(notices).toEqual([expect.stringContaining('there is one schema, public')])
  await client.query('create table if not exists "drizzle"."noted" (id serial primary key, hash text not null)')
  await client.query('insert into "drizzle"."noted" ("hash") values ($1)', ['a'])
  expect((await client.query('select noted.id, hash from "drizzle"."noted" order by id desc limit 1')).rows).toEqual([
    { id: 1, hash: 'a' },
  ])
  const oid = "select 'drizzle.noted'::regclass::oid > 0 a, 'drizzle.noted_id_seq'::regclass::oid > 0 b"
  expect((await client.query(oid)).rows).toEqual([{ a: true, b: true }])
  await expect(client.query('create schema public')).rejects.toMatchObject({ code: '42P06' })
})

test('the counter of a column has a name by number, also over rows of the catalog', async () => {
  await client.query('create table numbered (id serial, "Big" bigserial, v int)')
  const { rows } =
    await client.query(`select a.attname n, pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) s,
      exists (select from pg_attrdef d where d.adrelid = a.attrelid and d.adnum = a.attnum and pg_get_expr(d.adbin, d.adrelid) =
        'nextval(''' || pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass || '''::regclass)') e
    from pg_attribute a where a.attrelid = 'numbered'::regclass and a.attname in ('id', 'v') order by a.attnum`)
  expect(rows).toEqual([
    { n: 'id', s: 'public.numbered_id_seq', e: true },
    { n: 'v', s: null, e: false },
  ])
  await client.query('create table "Upper" (id serial)')
  const upper = "pg_get_serial_sequence('\"Upper\"', 'id')"
  const { rows: named } = await client.query(`select ${upper} s, ${upper}::regclass::text t, nextval(${upper}) n`)
  const shown = "select column_default d from information_schema.columns where table_name = 'Upper'"
  expect((await client.query(shown)).rows).toEqual([{ d: `nextval('"Upper_id_seq"'::regclass)` }])
  expect(named).toEqual([{ s: 'public."Upper_id_seq"', t: '"Upper_id_seq"', n: '1' }])
  const names = await client.query("select 'numbered_id_seq'::regclass::text a, to_regclass('numbered_v_seq') b")
  expect(names.rows).toEqual([{ a: 'numbered_id_seq', b: null }])
})

test('ALTER TABLE renames a sequence, as tools do that rename the table of its column', async () => {
  await client.query('create table moved (id serial, a int)')
  await client.query('alter table moved rename to moved2')
  await client.query('alter table "moved_id_seq" rename to "moved2_id_seq"')
  await expect(client.query('alter table moved_id_seq rename to other')).rejects.toMatchObject({ code: '42P01' })
  expect((await client.query('insert into moved2 (a) values (1) returning id')).rows).toEqual([{ id: 1 }])
  expect((await client.query("select nextval('moved2_id_seq') n")).rows).toEqual([{ n: '2' }])
})

test('an identity is described as such and has no default, dumps give it back, and DROP IDENTITY ends it', async () => {
  await client.query(`create table marked (id bigint generated by default as identity, k int generated always as identity,
    s serial, v int, ts timestamp) timestamp(ts) partition by day`)
  const told = async (): Promise<unknown[]> => {
    const { rows } = await client.query({
      rowMode: 'array',
      text: `select is_identity, identity_generation, identity_maximum, column_default, attidentity, atthasdef,
        (select deptype from pg_depend where refobjid = attrelid and refobjsubid = attnum and classid = 'pg_class'::regclass)
        from information_schema.columns join pg_attribute on attname = column_name and attrelid = 'marked'::regclass
        where table_name = 'marked' and column_name <> 'ts' order by ordinal_position`,
    })
    return rows
  }
  const serial = ['NO', null, null, "nextval('marked_s_seq'::regclass)", '', true, 'a']
  const plain = ['NO', null, null, null, '', false, null]
  const byDefault = ['YES', 'BY DEFAULT', '9223372036854775807', null, 'd', false, 'i']
  expect(await told()).toEqual([byDefault, ['YES', 'ALWAYS', '2147483647', null, 'a', false, 'i'], serial, plain])

  await client.query('alter table marked alter column k drop identity if exists')
  await client.query(`alter table marked alter column v add generated by default as identity (sequence name public.v_numbers
    start with 1 increment by 1 no minvalue no maxvalue cache 1)`)
  await client.query("select setval('public.v_numbers', 10)")
  await client.query("insert into marked (ts) values ('2024-01-01')")
  expect((await client.query('select id, k, s, v from marked')).rows).toEqual([{ id: '1', k: null, s: 1, v: 11 }])
  await restart('SIGKILL')
  expect(await told()).toEqual([byDefault, plain, serial, ['YES', 'BY DEFAULT', '2147483647', null, 'd', false, 'i']])
  await client.query('alter table marked alter column v set default 5')
  expect((await told())[3]).toEqual(['NO', null, null, '5', '', true, null])
})
