// Goal: ALTER COLUMN TYPE reports lost values: values that the new type cannot represent become NULL and are counted in
// the response, over HTTP and the PostgreSQL protocol, also within a transaction; types without NULL reject them. Rows that
// a transaction has brought before another session changes the type are not stored without their values.

import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client
const notices: string[] = []

beforeAll(async () => {
  await server.start()
  client = await server.connect({ types: { getTypeParser: () => String } })
  client.on('notice', ({ message }) => notices.push(String(message)))
})

beforeEach(async () => {
  await client.query('drop table if exists at')
  await client.query(
    'create table at (ts timestamp, l bigint, d float8, n numeric(18, 4), v varchar, t varchar) timestamp(ts) partition by day',
  )
  await client.query(
    "insert into at values ('2024-01-01', 5, 1.5, 1.25, '12', 'true'), ('2024-01-02', 9999999999, 1e39, 12345.6789, 'abc', 'maybe'), ('2024-01-03', null, null, null, null, null)",
  )
  notices.length = 0
})

afterAll(async () => {
  await server.remove()
})

const lossy: readonly (readonly [column: string, type: string, name: string, first: string])[] = [
  ['l', 'int', 'INT', '9999999999'],
  ['d', 'real', 'FLOAT', '1.0E39'],
  ['d', 'bigint', 'LONG', '1.0E39'],
  ['n', 'numeric(6, 2)', 'DECIMAL(6,2)', '12345.6789'],
  ['v', 'int', 'INT', 'abc'],
  ['v', 'float8', 'DOUBLE', 'abc'],
  ['v', 'uuid', 'UUID', '12'],
  ['t', 'timestamp', 'TIMESTAMP', 'true'],
]

test.each(lossy)('%s as %s', async (column, type, name, first) => {
  const count = first === '12' || first === 'true' ? 2 : 1
  const shown = await client.query(`select ${column}::text from at where ${column} is not null`)
  expect(shown.rows).toHaveLength(2)
  await client.query('begin')
  await client.query(`alter table at alter column ${column} type ${type}`)
  await client.query('rollback')
  const dialect = { real: 'float', bigint: 'long', float8: 'double' }[type] ?? type.replace('numeric', 'decimal')
  const { body } = await server.exec(`alter table at alter column ${column} type ${dialect}`)
  const told = (body as { readonly notices?: readonly string[] }).notices
  const day = count === 2 ? '01' : '02'
  const what = count === 2 ? '2 values' : '1 value'
  expect(told).toEqual([
    `${what} of the column had no value of the new type and became NULL [column=${column}, type=${name}, first=${first}, timestamp=2024-01-${day}T00:00:00.000000Z]`,
  ])
  expect(notices).toEqual(told)
  const left = await client.query(`select ${column} from at where ${column} is not null`)
  expect(left.rows).toHaveLength(2 - count)
})

test('what holds every value says nothing', async () => {
  await client.query('alter table at alter column l type varchar')
  await client.query('alter table at alter column n type numeric(30, 6)')
  const { body } = await server.exec('alter table at alter column t type symbol')
  expect(body).toEqual(expect.not.objectContaining({ notices: expect.anything() }))
  expect(notices).toEqual([])
})

test('types without NULL refuse what they do not hold', async () => {
  for (const [column, type, value] of [
    ...([
      ['l', 'smallint', '9999999999'],
      ['d', 'smallint', '1.0E39'],
      ['v', 'smallint', 'abc'],
    ] as const),
    ...([
      ['v', 'boolean', '12'],
      ['t', 'boolean', 'maybe'],
      ['v', 'char', '12'],
    ] as const),
  ]) {
    const alter = `alter table at alter column ${column} type ${type}`
    await expect(client.query(alter), alter).rejects.toMatchObject({ message: expect.stringContaining(value) })
    expect((await server.exec(alter.replace('smallint', 'short'))).text).toContain(value)
  }
  await client.query("update at set t = 'no' where t = 'maybe'")
  await client.query('alter table at alter column t type boolean')
  expect((await client.query('select t from at')).rows).toEqual([{ t: 't' }, { t: 'f' }, { t: 'f' }])
})

test('COMMIT does not store rows without the values of a column that another session has changed', async () => {
  const other = await server.connect()
  for (const [column, type, value] of [
    ['l', 'float8', '7'],
    ['v', 'symbol', "'seven'"],
    ['v', 'varchar', "'seven'"],
  ]) {
    await client.query('begin')
    await client.query(`insert into at (ts, ${column}) values ('2024-02-01', ${value})`)
    await other.query(`alter table at alter column ${column} type ${type}`)
    await expect(client.query('commit'), `${column} ${type}`).rejects.toThrow(
      'the table has changed meanwhile, try again [table=at]',
    )
    expect((await client.query("select * from at where ts = '2024-02-01'")).rows).toEqual([])
  }
  await client.query('begin')
  await client.query("insert into at (ts, l, v) values ('2024-02-01', 7, 'seven')")
  await other.query('alter table at drop column v')
  await client.query('commit')
  expect((await client.query("select * from at where ts = '2024-02-01'")).rows).toMatchObject([{ l: '7.0' }])
  await other.end()
})
