// Goal: a Parquet file that is sent to /imp becomes a table. The request may give other types and names of columns than
// the file has, and may ask to skip bad rows. A preview stores nothing. No temporary file is left behind.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectTo } from '../support/gateway.js'
import { TestServer } from '../support/server.js'

const server = TestServer.shared()
/** By what it contains. */
const files = new Map<string, Blob>()

beforeAll(async () => {
  await server.start()
  const query =
    "select timestamp_sequence('2026-03-02', 3600000000L) ts, 'room ' || x room, x * 1.5 temperature, (9007199254740990 + x) big, case when x = 2 then null else x::int end n from long_sequence(5)"
  files.set('rows', await exported(query))
  files.set('words', await exported("select case when x = 2 then 'two' else x::varchar end word from long_sequence(3)"))
  files.set(
    'many',
    await exported(
      "select x, dateadd('s', x::int, '2026-01-01'::timestamp) ts, 'some text ' || x s from long_sequence(700000)",
    ),
  )
})

afterAll(() => server.remove())

async function exported(query: string): Promise<Blob> {
  const answer = await fetch(`http://${server.address('http')}/exp?${new URLSearchParams({ query, fmt: 'parquet' })}`)
  expect(answer.status).toBe(200)
  return answer.blob()
}

async function send(
  query: Record<string, string>,
  parts: readonly (readonly [file: string | Blob, name: string])[],
  schema?: object,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const form = new FormData()
  if (schema !== undefined) form.append('schema', JSON.stringify(schema))
  for (const [file, name] of parts)
    form.append('data', typeof file === 'string' ? (files.get(file) ?? new Blob([file])) : file, name)
  const answer = await fetch(`http://${server.address('http')}/imp?${new URLSearchParams({ fmt: 'json', ...query })}`, {
    method: 'POST',
    body: form,
  })
  const text = await answer.text()
  expect(uploads()).toEqual([])
  return { status: answer.status, body: JSON.parse(text) as Record<string, unknown> }
}

function uploads(): string[] {
  try {
    return readdirSync(join(server.root, 'tmp/uploads'))
  } catch {
    return []
  }
}

test('a file becomes a table with the types of the file', async () => {
  const { status, body } = await send({ name: 'rooms', timestamp: 'ts' }, [['rows', 'rooms.parquet']])
  expect(status).toBe(200)
  expect(body).toMatchObject({ status: 'OK', location: 'rooms', rowsImported: 5, rowsRejected: 0, timestamp: 'ts' })
  expect(await server.rows('select "column", type from table_columns(\'rooms\')')).toEqual([
    ['ts', 'TIMESTAMP'],
    ['room', 'VARCHAR'],
    ['temperature', 'DOUBLE'],
    ['big', 'LONG'],
    ['n', 'INT'],
  ])
  expect(
    await server.rows('select ts, room, temperature, big::varchar, n from rooms where n is null or n > 4'),
  ).toEqual([
    ['2026-03-02T01:00:00.000000Z', 'room 2', 3, '9007199254740992', null],
    ['2026-03-02T04:00:00.000000Z', 'room 5', 7.5, '9007199254740995', 5],
  ])
})

test('names and types of the request, and an existing table', async () => {
  const schema = [
    { name: 'room', type: 'SYMBOL', as: 'place' },
    { name: 'temperature', as: 'degrees celsius' },
    { name: 'nothing', type: 'INT' },
  ]
  const { body } = await send({ name: 'renamed', timestamp: 'ts', partitionBy: 'MONTH' }, [['rows', 'a']], schema)
  expect(body).toMatchObject({
    rowsImported: 5,
    warnings: ['the schema part names a column that the file does not have: nothing'],
  })
  expect(await server.rows('select "column", type from table_columns(\'renamed\')')).toEqual([
    ['ts', 'TIMESTAMP'],
    ['place', 'SYMBOL'],
    ['degreesCelsius', 'DOUBLE'],
    ['big', 'LONG'],
    ['n', 'INT'],
  ])
  const again = await send({ name: 'renamed' }, [['rows', 'a']], schema)
  expect(again.body).toMatchObject({ rowsImported: 5 })
  expect(await server.rows('select count(), count_distinct(place) from renamed')).toEqual([[10, 5]])
})

