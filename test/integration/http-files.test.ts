// Goal: file import and export over HTTP. /imp reproduces the CSV of /exp byte for byte; DuckDB reads exported Parquet
// files of every codec; an import is stored completely, without its bad rows on request, or not at all, and names them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, gzipSync } from 'node:zlib'
import { DuckDBInstance } from '@duckdb/node-api'
import { parquetMetadata } from 'hyparquet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'http.import.expanded.bytes.max=4m'])
const directory = mkdtempSync(join(tmpdir(), 'penstock-files-'))

const columns = `ts timestamp, bo boolean, by byte, sh short, ch char, i int, l long, f float, d double, s string,
  v varchar, sy symbol, dt date, u uuid, l2 long256, ip ipv4, g geohash(4c), a double[], de decimal(10,3), n timestamp_ns,
  gb geohash(7b), bi binary`

const values = [
  `('2024-01-01T00:00:00.000001Z', true, -5, 300, 'x', 7, 8, 1.5, -2.25, 'a,"b"', 'line\ntwo', 'sym', '2024-02-03',
   '11111111-2222-3333-4444-555555555555', cast('0x01' as long256), '10.0.0.1', #u33d, array[1.0, 2.0], 12.345m,
   '2024-01-01T00:00:00.000000009Z', ##1010101, null)`,
  `('2024-01-02T00:00:00.000000Z', false, 0, 0, null, null, null, null, null, null, null, null, null, null, null, null,
   null, null, null, null, null, null)`,
  `('2024-01-03T00:00:00.000000Z', false, 1, 1, '"', -1, -1, 0.1, 1e300, '', 'ü😀', '', '1969-12-31', null, null, null,
   null, null, -0.001m, null, ##0000000, null)`,
]

beforeAll(async () => {
  await server.start()
  await run(`create table kinds (${columns}) timestamp(ts) partition by day`)
  for (const row of values) await run(`insert into kinds values ${row}`)
})
afterAll(async () => {
  await server.remove()
  rmSync(directory, { recursive: true, force: true })
})

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect(status, text).toBe(200)
}

async function exported(query: string, parameters: Readonly<Record<string, string>> = {}) {
  const answer = await fetch(`http://${server.address('http')}/exp?${new URLSearchParams({ query, ...parameters })}`)
  return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) }
}

