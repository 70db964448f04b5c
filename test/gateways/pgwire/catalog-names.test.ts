// Goal: names in pg_catalog have PostgreSQL's type `name`, and lists of them `name[]`. Drivers of Node.js return these
// as strings, which ORMs parse. Casts to text, string functions and concatenations of names are text, as are names in
// tables that are created from a query, and for clients of HTTP.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  await client.query('create table named (ts timestamp, a int)')
})

afterAll(() => server.remove())

async function typesOf(list: string): Promise<number[]> {
  const { fields } = await client.query(`select ${list} from pg_attribute where attrelid = 'named'::regclass`)
  return fields.map(({ dataTypeID }) => dataTypeID)
}

test('names, and lists of them', async () => {
  const names = "attname, 'a'::name, max(attname) over (), case when attnum > 1 then attname end"
  expect(await typesOf(names)).toEqual([19, 19, 19, 19])
  const lists = "array_agg(attname), array(select relname from pg_class), (array_agg(attname))[1], '{a}'::name[]"
  expect(await typesOf(lists)).toEqual([1003, 1003, 19, 1003])
  const { rows } = await client.query(
    "select array_agg(attname order by attnum) l from pg_attribute where attrelid = 'named'::regclass",
  )
  expect(rows).toEqual([{ l: '{ts,a}' }])
  const { fields } = await client.query('select column_name, data_type from information_schema.columns')
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([19, 1043])
})

test('what is made of names is text', async () => {
  expect(await typesOf("attname::text, attname::varchar, attname || 'x', lower(attname), left(attname, 1)")).toEqual(
    new Array(5).fill(1043),
  )
  expect(await typesOf("array_agg(attname::text), string_agg(attname, ',')")).toEqual([1009, 1043])
  await client.query('create table copied as (select attname from pg_attribute)')
  const { fields } = await client.query('select * from copied')
  expect(fields.map(({ dataTypeID }) => dataTypeID)).toEqual([1043])
})

test('HTTP tells of texts', async () => {
  const { body } = await server.exec('select relname from pg_class limit 1')
  expect(body.columns).toEqual([{ name: 'relname', type: 'STRING' }])
})
