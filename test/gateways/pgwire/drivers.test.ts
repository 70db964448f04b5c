// Goal: PostgreSQL drivers of Node work: values of every type are sent and returned, in text and binary format;
// portals, cursors, errors and transactions behave as in PostgreSQL.

import pg from 'pg'
// @ts-expect-error it has no types
import Cursor from 'pg-cursor'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeVerifier, verifierText } from '../../../engine/base/password.js'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  await client.query(`create table every (
    ts timestamp, s symbol, d double, i int, l long, b boolean, u uuid, v varchar, bin binary, a double[],
    n decimal(10, 2), g geohash(4c), ip ipv4, c char, dt date, f float, sh short, by byte, w long256, tn timestamp_ns
  ) timestamp(ts) partition by day`)
})

afterAll(() => server.remove())

const row = {
  ts: '2024-02-03 04:05:06.789012',
  s: 'sym',
  d: '1.5',
  i: '-3',
  l: '9007199254740993',
  b: 't',
  u: '11111111-2222-3333-4444-555555555555',
  v: 'grüße',
  bin: '\\x0001ff',
  a: '{1.5,2.0}',
  n: '-12.34',
  g: 'u33d',
  ip: '1.2.3.4',
  c: 'x',
  dt: '2024-02-03',
  f: '2.5',
  sh: '7',
  by: '8',
  w: '0x1234',
  tn: '2024-02-03 04:05:06.789012345',
}

/** Values as texts, as the server sends them. */
const asStrings = { getTypeParser: () => (text: string | Buffer) => text } as unknown as pg.CustomTypesConfig

test('every type goes in as text and comes out as text', async () => {
  const names = Object.keys(row)
  const places = names.map((_, index) => `$${index + 1}`)
  const inserted = await client.query(
    `insert into every (${names.join(', ')}) values (${places.join(', ')})`,
    Object.values(row),
  )
  expect(inserted).toMatchObject({ command: 'INSERT', rowCount: 1 })
  const { rows } = await client.query({ text: 'select * from every', types: asStrings })
  // Six digits of a second, as PostgreSQL has them.
  expect(rows).toEqual([{ ...row, tn: '2024-02-03 04:05:06.789012' }])
})

test('what drivers ask is named by its function within sub-queries, too', async () => {
  const namesOf = async (text: string): Promise<string[]> => (await client.query(text)).fields.map(({ name }) => name)
  expect(await namesOf('select * from (select current_database(), nspname from pg_namespace) c limit 1')).toEqual([
    'current_database',
    'nspname',
  ])
  expect(await namesOf('with v as (select version()) select v.version from v')).toEqual(['version'])
  expect(await namesOf('select exists (select 1), (select count(*) from long_sequence(2)), (select 1 as one)')).toEqual(
    ['exists', 'count', 'one'],
  )
  // A count within has the name that clients of this dialect write.
  expect(await namesOf('select "count()" from (select count(*) from long_sequence(2))')).toEqual(['count()'])
})

test('JSON is json to drivers, which parse it, also behind coalesce() and with bind values', async () => {
  const parsed = async (text: string, values: unknown[] = []): Promise<unknown[]> =>
    (await client.query({ text, values, rowMode: 'array' })).rows
  expect(await parsed('select json_agg(t) from (select x, x = 2 ok from long_sequence(2)) t')).toEqual([
    [
      [
        { x: 1, ok: false },
        { x: 2, ok: true },
      ],
    ],
  ])
  expect(await parsed(`select coalesce(json_agg(x), '[]'::json) from long_sequence(0)`)).toEqual([[[]]])
  expect(await parsed(`select jsonb_build_object('a', $1::int, 'b', to_json($2::text))`, [1, 'x'])).toEqual([
    [{ a: 1, b: 'x' }],
  ])
})

