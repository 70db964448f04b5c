// Goal: intact files that do not belong together are rejected: exchanged data files by queries that read them; an older
// or missing manifest (the list of all tables' files) and a missing file of users when the server starts. `penstock
// repair` reconstructs the manifest from data files and log, and `penstock user reset` creates a new file of users.

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
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
  expect(text).toMatch(/a part is not the one that the manifest names \[id=\d+, named=\d+\]/)
  expect((await server.exec("select v from t where ts >= '2024-01-03'")).status).toBe(200)
  await server.end()
  expect(tool('check').status).toBe(1)
})

test('a manifest from before is refused, nothing is deleted, and repair brings its data back', async () => {
  cpSync(join(db, 'manifest'), join(server.root, 'copy'), { recursive: true })
  await server.rows("insert into t values (4, '2024-01-04')")
  await server.rows('create table later (k symbol, v long, ts timestamp) timestamp(ts) partition by month')
  await server.rows("insert into later values ('a', 1, '2024-01-04'), ('b', 2, '2024-02-04')")
  await server.rows('checkpoint')
  await server.rows("insert into t values (5, '2024-01-05')")
  await server.end()
  rmSync(join(db, 'manifest'), { recursive: true })
  cpSync(join(server.root, 'copy'), join(db, 'manifest'), { recursive: true })
  const files = (): string => spawnSync('find', ['.', '-type', 'f'], { cwd: db, encoding: 'utf8' }).stdout
  const before = files()
  await expect(server.start()).rejects.toThrow(/the manifest is older than the data .*penstock repair/)
  expect(files()).toBe(before)
  expect(tool('check').status).toBe(1)
  expect(tool('repair')).toMatchObject({ status: 0, out: expect.stringMatching(/nothing was written/) })
  expect(files()).toBe(before)
  expect(tool('repair', '--apply')).toMatchObject({ status: 0 })
  expect(tool('repair').out).toMatch(/nothing is to be repaired/)
  await server.start()
  expect((await server.rows('select v from t')).flat()).toEqual([1, 2, 3, 4, 5])
  expect(await server.rows('select k, v from later')).toEqual([
    ['a', 1],
    ['b', 2],
  ])
  await server.end()
  expect(tool('check')).toMatchObject({ status: 0 })
})

test('without log and manifest all tables come back from their data files', async () => {
  await server.rows('create table s (k symbol, v long, ts timestamp) timestamp(ts) partition by hour')
  await server.rows("insert into s values ('a', 1, '2024-01-04'), (null, 2, '2024-02-04')")
  await server.rows('checkpoint')
  await server.end()
  for (const name of ['manifest', 'wal']) rmSync(join(db, name), { recursive: true })
  const [table = ''] = readdirSync(db)
    .filter((name) => /^\d+$/.test(name))
    .slice(-1)
  const [hour = ''] = readdirSync(join(db, table))
  writeFileSync(join(db, table, hour, '99.parquet'), 'no data file')
  await expect(server.start()).rejects.toThrow(/penstock repair/)
  expect(tool('repair', '--apply').status).toBe(0)
  expect(existsSync(join(server.root, 'orphans', table, hour, '99.parquet'))).toBe(true)
  await server.start()
  expect((await server.rows('select v from t')).flat()).toEqual([1, 2, 3])
  expect(await server.rows('select k, v from s')).toEqual([
    ['a', 1],
    [null, 2],
  ])
  await server.rows("insert into s values ('c', 3, '2024-03-04')")
  expect(await server.rows("select v from s where k = 'c'")).toEqual([[3]])
})

test('a missing file of users', async () => {
  await server.rows('create user watcher with no password')
  await server.end()
  rmSync(join(db, 'users.pus'))
  for (let start = 0; start < 2; start++) {
    await expect(server.start()).rejects.toThrow(/the file of users is missing.*penstock user reset/)
  }
  expect(tool('user', 'reset')).toMatchObject({ status: 0 })
  await server.start()
  expect((await server.rows('show users')).flat()).not.toContain('watcher')
  await server.rows('create user other with no password')
  await server.restart()
  expect((await server.rows('show users')).flat()).toContain('other')
})
