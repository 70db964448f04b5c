// Goal: with DEDUP SKIP KEYS the first row of each key stays, and later rows with the same key are discarded, whether
// they arrive by COPY, by QWP, or in the form that Kafka connectors send. The stored Kafka offset advances although
// such rows are discarded.

import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { RawClient } from '../gateways/pgwire/raw-client.js'
import { InlineEngine } from '../support/inline-engine.js'
import { qwpMessage } from '../support/qwp-messages.js'
import { TestServer } from '../support/server.js'
import { createFaultyDisk } from '../support/simulator/faulty-files.js'

const server = TestServer.shared()
const create = 'create table t (ts timestamp, k symbol, v long) timestamp(ts) partition by day dedup skip keys(ts, k)'
const first = `insert into t values ('2024-01-01', 'a', 1)`
const micros = 1_704_067_200_000_000n

beforeAll(async () => {
  await server.start()
  await server.rows(create)
  await server.rows(first)
  await server.rows('checkpoint')
})

afterAll(() => server.remove())

test('COPY', async () => {
  const { host, port } = server.login
  expect(host).toBe('127.0.0.1')
  const client = new RawClient(port)
  await client.logIn()
  client.send('Q', 'copy t from stdin\0')
  await client.until('G')
  client.send('d', Buffer.from('2024-01-01\ta\t2\n2024-01-02\tb\t3\n2024-01-02\tb\t4\n'))
  client.send('c')
  expect((await client.until('C'))?.body.toString()).toBe('COPY 3\0')
  client.socket.destroy()
  expect(await server.rows('select k, v from t order by ts, k')).toEqual([
    ['a', 1],
    ['b', 3],
  ])
})

test('QWP', async () => {
  const client = new WebSocket(`ws://${server.address('http')}/write/v4`, { perMessageDeflate: false })
  await once(client, 'open')
  const columns = [
    { name: 'k', type: 'VARCHAR', values: ['a', 'c', 'c'] },
    { name: 'v', type: 'LONG', values: [5n, 6n, 7n] },
    { name: '', type: 'TIMESTAMP', values: [micros, micros, micros] },
  ] as const
  const answer = once(client, 'message')
  client.send(qwpMessage([{ name: 't', columns }]))
  const [data] = (await answer) as [Buffer]
  expect(data.readUInt8(0)).toBe(0)
  client.terminate()
  await server.rows('checkpoint')
  expect(await server.rows('select k, v from t order by ts, k')).toEqual([
    ['a', 1],
    ['c', 6],
    ['b', 3],
  ])
})

test('requests of Kafka connectors', async () => {
  const { files } = createFaultyDisk(1)
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const engine = new InlineEngine({ files })
  await engine.settle()
  await engine.run(create)
  await engine.run(first)
  await engine.run('checkpoint')
  const send = (text: string, offset: number, previous: number) => {
    const sourcePosition = { connector: 'one', topic: 'one', partition: 0, offset, previous }
    const blocks = [new TextEncoder().encode(text)]
    const { receipt } = engine.engine.lines({
      ...{ blocks, precision: 'n', atomic: true, skipBadLines: true, connectionId: 0, sourcePosition },
    })
    return engine.until(receipt)
  }
  const line = (k: string, v: number): string => `t,k=${k} v=${v}i ${micros}000\n`
  expect(await send(line('a', 2) + line('b', 3), 1, -1)).toMatchObject({ error: null, rows: 2 })
  expect(await send(line('a', 4) + line('b', 5), 3, 1)).toMatchObject({ error: null, rows: 2 })
  // A request that comes again is recognised by its offset.
  expect(await send(line('d', 6), 3, 1)).toMatchObject({ existed: true })
  expect(engine.engine.positions('one').map(({ offset }) => offset)).toEqual([3])
  expect(await engine.rows('select k, v from t order by k')).toEqual([
    ['a', 1n],
    ['b', 3n],
  ])
})