test('RETURNING answers the rows, which are part of their transaction', async () => {
  await client.query('create table given_back (ts timestamp, id long, s symbol) timestamp(ts) partition by day')
  const count = async (): Promise<string> => (await client.query('select count() c from given_back')).rows[0].c
  const insert = 'insert into given_back (ts, id) values ($1, $2), ($1, $3) returning "id", s, id + $4::long as more'
  const parameters = ['2024-01-01', 5, 6, 10]
  const rows = [
    { id: '5', s: null, more: '15' },
    { id: '6', s: null, more: '16' },
  ]
  expect(await client.query(insert, parameters)).toMatchObject({ command: 'INSERT', rowCount: 2, rows })
  await client.query('begin')
  expect(await client.query(insert, parameters)).toMatchObject({ rowCount: 2, rows })
  expect(await count()).toBe('4')
  await client.query('rollback')
  expect(await count()).toBe('2')
  const cursor = client.query(new Cursor(insert, parameters))
  expect(await cursor.read(1)).toEqual([rows[0]])
  await cursor.close()
  expect(await count()).toBe('4')
  await expect(client.query(`${insert}, nothing`, parameters)).rejects.toMatchObject({ code: '42703' })
  expect(await count()).toBe('4')
  await client.query('drop table given_back')
})

test('nulls are nulls; types of parameters are found', async () => {
  const { rows } = await client.query('select $1::int a, $2::double b, $3 c', [null, '2.5', null])
  expect(rows).toEqual([{ a: null, b: 2.5, c: null }])
  const limited = await client.query('select x from long_sequence($1) where x > $2 limit $3', [10, 3, 2])
  expect(limited.rows).toEqual([{ x: '4' }, { x: '5' }])
  const strings = await client.query('select s from every where s = any($1) and ts > $2', [['sym', 'b'], '2024-01-01'])
  expect(strings.rows).toEqual([{ s: 'sym' }])
})

test('functions are called as tables, as drivers do; over HTTP that is a mistake', async () => {
  // psycopg2's callproc() and the {call ..} of ODBC name no alias.
  expect((await client.query('select * from abs(-5)')).rows).toEqual([{ abs: 5 }])
  expect((await client.query('select * from abs($1::int) as a', [-5])).rows).toEqual([{ a: 5 }])
  expect((await client.query("select * from upper('x') as result")).rows).toEqual([{ result: 'X' }])
  expect((await client.query('select * from pg_sleep(0) as result')).rowCount).toBe(1)
  expect(await server.exec("select * from upper('x')")).toMatchObject({
    body: { error: 'function must return CURSOR' },
  })
  await expect(client.query('select * from nope(1)')).rejects.toMatchObject({ code: '42883', position: '15' })
})

test('days of a difference are counted', async () => {
  const days = "extract(day from max(t) - min(t)) a, extract('day' from ('2024-03-02 05:00'::timestamp - min(t))) b"
  const times = "select '2024-01-01'::timestamp t union select '2024-02-02 23:00'::timestamp"
  expect((await client.query(`select ${days} from (${times}) x`)).rows).toEqual([{ a: '32', b: '61' }])
})

test('a text of several statements answers each; the first error ends it', async () => {
  const results = (await client.query("select 1 a; ; select 'x;y' b")) as unknown as pg.QueryResult[]
  expect(results.map(({ rows }) => rows)).toEqual([[{ a: 1 }], [{ b: 'x;y' }]])
  await expect(client.query('select 1; select * from nope')).rejects.toMatchObject({ code: '42P01', position: '25' })
  expect((await client.query('')).rows).toEqual([])
})

test('a query among the INSERTs of a text reads their rows; an error behind it takes them back', async () => {
  await client.query('create table among (n int)')
  const counted = 'select count(*)::int from among'
  const text = `insert into among values (1); ${counted}; insert into among values (2); ${counted}`
  const results = (await client.query(text)) as unknown as pg.QueryResult[]
  expect(results.map(({ rows }) => rows)).toEqual([[], [{ count: 1 }], [], [{ count: 2 }]])
  await expect(client.query(`${text}; select * from nope`)).rejects.toMatchObject({ code: '42P01' })
  expect((await client.query(`${counted} where n > 0`)).rows).toEqual([{ count: 2 }])
  await client.query('drop table among')
})

test('a failed transaction takes nothing until it ends', async () => {
  await client.query('begin')
  await expect(client.query('select nope from every')).rejects.toMatchObject({ code: '42703', position: '8' })
  await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' })
  expect((await client.query('commit')).command).toBe('ROLLBACK')
  expect((await client.query('select 1 a')).rows).toEqual([{ a: 1 }])
})