test('a CSV file gets other names, too', async () => {
  const csv = 'ts,sensor id,v\n2026-01-01T00:00:00Z,a,1\n2026-01-02T00:00:00Z,b,2.5\n'
  const { body } = await send(
    { name: 'csv_renamed' },
    [[csv, 'a.csv']],
    [
      { name: 'sensorId', type: 'SYMBOL', as: 'sensor' },
      { name: 'v', as: 'value' },
    ],
  )
  expect(body).toMatchObject({ rowsImported: 2 })
  expect(body['warnings']).toBeUndefined()
  expect(await server.rows('select sensor, value from csv_renamed')).toEqual([
    ['a', 1],
    ['b', 2.5],
  ])
  const twice = await send({ name: 'csv_twice' }, [[csv, 'a.csv']], [{ name: 'v', as: 'TS' }])
  expect(twice).toMatchObject({ status: 400, body: { status: 'two columns have the same name [column=TS]' } })
  const wrong = await send({ name: 'csv_twice' }, [[csv, 'a.csv']], [{ name: 'v', as: '"' }])
  expect(wrong).toMatchObject({ status: 400, body: { status: 'invalid name of a column [as="]' } })
})

test('names of the schema part are the original or the converted ones', async () => {
  const query = 'select timestamp_sequence(0, 1000000L) ts, x "sensor id" from long_sequence(3)'
  const file = await exported(query)
  for (const [index, name] of ['sensor id', 'sensorId', 'SENSORID'].entries()) {
    const schema = [{ name, type: 'SYMBOL', as: 'sensor' }]
    const { body } = await send({ name: `names${index}` }, [[file, 'a.parquet']], schema)
    expect(body).toMatchObject({ rowsImported: 3 })
    expect(body['warnings']).toBeUndefined()
    expect(await server.rows(`select "column", type from table_columns('names${index}')`)).toEqual([
      ['ts', 'TIMESTAMP'],
      ['sensor', 'SYMBOL'],
    ])
  }
})

test('a name by `as` is that of a column of the table', async () => {
  await server.exec('create table swapped (a long, b long)')
  const schema = [
    { name: 'high', as: 'b' },
    { name: 'low', as: 'a' },
  ]
  const { body } = await send({ name: 'swapped' }, [['high,low\n2,1\n', 'a.csv']], schema)
  expect(body).toMatchObject({ rowsImported: 1 })
  expect(await server.rows('select a, b from swapped')).toEqual([[1, 2]])
  const wrong = await send({ name: 'swapped' }, [['high,low\n2,1\n', 'a.csv']], [{ name: 'high', as: 'c' }])
  expect(wrong).toMatchObject({
    status: 400,
    body: { status: 'column does not exist [column=c, table=swapped, columns=a,b]' },
  })
})

test('a pattern needs a type', async () => {
  const schema = [{ name: 'at', as: 'ts', pattern: 'dd/MM/yyyy' }]
  const { status, body } = await send({ name: 'patterns' }, [['at\n01/02/2024\n', 'a.csv']], schema)
  expect([status, body]).toEqual([400, { status: 'a pattern needs a type [column=at]' }])
})

test('rows that do not fit are named by their number', async () => {
  const schema = [{ name: 'word', type: 'INT' }]
  const refused = await send({ name: 'words' }, [['words', 'words.parquet']], schema)
  expect(refused).toMatchObject({
    status: 400,
    body: { status: 'row 2, column word: not a value of type INT [column=word, value=two]' },
  })
  expect(await server.rows("select count() from tables() where table_name = 'words'")).toEqual([[0]])
  const skipped = await send({ name: 'words', atomicity: 'skipRow' }, [['words', 'words.parquet']], schema)
  expect(skipped.body).toMatchObject({ rowsImported: 2, rowsRejected: 1, rejects: [{ line: 2, column: 'word' }] })
  expect(await server.rows("select line from sys.rejects where table_name = 'words' order by ts desc limit 1")).toEqual(
    [[2]],
  )
})

test('a large file', async () => {
  const { body } = await send({ name: 'many' }, [['many', 'many.parquet']])
  expect(body).toMatchObject({ rowsImported: 700_000, timestamp: 'ts' })
  expect(await server.rows('select count(), sum(x), max(s) from many')).toEqual([
    [700_000, 245_000_350_000, 'some text 99999'],
  ])
})

