// Goal: CSV files of common programs are imported as intended: timestamps of all formats, numbers with all digits,
// headers of pandas and R, words for NULL, several and compressed files. Small files are read by the tolerant decoder,
// large ones by the bulk decoder; the main rules are tested with both.

import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m'])
let nextTable = 1

beforeAll(() => server.start())
afterAll(() => server.remove())

interface Answer {
  readonly status: string
  readonly rowsImported: number
  readonly rowsRejected: number
  readonly header: boolean
  readonly timestamp?: string
  readonly columns: readonly { readonly name: string; readonly type: string; readonly errors: number }[]
  readonly rejects?: readonly { readonly line: number; readonly reason: string }[]
}

interface Imported extends Answer {
  readonly http: number
  readonly table: string
  readonly types: readonly string[]
}

type Parts = readonly (readonly [file: string, data: string | Buffer])[]

async function imported(
  data: string | Buffer | Parts,
  parameters: Readonly<Record<string, string>> = {},
  schema: unknown = null,
): Promise<Imported> {
  const table = parameters['name'] ?? `t${nextTable++}`
  const form = new FormData()
  if (schema !== null) form.set('schema', JSON.stringify(schema))
  const parts: Parts = typeof data === 'string' || Buffer.isBuffer(data) ? [['data.csv', data]] : data
  for (const [file, bytes] of parts) form.append('data', new Blob([bytes as string]), file)
  const query = new URLSearchParams({ fmt: 'json', name: table, ...parameters })
  const answer = await fetch(`http://${server.address('http')}/imp?${query}`, { method: 'POST', body: form })
  const text = await answer.text()
  const body = (text.startsWith('{') ? JSON.parse(text) : { status: text }) as Answer
  const types = (body.columns ?? []).map(({ name, type }) => `${name} ${type}`)
  return { ...body, http: answer.status, table, types }
}

async function rowsOf(sql: string): Promise<unknown> {
  const { status, text } = await server.exec(sql)
  expect(status, text).toBe(200)
  return (JSON.parse(text) as { readonly dataset: unknown }).dataset
}

/** So many rows, of so many bytes, that the file takes the way of the bulk. */
const bulkRows = 60_000
const filler = 'x'.repeat(500)

function bulk(head: string, row: (index: number) => string, tail = ''): string {
  const rows = Array.from({ length: bulkRows }, (_, index) => `${row(index)},${filler}\n`)
  return `${head},filler\n${rows.join('')}${tail}`
}

