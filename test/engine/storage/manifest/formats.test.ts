// Goal: the format number of the manifest (the log of all tables' files and schemas) rises when a feature that older
// servers do not know is first used, and keeps its value in a crash, so that older servers refuse the root folder;
// without such a use the number stays as it was.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Files, nodeFiles } from '../../../../engine/base/files.js'
import { planRepair } from '../../../../engine/storage/maintenance/repair.js'
import { Manifest } from '../../../../engine/storage/manifest/manifest.js'
import { formats } from '../../../../engine/storage/manifest/manifest-format.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'
import { executeOptions, openTestEngine } from '../../../support/test-engine.js'

const directory = '/db/manifest'

function formatOf(files: Files, folder = directory): number {
  const name = files.list(folder).find((path) => path.startsWith('manifest-')) ?? ''
  const file = files.open(`${folder}/${name}`, 'read')
  const header = Buffer.alloc(16)
  file.read(header, 0)
  file.close()
  return header.readUInt32LE(4)
}

test('the format rises once and stays', () => {
  const disk = createFaultyDisk(1)
  const { files } = disk
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const options = { files, directory, log: () => {} }
  const first = Manifest.open(options)
  expect(formatOf(files)).toBe(formats.plain)
  first.requireFormat(formats.materializedViews)
  expect(formatOf(files)).toBe(formats.materializedViews)
  disk.crash(7)
  const second = Manifest.open(options)
  expect(formatOf(files)).toBe(formats.materializedViews)
  second.commit([{ kind: 'ids', table: 5 }])
  second.checkpoint()
  second.close()
  expect(formatOf(files)).toBe(formats.materializedViews)
})

test.each([
  [
    'a materialized view',
    'create materialized view v as (select ts, max(x) y from t sample by 1h)',
    'materializedViews',
  ],
  [
    'a materialized view with states of aggregates',
    'create materialized view v as (select ts, avg(x) y from t sample by 1h)',
    'viewStates',
  ],
  [
    'a materialized view with timestamps of first rows',
    'create materialized view v as (select ts, first(x) y from t sample by 1h)',
    'viewTimes',
  ],
  [
    'a materialized view with exact means',
    'create materialized view v as (select ts, avg(cast(x as long)) y from t sample by 1h)',
    'viewMeans',
  ],
  [
    'a materialized view with distinct values',
    'create materialized view v as (select ts, count_distinct(x) y from t sample by 1h)',
    'viewValues',
  ],
  [
    'a materialized view with numbers',
    'create materialized view v as (select ts, median(x) y from t sample by 1h)',
    'viewValues',
  ],
  [
    'a materialized view with a condition on all rows',
    'create materialized view v as (select ts, bool_and(x > 1)::int y from t sample by 1h)',
    'viewValues',
  ],
  [
    'a TTL of a materialized view',
    'create materialized view v as (select ts, max(x) y from t sample by 1h) partition by day ttl 1 week',
    'sealedBuckets',
  ],
  [
    'a live view',
    'create live view v flush every 1s start from beginning as select ts, x, sum(x) over (partition by k order by ts rows 2 preceding) s from t',
    'liveViews',
  ],
  ['a row that an upsert adds', 'insert into t values (2, 20, 0) on conflict (k) do nothing', 'removedRows'],
  [
    'a row that an upsert replaces',
    'insert into t values (1, 20, 0) on conflict (k) do update set x = 7',
    'removedRows',
  ],
  [
    'a table with an enforced key',
    'create table e (ts timestamp primary key enforced) timestamp(ts) partition by day',
    'enforcedKeys',
  ],
  ['DEDUP of stored rows', 'alter table t dedup enable upsert keys(ts)', 'dedupOfStored'],
  [
    'a column with PARQUET(..)',
    'create table p (a int parquet(plain), ts timestamp) timestamp(ts) partition by day',
    'columnStorage',
  ],
  ['SET PARQUET', 'alter table t alter column x set parquet(default, zstd)', 'columnStorage'],
  [
    'PARQUET(..) beside a new type of another column',
    'alter table t alter column x type long, add column b varchar parquet(plain, gzip)',
    'columnStorage',
    // The new schema was in the manifest alone, and the log has the rows.
    'plain',
  ],
  [
    'SET PARQUET of a column with a new type',
    'alter table t alter column x type long, alter column x set parquet(default, gzip)',
    'columnStorage',
    'plain',
  ],
  [
    'a table of format version 3 in the lake',
    'create table l (a int, ts timestamp) timestamp(ts) partition by day lake on format version 3',
    'lakeVersions',
  ],
  ['a table in the lake that gets format version 3', 'alter table t set lake on format version 3', 'lakeVersions'],
  ['a merge', 'merge into t using (select 1 k) s on t.k = s.k when matched then delete', 'removedRows'],
] as const)('%s', async (...[, statement, format, repaired = format]) => {
  const root = mkdtempSync(join(tmpdir(), 'penstock-formats-'))
  const engine = await openTestEngine(root, { queryThreads: 1 })
  const found = (): number => formatOf(nodeFiles(), join(root, 'manifest'))
  try {
    await engine.execute(
      'create table t (k int primary key, x int, ts timestamp) timestamp(ts) partition by day',
      executeOptions,
    )
    await engine.execute('insert into t values (1, 10, 0)', executeOptions)
    await engine.execute('checkpoint', executeOptions)
    expect(found()).toBe(formats.plain)
    await engine.execute(statement, executeOptions)
    expect(found()).toBe(formats[format])
    await engine.close()
    rmSync(join(root, 'manifest'), { recursive: true })
    const { state } = planRepair({ files: nodeFiles(), directory: root })
    expect(state.format, 'after a repair').toBe(formats[repaired])
  } finally {
    await engine.close()
    rmSync(root, { recursive: true })
  }
})

