// Goal: UPDATE, DELETE, TRUNCATE and DROP TABLE within BEGIN are deferred to COMMIT, with exact row counts and results.
// ROLLBACK and ROLLBACK TO discard them; COMMIT stores rows and changes in order, or reports what it has stored when it
// fails; the transaction's queries see them. A statement with immediate effect that may depend on them has them stored
// first, with a notice. Also: set_config() in transactions, pg_sleep().

import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRandom } from '../../../../engine/sql/functions/random-generator.js'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
let client: pg.Client
let other: pg.Client
const warnings: string[] = []

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
  client.on('notice', ({ message }) => warnings.push(message ?? ''))
})

beforeEach(async () => {
  await client.query('rollback')
  for (const table of ['h', 'k']) await afresh(table)
  warnings.length = 0
})

async function afresh(table: string): Promise<void> {
  await client.query(`drop table if exists ${table}`)
  await client.query(`create table ${table} (ts timestamp, id int, v int) timestamp(ts) partition by day`)
  await client.query(`insert into ${table} values ('2024-01-01', 1, 10), ('2024-01-02', 2, 20), ('2024-01-03', 3, 30)`)
}

afterAll(() => server.remove())

async function values(by: pg.Client, table = 'h'): Promise<number[]> {
  return (await by.query(`select v from ${table}`)).rows.map(({ v }: { v: number }) => v)
}

test('ROLLBACK forgets changes, COMMIT carries them out', async () => {
  const changes: readonly (readonly [sql: string, command: string, count: number | null, after: number[]])[] = [
    ['update h set v = v + 1 where id >= 2', 'UPDATE', 2, [10, 21, 31]],
    ['delete from h where v = 21', 'DELETE', 1, [10, 31]],
    ['truncate table h', 'TRUNCATE', null, []],
  ]
  for (const [sql, command, count, after] of changes) {
    const before = await values(other)
    for (const end of ['rollback', 'commit']) {
      await client.query('begin')
      expect(await client.query(sql), sql).toMatchObject({ command, rowCount: count })
      expect(await values(other), sql).toEqual(before)
      await client.query(end)
      expect(await values(other), `${sql}; ${end}`).toEqual(end === 'commit' ? after : before)
    }
  }
  await client.query('begin; drop table h; rollback')
  expect(await values(other)).toEqual([])
  await client.query('begin; drop table h; commit')
  await expect(other.query('select * from h')).rejects.toMatchObject({ code: '42P01' })
  expect(warnings).toEqual([])
})

test('rows and changes are stored in their order', async () => {
  await client.query('begin')
  await client.query("insert into h values ('2024-01-04', 4, 40)")
  expect((await client.query('update h set v = $1 where id = $2', [41, 4])).rowCount).toBe(1)
  await client.query("insert into h values ('2024-01-05', 4, 42)")
  await client.query('update k set v = 0 where id = 1')
  await client.query("insert into k values ('2024-01-05', 1, 50)")
  await client.query('commit')
  expect(await values(other)).toEqual([10, 20, 30, 41, 42])
  expect(await values(other, 'k')).toEqual([0, 20, 30, 50])
})

test('updates of one table wait together when they choose rows by other columns', async () => {
  await client.query('begin')
  for (const id of [1, 2]) {
    expect((await client.query('update h set v = -$1 where id = $1', [id])).rowCount).toBe(1)
  }
  expect(warnings).toEqual([])
  await client.query('rollback')
  expect(await values(other)).toEqual([10, 20, 30])
})

test('a transaction reads its own changes, and ROLLBACK takes them back', async () => {
  await client.query('begin')
  await client.query('update h set v = 0 where id = 1')
  expect([await values(client), await values(other)]).toEqual([
    [0, 20, 30],
    [10, 20, 30],
  ])
  expect((await client.query('delete from h where v = 0')).rowCount).toBe(1)
  expect((await client.query('update h x set v = x.v + $1 where x.v > $2', [1, 20])).rowCount).toBe(1)
  expect(await values(client)).toEqual([20, 31])
  const twice = 'select count() n from h where v > (select min(v) from h)'
  expect((await client.query(twice)).rows).toEqual([{ n: '1' }])
  await client.query("insert into h values ('2024-01-04', 4, 40)")
  await client.query('update h set v = 41 where id = 4')
  await client.query("insert into h values ('2024-01-05', 4, 42)")
  expect(await values(client)).toEqual([20, 31, 41, 42])
  await client.query('insert into k select ts, id, v from h where id = 4')
  expect(await values(client, 'k')).toEqual([10, 20, 30, 41, 42])
  await client.query('truncate table k')
  expect(await values(client, 'k')).toEqual([])
  await client.query('drop table k')
  await expect(client.query('select * from k')).rejects.toMatchObject({ code: '42P01' })
  await client.query('rollback')
  expect([await values(client), await values(other, 'k')]).toEqual([
    [10, 20, 30],
    [10, 20, 30],
  ])
  expect(warnings).toEqual([])
})