describe('times', () => {
  const instant = '2024-01-31T10:11:12.000000Z'

  test.each([
    ['JavaScript', 'ts,v\n2024-01-31T10:11:12.000Z,1.5\n2024-01-31T10:11:13.000Z,2.5\n'],
    ['pandas', ',ts,v\n0,2024-01-31 10:11:12,1.5\n1,2024-01-31 10:11:12.5,2.5\n'],
    ['pandas with a zone', ',ts,v\n0,2024-01-31 12:11:12+02:00,1.5\n1,2024-07-31 12:11:12+02:00,2.5\n'],
    ['R', '"","ts","v"\n"1",2024-01-31 10:11:12,1.5\n"2",2024-02-01,2.5\n'],
    ['R, fwrite', 'ts,v\n2024-01-31T10:11:12Z,1.5\n2024-02-01T00:00:00Z,2.5\n'],
    ['a mixture', 'ts,v\n2024-01-31T10:11:12Z,1\n20240201T101112Z,2\n2024-02-02,3\n2024-02-03 10:11+01,4\n'],
    ['a single row', 'ts,v\n2024-01-31T10:11:12.000Z,1.5\n'],
  ])('what %s writes becomes the designated timestamp', async (_, data) => {
    const { http, status, timestamp, table } = await imported(data)
    expect([http, status, timestamp]).toEqual([200, 'OK', 'ts'])
    expect(await rowsOf(`select min(ts) from ${table}`)).toEqual([[instant]])
  })

  test.each([
    '1706695872',
    '1706695872000',
    '1706695872000000',
    '1706695872000000000',
    '1706695872.0',
    '1.706695872e9',
  ])('%s is an epoch when its column is named', async (number) => {
    const named = await imported(`ts,v\n${number},1\n2024-01-31T10:11:13Z,2\n`, { timestamp: 'ts' })
    expect(await rowsOf(`select * from ${named.table}`)).toEqual([
      [instant, 1],
      ['2024-01-31T10:11:13.000000Z', 2],
    ])
    const plain = await imported(`ts,v\n${number},1\n${number},2\n`)
    expect(plain.types[0]).toMatch(/^ts (INT|LONG|DOUBLE)$/)
  })

  test('a unit is named by a parameter, or by the pattern of the schema part', async () => {
    const small = 'ts,v\n86400,1\n5,2\n'
    const refused = await imported(small, { timestamp: 'ts' })
    expect([refused.http, refused.status]).toEqual([
      400,
      "not a timestamp 'ts' [line=2, value=86400]: unit=s, ms, us or ns sets the unit of numbers",
    ])
    const second = await imported(small, { timestamp: 'ts', unit: 's' })
    const milli = await imported(small, {}, [{ name: 'ts', type: 'TIMESTAMP', pattern: 'epoch_ms' }])
    expect([second.timestamp, milli.timestamp]).toEqual(['ts', 'ts'])
    expect(await rowsOf(`select ts from ${second.table}`)).toEqual([
      ['1970-01-01T00:00:05.000000Z'],
      ['1970-01-02T00:00:00.000000Z'],
    ])
    expect(await rowsOf(`select ts from ${milli.table}`)).toEqual([
      ['1970-01-01T00:00:00.005000Z'],
      ['1970-01-01T00:01:26.400000Z'],
    ])
    expect((await imported(small, { unit: 'weeks', timestamp: 'ts' })).status).toMatch(/^invalid unit/)
    expect((await imported(small, { unit: 's' })).status).toMatch(/^a unit is of the column that timestamp= names/)
    const pattern = [{ name: 'ts', type: 'TIMESTAMP', pattern: 'epoch_days' }]
    expect((await imported(small, {}, pattern)).status).toMatch(/^unknown unit of an epoch/)
  })

  test('nanoseconds keep their digits', async () => {
    const strings = await imported('ts,v\n2024-01-31 10:11:12,1\n2024-01-31 10:11:12.123456789,2\n')
    const numbers = await imported('ts,v\n1706695872000000001,1\n1706695873000000002,2\n', { timestamp: 'ts' })
    const rows = Array.from({ length: 2000 }, (_, index) => `2024-01-31T10:11:12.${index + 1000}Z,1\n`).join('')
    const late = await imported(`ts,v\n${rows}2024-01-31T10:11:12.000000001Z,2\n`)
    for (const { types } of [strings, numbers, late]) expect(types[0]).toBe('ts TIMESTAMP_NS')
    expect(await rowsOf(`select ts from ${late.table} where v = 2`)).toEqual([['2024-01-31T10:11:12.000000001Z']])
  })

  test('none is chosen of two, of one with gaps, or of one before 1970', async () => {
    const two = await imported('a,b\n2024-01-01,2024-01-02\n2024-01-02,2024-01-03\n')
    const gaps = await imported('ts,v\n2024-01-01,1\n,2\n')
    const early = await imported('ts,v\n1969-12-31,1\n2024-01-01,2\n')
    expect([two, gaps, early].map(({ timestamp }) => timestamp)).toEqual([undefined, undefined, undefined])
    expect(early.types).toEqual(['ts TIMESTAMP', 'v INT'])
    expect(await rowsOf(`select * from ${gaps.table}`)).toEqual([
      ['2024-01-01T00:00:00.000000Z', 1],
      [null, 2],
    ])
  })

  test('a later value that cannot be one is an error of its row, which names the option', async () => {
    const rows = Array.from({ length: 3000 }, (_, index) => `2024-01-31T10:11:12.${index + 1000}Z,${index}\n`).join('')
    for (const [row, words] of [
      [',7', 'the designated timestamp is missing [column=ts, value=]'],
      ['1969-01-01,7', 'designated timestamp before 1970-01-01 is not allowed [column=ts, value=1969-01-01]'],
    ] as const) {
      const file = `ts,v\n${rows}${row}\n`
      const option = 'timestamp= without a name imports without a designated timestamp'
      expect((await imported(file)).status).toBe(`line 3002, column ts: ${words}: ${option}`)
      const skipped = await imported(file, { atomicity: 'skipRow' })
      expect(skipped).toMatchObject({
        rowsImported: 3000,
        rowsRejected: 1,
        rejects: [{ line: 3002, reason: `${words}: ${option}` }],
      })
      const without = await imported(file, { timestamp: '' })
      expect([without.rowsImported, without.timestamp, without.types[0]]).toEqual([3001, undefined, 'ts TIMESTAMP'])
    }
    const other = await imported(`ts,v\n${rows}31.01.2024,7\n`)
    expect(other.status).toMatch(
      /^line 3002, column ts: not a value of type TIMESTAMP \[column=ts, value=31.01.2024\]: a pattern/,
    )
  })

  test('an error of a named column shows the value and what would help', async () => {
    const { http, status } = await imported('ts,v\n31.01.2024 10:11,1\n30.01.2024 10:11,2\n', { timestamp: 'ts' })
    expect(http).toBe(400)
    expect(status).toMatch(
      /^not a timestamp 'ts' \[line=2, value=31.01.2024 10:11\]: a pattern in the schema part .* sets the/,
    )
  })

  test('an existing table keeps its own', async () => {
    await rowsOf('select 1')
    await server.exec('create table own (ts timestamp, at timestamp, v int) timestamp(ts) partition by day')
    const { timestamp, types } = await imported('ts,at,v\n1706695872,2024-01-31T10:11:12.000Z,1\n', {
      name: 'own',
      timestamp: '',
    })
    expect([timestamp, types]).toEqual(['ts', ['ts TIMESTAMP', 'at TIMESTAMP', 'v INT']])
    await imported('ts,at,v\n5,2024-01-31,2\n', { name: 'own', unit: 's' })
    expect(await rowsOf('select * from own')).toEqual([
      ['1970-01-01T00:00:05.000000Z', '2024-01-31T00:00:00.000000Z', 2],
      [instant, instant, 1],
    ])
  })

  test('large files are read alike', async () => {
    const forms = [
      (second: number) => `${1_706_695_872 + second}`,
      (second: number) => `${1_706_695_872_000 + second * 1000}`,
      (second: number) => new Date(1_706_695_872_000 + second * 1000).toISOString(),
      (second: number) =>
        new Date(1_706_702_772_000 + second * 1000).toISOString().replace('T', ' ').replace('.000Z', '+01:55'),
      (second: number) => new Date(1_706_695_872_000 + second * 1000).toISOString().replace(/[-:]|\.000/g, ''),
    ]
    const file = bulk('ts,v', (index) => `${(forms[index % forms.length] as (typeof forms)[0])(index)},${index}`)
    const { rowsImported, timestamp, table } = await imported(file, { timestamp: 'ts' })
    expect([rowsImported, timestamp]).toEqual([bulkRows, 'ts'])
    const wrong = `select count() from ${table} where ts != dateadd('s', v, '2024-01-31T10:11:12Z'::timestamp)`
    expect(await rowsOf(wrong)).toEqual([[0]])
    const named = await imported(
      bulk('ts,v', (index) => `${index},${index}`),
      { timestamp: 'ts', unit: 'ms' },
    )
    expect(await rowsOf(`select count() from ${named.table} where ts != (v * 1000L)::timestamp`)).toEqual([[0]])
    const late = bulk('ts,v', (index) => `${forms[2]?.(index)},${index}`, `,7,${filler}\n`)
    expect((await imported(late)).status).toMatch(
      new RegExp(`^line ${bulkRows + 2}, column ts: the designated timestamp is missing .* timestamp= `),
    )
    expect((await imported(late, { timestamp: '' })).rowsImported).toBe(bulkRows + 1)
  })
})