test.each([
  ['a view', 'materialized view v as (select ts, max(x) y from t sample by 1h)', 'materializedViews', 'lateSealed'],
  [
    'a view whose aggregates do not combine',
    'materialized view v as (select ts, mode(x) y from t sample by 1h)',
    'materializedViews',
    'sealedBuckets',
  ],
  [
    'a live view',
    'live view v flush every 1s start from beginning as select ts, x, sum(x) over (partition by x order by ts rows 2 preceding) s from t',
    'liveViews',
    'liveViews',
  ],
] as const)('buckets of %s that outlive rows', async (_, view, before, after) => {
  const root = mkdtempSync(join(tmpdir(), 'penstock-formats-'))
  const engine = await openTestEngine(root, { queryThreads: 1 })
  const found = (): number => formatOf(nodeFiles(), join(root, 'manifest'))
  try {
    await engine.execute('create table t (x int, ts timestamp) timestamp(ts) partition by day', executeOptions)
    await engine.execute(`create ${view}`, executeOptions)
    await engine.execute("insert into t values (1, '2024-01-01'), (2, '2024-01-03')", executeOptions)
    await engine.execute('checkpoint', executeOptions)
    expect(found()).toBe(formats[before])
    await engine.execute("alter table t drop partition list '2024-01-01'", executeOptions)
    expect(found()).toBe(formats[after])
    await engine.execute("insert into t values (3, '2024-01-01')", executeOptions)
    await engine.execute('update t set x = x + 1', executeOptions)
    expect(found(), 'with a late row').toBe(formats[after])
  } finally {
    await engine.close()
    rmSync(root, { recursive: true })
  }
})

test.each(['plain', 'default, gzip', 'bloom_filter'])(
  'repair without manifest and log finds the parts of a column with PARQUET(%s)',
  async (storage) => {
    const root = mkdtempSync(join(tmpdir(), 'penstock-formats-'))
    const engine = await openTestEngine(root, { queryThreads: 1 })
    const formatAfter = (): number => planRepair({ files: nodeFiles(), directory: root }).state.format
    try {
      await engine.execute('create table o (a varchar, ts timestamp) timestamp(ts) partition by day', executeOptions)
      await engine.execute("insert into o values ('x', 0)", executeOptions)
      const columns = `a varchar parquet(${storage}), ts timestamp`
      await engine.execute(`create table t (${columns}) timestamp(ts) partition by day`, executeOptions)
      await engine.execute("insert into t values ('x', 0)", executeOptions)
      await engine.execute('checkpoint', executeOptions)
      await engine.close()
      for (const folder of ['manifest', 'wal']) rmSync(join(root, folder), { recursive: true })
      const { adopted } = planRepair({ files: nodeFiles(), directory: root })
      expect(adopted.map(({ table }) => table)).toEqual(['o', 't'])
      expect(formatAfter()).toBe(formats.columnStorage)
      rmSync(join(root, '2'), { recursive: true })
      expect(formatAfter()).toBe(formats.plain)
    } finally {
      await engine.close()
      rmSync(root, { recursive: true })
    }
  },
)
