// Goal: INSERT, UPDATE and DELETE within a WITH clause are one transaction. Rows that sessions move between two tables
// by such statements are in exactly one of the tables at every moment, while memtables are flushed and parts are
// compacted, and after each kill of the server. Within BEGIN they take effect at COMMIT.
//
// Method: random statements of several sessions move rows (tokens) between the tables. A reader counts the tokens of
// both tables in one query; the sum never changes. After a SIGKILL, every token exists once.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomNumbers } from '../../bench/line-template.js'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['storage.flush.rows=1000', 'query.threads=1'])
const seed = Date.now() % 1e9
const random = randomNumbers(seed)
const tokens = 200

beforeAll(() => server.start())
afterAll(() => server.remove())

async function run(sql: string): Promise<unknown[][]> {
  const { body } = await server.exec(sql)
  if ('error' in body) throw new Error(`${String(body.error)}: ${sql}`)
  return (body.dataset ?? []) as unknown[][]
}

const below = (limit: number): number => Math.floor(random() * limit)

function randomMove(): string {
  const [from, to] = below(2) === 0 ? ['here', 'there'] : ['there', 'here']
  const low = below(tokens)
  const where = `id >= ${low} and id < ${low + 1 + below(20)}`
  switch (below(3)) {
    case 0:
      return `with moved as (delete from ${from} where ${where} returning *) insert into ${to} select * from moved`
    case 1:
      return `with moved as (delete from ${from} where ${where} returning ts, id, moves),
        added as (insert into ${to} select ts, id, moves + 1 from moved) select count() from moved`
    default:
      return `with moved as (delete from ${from} where ${where} returning *), counted as (update ${to} set moves = moves + 1 where ${where}),
        added as (insert into ${to} select * from moved) select count() from moved`
  }
}

test('an upsert that waits for its turn stores its values in the columns that the table has then', async () => {
  await run('create table stock (ts timestamp, id int primary key, old int, amount int) timestamp(ts) partition by day')
  const first = run("with a as (insert into stock values ('2024-01-01', 1, 1, 1)) select pg_sleep(1)")
  await new Promise((resolve) => setTimeout(resolve, 300))
  const waiting = run(
    "insert into stock (ts, id, amount) values ('2024-01-01', 2, 4) on conflict (id) do update set amount = excluded.amount",
  )
  await run('alter table stock drop column old')
  await Promise.all([first, waiting])
  expect(await run('select id, amount from stock order by id')).toEqual([
    [1, 1],
    [2, 4],
  ])
})

test(`tokens are in one of two tables, also after kills [seed=${seed}]`, async () => {
  for (const table of ['here', 'there'])
    await run(`create table ${table} (ts timestamp, id int, moves int) timestamp(ts) partition by day`)
  await run(
    `insert into here select dateadd('h', x::int, '2024-01-01'::timestamp), x::int - 1, 0 from long_sequence(${tokens})`,
  )
  for (let round = 0; round < 3; round++) {
    let over = false
    let moves = 0
    const failures: string[] = []
    const session = async (): Promise<void> => {
      while (!over && failures.length === 0)
        await run(randomMove()).then(
          () => moves++,
          (error: unknown) => over || failures.push(String(error)),
        )
    }
    const reader = async (): Promise<void> => {
      while (!over && failures.length === 0)
        await run('select count(), count_distinct(id) from (select id from here union all select id from there)').then(
          ([counts]) => `${counts}` === `${tokens},${tokens}` || failures.push(`counts: ${counts}`),
          (error: unknown) => over || failures.push(String(error)),
        )
    }
    const running = Promise.all([session(), session(), session(), session(), reader()])
    await Promise.race([running, new Promise((resolve) => setTimeout(resolve, 1500 + 1000 * random()))])
    over = true
    await server.end('SIGKILL')
    await running
    expect(failures).toEqual([])
    expect(moves).toBeGreaterThan(0)
    await server.start()
    const [found] = await run(
      'select count(), count_distinct(id), min(id), max(id) from (select id from here union all select id from there)',
    )
    expect(found).toEqual([tokens, tokens, 0, tokens - 1])
  }
})

test('within BEGIN, they are counted at once and take effect at COMMIT', async () => {
  const client = await server.connect()
  const other = await server.connect()
  const count = async (by: typeof client, table: string): Promise<number> =>
    Number((await by.query(`select count() n from ${table}`)).rows[0].n)
  await client.query('create table old_rows (ts timestamp, v int) timestamp(ts) partition by day')
  await client.query('create table new_rows (ts timestamp, v int) timestamp(ts) partition by day')
  await client.query("insert into new_rows values ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-03', 3)")
  const move = 'with moved as (delete from new_rows where v < $1 returning *) insert into old_rows select * from moved'

  await client.query('begin')
  const { command, rowCount } = await client.query(move, [3])
  expect([command, rowCount]).toEqual(['INSERT', 2])
  expect([await count(other, 'new_rows'), await count(other, 'old_rows')]).toEqual([3, 0])
  await client.query('rollback')
  expect([await count(client, 'new_rows'), await count(client, 'old_rows')]).toEqual([3, 0])

  await client.query('begin')
  await client.query(move, [3])
  await client.query('commit')
  expect([await count(client, 'new_rows'), await count(client, 'old_rows')]).toEqual([1, 2])

  await client.query('begin')
  await expect(client.query('with moved as (delete from old_rows returning v) select * from moved')).rejects.toThrow(
    'the result of data changes in WITH is not supported within a transaction block',
  )
  await client.query('rollback')
  expect(await count(client, 'old_rows')).toBe(2)

  const { fields, rows } = await client.query({
    ...{ name: 'gone', text: 'with gone as (delete from old_rows where v = $1 returning v, ts) select v from gone' },
    ...{ values: [2], rowMode: 'array' },
  })
  expect([fields.map(({ name }) => name), rows]).toEqual([['v'], [[2]]])
  await client.end()
  await other.end()
})

test('two sessions that take the same rows get different ones', async () => {
  await run('create table jobs (ts timestamp, id int, owner symbol) timestamp(ts) partition by day')
  await run(
    "insert into jobs select dateadd('m', x::int, '2024-01-01'::timestamp), x::int, null from long_sequence(40)",
  )
  const taken = await Promise.all(
    Array.from({ length: 4 }, async (_, worker) => {
      const own: unknown[][] = []
      for (let index = 0; index < 10; index++)
        own.push(
          ...(await run(`with job as (select min(id) id from jobs where owner is null),
            taken as (update jobs set owner = 'w${worker}' from job where jobs.id = job.id returning jobs.id)
            select id from taken`)),
        )
      return own
    }),
  )
  const ids = taken.flat(2).map(Number)
  expect(ids.sort((x, y) => x - y)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
})
