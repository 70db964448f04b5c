// Goal: a CSV import reports ambiguities and does not guess: dates that could be day-month or month-day, Excel's line
// that names the delimiter, columns of the schema that the file lacks. Errors have the right line numbers.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = TestServer.shared()
let nextTable = 1

beforeAll(() => server.start())
afterAll(() => server.remove())

interface Answer {
  readonly status: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly warnings?: readonly string[]
  readonly rejects?: readonly { readonly line: number }[]
}

async function imported(
  data: string | readonly string[],
  parameters: Readonly<Record<string, string>> = {},
): Promise<{ table: string; types: readonly string[] | undefined; answer: Answer }> {
  const table = parameters['name'] ?? `t${nextTable++}`
  const form = new FormData()
  for (const part of [data].flat()) form.append('data', new Blob([part as string]), 'data.csv')
  const query = new URLSearchParams({ fmt: 'json', name: table, ...parameters })
  const reply = await fetch(`http://${server.address('http')}/imp?${query}`, { method: 'POST', body: form })
  const answer = (await reply.json()) as Answer
  return { table, types: answer.columns?.map(({ name, type }) => `${name} ${type}`), answer }
}

async function rowsOf(sql: string): Promise<unknown> {
  const { status, text } = await server.exec(sql)
  expect(status, text).toBe(200)
  return (JSON.parse(text) as { readonly dataset: unknown }).dataset
}

test.each([
  ['a day above 12 tells the order', 'd,v\n01/02/2024,1\n28/02/2024,2\n', 'd DATE', '2024-02-01T00:00:00.000Z'],
  ['in the second place, too', 'd,v\n01/02/2024,1\n02/28/2024,2\n', 'd DATE', '2024-01-02T00:00:00.000Z'],
  ['nothing tells it', 'd,v\n01/02/2024,1\n03/04/2024,2\n', 'd VARCHAR', '01/02/2024'],
  ['both orders are there', 'd,v\n13/02/2024,1\n02/13/2024,2\n', 'd VARCHAR', '13/02/2024'],
])('days with slashes: %s', async (_what, data, type, first) => {
  const { table, types, answer } = await imported(data)
  expect(types).toEqual([type, 'v INT'])
  expect(await rowsOf(`select d from ${table} where v = 1`)).toEqual([[first]])
  const unclear = first === '01/02/2024'
  if (!unclear) expect(answer.warnings).toBeUndefined()
  else expect(answer.warnings).toEqual([expect.stringMatching(/^column d is text: its days can be .* schema part/)])
})

test('a later day of the other order makes the column a text', async () => {
  const days = Array.from({ length: 1200 }, (_, index) => `13/02/2024,${index}\n`).join('')
  const { table, types } = await imported(`d,v\n${days}02/13/2024,-1\n`)
  expect(types).toEqual(['d VARCHAR', 'v INT'])
  expect(await rowsOf(`select d, count() from ${table} order by d`)).toEqual([
    ['02/13/2024', 1],
    ['13/02/2024', 1200],
  ])
})

test('a table that has times takes no unclear days', async () => {
  await server.exec('create table days (d date, v int)')
  const { answer } = await imported('d,v\n01/02/2024,1\n03/04/2024,2\n', { name: 'days' })
  expect(answer.status).toMatch(/^line 2, column d: not a value of type DATE .*01\/02\/2024/)
  expect(await rowsOf('select count() from days')).toEqual([[0]])
})

test.each(['sep=;\r\n', '\ufeffsep=;\n', '"sep=;"\r\n'])('%j names the delimiter and is no row', async (line) => {
  // Without that line a comma would divide these lines into the same number of values.
  const { table, types } = await imported(`${line}name;count\r\n1,5;10\r\n2,5;20\r\n`)
  expect(types).toEqual(['name VARCHAR', 'count INT'])
  expect(await rowsOf(table)).toEqual([
    ['1,5', 10],
    ['2,5', 20],
  ])
  const numbers = await imported(`${line}ts;v\r\n2024-01-01;1\r\n2024-01-02;zz9;1\r\n`, { atomicity: 'skipRow' })
  expect(numbers.types).toEqual(['ts TIMESTAMP', 'v INT'])
  expect(numbers.answer.rejects).toMatchObject([{ line: 4 }])
})