describe('numbers', () => {
  const most = ['18446744073709551615', '18446744073709551614']

  test.each([
    ['1', '007'],
    ['1', '-007'],
    ['3000000000', '+007'],
    ['1.5', '007.5'],
    ['1.5', '00'],
  ])('numbers with leading zeros are text below %s: %s', async (most, code) => {
    const first = await imported(`v,w\n${most},x\n${code},y\n`, { forceHeader: 'true' })
    const later = await imported(`v,w\n${`${most},x\n`.repeat(1500)}${code},y\n`)
    const large = await imported(bulk('v', () => most, `${code},y\n`))
    for (const { table, types, columns } of [first, later, large]) {
      expect([types[0], columns[0]?.errors]).toEqual(['v VARCHAR', 0])
      expect(await rowsOf(`select v from ${table} where v != '${most}'`)).toEqual([[code]])
    }
  })

  test('a zero alone or before a point is a number, and declared types are kept', async () => {
    const plain = await imported(`v,d\n${'1,1.5\n'.repeat(1500)}0,0.5\n-0,-0\n0,0\n`)
    expect(plain.types).toEqual(['v INT', 'd DOUBLE'])
    const declared = await imported(`v\n${'1\n'.repeat(1500)}007\n`, {}, [{ name: 'v', type: 'INT' }])
    expect(declared.types).toEqual(['v INT'])
    expect(await rowsOf(`select sum(v) from ${declared.table}`)).toEqual([[1507]])
    const existing = await imported(`v\n${'1\n'.repeat(1500)}008\n`, { name: declared.table })
    expect(existing.types).toEqual(['v INT'])
    expect(await rowsOf(`select sum(v) from ${declared.table}`)).toEqual([[3015]])
  })

  test('whole numbers that no number type holds are text, wherever they stand', async () => {
    const first = await imported(`v\n${most.join('\n')}\n`)
    const later = await imported(`v\n${'1\n'.repeat(3000)}${most.join('\n')}\n`)
    const large = await imported(bulk('v', String, `${most.map((value) => `${value},x\n`).join('')}`))
    for (const { table, types } of [first, later, large]) {
      expect(types[0]).toBe('v VARCHAR')
      expect(await rowsOf(`select v from ${table} where length(v) = 20`)).toEqual(most.map((value) => [value]))
    }
    // A DOUBLE must not round them either.
    const mixed = await imported(`v\n${'1\n'.repeat(3000)}9007199254740993\n1.5\n`)
    const beside = await imported('v\n1.5\n9007199254740993\n')
    const exact = await imported('v\n1.5\n9007199254740992\n')
    expect([mixed, beside, exact].map(({ types }) => types[0])).toEqual(['v VARCHAR', 'v VARCHAR', 'v DOUBLE'])
  })

  test('the number that stands for NULL becomes NULL, and is counted', async () => {
    const { table, types, rowsImported, rowsRejected, columns } = await imported(
      'v,w\n-9223372036854775808,1\n9223372036854775807,2\n',
    )
    expect([types[0], rowsImported, rowsRejected, columns[0]?.errors]).toEqual(['v LONG', 2, 0, 1])
    expect(await rowsOf(`select v = null n, w from ${table}`)).toEqual([
      [true, 1],
      [false, 2],
    ])
    const declared = await imported('v,w\n-2147483648,1\n7,2\n', {}, [{ name: 'v', type: 'INT' }])
    expect([declared.rowsImported, declared.columns[0]?.errors]).toEqual([2, 1])
    expect((await imported('v,w\n-2147483648,1\n7,2\n')).types[0]).toBe('v LONG')
    const large = await imported(bulk('v', String, `-9223372036854775808,x\n`), {}, [{ name: 'v', type: 'LONG' }])
    expect([large.rowsImported, large.rowsRejected, large.columns[0]?.errors]).toEqual([bulkRows + 1, 0, 1])
  })

  test.each([
    ['DOUBLE', '1e400'],
    ['DOUBLE', '-1e400'],
    ['DOUBLE', '1e-400'],
    ['FLOAT', '1e39'],
    ['FLOAT', '1e-60'],
  ])('a %s does not take %s', async (type, value) => {
    const file = `v\n1.5\n${value}\n2.5\n`
    const schema = [{ name: 'v', type }]
    expect((await imported(file, {}, schema)).status).toContain(
      `line 3, column v: not a value of type ${type} [column=v, value=${value}]`,
    )
    const { rowsImported, rowsRejected, columns } = await imported(file, { atomicity: 'skipRow' }, schema)
    expect([rowsImported, rowsRejected, columns[0]?.errors]).toEqual([2, 1, 1])
    if (type === 'FLOAT') return
    const guessed = await imported(`v\n${'1.5\n'.repeat(3000)}${value}\n`, { atomicity: 'skipRow' })
    expect([guessed.types[0], guessed.rowsRejected, guessed.columns[0]?.errors]).toEqual(['v DOUBLE', 1, 1])
    const large = await imported(
      bulk('v', (index) => `${index}.5`, `${value},x\n`),
      { atomicity: 'skipRow' },
    )
    expect([large.types[0], large.rowsImported, large.columns[0]?.errors]).toEqual(['v DOUBLE', bulkRows, 1])
  })

  test('zero is zero in every form', async () => {
    const { table } = await imported('v\n0\n0.0\n-0\n0e5\n0.000E-9\n')
    expect(await rowsOf(`select count() from ${table} where v = 0`)).toEqual([[5]])
  })

  test('blanks around numbers make a DOUBLE', async () => {
    const { table, types } = await imported('name,n,v\nx, 1, 1.5\ny, 2, 2.5 \n')
    expect(types).toEqual(['name CHAR', 'n DOUBLE', 'v DOUBLE'])
    expect(await rowsOf(`select n, v from ${table}`)).toEqual([
      [1, 1.5],
      [2, 2.5],
    ])
  })

  test('null in any case is NULL in columns that have a type, and text among texts', async () => {
    const types = [
      'BOOLEAN',
      'BYTE',
      'SHORT',
      'INT',
      'LONG',
      'FLOAT',
      'DOUBLE',
      'DATE',
      'TIMESTAMP',
      'UUID',
      'IPv4',
      'LONG256',
      'GEOHASH(1c)',
      'DECIMAL(10,2)',
      'SYMBOL',
      'VARCHAR',
    ]
    const schema = types.map((type, index) => ({ name: `c${index}`, type }))
    const head = schema.map(({ name }) => name).join(',')
    const row = types.map((_, index) => (index % 2 === 0 ? 'null' : 'NULL')).join(',')
    const { table, rowsImported, columns } = await imported(
      `${head}\n${row}\n`,
      { forceHeader: 'true', timestamp: '' },
      schema,
    )
    expect([rowsImported, columns.every(({ errors }) => errors === 0)]).toEqual([1, true])
    const nulls = types.slice(3, -2).map(() => null)
    expect(
      await rowsOf(
        `select ${schema
          .map(({ name }) => name)
          .filter((name) => name !== 'c11')
          .join(',')} from ${table}`,
      ),
    ).toEqual([[false, 0, 0, ...nulls.slice(1), 'null', 'NULL']])
    const late = await imported(`v\n${'1\n'.repeat(3000)}null\nNull\n`)
    expect([late.types[0], late.rowsImported]).toEqual(['v INT', 3002])
    expect((await imported('v,w\nnull,1.5\n2,2.5\n')).types).toEqual(['v VARCHAR', 'w DOUBLE'])
  })

  test('1 and 0 are booleans in a column that is declared as one', async () => {
    const schema = [{ name: 'b', type: 'BOOLEAN' }]
    const { table } = await imported('b,v\n1,1\n0,2\ntrue,3\nF,4\n', {}, schema)
    expect(await rowsOf(`select b from ${table}`)).toEqual([[true], [false], [true], [false]])
    expect((await imported('b,v\n2,1\n0,2\n', {}, schema)).status).toContain('not a value of type BOOLEAN')
    expect((await imported('b,v\n1,1\n0,2\n')).types[0]).toBe('b INT')
  })
})

