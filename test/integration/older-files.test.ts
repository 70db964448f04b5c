// Goal: a root folder that an older version has left, by kill -9, is served as it was, goes on, and is sound afterwards.
// fixtures/root-format-1.json.gz: its files by path, base64. Parts of index format 1 (no sums of pages), 1,500 rows of
// `readings` by INSERT, then a late and a new row of it and one of `other` by lines, and one with an array by INSERT
// that are in the log alone.

import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { command, TestServer } from '../support/server.js'
import { repositoryRoot } from '../support/source-tree.js'

const server = new TestServer()

beforeAll(async () => {
  const packed = readFileSync(join(repositoryRoot, 'test/integration/fixtures/root-format-1.json.gz'))
  const files: Record<string, string> = JSON.parse(gunzipSync(packed).toString('utf8'))
  for (const [path, content] of Object.entries(files)) {
    const target = join(server.root, path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, Buffer.from(content, 'base64'))
  }
  await server.start()
})

afterAll(() => server.remove())

async function rowOf(sql: string): Promise<readonly unknown[] | undefined> {
  const [row] = await server.rows(sql)
  return row
}

const figures =
  'select count(*), sum(l), sum(d), min(ts), max(ts), count(i), count(v), count_distinct(sensor), sum(n), sum(array_sum(a)) from readings'

test('what was stored and what was in the log is there', async () => {
  expect(await rowOf(figures)).toEqual([
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
  expect(await rowOf(figures)).toEqual(after)
  await server.restart()
  expect(await rowOf(figures)).toEqual(after)
  await server.end()
  const { status, stdout } = spawnSync(process.execPath, [command, 'check', '-d', server.root], { encoding: 'utf8' })
  expect({ status, stdout }).toMatchObject({ status: 0 })
})
