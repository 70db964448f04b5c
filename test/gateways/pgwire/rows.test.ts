// Goal: rows that a PostgreSQL client sends by INSERT and COPY form one transaction from BEGIN to COMMIT, or from Sync
// to Sync; row counts are exact; a failure leaves nothing behind; COPY TO returns what COPY FROM stored, in each
// format.

import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
// @ts-expect-error it has no types
import Cursor from 'pg-cursor'
import QueryStream from 'pg-query-stream'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'
import { int16, int32, message, RawClient } from './raw-client.js'

const server = TestServer.shared()
let client: pg.Client
let other: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
  await client.query('create table a (ts timestamp, s symbol, v double, n int) timestamp(ts) partition by day')
  await client.query('create table b (ts timestamp, v long) timestamp(ts) partition by day')
})

beforeEach(async () => {
  await client.query('rollback')
  await client.query('truncate table a')
  await client.query('truncate table b')
})

afterAll(() => server.remove())

const insertA = 'insert into a (ts, s, v, n) values ($1, $2, $3, $4)'

async function count(table: string, by = other): Promise<number> {
  return Number((await by.query(`select count() c from ${table}`)).rows[0].c)
}

test('COMMIT stores the rows of all tables, ROLLBACK none', async () => {
  await client.query('begin')
  expect((await client.query(insertA, ['2024-01-01', 'x', 1.5, 1])).rowCount).toBe(1)
  await client.query("insert into b values ('2024-01-01', 5), ('2024-01-02', 6)")
  expect([await count('a'), await count('b')]).toEqual([0, 0])
  await client.query('commit')
  expect([await count('a'), await count('b')]).toEqual([1, 2])
  await client.query('start transaction isolation level read committed')
  await client.query(insertA, ['2024-01-02', 'y', 2.5, 2])
  await client.query('rollback')
  expect(await count('a')).toBe(1)
})

test('savepoints take back what came behind them, also after an error', async () => {
  await client.query('begin')
  await client.query(insertA, ['2024-01-01', 'keep', 1, 1])
  await client.query('savepoint one')
  await client.query(insertA, ['2024-01-01', 'gone', 2, 2])
  await expect(client.query(insertA, ['nonsense', 'bad', 3, 3])).rejects.toMatchObject({ code: '22007' })
  await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' })
  await client.query('rollback to savepoint one')
  await client.query(insertA, ['2024-01-01', 'later', 4, 4])
  await client.query('release one')
  await expect(client.query('rollback to one')).rejects.toMatchObject({ code: '3B001' })
  await client.query('rollback to one').catch(() => {})
  await client.query('rollback')
  expect(await count('a')).toBe(0)
  await client.query('begin')
  await client.query('savepoint s')
  await client.query(insertA, ['2024-01-01', 'gone', 2, 2])
  await client.query('rollback to s')
  await client.query(insertA, ['2024-01-01', 'stays', 2, 2])
  await client.query('commit')
  expect((await client.query('select s from a')).rows).toEqual([{ s: 'stays' }])
})

test('a statement stores all of its rows or none', async () => {
  await expect(client.query("insert into b values ('2024-01-01', 1), ('x', 2)")).rejects.toMatchObject({
    code: '22007',
  })
  await expect(client.query("insert into b values ('2024-01-01', 1), (null, 2)")).rejects.toMatchObject({
    code: '23502',
  })
  await expect(client.query('insert into b (v) values (1)')).rejects.toMatchObject({ code: '23502' })
  await expect(client.query("insert into b values ('1969-01-01', 1)")).rejects.toMatchObject({ code: '22008' })
  await expect(client.query("insert into b values ('2024-01-01', 1, 2)")).rejects.toMatchObject({ code: '42601' })
  expect(await count('b')).toBe(0)
  const both = "insert into b values ('2024-01-01', 1); insert into b values ('2024-01-01', 'zz')"
  await expect(client.query(both)).rejects.toMatchObject({ code: '22P02' })
  expect(await count('b')).toBe(0)
  await client.query("insert into b values ('2024-01-01T00:00:00.000001Z', -5), (now(), 2 + 3)")
  expect((await client.query('select v from b')).rows).toEqual([{ v: '-5' }, { v: '5' }])
})

