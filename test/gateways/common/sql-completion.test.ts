// Goal: SQL completion suggests names that fit at the cursor: tables after FROM, columns of the named tables, functions
// and keywords. Also: the console's preview of a CSV file detects delimiter, header, names and types, and its example
// programs contain the address of the server.

import { describe, expect, test } from 'vitest'
import { complete, sourcesOf } from '../../../gateways/common/sql-completion.js'
import { columnName, parseCsv, previewCsv } from '../../../gateways/console/app/csv-preview.js'
import { snippetsFor } from '../../../gateways/console/app/snippets.js'

const input = {
  tables: [
    { name: 'trades', kind: 'table' },
    { name: 'my quotes', kind: 'table' },
  ],
  language: { keywords: ['select', 'from'], functions: new Map([['avg', 'avg(DOUBLE)']]) },
  columnsOf: async (name: string) =>
    name === 'trades'
      ? [
          { name: 'price', type: 'DOUBLE' },
          { name: 'trade id', type: 'LONG' },
        ]
      : [],
}

/** Suggestions at `|`. */
async function at(text: string, asked = true) {
  const offset = text.indexOf('|')
  return complete(text.replace('|', ''), offset, asked, input)
}

async function labels(text: string): Promise<string[]> {
  return ((await at(text))?.suggestions ?? []).map(({ label }) => label)
}

describe('completion', () => {
  test('tables after FROM, JOIN and a comma', async () => {
    expect(await labels('select * from |')).toEqual(['trades', 'my quotes'])
    expect(await labels('select * from tr|')).toEqual(['trades', 'my quotes'])
    expect(await labels('select * from trades join |')).toEqual(['trades', 'my quotes'])
    expect(await labels('select * from trades t, |')).toEqual(['trades', 'my quotes'])
  })

  test('columns of the tables that the statement names, before others', async () => {
    const found = await at('select p| from trades; select * from other')
    expect(found?.from).toBe(7)
    expect(found?.suggestions[0]).toMatchObject({ label: 'price', detail: 'DOUBLE' })
    expect(found?.suggestions.map(({ label }) => label)).toContain('avg')
    expect(found?.suggestions.find(({ label }) => label === 'trade id')?.insert).toBe('"trade id"')
  })

  test('columns of an alias', async () => {
    expect(await labels('select t.| from trades t')).toEqual(['price', 'trade id'])
    expect(await labels('select x.| from trades t')).toEqual([])
  })

  test('nothing within strings and comments, nor unasked at a space', async () => {
    expect(await at("select 'fr|")).toBeNull()
    expect(await at('select 1 -- fr|')).toBeNull()
    expect(await at('select |', false)).toBeNull()
  })

  test('the tables of a statement', () => {
    expect(sourcesOf('select * from trades as t asof join "my quotes" q on (x) where a in (select b from c)')).toEqual([
      { table: 'trades', alias: 't' },
      { table: 'my quotes', alias: 'q' },
      { table: 'c', alias: 'c' },
    ])
    expect(sourcesOf('select * from trades sample by 1h')).toEqual([{ table: 'trades', alias: 'trades' }])
  })
})

describe('the preview of a CSV file', () => {
  test('finds delimiter, header and types', () => {
    const text = 'sensor id;ts;value;ok\r\n"a;1";2026-03-02T00:00:00Z;1.5;true\r\nb;2026-03-02T00:00:01Z;2;false\r\n'
    expect(previewCsv(text, true)).toEqual({
      delimiter: ';',
      hasHeader: true,
      names: ['sensorId', 'ts', 'value', 'ok'],
      types: ['VARCHAR', 'TIMESTAMP', 'DOUBLE', 'BOOLEAN'],
      rows: [
        ['a;1', '2026-03-02T00:00:00Z', '1.5', 'true'],
        ['b', '2026-03-02T00:00:01Z', '2', 'false'],
      ],
    })
  })

  test('a file without a header', () => {
    expect(previewCsv('1,007\n2147483648,008\n', true)).toMatchObject({
      hasHeader: false,
      names: ['f0', 'f1'],
      types: ['LONG', 'VARCHAR'],
    })
  })

  test('leaves out a last line that is cut, and shows a hundred rows', () => {
    expect(previewCsv('a,b\n1,2\n3,', false).rows).toEqual([['1', '2']])
    const long = `a,b\n${'1,2\n'.repeat(500)}`
    expect(previewCsv(long, true).rows).toHaveLength(100)
  })

  test('quoted fields contain anything', () => {
    expect(parseCsv('"a ""b""\n,c",d\n"",\n', ',', 10)).toEqual([
      ['a "b"\n,c', 'd'],
      ['', ''],
    ])
    expect(parseCsv('"open', ',', 10)).toEqual([['open']])
    expect(parseCsv('', ',', 10)).toEqual([])
  })

  test('names as the server makes them', () => {
    expect(['sensor id', 'temp (C)', '1st', ' a '].map(columnName)).toEqual(['sensorId', 'tempC', '_1st', 'a'])
  })
})

test('programs that send a row have the address of the server', () => {
  for (const { language, code } of snippetsFor('http://db.example:9100')) {
    if (language === 'SQL') continue
    expect(code, language).toMatch(language === 'Rust' ? /db\.example:9100/ : /http:\/\/db\.example:9100\/write/)
    expect(code, language).toContain('weather,city=Oslo temperature=3.5')
  }
})