test('the schema part names columns as the header or as the table does, and unknown names are reported', async () => {
  const form = new FormData()
  const schema = ['sensor id', 'roomNo', 'nope'].map((name) => ({ name, type: 'SYMBOL' }))
  form.set('schema', JSON.stringify(schema))
  form.append('data', new Blob(['sensor id,room no,v\n15,2,3\n7,8,9\n']), 'data.csv')
  const reply = await fetch(`http://${server.address('http')}/imp?fmt=json&name=named`, { method: 'POST', body: form })
  const { columns, warnings } = (await reply.json()) as Answer
  expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual(['sensorId SYMBOL', 'roomNo SYMBOL', 'v INT'])
  expect(warnings).toEqual(['the schema part names a column that the file does not have: nope'])
})

test('such a line in each of several parts, and a delimiter that is named', async () => {
  const parts = await imported(['sep=|\nfirst|b\n10|2\n', 'sep=|\nfirst|b\n3|4\n'])
  expect(await rowsOf(parts.table)).toEqual([
    [10, 2],
    [3, 4],
  ])
  const named = await imported('sep=;\nfirst,b\n10,2\n', { delimiter: ',' })
  expect(await rowsOf(named.table)).toEqual([[10, 2]])
})

test('lines of values that are no times, behind empty lines and texts of several lines', async () => {
  const head = 'note,ts\n\n"two\r\nlines",2024-01-01\r\n"three\n\nlines",2024-01-02\n'
  const { answer } = await imported(`${head}x,nonsense\n`, { timestamp: 'ts' })
  expect(answer.status).toMatch(/^not a timestamp 'ts' \[line=8, value=nonsense\]/)
  const marked = await imported(`sep=,\n${head}x,nonsense\n`, { timestamp: 'ts' })
  expect(marked.answer.status).toMatch(/\[line=9, value=nonsense\]/)
})

test('a header without a name of the table: refused if stated, else stored by position with a warning', async () => {
  await server.exec('create table people (name varchar, town varchar, age int)')
  const file = 'city,person,size\nKiel,Ann,41\n'
  const stated = await imported(file, { name: 'people', forceHeader: 'true' })
  expect(stated.answer.status).toBe('column does not exist [column=city, table=people, columns=name,town,age]')
  expect(await rowsOf('people')).toEqual([])
  const found = await imported(file, { name: 'people' })
  expect(found.answer.warnings).toEqual([
    'the header has no name of a column, and the fields are stored by position [header=city,person,size, columns=name,town,age]',
  ])
  expect(await rowsOf('people')).toEqual([['Kiel', 'Ann', 41]])
  const known = await imported('AGE,name\n7,Bo\n', { name: 'people', forceHeader: 'true' })
  expect(known.answer.warnings).toBeUndefined()
  expect(await rowsOf('select name, age from people where age = 7')).toEqual([['Bo', 7]])
  // An export of a table whose names are no names of converted headers goes back into it.
  await server.exec('create table spaced ("sensor id" int, "1m" int)')
  const back = await imported('1m,sensor id\n7,8\n', { name: 'spaced', forceHeader: 'true' })
  expect(back.answer.status).toBe('OK')
  expect(await rowsOf('select "sensor id", "1m" from spaced')).toEqual([[8, 7]])
})

test('a header that is stated, without rows, makes an empty table', async () => {
  const { answer, table } = await imported('ts,a,b\n', { forceHeader: 'true', timestamp: 'ts' })
  expect(answer).toMatchObject({ header: true, rowsImported: 0, timestamp: 'ts', partitionBy: 'DAY' })
  expect(answer.columns.map(({ name, type }) => `${name} ${type}`)).toEqual(['ts TIMESTAMP', 'a VARCHAR', 'b VARCHAR'])
  expect(await rowsOf(table)).toEqual([])
  const untimed = await imported('ts,a,b', { forceHeader: 'true' })
  expect(untimed.answer).toMatchObject({ header: true, rowsImported: 0 })
  expect(await rowsOf(untimed.table)).toEqual([])
})