test('pipelined inserts are stored, each failure takes its own', async () => {
  const sql = postgres({ ...server.login, max: 1, onnotice: () => {} })
  try {
    const rows = Array.from({ length: 500 }, (_, index) => index)
    const all = rows.map((n) => {
      const ts = `2024-01-01T00:00:00.${String(n).padStart(6, '0')}Z`
      return sql`insert into a (ts, s, v, n) values (${ts}, ${`s${n % 7}`}, ${n / 4}, ${n === 250 ? 'wrong' : n})`
    })
    const results = await Promise.allSettled(all)
    expect(results.filter(({ status }) => status === 'rejected').length).toBe(1)
    expect(results.every((result) => result.status === 'rejected' || result.value.count === 1)).toBe(true)
    const [sums] = await sql`select count() c, sum(n) s, sum(v) v, count_distinct(s) d from a`
    expect(sums).toEqual({ c: '499', s: String((499 * 500) / 2 - 250), v: (499 * 500) / 8 - 62.5, d: '7' })
  } finally {
    await sql.end()
  }
})

test('batches of one statement are answered message by message, however they are cut', async () => {
  const raw = new RawClient(server.login.port)
  await raw.logIn()
  const rowText = (first: number): string => `($${first}, $${first + 1}, $${first + 2})`
  raw.send('P', 'one\0insert into a (ts, s, n) values ($1, $2, $3)\0', int16(0))
  raw.send('P', `two\0insert into a (ts, s, n) values ${rowText(1)}, ${rowText(4)}\0`, int16(0))
  raw.send('S')
  await raw.until('Z')
  const value = (text: string | null): Buffer =>
    text === null ? int32(-1) : Buffer.concat([int32(Buffer.byteLength(text)), Buffer.from(text)])
  const bind = (name: string, rows: readonly (readonly (string | null)[])[]): Buffer =>
    message('B', `\0${name}\0`, int16(0), int16(rows.length * 3), ...rows.flat().map(value), int16(0))
  const row = (n: number): (string | null)[] => ['2024-01-01 00:00:00', n % 3 === 0 ? null : `s${n % 5}`, `${n}`]
  const batch = (name: string, count: number, described: boolean, wrong: number): Buffer => {
    const perBind = name === 'two' ? 2 : 1
    const parts = Array.from({ length: count }, (_, n) => {
      const rows = Array.from({ length: perBind }, (_, tuple) => row(n * perBind + tuple))
      if (n === wrong) (rows.at(-1) as (string | null)[])[2] = 'nonsense'
      return [bind(name, rows), ...(described ? [message('D', 'P\0')] : []), message('E', '\0', int32(0))]
    })
    return Buffer.concat([...parts.flat(), message('S')])
  }
  const answers = async (): Promise<string> => {
    let types = ''
    for (;;) {
      const { type = '', body = Buffer.alloc(0) } = (await raw.next()) ?? {}
      types += type === 'C' ? body.toString('latin1', 0, body.length - 1).replace('INSERT 0 ', '') : type
      if (type === 'Z' || type === '') return types
    }
  }
  for (const { name, described, tag } of [
    { name: 'one', described: false, tag: '1' },
    { name: 'one', described: true, tag: '1' },
    { name: 'two', described: false, tag: '2' },
  ]) {
    const each = `2${described ? 'n' : ''}${tag}`
    for (const chunkBytes of [1_000_000, 4096, 97]) {
      const before = await count('a')
      const bytes = batch(name, 120, described, -1)
      for (let at = 0; at < bytes.length; at += chunkBytes) {
        raw.socket.write(bytes.subarray(at, at + chunkBytes))
        if (chunkBytes === 97) await new Promise((resolve) => setImmediate(resolve))
      }
      expect(await answers()).toBe(`${each.repeat(120)}Z`)
      expect(await count('a')).toBe(before + 120 * Number(tag))
    }
    const before = await count('a')
    raw.socket.write(batch(name, 50, described, 30))
    expect(await answers()).toBe(`${each.repeat(30)}2${described ? 'n' : ''}EZ`)
    expect(await count('a')).toBe(before)
  }
  const [sums] = (await client.query('select count() c, sum(n) s, count(s) named from a')).rows
  const total = (rows: number): number => (rows * (rows - 1)) / 2
  expect(sums).toEqual({ c: '1440', s: String(6 * total(120) + 3 * total(240)), named: String(6 * 80 + 3 * 160) })
  raw.send('X')
})

