// Goal: statements that users of other databases type either work, or fail with a helpful error; command tags and row
// counts are right, over HTTP and over the wire protocol.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  await server.exec('create table people (ts timestamp, "from" symbol, v long) timestamp(ts) partition by day')
  await server.exec("insert into people values ('2024-01-01T00:10:00Z', 'a', 1), ('2024-01-01T01:20:00Z', 'b', 3)")
  await server.exec('create table describe (ts timestamp, v long)')
})
afterAll(() => server.remove())

async function errorReportOf(sql: string): Promise<Readonly<Record<string, unknown>>> {
  const { text } = await server.exec(sql)
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}

test('DESCRIBE and SHOW of a table tell its columns', async () => {
  const { dataset, columns } = await errorReportOf('show columns from people')
  for (const sql of [
    ...['describe people', 'DESC people;  ', 'describe table people', 'desc table "people"', 'show people'],
    ...['show table people', 'select * from (describe people)'],
  ])
    expect(await errorReportOf(sql), sql).toMatchObject({ columns, dataset })
  expect((await client.query('describe people')).rows).toHaveLength(3)
  expect(await errorReportOf('describe nope')).toMatchObject({
    error: 'table does not exist [table=nope]',
    position: 9,
  })
  expect((await errorReportOf('show nope')).error).toMatch(/^expected 'TABLES'/)
})

test('they stay names of tables and options', async () => {
  expect(await errorReportOf('describe')).toMatchObject({ count: 0 })
  expect(await errorReportOf('describe limit 5')).toMatchObject({ count: 0 })
  expect(await errorReportOf('select d.v from describe d')).toMatchObject({ count: 0 })
  expect(await errorReportOf('show server_version_num')).toMatchObject({ count: 1 })
})

test.each([
  ['selec 1', 'SELECT', 'table does not exist [table=selec]', 0],
  ['slect * from people', 'SELECT', 'table and column names that are SQL keywords', 8],
  ['SELCT * FORM people', 'SELECT', '', 6],
  ['insrt into people values (1)', 'INSERT', '', 6],
  ['delet from people', 'DELETE', '', 6],
  ['creat table x (a int)', 'CREATE', '', 6],
  ['updaet people set v = 1', 'UPDATE', '', 14],
  ['-- all of it\n selec 1', 'SELECT', '', 14],
])('%j: did you mean %s?', async (sql, word, error, position) => {
  const answer = await errorReportOf(sql)
  expect(answer).toMatchObject({ position, hint: `did you mean ${word}?` })
  expect(answer.error).toContain(error)
  await expect(client.query(sql)).rejects.toMatchObject({ hint: `did you mean ${word}?` })
})

test.each([
  ['select vv, ts from peple', 'people', 'table does not exist [table=peple]'],
  ['select "form" from people', 'from', 'Invalid column: form'],
  ['select p.tss from people p, describe d', 'ts', 'Invalid column: p.tss'],
  ['with young as (select * from people) select * from yuong', 'young', 'table does not exist [table=yuong]'],
  ['select agv(v) from people', 'avg', 'unknown function name: agv(LONG)'],
  ['insert into peoples (v) values (1)', 'people', 'table does not exist [table=peoples]'],
  ['alter table people drop column fromm', 'from', 'Invalid column: fromm'],
  ['drop table poeple', 'people', 'table does not exist [table=poeple]'],
])('%j: did you mean the name %s?', async (sql, name, error) => {
  expect(await errorReportOf(sql)).toMatchObject({ error, hint: `did you mean ${name}?` })
  await expect(client.query(sql)).rejects.toMatchObject({ message: error, hint: `did you mean ${name}?` })
})

const timestampHint = 'name the column: FROM t TIMESTAMP(ts), or CREATE TABLE t (..) TIMESTAMP(ts)'

