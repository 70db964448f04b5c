// Goal: a Parquet export that copies pages from the table's Parquet files has the same rows in the same order as an
// export that encodes every row: in every codec, in versions 1 and 2, with row groups that end within pages, and with
// different dictionaries in each file. So does an export of a query that several threads encode, compared with one
// thread. Method: DuckDB hashes each column together with the row number, in exports made both ways.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

// Row groups are cut by the memory of queries: there is enough for those that the tests ask for.
const server = new TestServer(['memory.bytes=2g', 'query.threads=2'])
const directory = mkdtempSync(join(tmpdir(), 'penstock-parts-'))
let duckdb: DuckDBConnection

const rows = 150_000
/** Each insert gives a part of its own: other symbols, other texts, NULLs in some. */
const columns = (part: number): string => `
  dateadd('s', cast(x as int), '2024-01-0${part + 1}') ts, cast(concat('s', (x * 7 + ${part}) % ${5 + part * 300}) as symbol) sy,
  case when x % 3 = 0 then null else concat('few ', (x + ${part}) % 40) end few, concat('many ', x * ${part + 1}) many,
  cast(x % 100 as int) i, case when x % 11 = ${part} then null else x * 1000003 end l, x / 8.0 d, sin(x) r, x % 3 = 0 b,
  cast(x % 300 as short) h, cast(x % 7 as byte) y, cast(null as double) nothing, cast(x * 86400000 as date) dt,
  case when x % 2 = 0 then null else cast(concat('00000000-0000-0000-0000-', lpad(concat('', x % 900), 12, '0')) as uuid) end u,
  cast(x as float) f, cast(x * 1000000 as timestamp) t2, rnd_geohash(20) g,
  (x * 7919 + ${part} * 1000003) % 5999993 / 100.0 p, case when x % 13 = ${part} then null else (x * 7919) % 1009 - 500 end near`

beforeAll(async () => {
  duckdb = await (await DuckDBInstance.create()).connect()
  await server.start()
  for (let part = 0; part < 3; part++) {
    const query = `select ${columns(part)} from long_sequence(${rows / 3})`
    await run(
      part === 0 ? `create table stored as (${query}) timestamp(ts) partition by day` : `insert into stored ${query}`,
    )
    await run('checkpoint')
  }
})
afterAll(async () => {
  duckdb.closeSync()
  await server.remove()
  rmSync(directory, { recursive: true, force: true })
})

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect(status, text).toBe(200)
}

async function exported(query: string, parameters: Readonly<Record<string, string>>): Promise<string> {
  const requested = new URLSearchParams({ query, fmt: 'parquet', ...parameters })
  const answer = await fetch(`http://${server.address('http')}/exp?${requested}`)
  const body = Buffer.from(await answer.arrayBuffer())
  expect(answer.status, answer.status === 200 ? '' : body.toString()).toBe(200)
  const path = join(directory, `${parameters['compression_codec'] ?? 'default'}.parquet`)
  writeFileSync(path, body)
  return path
}

async function rowsOf(sql: string): Promise<unknown[][]> {
  return (await duckdb.runAndReadAll(sql)).getRowsJson()
}

async function digest(path: string): Promise<Record<string, unknown>> {
  const names = (await rowsOf(`select column_name from (describe select * from '${path}')`)).flat() as string[]
  const sums = names.map((name) => `sum(hash(file_row_number, ${name})::hugeint)::text || ' ' || count(${name})`)
  const [found] = await rowsOf(
    `select count(*), ${sums.join(', ')} from read_parquet('${path}', file_row_number = true)`,
  )
  return Object.fromEntries(['rows', ...names].map((name, index) => [name, found?.[index]]))
}

async function chunksOf(path: string, name: string): Promise<unknown[][]> {
  return rowsOf(
    `select encodings, row_group_num_rows from parquet_metadata('${path}') where path_in_schema = '${name}'`,
  )
}

