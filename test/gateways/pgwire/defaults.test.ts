// Goal: DEFAULT fills columns by every way that rows come over the wire: literals, long texts, batches of a prepared
// INSERT, COPY in text and binary; a default that is not known is left out with a notice.

import pg from 'pg'
// @ts-expect-error it has no types
import { from } from 'pg-copy-streams'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../../support/server.js'

const server = new TestServer(['wal.commit.mode=nosync', 'query.threads=1'])
let client: pg.Client
const notices: string[] = []

beforeAll(async () => {
  await server.start()
  const [host = '', port = ''] = server.address('postgres').split(':')
  client = new pg.Client({ host, port: Number(port), user: 'admin', password: 'quest', database: 'qdb' })
  await client.connect()
  client.on('notice', ({ message }) => notices.push(message ?? ''))
  await client.query(
    "create table d (ts timestamp not null default now(), a int default 5, s symbol default 'x', v varchar) timestamp(ts)",
  )
})

afterAll(async () => {
  await client?.end()
  await server.remove()
})

/** What the way left behind, and the table empty. */
async function filled(): Promise<unknown[]> {
  const { rows } = await client.query("select v, a, s, ts > dateadd('h', -1, now()) fresh from d order by v")
  await client.query('truncate table d')
  return rows
}

const row = (v: string) => ({ v, a: 5, s: 'x', fresh: true })

test('literals, and a text of more than one piece', async () => {
  await client.query("insert into d (v) values ('a'), ('b')")
  expect(await filled()).toEqual([row('a'), row('b')])
  const long = 'l'.repeat(300)
  await client.query(`insert into d (v) values ${Array.from({ length: 1000 }, () => `('${long}')`).join()}`)
  const rows = await filled()
  expect(rows.length).toBe(1000)
  expect(rows[999]).toEqual(row(long))
})

test('a batch of a prepared INSERT', async () => {
  const insert = { name: 'batch', text: 'insert into d (v) values ($1)' }
  await Promise.all(['a', 'b', 'c', 'd'].map((v) => client.query({ ...insert, values: [v] })))
  expect(await filled()).toEqual(['a', 'b', 'c', 'd'].map(row))
})

test('COPY without the columns, text and binary', async () => {
  const copy = async (sql: string, data: Buffer): Promise<void> => {
    const stream = client.query(from(sql))
    await new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject).end(data))
  }
  await copy('copy d (v) from stdin', Buffer.from('a\nb\n'))
  const binary = Buffer.concat([
    Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'),
    Buffer.alloc(8),
    Buffer.from([0, 1, 0, 0, 0, 1, 99, 255, 255]),
  ])
  await copy('copy d (v) from stdin (format binary)', binary)
  expect(await filled()).toEqual(['a', 'b', 'c'].map(row))
})

test('a default that is not known is left out', async () => {
  notices.length = 0
  await client.query("create table n (id long default nextval('n_id_seq'::regclass), v int default 7)")
  await client.query('alter table n add column w long default next_value()')
  expect(notices.map((text) => text.slice(0, 32))).toEqual([
    'the default of "id" is ignored, ',
    'the default of "w" is ignored, r',
  ])
  await client.query('insert into n (id) values (1)')
  expect((await client.query('select * from n')).rows).toEqual([{ id: '1', v: 7, w: null }])
})