test.each([
  ['select * frm people', 'wildcard cannot have alias', 'did you mean FROM?'],
  ['create table other (ts timestmp)', 'unsupported column type: timestmp', 'did you mean timestamp?'],
  ['create table other (ts datetime)', 'unsupported column type: datetime', 'use TIMESTAMP'],
  ['alter table people add column w number', 'unsupported column type: number', 'use DOUBLE or DECIMAL'],
  [
    'select ts, avg(v) from describe sample by 1h',
    'base query does not provide designated TIMESTAMP column',
    timestampHint,
  ],
  ['select * from describe latest by v', 'latest by query does not provide dedicated TIMESTAMP column', timestampHint],
  ['select 1 from describe d asof join people p', 'left side of time series join has no timestamp', timestampHint],
  ['select 1 from people p asof join describe d', 'right side of time series join has no timestamp', timestampHint],
])('%j: %s: %s', async (sql, error, hint) => {
  expect(await errorReportOf(sql)).toMatchObject({ error, hint })
  await expect(client.query(sql)).rejects.toMatchObject({ message: error, hint })
})

test.each(['nope', 'select * from selec', 'people limit x', 'trades where v = 1', '"selec" limit 1', 'form'])(
  '%j is no misspelt statement',
  async (sql) => {
    expect(await errorReportOf(sql)).not.toHaveProperty('hint')
  },
)

test.each(["'1h'", "'1 hour'", "'60 minutes'", "' 1h '"])('SAMPLE BY %s', async (interval) => {
  const { dataset } = await errorReportOf(`select ts, sum(v) from people sample by ${interval}`)
  const plain = await errorReportOf('select ts, sum(v) from people sample by 1h')
  expect(dataset).toEqual(plain.dataset)
})

test('a quoted interval that is none is refused as before', async () => {
  expect(await errorReportOf("select sum(v) from people sample by 'x'")).toMatchObject({ error: "Invalid unit: 'x'" })
  expect((await errorReportOf("select sum(v) from people sample by '0h'")).error).toMatch(/^positive number expected/)
})

test.each(['select 1;', 'select 1;  ', 'select 1 ;\n', ' select 1;\t;', 'select 1; -- done', 'select 1;\u00a0'])(
  '%j is one statement',
  async (sql) => {
    expect(await errorReportOf(sql)).toMatchObject({ dataset: [[1]] })
    const answer = await fetch(`http://${server.address('http')}/exp?${new URLSearchParams({ query: sql })}`)
    expect(await answer.text()).toBe('"1"\r\n1\r\n')
  },
)

test('INSERT, UPDATE and DELETE tell their rows', async () => {
  await server.exec('create table changed (ts timestamp, v long) timestamp(ts) partition by day')
  const insert = "insert into changed values ('2024-01-01', 1), ('2024-01-02', 2), ('2024-01-03', 3)"
  expect(await errorReportOf(insert)).toEqual({ query: insert, ddl: 'OK', inserted: 3 })
  expect(await errorReportOf('insert into changed select * from changed where v > 1')).toMatchObject({
    ddl: 'OK',
    inserted: 2,
  })
  expect(await errorReportOf('insert atomic into changed select * from changed where v > 99')).toMatchObject({
    inserted: 0,
  })
  expect(await errorReportOf('update changed set v = 7 where v = 1')).toMatchObject({ ddl: 'OK', updated: 1 })
  expect(await errorReportOf('delete from changed where v = 2')).toMatchObject({ ddl: 'OK', deleted: 2 })
  expect(await errorReportOf('truncate table changed')).toEqual({ query: 'truncate table changed', ddl: 'OK' })
  const rows = async (sql: string): Promise<unknown[]> => {
    const { command, rowCount } = await client.query(sql)
    return [command, rowCount]
  }
  expect(await rows(insert)).toEqual(['INSERT', 3])
  expect(await rows('insert into changed select * from changed')).toEqual(['INSERT', 3])
  expect(await rows('update changed set v = 9 where v = 1')).toEqual(['UPDATE', 2])
  expect(await rows('delete from changed where v = 9')).toEqual(['DELETE', 2])
})

test('relations of connectors are there without any', async () => {
  expect(await errorReportOf('select * from sys.connectors')).toMatchObject({ dataset: [], count: 0 })
  expect(await errorReportOf('select name, state, lag from sys.connectors')).toMatchObject({ count: 0 })
  expect(await errorReportOf('select count() from sys.connector_partitions')).toMatchObject({ dataset: [[0]] })
})