test('thousands of Syncs that nobody waits for are all answered', async () => {
  const raw = new RawClient(server.login.port)
  await raw.logIn()
  raw.send('P', 'i\0insert into b (ts, v) values ($1, $2)\0', int16(0))
  raw.send('S')
  await raw.until('Z')
  const value = (text: string): Buffer => Buffer.concat([int32(text.length), Buffer.from(text)])
  const sync = message('S')
  const inserts = (total: number, wrong: number): Buffer => {
    const parts = Array.from({ length: total }, (_, n) => {
      const number = n === wrong ? 'nonsense' : String(n)
      const bound = Buffer.concat([int16(0), int16(2), value('2024-01-01 00:00:00'), value(number), int16(0)])
      return Buffer.concat([message('B', '\0i\0', bound), message('E', '\0', int32(0)), sync])
    })
    return Buffer.concat(parts)
  }
  const answers = async (syncs: number): Promise<string> => {
    let types = ''
    for (let answered = 0; answered < syncs; ) {
      const { type = '', body = Buffer.alloc(0) } = (await raw.next()) ?? {}
      if (type === '') return types
      types += type === 'Z' ? body.toString('latin1') : type
      if (type === 'Z') answered++
    }
    return types
  }
  const total = 20_000
  raw.socket.write(inserts(total, 12_500))
  // Answers are more than a session keeps for a client: it reads on when they have left.
  expect((await answers(total)) === `${'2CI'.repeat(12_500)}2EI${'2CI'.repeat(total - 12_501)}`).toBe(true)
  const sum = (total * (total - 1)) / 2 - 12_500
  const [sums] = (await client.query('select count() c, sum(v) s from b')).rows
  expect(sums).toEqual({ c: String(total - 1), s: String(sum) })
  raw.send('Q', 'begin\0')
  raw.socket.write(inserts(50, -1))
  raw.send('Q', 'rollback\0')
  expect(await answers(52)).toBe(`CT${'2CT'.repeat(50)}CI`)
  expect(await count('b')).toBe(total - 1)
  raw.send('X')
})

test('COPY FROM: text with its escapes, csv with its quotes, and the tag counts', async () => {
  const lines = ['2024-01-01 00:00:00\ta\\tb\t1.5\t1', '2024-01-01 00:00:01\t\\N\t\\N\t2', '\\.', '']
  const stream = client.query(copyFrom('copy a from stdin'))
  await pipeline(Readable.from([lines.join('\n')]), stream)
  expect(stream.rowCount).toBe(2)
  expect((await client.query('select s, v, n from a')).rows).toEqual([
    { s: 'a\tb', v: 1.5, n: 1 },
    { s: null, v: null, n: 2 },
  ])
  const csv = 'n,ts,s\r\n7,2024-01-02T00:00:00Z,"q""x"\r\n,2024-01-02T00:00:01Z,""\r\n'
  await pipeline(Readable.from([csv]), client.query(copyFrom('copy a (n, ts, s) from stdin with (format csv, header)')))
  expect((await client.query("select s, v, n from a where ts >= '2024-01-02'")).rows).toEqual([
    { s: 'q"x', v: null, n: 7 },
    { s: '', v: null, n: null },
  ])
})

test('a COPY with a bad line stores nothing and names the line', async () => {
  const stream = client.query(copyFrom('copy b from stdin csv'))
  await expect(pipeline(Readable.from(['2024-01-01,1\n2024-01-01,x\n']), stream)).rejects.toThrow(/line=2/)
  await expect(pipeline(Readable.from(['a']), client.query(copyFrom('copy nope from stdin')))).rejects.toMatchObject({
    code: '42P01',
  })
  for (const [line, code] of [
    ['2024-01-01,x', '22P02'],
    ['x,1', '22007'],
    ['2024-01-01', '22P04'],
    ['2024-01-01,1,2', '22P04'],
    ['2024-01-01,"1', '22P04'],
  ] as const) {
    const copied = pipeline(Readable.from([`${line}\n`]), client.query(copyFrom('copy b from stdin csv')))
    await expect(copied).rejects.toMatchObject({ code })
  }
  await expect(client.query("copy b to stdout (encoding 'sjis')")).rejects.toMatchObject({ code: '0A000' })
  expect(await count('b', client)).toBe(0)
})

