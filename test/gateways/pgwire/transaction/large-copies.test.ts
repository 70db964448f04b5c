// Goal: COMMIT of a transaction with COPYs that are too large for the log stores all of its rows in all tables, or none:
// readers never see a part of it, and a table that refuses its rows refuses those of the others. What cannot be stored
// together is rejected, and nothing of it is stored.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
const rowsOfCopy = 4200
/** Text of more than 16 MiB. */
const lines = Array.from(
  { length: rowsOfCopy },
  (_, row) => `2024-01-01 00:00:00.${String(row).padStart(6, '0')}\t${'x'.repeat(4096)}\n`,
).join('')
const tables = ['a', 'b', 'c'] as const
let client: pg.Client
let other: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
})

beforeEach(async () => {
  await client.query('rollback')
  for (const table of tables) await client.query(`drop table if exists ${table}`)
  await client.query('drop table if exists keyed')
  for (const table of tables)
    await client.query(`create table ${table} (ts timestamp, s varchar) timestamp(ts) partition by day`)
  await client.query(
    'create table keyed (ts timestamp, s varchar) timestamp(ts) partition by day dedup upsert keys(ts)',
  )
})

afterAll(() => server.remove())

function copy(table: string): Promise<void> {
  return pipeline(Readable.from([lines]), client.query(copyFrom(`copy ${table} from stdin`)))
}

async function counts(...names: readonly string[]): Promise<string> {
  const columns = names.map((name) => `(select count() from ${name}) ${name}`)
  const { rows } = await other.query(`select ${columns.join()}`)
  return Object.values(rows[0]).join(' ')
}

test('the rows of all tables appear at once, those of INSERT among them', async () => {
  await client.query('begin')
  await copy('a')
  await client.query("insert into c values ('2024-01-01', 'y'), ('2024-01-02', 'z')")
  await copy('b')
  await copy('a')
  await client.query("insert into a values ('2024-01-03', 'y')")
  const seen = new Set<string>()
  let isDone = false
  const committed = client.query('commit').finally(() => {
    isDone = true
  })
  while (!isDone) seen.add(await counts(...tables))
  expect((await committed).command).toBe('COMMIT')
  const whole = `${rowsOfCopy * 2 + 1} ${rowsOfCopy} 2`
  expect([...seen].filter((state) => state !== '0 0 0' && state !== whole)).toEqual([])
  expect(await counts(...tables)).toBe(whole)
  expect((await other.query('select s from a limit -1')).rows).toEqual([{ s: 'y' }])
})

test('a table that was dropped in the meantime refuses the rows of all', async () => {
  await client.query('begin')
  await copy('a')
  await copy('b')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await other.query('drop table b')
  await expect(client.query('commit')).rejects.toThrow('the table was dropped in the meantime')
  expect(await counts('a', 'c')).toBe('0 0')
  await client.query('begin')
  await copy('a')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await other.query('drop table c')
  await expect(client.query('commit')).rejects.toThrow('the table was dropped in the meantime')
  expect(await counts('a')).toBe('0')
})

test('rows of a table with DEDUP and a COPY that follows are stored together, in the log', async () => {
  await client.query('begin')
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  await copy('a')
  await client.query('commit')
  expect(await counts('a', 'keyed')).toBe(`${rowsOfCopy} 1`)
})

test('rows of a table with DEDUP after a large COPY are rejected, and nothing is stored', async () => {
  await client.query('begin')
  await copy('a')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  await expect(client.query('commit')).rejects.toMatchObject({ code: '0A000' })
  expect(await counts('a', 'c', 'keyed')).toBe('0 0 0')
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  expect(await counts('a', 'c', 'keyed')).toBe('0 0 1')
})
