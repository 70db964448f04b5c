// Goal: options of COPY work as in PostgreSQL: quotes, escapes, NULL, matching headers, encodings; invalid ones are
// refused with PostgreSQL's codes. CSV is converted to the text format, however it is split. COPY FROM ends at a cancel
// request and at its deadline.

import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type CsvForm, CsvToText } from '../../../../gateways/pgwire/copy/copy-csv.js'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  await client.query('create table c (ts timestamp, s varchar, t varchar, n int) timestamp(ts) partition by day')
})

beforeEach(async () => {
  await client.query('truncate table c')
})

afterAll(() => server.remove())

async function copyIn(options: string, data: string | Buffer): Promise<unknown[][]> {
  await client.query('truncate table c')
  const bytes = Buffer.from(data)
  // Cut into bytes: nothing may depend on where a message ends.
  const chunks = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
  await pipeline(Readable.from(chunks), client.query(copyFrom(`copy c (ts, s, t) from stdin ${options}`)))
  return (await client.query({ text: 'select s, t from c', rowMode: 'array' })).rows
}

const copyOut = (sql: string): Promise<string> => text(client.query(copyTo(sql)))

test('what stands for NULL may be nothing, in both forms', async () => {
  expect(await copyIn("null ''", '2024-01-01\ta\t\n2024-01-02\t\tb\n')).toEqual([
    ['a', null],
    [null, 'b'],
  ])
  expect(await copyIn('(format csv)', '2024-01-01,"",\n')).toEqual([['', null]])
})

test('empty lines are rows where there is one column', async () => {
  await client.query('create table if not exists single (s varchar)')
  for (const [options, data, rows] of [
    ['(format csv)', 'x\n\n""\ny', ['x', null, '', 'y']],
    ['(format csv, header)', 's\r\n\r\ny\r\n', [null, 'y']],
    ['', 'x\n\ny\n', ['x', '', 'y']],
  ] as const) {
    await client.query('truncate table single')
    await pipeline(Readable.from([Buffer.from(data)]), client.query(copyFrom(`copy single from stdin ${options}`)))
    const stored = await client.query({ text: 'select s from single', rowMode: 'array' })
    expect(stored.rows.flat(), options).toEqual(rows)
  }
})

test('booleans in all words that PostgreSQL knows', async () => {
  await client.query('create table if not exists truths (b boolean)')
  await client.query('truncate table truths')
  const words = ['t', 'TRUE', 'yes', 'y', 'on', '1', ' true ', 'f', 'False', 'no', 'n', 'off', '0', ' f']
  await pipeline(
    Readable.from([Buffer.from(`${words.join('\n')}\n`)]),
    client.query(copyFrom('copy truths from stdin')),
  )
  const stored = await client.query({ text: 'select b from truths', rowMode: 'array' })
  expect(stored.rows.flat()).toEqual(words.map((_, index) => index < 7))
})

test('times in every form that files have them, and no word for NULL', async () => {
  await client.query('create table if not exists moments (ts timestamp, n int) timestamp(ts) partition by day')
  await client.query('truncate table moments')
  const forms = ['2024-01-31T10:11:12Z', '2024-01-31 12:11:12+02', '20240131T101112Z', '1706695872', '1706695872000']
  const copy = (data: string): Promise<void> =>
    pipeline(Readable.from([Buffer.from(data)]), client.query(copyFrom('copy moments from stdin csv')))
  await copy(forms.map((form, index) => `${form},${index}\n`).join(''))
  const stored = await client.query({ text: 'select distinct ts::text from moments', rowMode: 'array' })
  expect(stored.rows.flat()).toHaveLength(1)
  for (const row of ['2024-01-31,null', '86400,1', '2024-01-31,-9223372036854775808'])
    await expect(copy(`${row}\n`), row).rejects.toThrow(/not a value of type/)
})

test('spellings of options', async () => {
  for (const options of [
    "delimiters '|'",
    "using delimiters '|'",
    "(delimiter '|', freeze false)",
    "(delimiter '|', header off)",
  ]) {
    expect(await copyIn(options, '2024-01-01|a|b\n'), options).toEqual([['a', 'b']])
  }
  expect(await copyIn("encoding 'win1252'", Buffer.from('2024-01-01\t\x80\x9c\t\xe9\n', 'latin1'))).toEqual([
    ['€œ', 'é'],
  ])
})

test('the mark that old clients send behind their rows', async () => {
  for (const options of ['(format csv)', "(format csv, quote '''')", '(format csv, encoding latin1)', '']) {
    const divider = options === '' ? '\t' : ','
    const row = ['2024-01-01', 'a', 'b'].join(divider)
    for (const end of ['\\.', '\\.\n', '\\.\r\n']) {
      expect(await copyIn(options, `${row}\n${end}`), options).toEqual([['a', 'b']])
    }
  }
  expect(await copyIn('(format csv)', '2024-01-01,a,\\.\n')).toEqual([['a', '\\.']])
})

test('quotes and escapes of its own', async () => {
  const rows = await copyIn(
    "(format csv, quote '''', escape '\\')",
    "2024-01-01,'a,\\'b\\\\','x\ny'\r\n2024-01-02,\"q\",c'd,'e\n2024-01-03,,''",
  )
  expect(rows).toEqual([
    ["a,'b\\", 'x\ny'],
    ['"q"', 'cd,e'],
    [null, ''],
  ])
  expect(await copyOut("copy (select s, t from c limit 1) to stdout (format csv, quote '''', escape '\\')")).toBe(
    "'a,\\'b\\\\','x\ny'\n",
  )
})