test('a table that waits to be dropped is not in the catalog of its transaction, and may be made anew', async () => {
  const count = async (by: pg.Client, from: string): Promise<number> =>
    Number((await by.query(`select count(*) n from ${from}`)).rows[0].n)
  const catalogs = ["pg_class where relname = 'h'", "information_schema.tables where table_name = 'h'"]
  await client.query('begin')
  await client.query('drop table h')
  for (const from of catalogs) expect([await count(client, from), await count(other, from)], from).toEqual([0, 1])
  await client.query('rollback')
  for (const from of catalogs) expect(await count(client, from), from).toBe(1)
  expect(warnings).toEqual([])
  await client.query('begin')
  await client.query('drop table h')
  await client.query({ name: 'anew', text: 'create table h (only int)' })
  await client.query('commit')
  expect((await client.query('select * from h')).fields.map(({ name }) => name)).toEqual(['only'])
})

test('what takes effect at once has changes carried out before, and says so', async () => {
  await client.query('begin')
  await client.query('update h set v = 0 where id = 1')
  await client.query('update h set v = k.v + 1 from k where h.id = k.id and h.id = 2')
  expect(warnings).toEqual([expect.stringContaining('ROLLBACK cannot take them back')])
  await client.query('rollback')
  expect(warnings.slice(1)).toEqual([expect.stringContaining('stays'), expect.stringContaining('not rolled back')])
  expect(await values(other)).toEqual([0, 21, 30])
  await client.query('begin; drop table h; create table h (ts timestamp, v int) timestamp(ts); commit')
  expect(await values(other)).toEqual([])
  await client.query('begin; drop table h')
  await expect(client.query("insert into h values ('2024-01-01', 1)")).rejects.toMatchObject({ code: '42P01' })
})

// Random statements: what a transaction reads before COMMIT is what there is behind it, and ROLLBACK leaves nothing.
test('what a transaction reads is what COMMIT stores', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const random = createRandom(BigInt(seed), 1n)
  const below = (max: number): number => Math.floor(random.nextDouble() * max)
  const statements = [
    () => `insert into h values ('2024-01-0${1 + below(9)}', ${below(5)}, ${below(50)})`,
    () => `update h set v = v + ${below(9)} where id = ${below(5)}`,
    () => `update h set v = id * 2, id = id + 1 where v < ${below(50)}`,
    () => `delete from h where v > ${30 + below(40)}`,
    () => `delete from h where id in (select max(id) from h where v < ${below(20)})`,
    () => 'update k set v = v + 1 where v in (select v from h)',
    () => `insert into k select ts, id, v from h where id = ${below(5)}`,
  ]
  const all = async (by: pg.Client): Promise<unknown[]> =>
    (await Promise.all(['h', 'k'].map((table) => by.query(`select * from ${table} order by ts, id, v`)))).map(
      ({ rows }) => rows,
    )
  for (let round = 0; round < 25; round++) {
    const before = await all(other)
    const text: string[] = []
    await client.query('begin')
    for (let step = 0; step < 6; step++) {
      text.push((statements[below(statements.length)] as () => string)())
      await client.query(text.at(-1) as string)
    }
    const seen = await all(client)
    expect(await all(other)).toEqual(before)
    const ends = round % 3 === 0 ? 'rollback' : 'commit'
    await client.query(ends)
    expect(await all(other), `seed ${seed}: ${text.join('; ')}; ${ends}`).toEqual(ends === 'commit' ? seen : before)
  }
  expect(warnings).toEqual([])
})

test('RETURNING of changes gives the rows as they are stored', async () => {
  const update = 'update h as x set v = v + $1 where id > $2 returning x.id, v * 10 as tenfold, ts'
  const changed = await client.query(update, [1, 1])
  expect(changed).toMatchObject({ command: 'UPDATE', rowCount: 2 })
  expect(changed.rows).toEqual([
    { id: 2, tenfold: 210, ts: new Date('2024-01-02') },
    { id: 3, tenfold: 310, ts: new Date('2024-01-03') },
  ])
  const removed = await client.query({ text: 'delete from h where v = $1 returning *', values: [21], rowMode: 'array' })
  expect(removed).toMatchObject({ command: 'DELETE', rowCount: 1, rows: [[new Date('2024-01-02'), 2, 21]] })
  expect((await client.query('delete from h where v = 0 returning id')).rows).toEqual([])
  const joined = 'update h set v = k.v from k where h.id = k.id and k.id = 1 returning h.v'
  expect((await client.query(joined)).rows).toEqual([{ v: 10 }])
  expect(await values(other)).toEqual([10, 31])
  await expect(client.query('delete from h returning nope')).rejects.toMatchObject({ code: '42703' })
  expect(await values(other)).toEqual([10, 31])
})