interface Imported {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

async function imported(
  data: string | Buffer,
  parameters: Readonly<Record<string, string>>,
  schema: string | null = null,
): Promise<Imported> {
  const form = new FormData()
  if (schema !== null) form.set('schema', schema)
  form.set('data', new Blob([data as string]), 'data.csv')
  const query = new URLSearchParams({ fmt: 'json', ...parameters })
  const answer = await fetch(`http://${server.address('http')}/imp?${query}`, { method: 'POST', body: form })
  return { status: answer.status, body: (await answer.json()) as Imported['body'] }
}

/** A multipart body of one compressed file. */
async function importedGzip(data: string, name: string): Promise<number> {
  const head = '--edge\r\nContent-Disposition: form-data; name="data"; filename="data.csv"\r\n\r\n'
  const answer = await fetch(`http://${server.address('http')}/imp?fmt=json&name=${name}`, {
    method: 'POST',
    headers: { 'content-encoding': 'gzip', 'content-type': 'multipart/form-data; boundary=edge' },
    body: gzipSync(`${head}${data}\r\n--edge--\r\n`),
  })
  await answer.arrayBuffer()
  return answer.status
}

describe('exports', () => {
  test('come back through an import byte for byte', async () => {
    const first = await exported('kinds')
    await run(`create table again (${columns}) timestamp(ts) partition by day`)
    const { status, body } = await imported(first.body, { name: 'again' })
    expect(status, JSON.stringify(body)).toBe(200)
    expect((await exported('again')).body.toString()).toBe(first.body.toString())
  })

  test('as an Arrow stream are messages that end where they say', async () => {
    const { headers, body } = await exported('kinds', { fmt: 'arrow' })
    expect(headers.get('content-type')).toBe('application/vnd.apache.arrow.stream')
    const kinds: number[] = []
    let at = 0
    for (let length = -1; length !== 0; ) {
      expect(body.readUInt32LE(at)).toBe(0xffff_ffff)
      length = body.readInt32LE(at + 4)
      at += 8
      if (length === 0) continue
      const table = at + body.readUInt32LE(at)
      const fields = table - body.readInt32LE(table)
      const place = (field: number): number => table + body.readUInt16LE(fields + 4 + field * 2)
      kinds.push(body[place(1)]!)
      at += length + Number(body.readBigInt64LE(place(3)))
    }
    expect([at, kinds]).toEqual([body.length, [1, 3, 3, 3].slice(0, kinds.length)])
    expect(kinds.length).toBeGreaterThan(1)
  })

  test.each([{}, { count: 'true' }, { count: 'true', fmt: 'parquet' }])(
    'say how many rows and what checksum they have, with %o',
    async (parameters) => {
      const { headers, body } = await exported('kinds', parameters)
      expect(headers.get('x-row-count')).toBe('3')
      expect(Number.parseInt(headers.get('x-checksum-crc32') ?? '', 16)).toBe(crc32(body))
    },
  )

  test.each([500, 50_000])('of %i rows have the same bytes behind gzip', async (rows) => {
    const query = new URLSearchParams({ query: `select x, x * 1.5 y from long_sequence(${rows})` })
    const url = `http://${server.address('http')}/exp?${query}`
    const zipped = await fetch(url, { headers: { 'Accept-Encoding': 'gzip' } })
    const plain = await fetch(url, { headers: { 'Accept-Encoding': 'identity' } })
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    expect(plain.headers.get('content-encoding')).toBe(null)
    expect(await zipped.text()).toBe(await plain.text())
  })

  test('refuse everything but SELECT and name files safely', async () => {
    expect((await exported('drop table kinds')).status).toBe(400)
    const { headers } = await exported('select 1', { filename: 'a\r\nX-Evil: 1"b/c' })
    expect(headers.get('x-evil')).toBe(null)
    expect(headers.get('content-disposition')).toBe('attachment; filename="a__X-Evil: 1_b_c.csv"')
  })

  test('lines are JSON objects', async () => {
    const { body } = await exported('select i, s, bo from kinds', { fmt: 'ndjson' })
    const lines = body.toString().trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { i: 7, s: 'a,"b"', bo: true },
      { i: null, s: null, bo: false },
      { i: -1, s: '', bo: false },
    ])
  })
})

describe('parameters of an import', () => {
  const data = 'a,b\n1,x\n2,y\n'

  test.each([
    [{ maxUncommittedRows: 'x' }, 'invalid maxUncommittedRows, must be an int'],
    [{ o3MaxLag: '5s' }, 'invalid o3MaxLag value, must be a long'],
    [{ create: 'false' }, 'table does not exist [table=nowhere] and create param was set to false.'],
  ])('%j is refused', async (parameters, status) => {
    const answer = await imported(data, { name: 'nowhere', ...parameters })
    expect(answer).toMatchObject({ status: 400, body: { status } })
  })

  test('a name says nothing of the values below it, and times have any number of digits', async () => {
    const text = 'c,t,u\n1.5,2024-01-01T00:00:00.5Z,2024-01-01T00:00:00.123\n,2024-01-01T00:00:00.123+02:00,\n'
    const { body } = await imported(text, { name: 'loose', fmt: 'json', forceHeader: 'true' })
    expect(body).toMatchObject({ columns: [{ type: 'DOUBLE' }, { type: 'TIMESTAMP' }, { type: 'TIMESTAMP' }] })
    expect(await server.rows('select t, u from loose order by t')).toEqual([
      ['2023-12-31T22:00:00.123000Z', null],
      ['2024-01-01T00:00:00.500000Z', '2024-01-01T00:00:00.123000Z'],
    ])
  })

  test('letters are CHAR, other signs texts, NaN and Infinity numbers', async () => {
    const text = 'c,s,t,d\nx,-,é,NaN\ny,+,☃,-Infinity\n'
    const { body } = await imported(text, { name: 'signs', fmt: 'JSON', forceHeader: 'true' })
    expect(body).toMatchObject({
      columns: [{ type: 'CHAR' }, { type: 'VARCHAR' }, { type: 'VARCHAR' }, { type: 'DOUBLE' }],
    })
  })
})

