// Goal: files that are whole, but not the ones that belong there, are refused: exchanged data files, a manifest from before,
// a missing file of users. And what `penstock repair` and `penstock user reset` make of it.

import { spawnSync } from 'node:child_process'
import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { command, TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=400m', 'query.threads=1'])
let db = ''

beforeEach(async () => {
  db = join(server.root, 'db')
  await server.start()
  await server.rows('create table t (v long, ts timestamp) timestamp(ts) partition by day')
  await server.rows("insert into t values (1, '2024-01-01'), (2, '2024-01-02'), (3, '2024-01-03')")
  await server.rows('checkpoint')
})

afterEach(() => server.remove())

function tool(...args: readonly string[]): { status: number | null; out: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args, '-d', server.root], {
    encoding: 'utf8',
  })
  return { status, out: stdout + stderr }
}

/** Data files of the table, in the order of their partitions. */
async function parts(): Promise<string[]> {
  const id = String((await server.rows("select id from tables() where table_name = 't'"))[0]?.[0])
  return readdirSync(join(db, id)).flatMap((partition) =>
    readdirSync(join(db, id, partition)).map((name) => join(db, id, partition, name)),
  )
}

test('two data files exchanged', async () => {
  const [first = '', second = ''] = await parts()
  await server.end()
  renameSync(first, `${first}.x`)
  renameSync(second, first)
  renameSync(`${first}.x`, second)
  await server.start()
  const { status, text } = await server.exec('select * from t')
  expect(status).toBe(500)
  expect(text).toMatch(/a part is another than the manifest names \[id=\d+, named=\d+\]/)
  expect((await server.exec("select v from t where ts >= '2024-01-03'")).status).toBe(200)
  await server.end()
  expect(tool('check').status).toBe(1)
})