test('a preview shows columns and rows, and stores nothing', async () => {
  const { status, body } = await send({ preview: '2' }, [['rows', 'rooms.parquet']])
  expect(status).toBe(200)
  expect(body).toEqual({
    status: 'OK',
    columns: [
      { name: 'ts', type: 'TIMESTAMP' },
      { name: 'room', type: 'VARCHAR' },
      { name: 'temperature', type: 'DOUBLE' },
      { name: 'big', type: 'LONG' },
      { name: 'n', type: 'INT' },
    ],
    rowCount: 5,
    dataset: [
      ['2026-03-02T00:00:00.000000Z', 'room 1', 1.5, '9007199254740991', 1],
      ['2026-03-02T01:00:00.000000Z', 'room 2', 3, '9007199254740992', null],
    ],
  })
  expect(await send({ preview: '0' }, [['rows', 'a']])).toMatchObject({
    status: 400,
    body: { status: 'invalid preview, expected 1 to 1000 rows [value=0]' },
  })
  expect(await send({ preview: '10' }, [['a,b\n1,2\n', 'a.csv']])).toMatchObject({
    status: 400,
    body: { status: 'not a Parquet file: only these have a preview [file=a.csv]' },
  })
})

test('a file that is damaged, or beside others of its table, is refused', async () => {
  const bytes = Buffer.from(await (files.get('rows') ?? new Blob([])).arrayBuffer())
  const cut = await send({ name: 'cut' }, [[new Blob([bytes.subarray(0, 200)]), 'cut.parquet']])
  expect(cut.status).toBe(400)
  expect(cut.body['status']).toMatch(/Parquet.*\[file=cut\.parquet/)
  const named = await send({ name: 'cut' }, [[new Blob([bytes.subarray(0, 200)]), 'a$&b.parquet']])
  expect(named.body['status']).toContain('[file=a$&b.parquet')
  const beside = await send({ name: 'beside' }, [
    ['rows', 'a.parquet'],
    ['words', 'b.parquet'],
  ])
  expect(beside.body).toEqual({ status: 'a Parquet file must be the only file of its table [table=beside]' })
  expect(await server.rows("select count() from tables() where table_name in ('cut', 'beside')")).toEqual([[0]])
})

test('an upload whose client disconnects leaves nothing behind', async () => {
  const [, port] = server.address('http').split(':')
  const client = await connectTo(Number(port))
  const body = '--b\r\nContent-Disposition: form-data; name="data"; filename="a.parquet"\r\n\r\nPAR1'
  client.write(
    'POST /imp?name=gone HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n',
  )
  client.write(body + 'x'.repeat(100_000))
  await expect.poll(() => uploads().length).toBe(1)
  client.resetAndDestroy()
  await expect.poll(() => uploads()).toEqual([])
})

test('a file of another program', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const duck = await instance.connect()
  const path = join(server.root, 'duck.parquet')
  await duck.run(
    `copy (select 'x' || i as name, i::decimal(10, 2) as price, 'ab'::blob as raw, timestamp '2026-01-01' + interval (i) hour as at from range(3) t(i)) to '${path}' (format parquet)`,
  )
  duck.closeSync()
  const { body } = await send({ name: 'duck' }, [[new Blob([readFileSync(path)]), 'duck.parquet']])
  expect(body).toMatchObject({ rowsImported: 3, timestamp: 'at' })
  expect(await server.rows('select name, price, length(raw), at from duck limit 1')).toEqual([
    ['x0', '0.00', 2, '2026-01-01T00:00:00.000000Z'],
  ])
})

test('a file replaces a table whose columns have other types', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const duck = await instance.connect()
  const path = join(server.root, 'bytes.parquet')
  await duck.run(`copy (select '\\x00\\xFF'::blob as raw, 1 as n) to '${path}' (format parquet)`)
  duck.closeSync()
  const file = new Blob([readFileSync(path)])
  await server.exec('create table bytes (raw varchar, n int)')
  const { body } = await send({ name: 'bytes', overwrite: 'true' }, [[file, 'bytes.parquet']])
  expect(body).toMatchObject({ rowsImported: 1 })
  expect(await server.rows('select length(raw), n from bytes')).toEqual([[2, 1]])
  await server.exec('create table words2 ("binText" varchar, n int)')
  const schema = [{ name: 'raw', as: 'bin text' }]
  const text = await send({ name: 'words2' }, [[await textBlob(), 'text.parquet']], schema)
  expect(text.body).toMatchObject({ rowsImported: 1 })
  expect(await server.rows('select "binText", n from words2')).toEqual([['word', 1]])
})

async function textBlob(): Promise<Blob> {
  const instance = await DuckDBInstance.create(':memory:')
  const duck = await instance.connect()
  const path = join(server.root, 'text.parquet')
  await duck.run(`copy (select 'word'::blob as raw, 1 as n) to '${path}' (format parquet)`)
  duck.closeSync()
  return new Blob([readFileSync(path)])
}