test('rules for NULL and for quotes', async () => {
  const csv = '2024-01-01,"",\n2024-01-02,,""\n'
  expect(await copyIn('csv', csv)).toEqual([
    ['', null],
    [null, ''],
  ])
  expect(await copyIn('(format csv, force_null (s), force_not_null (t))', csv)).toEqual([
    [null, ''],
    [null, ''],
  ])
  expect(await copyIn("csv null 'N' force not null s, t", '2024-01-01,N,"N"\n')).toEqual([['N', 'N']])
  await client.query("insert into c values ('2024-01-01', 'a', null, 1)")
  const query = 'copy (select s, t, n from c where n = 1) to stdout'
  expect(await copyOut(`${query} (format csv, force_quote *, header)`)).toBe('s,t,n\n"a",,"1"\n')
  expect(await copyOut(`${query} csv force quote n`)).toBe('a,,"1"\n')
})

test('a header that has to match', async () => {
  expect(await copyIn('(format csv, header match)', 'ts,s,"t"\n2024-01-01,a,b')).toEqual([['a', 'b']])
  expect(await copyIn('(header match)', 'ts\ts\tt\n2024-01-01\ta\t\\N\n')).toEqual([['a', null]])
  const mismatch = { code: '22P04', message: 'column name mismatch in header line field 2: got "S", expected "s"' }
  await expect(copyIn('(format csv, header match)', 'ts,S,t\n2024-01-01,a,b\n')).rejects.toMatchObject(mismatch)
  await expect(copyIn('csv header match', 'ts,s\n')).rejects.toThrow('wrong number of fields in header line')
})

test('encodings', async () => {
  const latin = Buffer.from('2024-01-01\tgr\xfcn\t\xe9\n', 'latin1')
  expect(await copyIn("(encoding 'LATIN1')", latin)).toEqual([['grün', 'é']])
  const out = await buffer(client.query(copyTo("copy (select s, t from c) to stdout (encoding 'latin1')")))
  expect(out.toString('latin1')).toBe('gr\xfcn\t\xe9\n')
  await expect(copyOut("copy (select '€') to stdout (encoding 'latin1')")).rejects.toMatchObject({ code: '22P05' })
  expect(await copyOut("copy (select 'x') to stdout (encoding 'win1252')")).toBe('x\n')
  const japanese = Buffer.from('2024-01-01,a,\x93\xfa\x96\x7b\n', 'latin1')
  expect(await copyIn("(format csv, encoding 'SJIS')", japanese)).toEqual([['a', '日本']])
})

test('what cannot be is refused', async () => {
  for (const [options, code] of [
    ["(quote '|')", '0A000'],
    ["(format csv, quote 'ab')", '0A000'],
    ["(format csv, quote ',')", '22023'],
    ["(format csv, null '\"')", '0A000'],
    ['(format csv, force_quote (s))', '0A000'],
    ['(format csv, force_null (nope))', '42P10'],
    ['(format binary, header)', '0A000'],
    ["(encoding 'nope')", '22023'],
    ["(delimiter 'a')", '22023'],
    ['(format csv, header 2)', '42601'],
    ['(format csv, wings 2)', '42601'],
    ['()', '42601'],
    ['(header,)', '42601'],
    ['(format)', '42601'],
    ['(null)', '42601'],
    ['(header maybe)', '42601'],
    ["(delimiter '||')", '0A000'],
    ["where s = 'a'", '0A000'],
  ] as const) {
    await expect(copyIn(options, ''), options).rejects.toMatchObject({ code })
  }
  const twice = pipeline(Readable.from([]), client.query(copyFrom('copy c (ts, s, s) from stdin')))
  await expect(twice).rejects.toMatchObject({ code: '42701' })
  await expect(copyIn("csv quote ''''", "2024-01-01,'a")).rejects.toMatchObject({ code: '22P04' })
  expect((await client.query('select count() n from c')).rows).toEqual([{ n: '0' }])
})

test('COPY FROM ends at a cancel request and at its deadline', async () => {
  for (const way of ['cancel', 'timeout'] as const) {
    if (way === 'timeout') await client.query('set statement_timeout = 100')
    const copying = client.query(copyFrom('copy c (ts, s) from stdin csv'))
    const failed = new Promise((resolve) => copying.on('error', resolve))
    copying.write('2024-01-01,a\n')
    // As libpq does it: over a connection of its own.
    const request = Buffer.alloc(16)
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    for (const [at, word] of [16, 80_877_102, processID, secretKey].entries()) request.writeInt32BE(word, at * 4)
    if (way === 'cancel') {
      const timer = setInterval(
        () =>
          connect(server.login)
            .on('error', () => {})
            .end(request),
        100,
      )
      await failed.finally(() => clearInterval(timer))
    }
    expect(await failed).toMatchObject({ code: '57014' })
    await client.query('reset statement_timeout')
    expect((await client.query('select count() n from c')).rows).toEqual([{ n: '0' }])
  }
})

test('CSV becomes the same text however it is cut', () => {
  const form: CsvForm = {
    ...{ delimiter: ';', quote: "'", quoteEscape: "'", nullText: '-', forceNull: [], forceNotNull: [true] },
  }
  const csv = Buffer.from("a;'b''c';-\r'x\r\n';-;'-'\r\n-;\\;\t\n\\.\nnothing")
  const expected = "a\tb'c\t\\N\nx\\r\\n\t\\N\t-\n-\t\\\\\t\\t\n"
  for (let cut = 0; cut <= csv.length; cut++) {
    const rows = new CsvToText(form)
    const parts = [rows.push(csv.subarray(0, cut)), rows.push(csv.subarray(cut)), rows.end()]
    expect(Buffer.concat(parts).toString()).toBe(expected)
  }
})