describe('Parquet', () => {
  const sql = `select x, x % 7 = 0 b, case when x % 5 = 0 then null else x * 0.5 end d, cast(x % 100 as symbol) sy,
    concat('text ', x % 3000) t, cast(x as int) i, cast(x * 1000000 as timestamp) ts from long_sequence(20000)`

  async function digest(bytes: Buffer, name: string): Promise<unknown> {
    const path = join(directory, `${name}.parquet`)
    writeFileSync(path, bytes)
    const connection = await (await DuckDBInstance.create()).connect()
    const reader = await connection.runAndReadAll(
      `select count(*), sum(x), count(d), sum(d), count(distinct sy), count(distinct t), sum(i), min(ts)::text,
       max(ts)::text, sum(case when b then 1 else 0 end) from '${path}'`,
    )
    return reader.getRowsJson()[0]
  }

  const wanted = ['20000', '200010000', '16000', 80000000, '100', '3000', '200010000']

  for (const codec of ['NONE', 'SNAPPY', 'GZIP', 'LZ4', 'ZSTD', 'BROTLI']) {
    for (const version of ['1', '2']) {
      test(`${codec} of version ${version} is what DuckDB reads`, async () => {
        const parameters = { fmt: 'parquet', compression_codec: codec, parquet_version: version }
        const small = { row_group_size: '7000', data_page_size: '4096' }
        const { status, body } = await exported(sql, { ...parameters, ...small })
        expect(status).toBe(200)
        expect(await digest(body, `${codec}${version}`)).toEqual(expect.arrayContaining(wanted))
        const whole = await exported(sql, { ...parameters, rmode: 'nodelay' })
        expect(await digest(whole.body, `${codec}${version}w`)).toEqual(await digest(body, `${codec}${version}`))
      })
    }
  }

  test('Bloom filters keep the values and rule others out', async () => {
    const bloom = { bloom_filter_columns: 'x,d,sy', bloom_filter_fpp: '0.001', row_group_size: '7000' }
    const { status, body } = await exported(sql, { fmt: 'parquet', ...bloom })
    expect(status).toBe(200)
    const path = join(directory, 'bloom.parquet')
    writeFileSync(path, body)
    const connection = await (await DuckDBInstance.create()).connect()
    const rowsOf = async (text: string) => (await connection.runAndReadAll(text)).getRowsJson()
    const excluded = (column: string, value: string) =>
      rowsOf(`select bloom_filter_excludes from parquet_bloom_probe('${path}', '${column}', ${value})`)
    const [present] = await rowsOf(`select x, d, sy from '${path}' where d is not null and sy is not null limit 1`)
    const [x, d, sy] = present as [unknown, unknown, unknown]
    expect((await excluded('x', `${x}::bigint`)).flat()).toContain(false)
    expect((await excluded('d', `${d}::double`)).flat()).toContain(false)
    expect((await excluded('sy', `'${sy}'`)).flat()).toContain(false)
    for (const [column, value] of [
      ['x', '-77::bigint'],
      ['d', '-77.25::double'],
      ['sy', "'never'"],
    ] as const)
      expect(new Set((await excluded(column, value)).flat())).toEqual(new Set([true]))
    expect(await rowsOf(`select count(*) from '${path}' where x = ${x}`)).not.toEqual([['0']])
  })

  test('a Bloom filter that cannot be made is refused', async () => {
    for (const [bloom, message] of [
      [{ bloom_filter_columns: 'nobody' }, 'bloom filter column does not exist [column=nobody]'],
      [{ bloom_filter_columns: 'b' }, 'a column of this type has no bloom filter [column=b, type=BOOLEAN]'],
      [{ bloom_filter_fpp: '2' }, 'invalid bloom_filter_fpp, expected a number between 0 and 1 [value=2]'],
    ] as const) {
      const { status, body } = await exported(sql, { fmt: 'parquet', ...bloom })
      expect([status, JSON.parse(body.toString()).error]).toEqual([400, message])
    }
  })

  test('every type has a value that DuckDB reads', async () => {
    const { body } = await exported('select * from kinds', { fmt: 'parquet' })
    const path = join(directory, 'kinds.parquet')
    writeFileSync(path, body)
    const connection = await (await DuckDBInstance.create()).connect()
    const rows = (
      await connection.runAndReadAll(`select dt::text, ip, de::text, a, u::text, sy from '${path}'`)
    ).getRowsJson()
    expect(rows[0]).toEqual(['2024-02-03', 167772161, '12.345', [1, 2], '11111111-2222-3333-4444-555555555555', 'sym'])
    expect(rows[1]).toEqual([null, null, null, null, null, null])
    expect(rows[2]?.[0]).toBe('1969-12-31')
  })

  test.each(['1', '2'])('columns of NULLs have no dictionary, in version %s', async (version) => {
    const nulls =
      'select null::double d, null::string s, null::symbol y, null::long l, null::uuid u from long_sequence(9)'
    for (const codec of ['NONE', 'LZ4']) {
      const { body } = await exported(nulls, { fmt: 'parquet', compression_codec: codec, parquet_version: version })
      const [group] = parquetMetadata(Uint8Array.from(body).buffer).row_groups
      expect(group?.columns.map(({ meta_data: chunk }) => chunk?.dictionary_page_offset)).toEqual(
        Array(5).fill(undefined),
      )
      const path = join(directory, `nulls-${codec}${version}.parquet`)
      writeFileSync(path, body)
      const connection = await (await DuckDBInstance.create()).connect()
      const reader = await connection.runAndReadAll(`select count(*), count(d), count(s), count(l) from '${path}'`)
      expect(reader.getRowsJson()).toEqual([['9', '0', '0', '0']])
    }
  })

  test.each([
    ['uncompressed', 'NONE'],
    ['lz4_raw', 'LZ4'],
  ])('%s is a further name of %s', async (name, codec) => {
    const one = await exported(sql, { fmt: 'parquet', compression_codec: name })
    const other = await exported(sql, { fmt: 'parquet', compression_codec: codec })
    expect([one.status, one.body.equals(other.body)]).toEqual([200, true])
  })

  test('an error answers 400, also behind the first rows', async () => {
    const { status } = await exported('select * from nowhere', { fmt: 'parquet' })
    expect(status).toBe(400)
    const unknown = await exported('select 1', { fmt: 'parquet', compression_codec: 'zip' })
    expect(JSON.parse(unknown.body.toString())).toEqual({
      error: 'invalid compression codec[zip], expected one of: NONE, SNAPPY, GZIP, LZ4, ZSTD, BROTLI, LZO',
      position: 0,
    })
  })
})