describe('pages of parts', () => {
  let wanted: Record<string, unknown> | null = null

  test.each([
    ['NONE', '1'],
    ['SNAPPY', '1'],
    ['SNAPPY', '2'],
    ['GZIP', '2'],
    ['LZ4', '1'],
    ['LZ4', '2'],
    ['ZSTD', '2'],
  ])('%s of version %s', async (codec, version) => {
    const parameters = { compression_codec: codec, parquet_version: version }
    wanted ??= await digest(await exported(`select * from stored limit ${rows}`, parameters))
    expect(wanted['rows']).toBe(`${rows}`)
    expect(await digest(await exported('stored', parameters))).toEqual(wanted)
    const groups = await exported('stored', { ...parameters, row_group_size: '100000' })
    expect(await digest(groups)).toEqual(wanted)
    expect((await chunksOf(groups, 'ts')).map(([, count]) => count)).toEqual(['100000', '50000'])
  })

  test('smaller pages than those of parts', async () => {
    wanted ??= await digest(await exported(`select * from stored limit ${rows}`, {}))
    expect(await digest(await exported('stored', { data_page_size: '100000' }))).toEqual(wanted)
  })

  test('statistics and the page index tell what the values are', async () => {
    for (const version of ['1', '2']) {
      const path = await exported('stored', { parquet_version: version, row_group_size: '100000' })
      for (const name of ['i', 'l', 'd', 'h', 'near']) {
        const [reported] = await rowsOf(
          `select min(stats_min_value::double), max(stats_max_value::double), sum(stats_null_count::bigint)
           from parquet_metadata('${path}') where path_in_schema = '${name}'`,
        )
        const value = `${name}::double`
        const [found] = await rowsOf(`select min(${value}), max(${value}), count(*) - count(${name}) from '${path}'`)
        expect(reported?.map(Number)).toEqual(found?.map(Number))
      }
      expect(await rowsOf(`select count(*) from '${path}' where i = 77`)).toEqual([[`${rows / 100}`]])
    }
  })

  test('texts are taken as they lie, deltas only in version 2', async () => {
    const encodings = async (version: string, name: string): Promise<string> => {
      const path = await exported('stored', { parquet_version: version })
      return (await chunksOf(path, name)).map(([text]) => text).join(' ')
    }
    expect(await encodings('1', 'many')).toContain('DELTA_LENGTH_BYTE_ARRAY')
    expect(await encodings('1', 'ts')).not.toContain('DELTA')
    expect(await encodings('2', 'ts')).toContain('DELTA_BINARY_PACKED')
    expect(await encodings('1', 'few')).toContain('RLE_DICTIONARY')
    for (const version of ['1', '2']) expect(await encodings(version, 'd')).not.toContain('BYTE_STREAM_SPLIT')
  })

  test('numbers that parts leave plain are compressed', async () => {
    for (const codec of ['SNAPPY', 'ZSTD', 'LZ4']) {
      const path = await exported('stored', { compression_codec: codec })
      const [sizes] = await rowsOf(
        `select sum(total_compressed_size)::bigint, sum(total_uncompressed_size)::bigint
         from parquet_metadata('${path}') where path_in_schema = 'p'`,
      )
      const [packed, raw] = (sizes ?? []).map(Number) as [number, number]
      expect(raw).toBeGreaterThan(rows * 8)
      expect(packed / raw, codec).toBeLessThan(0.8)
    }
  })

  test('integers near each other become indexes of a dictionary where deltas may not stay', async () => {
    for (const codec of ['SNAPPY', 'ZSTD']) {
      const path = await exported('stored', { compression_codec: codec })
      const encodings = (await chunksOf(path, 'near')).map(([text]) => text).join(' ')
      expect(encodings).toContain(codec === 'SNAPPY' ? 'RLE_DICTIONARY' : 'DELTA_BINARY_PACKED')
      expect(encodings).not.toContain(codec === 'SNAPPY' ? 'DELTA' : 'DICTIONARY')
    }
  })

  test('columns in another order, some of them twice', async () => {
    const query = 'select sy, ts, sy again, many, ts later from stored'
    const wanted = await digest(await exported(`${query} limit ${rows}`, {}))
    expect(await digest(await exported(query, {}))).toEqual(wanted)
  })
})

describe('rows that are chosen or made, by several threads', () => {
  test.each([
    'select * from stored where i < 60',
    "select * from stored where ts > '2024-01-01T20:00:00.5' and ts <= '2024-01-03T01:00:00'",
    'select ts, l + 1 l, concat(many, few) texts, sy from stored where near is not null',
    'select ts, many, sy, r from stored where b order by ts desc',
    'select * from stored where i = 1000',
  ])('%s', async (query) => {
    const shared = await digest(await exported(query, {}))
    // With a limit one thread makes the file as rows come.
    expect(shared).toEqual(await digest(await exported(query, { limit: '1000000000' })))
  })
})