test('bytea is read from both of its forms', async () => {
  const [row] = (await client.query("select '\\xdeAD'::bytea a, '\u00e9\\101\\\\'::bytea b")).rows
  expect(row).toEqual({ a: Buffer.from('dead', 'hex'), b: Buffer.from('\u00e9A\\') })
})

test('settings of a transaction end with it; one that only reads refuses changes', async () => {
  const shown = async (name: string): Promise<string> =>
    Object.values((await client.query(`show ${name}`)).rows[0] as Record<string, string>).join()
  const resultsOf = async (text: string): Promise<unknown[]> => {
    const results = (await client.query(text)) as unknown as pg.QueryResult[]
    return results.flatMap(({ rows }) => rows.flatMap((row: object) => Object.values(row)))
  }
  await client.query("set application_name = 'a'")
  await client.query("begin; set application_name = 'b'; set local statement_timeout = '3s'")
  expect([await shown('application_name'), await shown('statement_timeout')]).toEqual(['b', '3s'])
  await client.query('rollback')
  expect([await shown('application_name'), await shown('statement_timeout')]).toEqual(['a', '0'])
  await client.query("begin; set application_name = 'b'; set local application_name = 'c'; commit")
  expect(await shown('application_name')).toBe('b')
  expect(await resultsOf("set local application_name = 'd'; show application_name")).toEqual(['d'])
  expect(await resultsOf("set local application_name = 'd'; begin; show application_name; commit")).toEqual(['d'])
  await expect(client.query("set application_name = 'e'; select * from nowhere")).rejects.toThrow('nowhere')
  expect(await shown('application_name')).toBe('b')
  await client.query('reset application_name')
  await client.query('create table kept (ts timestamp, n int) timestamp(ts) partition by day')
  const insert = "insert into kept values ('2024-01-01', 1)"
  const refused = { code: '25006' }
  await client.query('begin read only')
  expect(await shown('transaction_read_only')).toBe('on')
  await expect(client.query(insert)).rejects.toMatchObject(refused)
  await client.query('rollback')
  await client.query('set session characteristics as transaction read only')
  await expect(client.query('drop table kept')).rejects.toMatchObject(refused)
  await expect(client.query('insert into kept values ($1, $2)', ['2024-01-01', 1])).rejects.toMatchObject(refused)
  await client.query(`begin read write; ${insert}; commit and chain; ${insert}; rollback`)
  await client.query('set default_transaction_read_only = off')
  await client.query(insert)
  expect((await client.query('select count() c from kept')).rows).toEqual([{ c: '2' }])
  await expect(client.query('show nonsense')).rejects.toMatchObject({ code: '42704' })
})

test('a cursor reads a part at a time, and may stop early', async () => {
  const cursor = client.query(new Cursor('select x from long_sequence(100000)'))
  expect(await cursor.read(2)).toEqual([{ x: '1' }, { x: '2' }])
  expect((await cursor.read(5000)).length).toBe(5000)
  await cursor.close()
  expect((await client.query('select 1 a')).rows).toEqual([{ a: 1 }])
})

test('postgres.js: parameters, cursors, transactions', async () => {
  const sql = postgres({ ...server.login, max: 1, onnotice: () => {} })
  try {
    const found = await sql`select i, b from every where i = ${-3} and b = ${true}`
    expect([...found]).toEqual([{ i: -3, b: true }])
    // Described before there are values: units and zones are looked at when they are known.
    const moved = await sql`select dateadd(${'d'}, ${3}, '2024-01-01'::timestamp) = '2024-01-04' a,
      to_timezone('2024-01-01'::timestamp, ${'Europe/Berlin'}) = '2024-01-01T01:00:00' b,
      date_trunc(${'month'}, '2024-03-31'::timestamp) = '2024-03-01' c,
      to_str('2024-03-31'::timestamp, ${'yyyy'}) d`
    expect([...moved]).toEqual([{ a: true, b: true, c: true, d: '2024' }])
    await expect(sql`select dateadd(${'q'}, ${3}, '2024-01-01'::timestamp)`).rejects.toThrow('invalid time period')
    const parts: number[] = []
    await sql`select x::int x from long_sequence(10)`.cursor(4, (rows) => void parts.push(rows.length))
    expect(parts).toEqual([4, 4, 2])
    await sql.begin((inner) => inner`select 1`)
  } finally {
    await sql.end()
  }
})

