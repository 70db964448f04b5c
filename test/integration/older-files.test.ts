// Goal: a root folder left by an older version that was killed opens without loss, accepts new rows, and passes
// `penstock check`. Method: two recorded root folders (file contents by path, base64).
//
// fixtures/root-format-1.json.gz: Parquet files with index format 1 (without page checksums). The Parquet files have
// 1,500 rows of the table `readings`, which an INSERT stored. Four rows are only in the log: a late and a new row of
// `readings` and a row of `other` by line protocol, and a row with an array by INSERT.
//
// fixtures/root-manifest-1.json.gz: a manifest of format 1, before high-water marks. A table with every type of column,
// one with DEDUP, one with a detached partition, one whose column was added later, one that was dropped and created
// again, a view, a user. Each table has rows in Parquet files and rows that are only in the log. `answers`: the
// expected rows by statement.

import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { command, TestServer } from '../support/server.js'

const server = new TestServer()
const second = new TestServer()

function unpack<T>(name: string, root: string, filesOf: (packed: T) => Readonly<Record<string, string>>): T {
  const text = gunzipSync(readFileSync(join(repositoryRoot, 'test/integration/fixtures', name))).toString('utf8')
  const packed = JSON.parse(text) as T
  for (const [path, content] of Object.entries(filesOf(packed))) {
    const target = join(root, path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, Buffer.from(content, 'base64'))
  }
  return packed
}

beforeAll(async () => {
  unpack<Record<string, string>>('root-format-1.json.gz', server.root, (files) => files)
  await server.start()
})

afterAll(async () => {
  await server.remove()
  await second.remove()
})

async function rowOf(sql: string): Promise<readonly unknown[] | undefined> {
  const [row] = await server.rows(sql)
  return row
}

const statistics =
  'select count(*), sum(l), sum(d), min(ts), max(ts), count(i), count(v), count_distinct(sensor), sum(n), sum(array_sum(a)) from readings'

test('what was stored and what was in the log is there', async () => {
  expect(await rowOf(statistics)).toEqual([
    ...[1503, 1125750007880269, 129884, '2024-01-01T00:00:00.000000Z', '2024-03-01T00:00:00.000000Z'],
    ...[1365, 1202, 8, '1126125.00', 1688629],
  ])
  const ofEven = 'select sum(i), sum(f), count(u), count(v) from readings where b'
  expect(await rowOf(ofEven)).toEqual([511645, 140815.0, 500, 601])
  expect(await rowOf('select * from other')).toEqual(['x', 1.25, '2024-02-03T22:40:00.000000Z'])
})

test('it goes on: changed, joined with new rows, and read again after a restart', async () => {
  await server.rows("update readings set d = 0 where sensor = 's3'")
  await server.rows("delete from readings where ts < '2024-01-02'")
  await server.write('readings,sensor=s1 l=1i 1704070800000000000\n')
  await server.rows('checkpoint')
  const after = [
    ...[1297, 1104429007731014, 109226.5, '2024-01-01T01:00:00.000000Z', '2024-03-01T00:00:00.000000Z'],
    ...[1176, 1036, 8, '1104752.50', 1656647.5],
  ]
  expect(await rowOf(statistics)).toEqual(after)
  await server.restart()
  expect(await rowOf(statistics)).toEqual(after)
  await server.end()
  const { status, stdout } = spawnSync(process.execPath, [command, 'check', '-d', server.root], { encoding: 'utf8' })
  expect({ status, stdout }).toMatchObject({ status: 0 })
})

interface PackedRoot {
  readonly files: Readonly<Record<string, string>>
  readonly answers: Readonly<Record<string, readonly (readonly unknown[])[]>>
}

test('a root with every type of column is as it was, at the first start, the second, and one behind kill -9', async () => {
  const { answers } = unpack<PackedRoot>('root-manifest-1.json.gz', second.root, ({ files }) => files)
  await second.start()
  for (const restart of ['SIGKILL', 'SIGTERM', null] as const) {
    for (const [statement, rows] of Object.entries(answers))
      expect([statement, await second.rows(statement)]).toEqual([statement, rows])
    if (restart !== null) await second.restart(restart)
  }
  await second.rows("alter table detached attach partition list '2024-01-01'")
  expect(await second.rows('select v from detached')).toEqual([[1], [2]])
  await second.end()
  const { status, stdout } = spawnSync(process.execPath, [command, 'check', '-d', second.root], { encoding: 'utf8' })
  expect({ status, stdout }).toMatchObject({ status: 0 })
})