describe('files', () => {
  test.each([
    [',a,b\n0,1.5,x\n1,2.5,y\n', ['f0 INT', 'a DOUBLE', 'b CHAR']],
    [',name\n0,bob\n1,alice\n', ['f0 INT', 'name VARCHAR']],
    ['"","name"\n"1","bob"\n"2","alice"\n', ['f0 INT', 'name VARCHAR']],
    ['name,,b\nx1,1,2\ny1,2,3\n', ['name VARCHAR', 'f1 INT', 'b INT']],
    ['id,v\n1,1.5\n', ['id INT', 'v DOUBLE']],
    ['ts,v\n2024-01-31,5\n', ['ts TIMESTAMP', 'v INT']],
    [',a\n0,1.5\n', ['f0 INT', 'a DOUBLE']],
    ['code,n\n007,x1\n', ['code VARCHAR', 'n VARCHAR']],
  ])('%j has a header', async (data, types) => {
    const found = await imported(data)
    expect([found.header, found.types]).toEqual([true, types])
  })

  test('a byte order mark before quotes, and names with blanks', async () => {
    const marked = await imported('\ufeff"ts","my value"\n"2024-01-31","1.5"\n')
    expect([marked.header, marked.timestamp, marked.types]).toEqual([true, 'ts', ['ts TIMESTAMP', 'myValue DOUBLE']])
    const named = await imported('my time,v\n1706695872,1\n', { timestamp: 'my time' })
    expect([named.timestamp, named.types[0]]).toEqual(['myTime', 'myTime TIMESTAMP'])
  })

  test('without names the first line is a row', async () => {
    for (const data of [',x1\n5,y1\n7,z1\n', 'x1,y1\nx2,y2\n', 'a,b\n1,2\n', '1,2\n3,4\n'])
      expect([data, (await imported(data)).header]).toEqual([data, false])
  })

  test('several files of one table are one, with or without their headers', async () => {
    const { table, rowsImported } = await imported([
      ['a.csv', 'a,b\n1,xx\n2,yy'],
      ['b.csv', '\ufeffa,b\n3,zz\n'],
      ['c.csv.gz', gzipSync('"a","b"\n4,"v,w"\n')],
      ['d.csv', '5,ww\n'],
      ['e.csv', ''],
    ])
    expect(rowsImported).toBe(5)
    expect(await rowsOf(`select * from ${table}`)).toEqual([
      [1, 'xx'],
      [2, 'yy'],
      [3, 'zz'],
      [4, 'v,w'],
      [5, 'ww'],
    ])
    const turned = await imported([
      ['a.csv', 'a,b\n1,xx\n'],
      ['b.csv', 'b,a\nyy,2\n'],
    ])
    expect([turned.http, turned.status]).toEqual([
      400,
      'the files of one table must have their columns in the same order',
    ])
  })

  test('files without a name of a table go to tables of their own, all or none', async () => {
    const form = new FormData()
    form.append('data', new Blob(['a,b\n1,xx\n']), 'own1.csv')
    form.append('data', new Blob(['a,b\n1,xx\n2,yy\n']), 'own2.csv')
    const send = async (): Promise<Readonly<Record<string, unknown>>> => {
      const answer = await fetch(`http://${server.address('http')}/imp?fmt=json`, { method: 'POST', body: form })
      return (await answer.json()) as Readonly<Record<string, unknown>>
    }
    expect(await send()).toMatchObject({
      rowsImported: 3,
      imports: [
        { location: 'own1.csv', rowsImported: 1 },
        { location: 'own2.csv', rowsImported: 2 },
      ],
    })
    form.append('data', new Blob(['a,b\n1,xx\n2,yy,zz,1\n']), 'own3.csv')
    expect(await send()).toEqual({
      status: expect.stringMatching(/^line 3: the line has more values .*: skipLev=true/),
    })
    expect(await rowsOf('select (select count() from "own1.csv"), (select count() from "own2.csv")')).toEqual([[1, 2]])
  })

  test('a compressed file is read as what it holds', async () => {
    const form = new FormData()
    form.append('data', new Blob([gzipSync('ts,v\n2024-01-31,1.5\n')]), 'zipped.csv.gz')
    const answer = await fetch(`http://${server.address('http')}/imp?fmt=json`, { method: 'POST', body: form })
    expect(await answer.json()).toMatchObject({ location: 'zipped.csv', rowsImported: 1, timestamp: 'ts' })
    const cut = await imported(gzipSync('ts,v\n2024-01-31,1.5\n').subarray(0, -9))
    expect([cut.http, cut.status]).toEqual([400, 'the file is incomplete or not valid gzip: unexpected end of file'])
  })

  test('a format that no answer has is refused', async () => {
    const { http, status } = await imported('a,b\n1,2\n', { fmt: 'zzz' })
    expect([http, status]).toEqual([400, 'unrecognised format, expected json or text [format=zzz]'])
  })

  test('skipLev keeps the row and passes over what it has too much', async () => {
    const { table, rowsImported, rowsRejected } = await imported('a,b\n1,x1\n2,"x""2",more,"a""b"\n3,x3,\n', {
      skipLev: 'true',
    })
    expect([rowsImported, rowsRejected]).toEqual([3, 0])
    expect(await rowsOf(`select * from ${table}`)).toEqual([
      [1, 'x1'],
      [2, 'x"2'],
      [3, 'x3'],
    ])
    const trailing = await imported('id,v\n1,1.5,\n2,2.5,\n', { skipLev: 'true' })
    expect([trailing.header, trailing.types]).toEqual([true, ['id INT', 'v DOUBLE']])
    const large = await imported(bulk('a', String, '1,x,more\n'), { skipLev: 'true' })
    expect([large.rowsImported, large.rowsRejected]).toEqual([bulkRows + 1, 0])
  })
})