describe('imports', () => {
  test('a bad row ends the import and nothing stays', async () => {
    const data = 'ts,v\n2024-01-01T00:00:00.000000Z,1\n2024-01-01T00:00:01.000000Z,x\n'
    const schema = '[{"name":"v","type":"INT"}]'
    const { status, body } = await imported(data, { name: 'bad', forceHeader: 'true' }, schema)
    expect(status).toBe(400)
    expect(body.status).toBe('line 3, column v: not a value of type INT [column=v, value=x]')
    expect((await server.exec('select * from bad')).status).toBe(400)
  })

  test('skipRow keeps the others and says which were left out', async () => {
    const data = 'a,b\n1,x1\n2\n3,x3,extra\n4,"x4"y\n5,x5\n'
    const { body } = await imported(data, { name: 'skipping', forceHeader: 'true', atomicity: 'skipRow' })
    expect(body).toMatchObject({ rowsImported: 2, rowsRejected: 3 })
    expect((body.rejects as { line: number }[]).map(({ line }) => line)).toEqual([3, 4, 5])
    expect(await server.rows('select * from skipping')).toEqual([
      [1, 'x1'],
      [5, 'x5'],
    ])
    expect(await server.rows(`select line from sys.rejects where table_name = 'skipping'`)).toEqual([[3], [4], [5]])
  })

  test('a first line of names that its columns cannot hold is a header, whatever is below it', async () => {
    await run('create table headed (a int, b symbol)')
    const skipping = await imported('B,a\nx,1\ny,zz\nz,3\n', { name: 'headed', atomicity: 'skipRow' })
    expect(skipping.body).toMatchObject({ header: true, rowsImported: 2, rowsRejected: 1 })
    expect(await server.rows('select * from headed')).toEqual([
      [1, 'x'],
      [3, 'z'],
    ])
    const said = await imported('a,b\n1,2\n', { name: 'said' }, '[{"name":"b","type":"SHORT"}]')
    expect(said.body).toMatchObject({ header: true, rowsImported: 1 })
    // Names that may be values are read as such.
    const strings = await imported('a,b\nx,y\nz,w\n', { name: 'texts' }, '[{"name":"b","type":"SYMBOL"}]')
    expect(strings.body).toMatchObject({ header: false, rowsImported: 3 })
  })

  test('names of a header are made names of columns, and two of one name are refused', async () => {
    const { body } = await imported('\ufeffa b, c,,f2\n1,2,3,4\n5,6,7,8\n', { name: 'headnames', forceHeader: 'true' })
    expect((body.columns as { name: string }[]).map(({ name }) => name)).toEqual(['aB', 'C', 'f2_', 'f2'])
    const twice = await imported('a,A\n1,2\n3,4\n', { name: 'twice' })
    const message =
      "duplicate column name found [no=1,name=A]: the header's 'a' and 'A' both become A, whatever their case"
    expect([twice.status, twice.body.status]).toEqual([400, message])
    const blanks = await imported('sensor id,sensor-Id\n1,2\n3,4\n', { name: 'blanks' })
    expect(blanks.body.status).toContain("the header's 'sensor id' and 'sensor-Id' both become sensorId")
    const same = await imported('a b,c,a b\n1,2,3\n3,4,5\n', { name: 'same' })
    expect(same.body.status).toBe("duplicate column name found [no=2,name=aB]: the header has 'a b' twice")
  })

  test('skipLev forgives too many values only', async () => {
    const long = await imported('a,b\n1,x1\n2,x2,more\n', { name: 'lev', skipLev: 'true', forceHeader: 'true' })
    expect(long.body).toMatchObject({ rowsImported: 2, rowsRejected: 0 })
    expect((await imported('a,b\n1,x1\n2\n', { name: 'lev2', skipLev: 'true', forceHeader: 'true' })).status).toBe(400)
  })

  test('a quote that is not closed is an error at its line', async () => {
    const { status, body } = await imported('a,b\n1,x1\n2,"x2\n3,x3\n', { name: 'open', forceHeader: 'true' })
    expect(status).toBe(400)
    expect(body.status).toBe('line 3: a quote is not closed')
  })

  test('a line of commas alone, or of quotes, is no table', async () => {
    const commas = await imported(','.repeat(3_000_000), { name: 'commas' })
    expect([commas.status, commas.body.status]).toEqual([400, 'too many columns [max=2048]'])
    const cut = await imported(`a,b\n1,2\n3,4\n${','.repeat(3_000_000)}\n`, { name: 'cut' })
    expect([cut.status, cut.body.status]).toEqual([
      400,
      'line 4: the line has more values than the file has columns: skipLev=true skips the fields after the last column',
    ])
    const open = await imported(`"${','.repeat(3_000_000)}`, { name: 'quoted' })
    expect([open.status, open.body.status]).toEqual([400, 'line 1: a quote is not closed'])
    const widest = await imported(`${','.repeat(2047)}\n${'7,'.repeat(2047)}8\n`, { name: 'widest' })
    expect(widest.body).toMatchObject({ status: 'OK', rowsImported: 2 })
  })

  test('may be compressed, but not expand without end', async () => {
    expect(await importedGzip('aa,bb\n10,20\n', 'zipped')).toBe(200)
    expect((await exported('zipped')).body.toString()).toBe('"aa","bb"\r\n10,20\r\n')
    expect(await importedGzip(`aa,bb\n${'10,20\n'.repeat(1_000_000)}`, 'bomb')).toBe(413)
    expect((await exported('bomb')).status).toBe(400)
  })

  test('a header is recognised above cells of megabytes', async () => {
    const cells = [1, 2, 3].map((row) => `${row},"${'x'.repeat(2_000_000)}"`).join('\n')
    const { body } = await imported(`k,t\n${cells}\n`, { name: 'cells' })
    expect(body).toMatchObject({ status: 'OK', header: true, rowsImported: 3 })
    expect(await server.rows('select k, length(t) from cells limit 2')).toEqual([
      [1, 2_000_000],
      [2, 2_000_000],
    ])
  })

  test('what is no UTF-8 or has no lines is refused by name', async () => {
    const refusal = async (data: Buffer): Promise<string> => {
      const { status, body } = await imported(data, { name: 'foreign' })
      expect(status).toBe(400)
      return String(body.status)
    }
    expect(await refusal(Buffer.from('\ufeffk,t\n1,x\n', 'utf16le'))).toBe('the file is UTF-16, expected UTF-8')
    expect(await refusal(Buffer.from('k,t\r1,x\r'))).toBe('lines end with CR, expected LF or CRLF')
    expect(await refusal(Buffer.from('k,t\n1,\xe9\n2,b\n', 'latin1'))).toMatch(/the text is not valid UTF-8$/)
  })

  test('types widen instead of losing values', async () => {
    const numbers = Array.from({ length: 30_000 }, (_, row) => `${row},n${row}`).join('\n')
    const { status, body } = await imported(`k,t\n${numbers}\n3000000000,big\n1.5,half\n`, { name: 'wide' })
    expect(status, JSON.stringify(body)).toBe(200)
    expect(await server.rows(`select type from table_columns('wide')`)).toEqual([['DOUBLE'], ['VARCHAR']])
    expect(await server.rows('select count(), max(k) from wide')).toEqual([[30_002, 3_000_000_000]])
  })

  test.each([
    ['an INT column', (row: number) => String(row)],
    ['a LONG column', (row: number) => String(3_000_000_000 + row)],
  ])('whole numbers beyond LONG keep their digits in %s', async (what, value) => {
    const numbers = Array.from({ length: 30_000 }, (_, row) => value(row)).join('\n')
    const name = `digits ${what}`
    const { status, body } = await imported(`k\n${numbers}\n1.5\n-123456789012345678901\n`, { name })
    expect(status, JSON.stringify(body)).toBe(200)
    expect(await server.rows(`select type from table_columns('${name}')`)).toEqual([['VARCHAR']])
    expect(await server.rows(`select k from '${name}' limit -3`)).toEqual([
      [value(29_999)],
      ['1.5'],
      ['-123456789012345678901'],
    ])
  })

  test('a file beyond what is kept in memory is stored whole or not at all', async () => {
    const line = (row: number): string =>
      `${new Date(1.7e12 + row * 4000).toISOString().slice(0, -1)}000Z,${row},${'t'.repeat(300)}`
    const rows = Array.from({ length: 100_000 }, (_, row) => line(row)).join('\n')
    const whole = await imported(`ts,v,t\n${rows}\n`, { name: 'large' })
    expect(whole.body).toMatchObject({ rowsImported: 100_000, timestamp: 'ts', partitionBy: 'DAY' })
    expect(await server.rows('select count(), sum(v) from large')).toEqual([[100_000, 4_999_950_000]])
    const broken = await imported(`ts,v,t\n${rows}\noops,1,t\n`, { name: 'large2' })
    expect(broken.status).toBe(400)
    expect(
      await server.rows(
        `select table_name from tables() where table_name like '%large2%' or table_name like '\\_\\_%'`,
      ),
    ).toEqual([])
  })

  test('types of a large file widen behind its first 24 MiB, and a schema may follow it', async () => {
    const rows = Array.from({ length: 100_000 }, (_, row) => `${row},${row % 7},${'t'.repeat(260)}`).join('\n')
    const { status, body } = await imported(
      `v,k,t\n${rows}\n0.5,none,t\n1,2,t,extra\n`,
      { name: 'late', atomicity: 'skipRow' },
      '[{"name":"t","type":"STRING"}]',
    )
    expect(status, JSON.stringify(body)).toBe(200)
    expect(body).toMatchObject({ rowsImported: 100_001, rowsRejected: 1 })
    expect(await server.rows(`select type from table_columns('late')`)).toEqual([['DOUBLE'], ['VARCHAR'], ['STRING']])
    expect(await server.rows('select sum(v), max(k) from late')).toEqual([[4_999_950_000.5, 'none']])
    const form = new FormData()
    form.set('data', new Blob([`v,k,t\n${rows}\n`]), 'data.csv')
    form.set('schema', '[{"name":"k","type":"SYMBOL"}]')
    const query = 'fmt=json&name=after'
    const answer = await fetch(`http://${server.address('http')}/imp?${query}`, { method: 'POST', body: form })
    expect(answer.status, await answer.text()).toBe(200)
    expect(await server.rows(`select type from table_columns('after')`)).toEqual([['INT'], ['SYMBOL'], ['VARCHAR']])
    expect(await server.rows('select count(), count_distinct(k) from after')).toEqual([[100_000, 7]])
  })

  test('a large file joins the rows of a table as one transaction, and stays through a crash', async () => {
    await run('create table joined (ts timestamp, s symbol, v long, t varchar) timestamp(ts) partition by month')
    await run("insert into joined values ('2024-01-01T00:00:00.000000Z', 'first', -1, 'tie')")
    // Backwards in time; every symbol two hundred times; a line in ten thousand is wrong.
    const line = (row: number): string => {
      const ts = new Date(Date.UTC(2024, 0, 1) + (89_999 - row) * 1000).toISOString().slice(0, -1)
      return row % 10_000 === 77 ? `${ts}000Z,s,oops,t` : `${ts}000Z,s${row % 450},${row},"${'t'.repeat(300)}""\n,"`
    }
    const data = `ts,s,v,t\n${Array.from({ length: 90_000 }, (_, row) => line(row)).join('\n')}\n`
    const refused = await imported(data, { name: 'joined' })
    expect(refused.body).toEqual({ status: expect.stringContaining('line 156, column v') })
    expect(await server.rows('select count() from joined')).toEqual([[1]])
    const { body } = await imported(data, { name: 'joined', atomicity: 'skipRow' })
    expect(body).toMatchObject({ rowsImported: 89_991, rowsRejected: 9 })
    expect((body.rejects as readonly unknown[])[1]).toMatchObject({ line: expect.any(Number), column: 'v' })
    await run("insert into joined values ('2024-01-01T00:00:00.000000Z', 'last', -2, 'tie')")
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await server.restart(signal)
      expect(await server.rows('select count(), count_distinct(s), sum(v) from joined')).toEqual([
        [89_993, 452, 4_049_594_304],
      ])
      // Ties come in the order of the transactions.
      expect(await server.rows("select v from joined where ts = '2024-01-01'")).toEqual([[-1], [89_999], [-2]])
      const sample = await server.rows('select t, s from joined where v = 54321')
      expect(sample).toEqual([[`${'t'.repeat(300)}"\n,`, 's321']])
    }
  })

  test('columns of a table are found by name', async () => {
    await run('create table named (ts timestamp, v double, s symbol) timestamp(ts) partition by day')
    const data = 's,ts\nx,2024-01-01T00:00:00.000000Z\ny,2024-01-01T00:00:01.000000Z\n'
    expect((await imported(data, { name: 'named', forceHeader: 'true' })).status).toBe(200)
    expect(await server.rows('select v, s from named')).toEqual([
      [null, 'x'],
      [null, 'y'],
    ])
  })
})