test('COPY TO gives back what COPY FROM takes, in each form', async () => {
  await client.query(
    "insert into a values ('2024-01-01', 'x,\"y', 1.5, 1), ('2024-01-02', null, null, null), ('2024-01-03', 'tab\tend\\', -0.25, -7)",
  )
  const before = (await client.query('select * from a')).rows
  for (const form of ['text', 'csv', 'csv, header', 'binary', "text, delimiter '|', null 'nothing'"]) {
    const out: Buffer[] = []
    for await (const chunk of client.query(copyTo(`copy a to stdout with (format ${form})`))) out.push(chunk as Buffer)
    await client.query('truncate table a')
    await pipeline(Readable.from(out), client.query(copyFrom(`copy a from stdin with (format ${form})`)))
    expect((await client.query('select * from a')).rows, form).toEqual(before)
  }
  const csv = await text(client.query(copyTo('copy (select s, n from a limit 1) to stdout csv')))
  expect(csv).toBe('"x,""y",1\n')
})

test('COPY within a transaction is part of it', async () => {
  await client.query('begin')
  await pipeline(Readable.from(['2024-01-01,1\n']), client.query(copyFrom('copy b from stdin csv')))
  expect(await count('b')).toBe(0)
  await client.query('rollback')
  expect(await count('b')).toBe(0)
})

test('cursors of SQL', async () => {
  await client.query('begin')
  await client.query('declare c scroll cursor for select x::int x from long_sequence(10)')
  const fetched = async (sql: string): Promise<number[]> =>
    (await client.query(sql)).rows.map(({ x }: { x: number }) => x)
  expect(await fetched('fetch 3 from c')).toEqual([1, 2, 3])
  expect(await fetched('fetch next from c')).toEqual([4])
  expect((await client.query('move 2 in c')).command).toBe('MOVE')
  expect(await fetched('fetch forward 2 from c')).toEqual([7, 8])
  expect(await fetched('fetch prior from c')).toEqual([7])
  expect(await fetched('fetch absolute 2 from c')).toEqual([2])
  expect(await fetched('fetch all from c')).toEqual([3, 4, 5, 6, 7, 8, 9, 10])
  expect(await fetched('fetch 1 from c')).toEqual([])
  // As PostgreSQL answers, one after the other.
  for (const [sql, rows] of [
    ['fetch backward 3 from c', [10, 9, 8]],
    ['fetch relative -2 from c', [6]],
    ['fetch forward 0 from c', [6]],
    ['fetch last from c', [10]],
    ['fetch absolute -3 from c', [8]],
    ['fetch -2 from c', [7, 6]],
    ['fetch next from c', [7]],
    ['fetch backward all from c', [6, 5, 4, 3, 2, 1]],
    ['fetch prior from c', []],
    ['fetch 2 from c', [1, 2]],
    ['fetch absolute 20 from c', []],
    ['fetch prior from c', [10]],
    ['fetch absolute 0 from c', []],
    ['fetch relative 3 from c', [3]],
  ] as const) {
    expect([sql, await fetched(sql)]).toEqual([sql, rows])
  }
  const moved = async (sql: string): Promise<number | null> => (await client.query(sql)).rowCount
  expect([await moved('move backward 2 from c'), await moved('move all in c'), await moved('move 0 in c')]).toEqual([
    2, 9, 0,
  ])
  expect([await moved('move backward all in c'), await moved('move absolute 4 in c')]).toEqual([10, 1])
  expect(await fetched('fetch next from c')).toEqual([5])
  await client.query('close c')
  await client.query('declare n no scroll cursor for select x::int x from long_sequence(3)')
  expect(await fetched('fetch 2 from n')).toEqual([1, 2])
  await expect(client.query('fetch prior from n')).rejects.toMatchObject({ code: '55000' })
  await client.query('rollback')
  await client.query('begin')
  await client.query('declare b binary cursor for select 258::int x')
  const { rows, fields } = await client.query('fetch all from b')
  expect([rows, fields.map(({ format }) => format)]).toEqual([[{ x: 258 }], ['binary']])
  await expect(client.query('fetch 1 from c')).rejects.toMatchObject({ code: '34000' })
  await client.query('rollback')
  await expect(client.query('declare d cursor for select 1')).rejects.toMatchObject({ code: '25P01' })
})

