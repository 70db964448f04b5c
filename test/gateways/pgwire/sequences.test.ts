// Goal: a sequence gives each number once, however it is asked for and whatever ends the server in between; describing a
// statement gives none.

import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['query.threads=1', 'pg.readonly.user.enabled=true'])
let client: pg.Client

async function connect(user = 'admin'): Promise<pg.Client> {
  const [host = '', port = ''] = server.address('postgres').split(':')
  const opened = new pg.Client({ host, port: Number(port), user, password: 'quest', database: 'qdb' })
  await opened.connect()
  return opened
}

beforeAll(async () => {
  await server.start()
  client = await connect()
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

async function restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const lost = new Promise((resolve) => client.once('end', resolve))
  client.on('error', () => {})
  await server.end(signal)
  await lost
  await server.start()
  client = await connect()
}

const next = { name: 'next', text: "select nextval('block_seq') n" }

async function nextOf(by: pg.Client): Promise<number> {
  return Number((await by.query(next)).rows[0].n)
}

test('numbers of the extended protocol follow each other, and none comes twice behind a kill', async () => {
  await client.query('create sequence block_seq start with 1 increment by 50')
  expect([await nextOf(client), await nextOf(client), await nextOf(client)]).toEqual([1, 51, 101])
  const given = new Set<number>([1, 51, 101])
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    const other = await connect()
    for (let asked = 0; asked < 60; asked++) {
      const number = await nextOf(asked % 2 === 0 ? client : other)
      expect(given.has(number)).toBe(false)
      given.add(number)
    }
    await other.end()
    await restart(signal)
  }
  expect(given.has(await nextOf(client))).toBe(false)
})

test('a default asks the sequence by every way, and rows keep their numbers behind a kill', async () => {
  await client.query('create sequence row_seq')
  await client.query("create table r (id bigint default nextval('row_seq'::regclass), ts timestamp) timestamp(ts)")
  const insert = { name: 'insert', text: "insert into r (ts) values ('2024-01-01') returning id" }
  expect((await client.query(insert)).rows).toEqual([{ id: '1' }])
  const plain = { name: 'plain', text: 'insert into r (ts) values ($1)' }
  await Promise.all(Array.from({ length: 100 }, () => client.query({ ...plain, values: ['2024-01-02'] })))
  await restart('SIGKILL')
  await client.query("insert into r (ts) values ('2024-01-03'), ('2024-01-03')")
  const { rows } = await client.query('select count() n, count_distinct(id) numbers, max(id) last from r')
  expect(rows[0]).toMatchObject({ n: '103', numbers: '103' })
  expect((await client.query("select setval('row_seq', 5000) n")).rows).toEqual([{ n: '5000' }])
  await restart('SIGKILL')
  expect((await client.query(insert)).rows).toEqual([{ id: '5001' }])
})

test('who may not write makes no sequence and takes no number', async () => {
  const reader = await connect('user')
  for (const sql of [
    'create sequence s',
    'alter sequence row_seq restart',
    'drop sequence row_seq',
    "select nextval('row_seq')",
  ])
    await expect(reader.query(sql)).rejects.toMatchObject({ code: '42501' })
  await reader.end()
})
