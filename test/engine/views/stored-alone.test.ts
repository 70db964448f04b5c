// Goal: with the setting query.view.read = stored, a query reads only the stored rows of a materialized view, unless
// the query has a hint. A refresh always computes from current rows, also if it reads another view. Method: an engine
// with this setting, a view over a view, and rows that arrive after a refresh.

import { expect, test } from 'vitest'
import { engineClient } from '../../sql/clients.js'

test('with query.view.read = stored, queries read what is stored alone', async () => {
  const client = await engineClient(true, 'on', 'stored')
  const days = (hint: string): Promise<string> => client.rows(`select ${hint} n from days`)
  await client.rows('create table ticks (ts timestamp, v long) timestamp(ts) partition by day')
  const create = 'refresh manual deferred as'
  await client.rows(`create materialized view hours ${create} (select ts, count() n from ticks sample by 1h)`)
  await client.rows(`create materialized view days ${create} (select ts, sum(n) n from hours sample by 1d)`)
  await client.rows("insert into ticks values ('2024-01-01T10:00:00', 1), ('2024-01-01T11:00:00', 2)")
  expect(await days('')).toBe('')
  expect(await days('/*+ view_fresh */')).toBe('[2]')
  // A refresh of the coarse view does not depend on what is stored of the finer one.
  await client.rows('refresh materialized view days')
  expect(await days('')).toBe('[2]')
  await client.rows("insert into ticks values ('2024-01-01T12:00:00', 3)")
  expect(await days('')).toBe('[2]')
  expect(await days('/*+ view_fresh */')).toBe('[3]')
  expect(await client.rows('explain select * from days')).toContain('(stored buckets alone)')
  expect(await client.rows('select count() from ticks')).toBe('[3]')
  await client.rows('refresh materialized view days')
  expect(await days('')).toBe('[3]')
  await client.close()
}, 120_000)