test('wrong passwords and unknown users get the same error', async () => {
  for (const wrong of [{ password: 'no' }, { user: 'nobody' }]) {
    const other = new pg.Client({ ...server.login, ...wrong })
    await expect(other.connect()).rejects.toMatchObject({ code: '28P01', severity: 'FATAL' })
  }
})

/** What the client runs now. */
function cancel(client: pg.Client): void {
  const canceller = new pg.Client(server.login) as unknown as { cancel(client: pg.Client, query: unknown): void }
  canceller.cancel(client, (client as unknown as { activeQuery: unknown }).activeQuery)
}

test('a statement is cancelled by its key', async () => {
  const other = await server.connect()
  const running = other.query('select count() from long_sequence(1000000000) where rnd_double() > 2')
  const { processID } = other as unknown as { processID: number }
  expect(processID).toBeGreaterThan(0)
  setTimeout(() => cancel(other), 50)
  await expect(running).rejects.toMatchObject({ code: '57014' })
  expect((await other.query('select 1 a')).rows).toEqual([{ a: 1 }])
  await other.end()
})

test('a session is cancelled or ended by its number, by its user or an administrator', async () => {
  const other = new pg.Client(server.login)
  const ended = new Promise<string | undefined>((resolve) =>
    other.on('error', (error) => resolve((error as pg.DatabaseError).code)),
  )
  await other.connect()
  const { pid } = (await other.query('select pg_backend_pid() pid')).rows[0]
  const signal = async (name: string, number: number): Promise<unknown> =>
    (await client.query(`select ${name}($1) done`, [number])).rows[0].done
  const sleeping = other.query('select pg_sleep(60)')
  const told = expect(sleeping).rejects.toMatchObject({ code: '57014' })
  while (!(await client.query("select 1 from pg_stat_activity where pid = $1 and state = 'active'", [pid])).rowCount);
  expect(await signal('pg_cancel_backend', pid)).toBe(true)
  await told
  expect(await signal('pg_terminate_backend', pid)).toBe(true)
  expect(await ended).toBe('57P01')
  expect(await signal('pg_terminate_backend', 1_000_000)).toBe(false)
})

test('a client that is disconnected while a statement runs gets an error', async () => {
  const other = new pg.Client(server.login)
  other.on('error', () => {})
  await other.connect()
  const { pid } = (await other.query('select pg_backend_pid() pid')).rows[0]
  const told = expect(other.query('select pg_sleep(60)')).rejects.toMatchObject({ code: '57P01' })
  while (!(await client.query("select 1 from pg_stat_activity where pid = $1 and state = 'active'", [pid])).rowCount);
  await client.query('select pg_terminate_backend($1)', [pid])
  await told
})

test('a client that is connected when the server ends gets an error', async () => {
  const ending = new TestServer(['query.threads=1'])
  try {
    await ending.start()
    const [host = '', port = ''] = ending.address('postgres').split(':')
    const other = new pg.Client({ ...server.login, host, port: Number(port) })
    const ended = new Promise<string | undefined>((resolve) =>
      other.on('error', (error) => resolve((error as pg.DatabaseError).code)),
    )
    await other.connect()
    await other.query('select 1')
    await ending.end()
    expect(await ended).toBe('57P01')
  } finally {
    await ending.remove()
  }
})

test('each part of a cursor has the time of a statement, and what passes in between does not count', async () => {
  const other = await server.connect()
  try {
    await other.query("set statement_timeout = '2s'")
    await other.query('begin')
    await other.query('declare c cursor for select x from long_sequence(1000000000)')
    expect((await other.query('fetch 2 from c')).rows).toEqual([{ x: '1' }, { x: '2' }])
    const portal = other.query(new Cursor('select x from long_sequence(1000000000)'))
    expect((await portal.read(2)).length).toBe(2)
    await client.query('select pg_sleep(2.5)')
    expect((await portal.read(20_000)).length).toBe(20_000)
    await portal.close()
    expect((await other.query('fetch 20000 from c')).rowCount).toBe(20_000)
    await expect(other.query('move all in c')).rejects.toMatchObject({ code: '57014' })
    await other.query('rollback')
    await other.query('set statement_timeout = 0; begin; declare c cursor for select x from long_sequence(1000000000)')
    await other.query('fetch 2 from c')
    const moved = other.query('move all in c')
    setTimeout(() => cancel(other), 50)
    await expect(moved).rejects.toMatchObject({ code: '57014' })
  } finally {
    await other.end()
  }
})

