// Goal: clients of PostgreSQL see materialized and live views as materialized views, and get PostgreSQL's error codes
// when they name a view of the wrong kind, one that others read, or one that takes no rows.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  await client.query('create table tides (ts timestamp, k symbol, x double) timestamp(ts) partition by day')
  await client.query('create view plain as (select * from tides)')
  await client.query('create materialized view hours as (select ts, k, sum(x) x from tides sample by 1h)')
  await client.query(
    'create live view lags flush every 1s start from beginning as select ts, k, lag(x) over (partition by k order by ts) p from tides',
  )
})

afterAll(() => server.remove())

// As psql's \d, \dm and \dv ask.
test('kinds in the catalog', async () => {
  const { rows } = await client.query(
    `select c.relname, case c.relkind when 'r' then 'table' when 'v' then 'view' when 'm' then 'materialized view' end as kind
    from pg_catalog.pg_class c left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r','v','m') and n.nspname = 'public' and c.relname in ('tides', 'plain', 'hours', 'lags')
    order by 1`,
  )
  expect(rows).toEqual([
    { relname: 'hours', kind: 'materialized view' },
    { relname: 'lags', kind: 'materialized view' },
    { relname: 'plain', kind: 'view' },
    { relname: 'tides', kind: 'table' },
  ])
})

test.each([
  ['drop table lags', '42809', 'table name expected, got live view name'],
  ['drop view lags', '42809', 'view name expected, got live view name'],
  ['drop materialized view lags', '42809', 'materialized view name expected, got live view name'],
  ['drop live view hours', '42809', 'live view name expected, got materialized view name'],
  ['drop live view nothing', '42P01', 'live view does not exist [view=nothing]'],
  ['drop table tides', '2BP01', 'table has materialized and live views, CASCADE drops them, too [table=tides, view='],
  [
    'create materialized view hours as (select ts, sum(x) x from tides sample by 1d)',
    '42P07',
    'materialized view already',
  ],
  ['create live view lags flush every 1s start from now as select ts from tides', '42P07', 'live view already exists'],
  ['create view lags as (select 1 x)', '42P07', 'live view with the requested name already exists'],
  ['truncate table lags', '42809', 'cannot modify live view [view=lags]'],
  ["insert into lags values ('2024-01-01', 'A', 1)", '42809', 'cannot modify live view [view=lags]'],
  ['copy lags from stdin', '42809', 'cannot modify live view [view=lags]'],
  ['copy hours from stdin', '42809', 'cannot modify materialized view [view=hours]'],
])('%s', async (sql, code, text) => {
  const message: unknown = expect.stringContaining(text)
  await expect(client.query(sql)).rejects.toMatchObject({ code, message })
})
