// Goal: PRIMARY KEY .. ENFORCED refuses a row with the key of a stored row in every protocol: /exec, the PostgreSQL
// wire protocol with COPY and transactions, /imp, line protocol over HTTP and TCP, QWP. If several sessions insert the
// same key at the same time, exactly one succeeds. Stored keys are still refused after a SIGKILL.

import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { qwpMessage } from '../support/qwp-messages.js'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'line.tcp.bad.line=skip'])
const duplicate =
  'duplicate key value violates unique constraint "t_pkey" [key=(ts, k), value=(2024-01-01T00:00:00.000000Z, a)]'
const row = `insert into t values ('2024-01-01', 'a', 2)`
const nanos = '1704067200000000000'

beforeAll(async () => {
  await server.start()
  await server.rows(
    'create table t (ts timestamp, k symbol, v long, primary key (ts, k) enforced) timestamp(ts) partition by day',
  )
  await server.rows(`insert into t values ('2024-01-01', 'a', 1)`)
  await server.rows('checkpoint')
})

afterAll(() => server.remove())

const rows = (): Promise<readonly (readonly unknown[])[]> => server.rows('select k, v from t order by ts, k')

test('/exec', async () => {
  const { status, body } = await server.exec(row)
  expect([status, body]).toEqual([400, { query: row, error: duplicate, position: 0 }])
})

test('the PostgreSQL wire protocol', async () => {
  const client = await server.connect()
  await expect(client.query(row)).rejects.toMatchObject({ code: '23505', message: duplicate })
  await expect(client.query('insert into t values ($1, $2, $3)', ['2024-01-01', 'a', 2])).rejects.toMatchObject({
    code: '23505',
  })
  await expect(client.query(`insert into t (ts, v) values ('2024-01-02', 1)`)).rejects.toMatchObject({ code: '23502' })
  await client.query('begin')
  await client.query(`insert into t values ('2024-01-02', 'b', 2)`)
  await client.query(row)
  await expect(client.query('commit')).rejects.toMatchObject({ code: '23505' })
  await client.query('begin')
  await client.query('truncate table t')
  await client.query(row)
  await client.query('commit')
  expect(await rows()).toEqual([['a', 2]])
  const shown = await client.query(
    `select enforced from information_schema.table_constraints where table_name = 't' and constraint_type = 'PRIMARY KEY'`,
  )
  expect(shown.rows).toEqual([{ enforced: 'YES' }])
  await client.end()
})

test('/imp', async () => {
  const form = new FormData()
  form.set('data', new Blob(['ts,k,v\n2024-01-03T00:00:00.000000Z,c,3\n2024-01-01T00:00:00.000000Z,a,4\n']))
  const answer = await fetch(`http://${server.address('http')}/imp?name=t&fmt=json`, { method: 'POST', body: form })
  const text = await answer.text()
  expect([answer.status, text]).toEqual([400, expect.stringContaining('duplicate key value')])
  expect(await rows()).toEqual([['a', 2]])
})

test('line protocol over HTTP', async () => {
  const whole = await server.write(`t,k=d v=4i ${nanos}\nt,k=a v=5i ${nanos}\n`)
  expect(whole.status).toBe(400)
  expect(await whole.json()).toMatchObject({ message: expect.stringContaining('duplicate key value'), line: 2 })
  expect(await rows()).toEqual([['a', 2]])
})

test('line protocol over TCP', async () => {
  const socket = connect({ host: '127.0.0.1', port: server.linePort })
  await once(socket, 'connect')
  socket.end(`t,k=e v=5i ${nanos}\nt,k=a v=6i ${nanos}\nt,k=f v=7i ${nanos}\n`)
  await server.untilRows('select k, v from t order by ts, k', [
    ['a', 2],
    ['e', 5],
    ['f', 7],
  ])
  const [reject] = await server.rows(`select table_name, line, reason from sys.rejects where reason like 'duplicate%'`)
  expect(reject).toEqual(['t', 2, duplicate])
})

test('QWP', async () => {
  const client = new WebSocket(`ws://${server.address('http')}/write/v4`, { perMessageDeflate: false })
  await once(client, 'open')
  const answer = once(client, 'message')
  const columns = [
    { name: 'k', type: 'VARCHAR', values: ['a'] },
    { name: 'v', type: 'LONG', values: [1n] },
    { name: '', type: 'TIMESTAMP', values: [1_704_067_200_000_000n] },
  ] as const
  client.send(qwpMessage([{ name: 't', columns }]))
  const [data] = await answer
  expect((data as Buffer).subarray(11).toString()).toContain('duplicate key value')
  client.terminate()
})

test('one of several sessions', async () => {
  const clients = await Promise.all(Array.from({ length: 8 }, () => server.connect()))
  for (let round = 0; round < 20; round++) {
    const text = `insert into t values ('2024-02-01T00:00:${String(round).padStart(2, '0')}', 's', 1)`
    const outcomes = await Promise.allSettled(clients.map((client) => client.query(text)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(1)
  }
  for (const client of clients) await client.end()
  expect(await server.rows(`select count() from t where k = 's'`)).toEqual([[20]])
})

test('after SIGKILL', async () => {
  const before = await rows()
  await server.restart('SIGKILL')
  expect(await rows()).toEqual(before)
  expect((await server.exec(row)).status).toBe(400)
  expect((await server.exec(`insert into t values ('2024-02-01T00:00:07', 's', 1)`)).status).toBe(400)
  await server.rows('checkpoint')
  expect((await server.exec(`insert into t values ('2024-02-01T00:00:07', 's', 1)`)).status).toBe(400)
  await server.rows(`insert into t values ('2024-02-01T00:00:07.000001', 's', 1)`)
})