test('pg_stat_activity lists every session with what it runs', async () => {
  const named = await server.connect({ application_name: 'reporting' })
  try {
    await named.query('begin')
    const { pid } = (await named.query('select pg_backend_pid() pid')).rows[0]
    const sessions = 'select pid, state, query, usename, datname from pg_stat_activity where application_name = $1'
    await expect
      .poll(async () => (await client.query(sessions, ['reporting'])).rows)
      .toEqual([{ pid, state: 'idle in transaction', query: '', usename: 'admin', datname: 'qdb' }])
    const own = await client.query('select state, query from pg_stat_activity where pid = pg_backend_pid()')
    expect(own.rows).toEqual([{ state: 'active', query: expect.stringContaining('pg_backend_pid()') }])
  } finally {
    await named.end()
  }
})

test('a client sets a password without saying it, as psql does', async () => {
  await client.query("create user ann with password 'old'")
  expect((await client.query('show password_encryption')).rows).toEqual([{ password_encryption: 'scram-sha-256' }])
  await expect(client.query('set password_encryption = md5')).rejects.toMatchObject({ code: '55P02' })
  await client.query(`ALTER USER ann PASSWORD '${verifierText(await makeVerifier('new'))}'`)
  const ann = await server.connect({ user: 'ann', password: 'new' })
  await ann.end()
})

test('times with a zone and intervals are parameters of these types', async () => {
  const sql = postgres({ ...server.login, max: 1, onnotice: () => {} })
  const text = "select $1::timestamptz a, timestamp_floor('d', $2) - $3::interval b"
  const { types } = (await sql.unsafe(text).describe()) as unknown as { types: readonly number[] }
  expect(types).toEqual([1184, 1114, 1186])
  await sql.end()
  const minus = "select ('2024-03-31'::timestamp - $1::interval)::varchar t"
  const interval = Buffer.alloc(16)
  interval.writeBigInt64BE(-3_600_000_001n)
  interval.writeInt32BE(2, 8)
  interval.writeInt32BE(1, 12)
  for (const [value, time] of [
    ['90 minutes', '2024-03-30T22:30:00.000000Z'],
    [interval, '2024-02-27T01:00:00.000001Z'],
    [null, null],
  ] as const)
    for (const name of ['', 'minus'])
      expect((await client.query({ name, text: minus, values: [value] })).rows, name).toEqual([{ t: time }])
})

test('a text that is handed over for another type is a mistake where it is none', async () => {
  const sql = postgres({ ...server.login, max: 1 })
  const typed = (text: string) => sql.typed(text, 25)
  expect([...(await sql`select ${typed('12')}::int a, ${typed('1.5')}::float8 b, ${typed('t')}::boolean c`)]).toEqual([
    { a: 12, b: 1.5, c: true },
  ])
  for (const type of ['int', 'bigint', 'float8', 'uuid', 'boolean'])
    await expect(sql`select ${typed('abc')}::${sql.unsafe(type)} a`, type).rejects.toMatchObject({ code: '22P02' })
  await expect(sql`select ${typed('abc')}::timestamp a`).rejects.toMatchObject({ code: '22007' })
  await sql.end()
})

test('a query without a name is described as the table is at the time', async () => {
  await client.query('create table unnamed (ts timestamp, n long) timestamp(ts) partition by day')
  await client.query("insert into unnamed values ('2024-01-01', 1), ('2024-01-02', 2)")
  const ask = async (n: number): Promise<unknown[]> =>
    (await client.query('select * from unnamed where n >= $1 order by ts desc limit 1', [n])).rows.map(Object.values)
  const other = await server.connect()
  expect([await ask(1), await ask(2), await ask(3)]).toEqual([[[expect.any(Date), '2']], [[expect.any(Date), '2']], []])
  await other.query('alter table unnamed add column s varchar')
  await other.query("update unnamed set s = 'two' where n = $1", [2])
  expect(await ask(1)).toEqual([[expect.any(Date), '2', 'two']])
  await other.query('alter table unnamed drop column n')
  await expect(ask(1)).rejects.toThrow('Invalid column: n')
  await other.end()
})

