// Goal: a client with a single-byte client_encoding sends and receives strings in it everywhere; a string that it
// cannot represent is refused as in PostgreSQL. Method: raw bytes, since drivers use UTF-8.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'
import { int16, int32, RawClient } from '../raw-client.js'

const server = TestServer.shared()
let client: RawClient

beforeAll(async () => {
  await server.start()
  client = new RawClient(Number(server.address('postgres').split(':')[1]))
  await client.logIn()
  await ask("set client_encoding to 'latin1'")
})

afterAll(async () => {
  client.send('X')
  await server.remove()
})

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

/** Messages up to ReadyForQuery: their types, and their bytes as Latin 1. */
async function answers(last = 'Z'): Promise<string[]> {
  const received: string[] = []
  for (;;) {
    const message = await client.next()
    if (message === null || message.type === 'Z') return received
    received.push(message.type + message.body.toString('latin1'))
    if (message.type === last) return received
  }
}

async function ask(sql: string): Promise<string[]> {
  client.send('Q', bytes(`${sql}\0`))
  return answers()
}

/** Values of the rows; lengths are those of short texts. */
const row = (...values: string[]): string =>
  `D${int16(values.length).toString('latin1')}${values.map((value) => int32(value.length).toString('latin1') + value).join('')}`

const rowsOf = (received: readonly string[]): string[] => received.filter((message) => message.startsWith('D'))

/** Without a name, with the format of its parameters and of its results. */
async function askWith(sql: string, values: readonly (string | null)[], format: number, oid = 0): Promise<string[]> {
  client.send('P', bytes(`\0${sql}\0`), int16(values.length), ...values.map(() => int32(oid)))
  const sent = values.map((value) => (value === null ? int32(-1) : Buffer.concat([int32(value.length), bytes(value)])))
  client.send('B', '\0\0', int16(1), int16(format), int16(sent.length), ...sent, int16(1), int16(format))
  client.send('D', 'P\0')
  client.send('E', '\0', int32(0))
  client.send('S')
  return answers()
}

test('the client gets the name that the encoding has in PostgreSQL', async () => {
  expect((await ask("set client_encoding to 'Windows-1252'"))[0]).toBe('Sclient_encoding\0WIN1252\0')
  expect(rowsOf(await ask('select pg_client_encoding()'))).toEqual([row('WIN1252')])
  expect(rowsOf(await ask("select '\x80', length('\x80')"))).toEqual([row('\x80', '1')])
  await ask('begin')
  expect((await ask("set client_encoding to 'iso-8859-1'"))[0]).toBe('Sclient_encoding\0LATIN1\0')
  await ask('rollback')
  expect(rowsOf(await ask("select '\x80'"))).toEqual([row('\x80')])
  await ask("set names 'latin1'")
  expect(rowsOf(await ask('show client_encoding'))).toEqual([row('LATIN1')])
  expect((await ask("set client_encoding to 'sjis'"))[0]).toContain('\0C0A000\0')
  expect((await ask("set client_encoding to 'nope'"))[0]).toContain('\0C22023\0')
})

test('queries, names, parameters, rows and errors', async () => {
  await ask('create table e (i int, t varchar, \xfc text)')
  expect(await ask("insert into e values (1, '\xe4', 'x')")).toEqual(['CINSERT 0 1\0'])
  const insert = 'insert into e (t, \xfc) values ($1, $2)'
  for (const format of [0, 1, 1, 1]) await askWith(insert, ['\xe4\xf6', null], format)
  expect(rowsOf(await ask("select count(*), min(length(t)), max(length(t)) from e where t like '%\xe4%'"))).toEqual([
    row('5', '1', '2'),
  ])
  const [description, first] = await ask("select t, i, \xfc from e where t = '\xe4'")
  expect(description).toContain('\xfc\0')
  expect(first).toBe(row('\xe4', '1', 'x'))
  expect(rowsOf(await askWith('select \xfc, t from e where t = $1', ['\xe4'], 1, 25))).toEqual([row('x', '\xe4')])
  expect(rowsOf(await askWith('select $1::int a, $2::text b', ['\0\0\0\xe4', '\xe4'], 1))).toEqual([
    row('\0\0\0\xe4', '\xe4'),
  ])
  expect((await ask('select nope\xe4 from e'))[0]).toContain('nope\xe4')
  const fetched = await ask(
    'declare c scroll cursor for select t from e limit 1; fetch c; fetch absolute 2 from c; fetch -1 c',
  )
  expect(rowsOf(fetched)).toEqual([row('\xe4'), row('\xe4')])
  expect(rowsOf(await askWith("select array['\xe4']", [], 0))).toEqual([row('{\xe4}')])
  expect((await askWith("select array['\xe4']", [], 1)).at(-1)).toContain('\0C0A000\0')
})

test('many rows', async () => {
  const rows = rowsOf(await ask("select '\xe4' || x from long_sequence(30000)"))
  expect(rows.length).toBe(30_000)
  expect(rows.at(-1)).toBe(row('\xe430000'))
})

test('what has no equivalent', async () => {
  const lost = 'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no equivalent in encoding "LATIN1"'
  expect((await ask('select chr(8364)'))[1]).toContain(`\0C22P05\0M${lost}\0`)
  expect(await ask('select 1 as "a"')).toHaveLength(3)
  expect((await ask("select E'\\u20ac'::int as n"))[0]).toContain('value: ?')
  await ask("set client_encoding to 'iso_8859_6'")
  expect((await ask("select '\xa1'"))[0]).toContain('\0C22P05\0')
  await ask("set client_encoding to 'latin1'")
})

test('COPY, with and without an encoding of its own', async () => {
  await ask('create table c (i int, t varchar)')
  for (const [options, text] of [
    ['', '\xe4'],
    [" (encoding 'utf8')", '\xc3\xa4'],
  ] as const) {
    client.send('Q', `copy c from stdin${options}\0`)
    await answers('G')
    client.send('d', bytes(`1\t${text}\n`))
    client.send('c')
    expect(await answers()).toEqual(['CCOPY 1\0'])
    expect((await ask(`copy (select t from c limit 1) to stdout${options}`))[1]).toBe(`d${text}\n`)
  }
  expect(rowsOf(await ask("select count(*) from c where t = '\xe4'"))).toEqual([row('2')])
  expect((await ask('copy c to stdout (format binary)'))[0]).toContain('\0C0A000\0')
  client.send('Q', 'copy c from stdin\0')
  await answers('G')
  client.send('f', bytes('no\xe4\0'))
  expect((await answers())[0]).toContain('no\xe4')
})
