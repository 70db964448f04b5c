// Goal: UPDATE, DELETE, TRUNCATE and DROP TABLE within BEGIN wait for COMMIT with exact counts; ROLLBACK and ROLLBACK TO
// forget them; rows and changes are stored in their order; what reads them has them carried out before, and says so.

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['wal.commit.mode=nosync', 'query.threads=1'])
let client: pg.Client
let other: pg.Client
const warnings: string[] = []

beforeAll(async () => {
  await server.start()
  const [host = '', port = ''] = server.address('postgres').split(':')
  const address = { host, port: Number(port), user: 'admin', password: 'quest', database: 'qdb' }
  client = new pg.Client(address)
  other = new pg.Client(address)
  await client.connect()
  await other.connect()
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

afterAll(async () => {
  await client?.end()
  await other?.end()
  await server.remove()
})

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

test('what reads a change has it carried out, and says so', async () => {
  await client.query('begin')
  await client.query('update h set v = 0 where id = 1')
  expect(await values(client, 'k')).toEqual([10, 20, 30])
  expect(warnings).toEqual([])
  expect(await values(client)).toEqual([0, 20, 30])
  expect(warnings).toEqual([expect.stringContaining('ROLLBACK cannot take them back')])
  expect((await client.query('delete from h where v = 0')).rowCount).toBe(1)
  await client.query('rollback')
  expect(warnings.slice(1)).toEqual([expect.stringContaining('stays'), expect.stringContaining('not taken back')])
  expect(await values(other)).toEqual([0, 20, 30])
  await client.query('begin; drop table h; create table h (ts timestamp, v int) timestamp(ts); commit')
  expect(await values(other)).toEqual([])
  await client.query('begin; drop table h')
  await expect(client.query("insert into h values ('2024-01-01', 1)")).rejects.toMatchObject({ code: '42P01' })
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
    message: expect.stringMatching(/^the transaction is stored in part \[changes=1 of 1, rows=0\]: /),
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