test('drivers prepare a query anew whose columns have changed', async () => {
  const sql = postgres({ ...server.login, max: 1, onnotice: () => {} })
  await sql`create table stale (a int)`
  await sql`select * from stale`
  await sql`alter table stale add column b int`
  expect((await sql`select * from stale`).columns.map(({ name }) => name)).toEqual(['a', 'b'])
  await sql.end()
})

test('arrays of numbers are read with the NULL that they are written with', async () => {
  const { rows } = await client.query("select '{1.5,NULL}'::double[] a, $1::double[] b", ['{NULL,2}'])
  expect(rows).toEqual([{ a: [1.5, null], b: [null, 2] }])
})

test('a prepared query answers with what has been written and changed since its last execution', async () => {
  await client.query('create table prepared (ts timestamp, s symbol, n long) timestamp(ts) partition by day')
  const ask = async (s: string | null, most = 10): Promise<unknown[]> => {
    const text = 'select n from prepared where s = $1 order by ts limit $2'
    return (await client.query({ name: 'by symbol', text, values: [s, most] })).rows.map(({ n }) => Number(n))
  }
  expect(await ask('new')).toEqual([])
  await client.query("insert into prepared values ('2024-01-02', 'new', 2), ('2024-01-01', 'old', 1)")
  expect([await ask('new'), await ask('old'), await ask(null)]).toEqual([[2], [1], []])
  await client.query('begin')
  await client.query("insert into prepared values ('2024-01-03', 'new', 3)")
  expect([await ask('new'), await ask('new', 1)]).toEqual([[2, 3], [2]])
  await client.query('rollback')
  expect(await ask('new')).toEqual([2])
  await client.query('checkpoint')
  await client.query("insert into prepared values ('2023-01-03', 'new', 0)")
  expect([await ask('new'), await ask('new', 1), await ask('old')]).toEqual([[0, 2], [0], [1]])
  await client.query('truncate table prepared')
  expect(await ask('new')).toEqual([])
  await client.query('drop table prepared')
  await expect(ask('new')).rejects.toThrow('table does not exist [table=prepared]')
  await client.query('create table prepared (ts timestamp, s varchar, n long) timestamp(ts) partition by day')
  await client.query("insert into prepared values ('2024-01-01', 'new', 7)")
  expect(await ask('new')).toEqual([7])
})

test('a parameter that is cast is unknown still while its statement is described', async () => {
  const time = "'2024-03-05T06:07:08Z'::timestamp"
  const calls: readonly (readonly [call: string, unit: string, text: string])[] = [
    [`date_trunc($1::varchar, ${time})`, 'month', '2024-03-01T00:00:00.000000Z'],
    [`timestamp_floor($1::text, ${time})`, 'h', '2024-03-05T06:00:00.000000Z'],
    [`dateadd($1::varchar, 1, ${time})`, 'd', '2024-03-06T06:07:08.000000Z'],
    [`datediff($1::varchar, ${time}, '2024-03-07')`, 'd', '1'],
  ]
  for (const [call, unit, text] of calls) {
    const { rows } = await client.query(`select (${call})::varchar v`, [unit])
    expect(rows, call).toEqual([{ v: text }])
  }
})

test('a cast to oid is described as oid: drivers that look a type up by its name read no other number', async () => {
  for (const text of ['select $1::regtype::oid n', 'select n::regtype::oid n from (select $1::text n)']) {
    const { rows, fields } = await client.query(text, ['int4'])
    expect([rows, fields[0]?.dataTypeID], text).toEqual([[{ n: 23 }], 26])
  }
  const { rows, fields } = await client.query('select i::oid o, $1::oid p, i::oid::int n from every limit 0', [7])
  expect([rows, fields.map(({ dataTypeID }) => dataTypeID)]).toEqual([[], [26, 26, 23]])
})