test('prepared statements of SQL', async () => {
  await client.query('prepare p as select $1::int + $2 x')
  expect((await client.query('execute p(1, 2)')).rows).toEqual([{ x: 3 }])
  await client.query('deallocate p')
  await expect(client.query('execute p(1, 2)')).rejects.toMatchObject({ code: '26000' })
  await client.query('discard all')
})

test('a portal keeps its place between statements', async () => {
  await client.query('begin')
  const first = client.query(new Cursor('select x::int x from long_sequence(5)'))
  expect(await first.read(2)).toEqual([{ x: 1 }, { x: 2 }])
  expect(await first.read(9)).toEqual([{ x: 3 }, { x: 4 }, { x: 5 }])
  await client.query('commit')
})

test('a transaction reads its own rows, in the order of the table; nobody else does', async () => {
  await client.query("insert into a values ('2024-01-01T00:00:02Z', 'x', 2, 2)")
  await client.query('begin')
  await client.query(insertA, ['2024-01-01T00:00:03Z', 'y', 3, 3])
  await client.query('insert into a (ts, s) values ($1, $2)', ['2024-01-01T00:00:01Z', null])
  const read = async (by: pg.Client): Promise<unknown[]> => (await by.query('select s, v, n from a')).rows
  const stored = { s: 'x', v: 2, n: 2 }
  expect(await read(client)).toEqual([{ s: null, v: null, n: null }, stored, { s: 'y', v: 3, n: 3 }])
  expect(await read(other)).toEqual([stored])
  expect((await client.query('select n from a where s = $1 and v > 2.5', ['y'])).rows).toEqual([{ n: 3 }])
  expect((await client.query('select s, v from a latest on ts partition by s')).rowCount).toBe(3)
  expect((await client.query('select sum(n) n from (select n from a union all select v::int n from b)')).rows).toEqual([
    { n: '5' },
  ])
  await client.query('savepoint one')
  await client.query(insertA, ['2024-01-01T00:00:04Z', 'z', 4, 4])
  expect(await count('a', client)).toBe(4)
  await client.query('rollback to savepoint one')
  expect(await count('a', client)).toBe(3)
  await client.query('rollback')
  expect([await count('a', client), await count('a')]).toEqual([1, 1])
})

/** Lines of a COPY that is too large for the log. */
function manyLines(rows: number): string[] {
  const symbol = 'x'.repeat(4096)
  return Array.from(
    { length: rows },
    (_, row) => `2024-01-01 00:00:00.${String(row).padStart(6, '0')}\t${symbol}\t1\t${row}\n`,
  )
}

test('INSERT .. SELECT is part of its transaction', async () => {
  await client.query("insert into b values ('2024-01-01', 5), ('2024-01-02', 6)")
  await client.query('begin')
  expect((await client.query('insert into a (ts, s, n) select ts, v::string, v::int from b')).rowCount).toBe(2)
  await client.query('savepoint p')
  expect((await client.query('insert into a (ts, s, n) select ts, s, n + 10 from a where n = $1', [6])).rowCount).toBe(
    1,
  )
  expect((await client.query('select s, n from a order by n')).rows).toEqual([
    { s: '5', n: 5 },
    { s: '6', n: 6 },
    { s: '6', n: 16 },
  ])
  expect(await count('a')).toBe(0)
  await client.query('rollback to p')
  await client.query('commit')
  expect(await count('a')).toBe(2)
  await client.query('begin')
  await client.query('insert into a (ts, s, n) select ts, s, n from a')
  await client.query('rollback')
  expect(await count('a')).toBe(2)
  await client.query('begin')
  await expect(client.query('insert into a (ts) select null::timestamp')).rejects.toMatchObject({ code: '23502' })
  await client.query('rollback')
})

