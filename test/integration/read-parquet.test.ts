// Goal: the SQL function read_parquet() of a real server, over HTTP (/exec, /exp) and the PostgreSQL protocol, reads
// Parquet files of other programs in a folder that also contains other files; a damaged file fails only its statement.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = TestServer.shared()

beforeAll(async () => {
  await server.start()
  const wire = await server.connect()
  await wire.query(
    "create table t as (select x, 'n' || x s, dateadd('h', x::int, '2024-01-01'::timestamp) ts from long_sequence(100000)) timestamp(ts) partition by month",
  )
  await wire.query("copy t to 'out'")
  mkdirSync(join(server.root, 'import'), { recursive: true })
})

afterAll(() => server.remove())

test('over HTTP and the wire protocol', async () => {
  const file = "read_parquet('out.parquet')"
  expect(await server.rows(`select count(), sum(x), max(s), min(ts) from ${file}`)).toEqual([
    [100_000, 5_000_050_000, 'n99999', '2024-01-01T01:00:00.000000Z'],
  ])
  const query = new URLSearchParams({ query: `select x, s from ${file} where x < 3`, fmt: 'csv' })
  const answer = await fetch(`http://${server.address('http')}/exp?${query}`)
  expect(await answer.text()).toBe('"x","s"\r\n1,"n1"\r\n2,"n2"\r\n')
  const wire = await server.connect()
  const { rows, fields } = await wire.query(
    `select a.x, b.s from ${file} a join t b on a.x = b.x where a.x > $1`,
    [99_998],
  )
  expect(rows).toEqual([
    { x: '99999', s: 'n99999' },
    { x: '100000', s: 'n100000' },
  ])
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([20, 1043])
  await expect(wire.query('select * from read_parquet($1)', ['out.parquet'])).rejects.toThrow(/one literal text/)
})

test('a damaged file ends its statement alone, whatever reads it', async () => {
  const bytes = readFileSync(join(server.root, 'export/out.parquet'))
  bytes.fill(0xff, 100, 5000)
  writeFileSync(join(server.root, 'import/damaged.parquet'), bytes)
  const words = /Parquet file cannot be read: .* \[file=damaged.parquet, column=\w+, row group=0, offset=\d+\]/
  const { status, text } = await server.exec("select * from read_parquet('damaged.parquet')")
  expect(status).toBe(400)
  expect(text).toMatch(words)
  const wire = await server.connect()
  await expect(wire.query("copy broken from 'damaged.parquet'")).rejects.toThrow(words)
  await expect(wire.query("select * from read_parquet('damaged.parquet')")).rejects.toMatchObject({ code: '22P04' })
  await expect(wire.query("copy broken from 'none.parquet'")).rejects.toMatchObject({ code: '58P01' })
  await expect(wire.query("create table broken as (select * from read_parquet('damaged.parquet'))")).rejects.toThrow(
    words,
  )
  expect(await server.rows("select count() from tables() where table_name = 'broken'")).toEqual([[0]])
  expect(await server.rows('select count() from t')).toEqual([[100_000]])
})

test('what is no regular file is refused at once', async () => {
  execFileSync('mkfifo', [join(server.root, 'import/pipe.csv'), join(server.root, 'import/pipe.parquet')])
  const wire = await server.connect()
  for (const name of ['pipe.csv', 'pipe.parquet'])
    await expect(wire.query(`copy x from '${name}'`)).rejects.toMatchObject({
      message: `not a regular file [file=${name}]`,
      code: '42809',
    })
  const { status, body } = await server.exec("select * from read_parquet('pipe.parquet')")
  expect(status).toBe(400)
  expect(body.error).toBe('not a regular file [file=pipe.parquet]')
})
