// Goal: the compaction of a part (a Parquet file) leaves out exactly the rows that upserts have removed from it.

import { expect, test } from 'vitest'
import { emptyEngine } from '../../../support/inline-engine.js'

const base = 1_704_067_200_000_000n
const day = 86_400_000_000n

test('a part that loses most of its rows is written again with the others', async () => {
  const engine = await emptyEngine()
  await engine.run('create table m (ts timestamp, k int, v long, primary key (ts, k)) timestamp(ts) partition by day')
  await engine.run(`insert into m select ${base}L::timestamp, x::int, x from long_sequence(10)`)
  await engine.run('checkpoint')
  const partRows = async (): Promise<unknown> => await engine.rows(`select numRows from table_partitions('m')`)
  expect(await partRows()).toEqual([[10n]])
  await engine.run('merge into m using (select x k from long_sequence(6)) s on m.k = s.k when matched then delete')
  // The flush of a table chooses its next compaction.
  await engine.run(`insert into m values (${base + day}L, 11, 11)`)
  await engine.run('checkpoint')
  await engine.settle()
  expect(engine.logged).toEqual([])
  expect(await partRows()).toEqual([[4n], [1n]])
  expect(await engine.rows('select v from m order by v')).toEqual([[7n], [8n], [9n], [10n], [11n]])
})