test('RETURNING within a transaction answers at once, and its change waits', async () => {
  await client.query('begin')
  await client.query("insert into h values ('2024-01-04', 4, 40)")
  const update = { name: 'returning', text: 'update h set v = -v where id >= $1 returning id, v' }
  for (const v of [-1, 1]) {
    const { rows } = await client.query({ ...update, values: [3] })
    expect(rows).toEqual([
      { id: 3, v: 30 * v },
      { id: 4, v: 40 * v },
    ])
  }
  expect((await client.query('delete from h where id < 3 returning v')).rows).toEqual([{ v: 10 }, { v: 20 }])
  expect(await values(other)).toEqual([10, 20, 30])
  await client.query('commit')
  expect(await values(other)).toEqual([30, 40])
})

test('workers that take jobs with RETURNING get each job once', async () => {
  await client.query('create table jobs (ts timestamp, id int, state symbol) timestamp(ts) partition by day')
  await client.query("insert into jobs select '2024-01-01'::timestamp + x, x::int, 'new' from long_sequence(40)")
  const take = `update jobs set state = 'taken' where state = 'new'
    and id = (select min(id) from jobs where state = 'new') returning id, state`
  const taken: number[] = []
  const work = async (worker: pg.Client): Promise<void> => {
    for (;;) {
      const { rows } = await worker.query(take)
      taken.push(...rows.map(({ id }: { id: number }) => id))
      const left = await worker.query("select count() n from jobs where state = 'new'")
      if (left.rows[0].n === '0') return
    }
  }
  await Promise.all([work(client), work(other)])
  expect(taken.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
})

test('ROLLBACK TO forgets the changes behind its savepoint', async () => {
  await client.query('begin')
  await client.query('update h set v = 11 where id = 1')
  await client.query("insert into h values ('2024-01-04', 4, 40)")
  await client.query('savepoint a')
  await client.query("insert into h values ('2024-01-05', 5, 50)")
  await client.query('delete from k')
  await client.query("insert into h values ('2024-01-06', 6, 60)")
  await client.query('rollback to a')
  await client.query("insert into h values ('2024-01-07', 7, 70)")
  await client.query('commit')
  expect(await values(other)).toEqual([11, 20, 30, 40, 70])
  expect(await values(other, 'k')).toEqual([10, 20, 30])
})

test('what is wrong with a change is said at once', async () => {
  for (const [sql, code] of [
    ['update h set nope = 1', '42703'],
    ['delete from nope', '42P01'],
    ['update h set v = 1 where nope = 2', '42703'],
    ['drop table nope', '42P01'],
    ['truncate table nope', '42P01'],
  ] as const) {
    await client.query('begin')
    await expect(client.query(sql), sql).rejects.toMatchObject({ code })
    await client.query('rollback')
  }
  await client.query('begin read only')
  await expect(client.query('delete from h')).rejects.toMatchObject({ code: '25006' })
})

test('set_config is local to its transaction, or not, and is checked as SET is', async () => {
  const setting = async (): Promise<string> =>
    (await client.query("select current_setting('application_name') n")).rows[0].n
  await client.query("select set_config('application_name', 'kept', false)")
  await client.query('begin')
  await client.query("select set_config('application_name', 'local', true)")
  expect(await setting()).toBe('local')
  await client.query('commit')
  expect(await setting()).toBe('kept')
  await client.query("select set_config('application_name', 'alone', true)")
  expect(await setting()).toBe('kept')
  await client.query("begin; select set_config('application_name', 'gone', false); rollback")
  expect(await setting()).toBe('kept')
  const wrong = client.query("select set_config('statement_timeout', 'x', false)")
  await expect(wrong).rejects.toMatchObject({ code: '22023' })
})

test('pg_sleep waits, and ends at its deadline', async () => {
  const start = performance.now()
  expect((await client.query('select pg_sleep($1) s, 1 n', [0.05])).rows).toEqual([{ s: '', n: 1 }])
  expect(performance.now() - start).toBeGreaterThan(45)
  await client.query('set statement_timeout = 20')
  await expect(client.query('select pg_sleep(100)')).rejects.toMatchObject({ code: '57014' })
  await client.query('reset statement_timeout')
})

test('a parameter behind NOT is a boolean', async () => {
  expect((await client.query('select 1 where not $1', [false])).rowCount).toBe(1)
})

test('a COMMIT that fails says what is stored: nothing, if a change cannot be carried out any more', async () => {
  const begin = async (): Promise<void> => {
    await client.query('begin')
    await client.query('update h set v = 5 where id = 1')
  }
  await begin()
  await client.query('update k set v = 6 where id = 1')
  await other.query('drop table k')
  await expect(client.query('commit')).rejects.toMatchObject({ code: '42P01' })
  expect(await values(other)).toEqual([10, 20, 30])
  await other.query('create table k (ts timestamp, id int, v int) timestamp(ts) partition by day')
  await begin()
  await client.query("insert into k values ('2024-01-01', 1, 1)")
  await other.query('drop table k')
  await expect(client.query('commit')).rejects.toMatchObject({
    code: '40003',
    message: expect.stringMatching(/^the transaction was stored in part \[changes=1 of 1, rows=0\]: /),
  })
  expect(await values(client)).toEqual([5, 20, 30])
})

/** Rows of each transaction of the log behind the first two. */
async function logged(table: string): Promise<number[]> {
  const transactions = await other.query(
    `select "rowCount" n from wal_transactions('${table}') order by "sequencerTxn"`,
  )
  return transactions.rows.flatMap(({ n }: { n: string | null }) => (n === null ? [] : [Number(n)]))
}

test('rows that changes come between are one transaction where that comes to the same', async () => {
  const late = (table: string, id: number): string => `insert into ${table} values ('2024-02-0${id}', ${id}, ${id})`
  // Rows of the transactions of the log behind COMMIT, those of h and those of k.
  const runs: readonly (readonly [statements: string[], h: number[], k: number[], logged: number[][]])[] = [
    // None of the changes is about the rows.
    [
      [late('h', 4), 'update k set v = 0 where id = 1', late('h', 5)],
      [10, 20, 30, 4, 5],
      [0, 20, 30],
      [[2], []],
    ],
    [
      ['delete from h where id = 1', late('h', 4), late('h', 5)],
      [20, 30, 4, 5],
      [10, 20, 30],
      [[2], []],
    ],
    [
      [late('h', 4), 'delete from h where id = 1', late('h', 5)],
      [20, 30, 4, 5],
      [10, 20, 30],
      [[2], []],
    ],
    // One is, and no row behind it is of its table.
    [
      [late('h', 4), late('k', 4), 'update h set v = 9 where id > 2', late('k', 5)],
      [10, 20, 9, 9],
      [10, 20, 30, 4, 5],
      [[1], [2]],
    ],
    // One is, and a row behind it is of its table.
    [[late('k', 4), late('h', 4), 'delete from h', late('h', 5)], [5], [10, 20, 30, 4], [[1, 1], [1]]],
  ]
  for (const [statements, h, k, rows] of runs) {
    for (const table of ['h', 'k']) await afresh(table)
    const before = [await logged('h'), await logged('k')]
    await client.query('begin')
    for (const statement of statements) await client.query(statement)
    await client.query('savepoint a')
    await client.query("insert into h values ('2024-03-01', 9, 99); rollback to a; commit")
    const after = [await logged('h'), await logged('k')]
    expect([await values(other), await values(other, 'k')], statements.join('; ')).toEqual([h, k])
    expect(
      after.map((all, index) => all.slice(before[index]?.length)),
      statements.join('; '),
    ).toEqual(rows)
  }
  expect(warnings).toEqual([])
})

test('values of PIVOT that a query yields are read before the statement is deferred, described or declared', async () => {
  const pivot = (id: number): string => `h pivot (sum(v) for id in (select distinct id from h where id = ${id}))`
  await client.query('begin')
  const update = `update h set v = v + 1 where v = (select "2" from (${pivot(2)})) returning v, (select "3" from (${pivot(3)})) x`
  expect((await client.query(update)).rows).toEqual([{ v: 21, x: '30' }])
  expect((await client.query(`delete from h where v = (select "1" from (${pivot(1)}))`)).rowCount).toBe(1)
  expect(await values(other)).toEqual([10, 20, 30])
  await client.query('commit')
  expect(await values(other)).toEqual([21, 30])
  await client.query(
    `begin; declare c cursor for select "3" from (${pivot(3)}); prepare p as select "2" from (${pivot(2)})`,
  )
  expect((await client.query('fetch c')).rows).toEqual([{ 3: '30' }])
  expect((await client.query('execute p')).rows).toEqual([{ 2: '21' }])
  await client.query('commit; deallocate p')
})
