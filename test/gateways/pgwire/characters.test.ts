// Goal: for clients of the PostgreSQL protocol, a one-character literal such as 'x' that is compared or combined with a
// parameter has a string type (not CHAR), whatever the value of the parameter is.

import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = TestServer.shared()
const varcharOid = 1043
let client: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
})

afterAll(() => server.remove())

async function answer(text: string, values: unknown[]): Promise<[number[], unknown[][]]> {
  const { fields, rows } = await client.query({ text, values, rowMode: 'array' })
  return [fields.map(({ dataTypeID }) => dataTypeID), rows]
}

test.each([
  ["select coalesce($1, 'x')", ['abc'], 'abc'],
  ["select coalesce($1, 'x')", [null], 'x'],
  ["select coalesce('x', $1)", ['abc'], 'x'],
  ["select coalesce(nullif($1, ''), 'x')", [''], 'x'],
  ["select coalesce(nullif($1, ''), 'x')", ['abc'], 'abc'],
  ["select greatest($1, 'b')", ['abc'], 'b'],
  ["select case when $1 = 'a' then 'y' else $2 end", ['b', 'def'], 'def'],
  ["select case $1 when 'a' then 'y' else $2 end", ['a', null], 'y'],
  ["select max(v) from (values ('x'), ($1)) t(v)", ['yes'], 'yes'],
])('%s of %j', async (text, values, expected) => {
  expect(await answer(text, values)).toEqual([[varcharOid], [[expected]]])
})

test('among letters alone it is one', async () => {
  expect(await answer("select coalesce(null, 'x'), case when $1 then 'y' else 'n' end", [true])).toEqual([
    [1042, 1042],
    [[null, 'y']],
  ])
})