test('a transaction that cannot be stored whole is refused', async () => {
  await client.query(
    'create table if not exists longs (ts timestamp, s varchar) timestamp(ts) partition by day dedup upsert keys(ts)',
  )
  const insert = "insert into longs select x::timestamp, lpad('x', 1_000_000, 'y') from long_sequence"
  await client.query('begin')
  await client.query(`${insert}(10)`)
  await expect(client.query(`${insert}(80)`)).rejects.toMatchObject({ code: '54000' })
  expect((await client.query('commit')).command).toBe('ROLLBACK')
  expect(await count('longs')).toBe(0)
  await client.query('begin')
  await client.query(`${insert}(36)`)
  await client.query('commit')
  expect(await count('longs')).toBe(36)
})

test('a COPY of any size is stored whole or not at all', async () => {
  const lines = manyLines(5000)
  const copy = (data: readonly string[]): Promise<void> =>
    pipeline(Readable.from([data.join('')]), client.query(copyFrom('copy a from stdin')))
  await client.query('begin')
  await copy(lines)
  expect(await count('a')).toBe(0)
  await client.query('rollback')
  expect(await count('a')).toBe(0)
  await expect(copy([...lines, 'nonsense\tx\t1\t1\n'])).rejects.toThrow('line=5001')
  expect(await count('a')).toBe(0)
  await client.query('begin')
  await copy(lines)
  await client.query(insertA, ['2024-01-02', 'y', 3, 3])
  await client.query('commit')
  expect(await count('a')).toBe(5001)
  expect((await other.query('select sum(n) n from a')).rows).toEqual([{ n: String((4999 * 5000) / 2 + 3) }])
})

test('a stream of rows, as pg-query-stream has it', async () => {
  const values: number[] = []
  const stream = client.query(new QueryStream('select x from long_sequence(1000) where x > $1', [10], { batchSize: 7 }))
  for await (const { x } of stream) {
    values.push(Number(x))
    if (values.length === 500) break
  }
  expect(values).toEqual(Array.from({ length: 500 }, (_, index) => index + 11))
  expect(await count('a')).toBe(0)
})

test('INSERTs of any size are one transaction, whole or not at all', async () => {
  const notices: string[] = []
  const listen = ({ message }: { readonly message?: string | undefined }): void => void notices.push(message ?? '')
  client.on('notice', listen)
  const text = 'tab\tand\\backslash'.padEnd(1000, '.')
  const rows = 2000
  const tuples = Array.from({ length: rows }, (_, n) => `('2024-01-0${1 + (n % 9)}', '${text}${n % 50}', ${n}.5, ${n})`)
  for (const ending of ['rollback', 'commit']) {
    await client.query('begin')
    // 40 MiB.
    for (let round = 0; round < 20; round++) {
      await client.query(`insert into a (ts, s, v, n) values ${tuples.join(', ')}`)
      await client.query("insert into b values ('2024-01-01', 1)")
    }
    expect([await count('a'), await count('b')]).toEqual([0, 0])
    await client.query(ending)
    const stored = ending === 'commit' ? 20 : 0
    expect([await count('a'), await count('b')]).toEqual([stored * rows, stored])
  }
  client.off('notice', listen)
  expect(notices).toEqual([])
  const [sums] = (await other.query('select sum(n) n, sum(v) v, count_distinct(s) d, min(s) first from a')).rows
  const sum = (20 * rows * (rows - 1)) / 2
  expect(sums).toEqual({ n: String(sum), v: sum + 20 * rows * 0.5, d: '50', first: `${text}0` })
})

test('a transaction of many rows is stored before it reads them, and says so', async () => {
  const notices: string[] = []
  const listen = ({ message }: { readonly message?: string | undefined }): void => void notices.push(message ?? '')
  client.on('notice', listen)
  await client.query('begin')
  const lines = Array.from({ length: 260_000 }, (_, row) => `2024-01-01\tx\t1\t${row}\n`).join('')
  await pipeline(Readable.from([lines]), client.query(copyFrom('copy a from stdin')))
  // Described first, then run.
  const counted = await client.query('select count() c from a where n >= $1', [10])
  client.off('notice', listen)
  expect(counted.rows).toEqual([{ c: '259990' }])
  expect(notices).toEqual([expect.stringContaining('stored before this statement')])
  await client.query('commit')
})
