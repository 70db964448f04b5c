// Goal: ingestion by line protocol works for compressed bodies, every timestamp precision, many requests on a
// connection, many connections to a table, a slow reader, and a producer that disconnects within a line. Acknowledged
// rows are stored exactly once, and incomplete lines are not stored.

import { once } from 'node:events'
import { Agent, get, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer([
  'memory.bytes=512m',
  'http.json.query.max.response.rows=1000000',
  'line.http.body.bytes.max=1m',
])

beforeAll(() => server.start())
afterAll(() => server.remove())

function linesOf(table: string, from: number, count: number): string {
  let text = ''
  for (let row = from; row < from + count; row++)
    text += `${table},s=s${row % 10} n=${row}i,v=${row}.5 ${row + 1}000000\n`
  return text
}

/** Sum of 0 .. count-1. */
function sumBelow(count: number): number {
  return (count * (count - 1)) / 2
}

async function lineSocket(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: server.linePort })
  await once(socket, 'connect')
  return socket
}

async function send(socket: Socket, text: string): Promise<void> {
  if (!socket.write(text)) await once(socket, 'drain')
}

describe('http bodies', () => {
  test('may be compressed', async () => {
    const body = gzipSync(linesOf('packed', 0, 5000))
    const answer = await server.write(body, { headers: { 'Content-Encoding': 'gzip' } })
    expect(answer.status).toBe(204)
    expect(await server.rows('select count(), sum(n) from packed')).toEqual([[5000, sumBelow(5000)]])
  })

  test('that expand beyond the limit, or are no gzip, are refused', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 'x'))
    const refused = await server.write(bomb, { headers: { 'Content-Encoding': 'gzip' } })
    expect(refused.status).toBe(413)
    const broken = await server.write(Buffer.from('no gzip'), { headers: { 'Content-Encoding': 'gzip' } })
    expect(broken.status).toBe(400)
    expect(await server.rows('select 1')).toEqual([[1]])
  })

  test('name their precision', async () => {
    const units = { n: 1e9, ns: 1e9, u: 1e6, us: 1e6, ms: 1e3, s: 1, m: 1 / 60, h: 1 / 3600 }
    for (const [unit, perSecond] of Object.entries(units)) {
      const ticks = BigInt(Math.round(1_699_999_200 * perSecond))
      const answer = await server.write(`precise,unit=${unit} v=1 ${ticks}\n`, { query: `?precision=${unit}` })
      expect([unit, answer.status]).toEqual([unit, 204])
    }
    const rows = await server.rows('select unit, timestamp from precise order by unit')
    expect(rows).toEqual(
      Object.keys(units)
        .sort()
        .map((unit) => [unit, '2023-11-14T22:00:00.000000Z']),
    )
    expect((await server.write('precise v=1 1\n', { query: '?precision=day' })).status).toBe(400)
  })
})

describe('connections', () => {
  test('one connection serves many requests', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const sockets = new Set<Socket>()
    for (let number = 0; number < 200; number++) {
      const call = request(`http://${server.address('http')}/write`, { method: 'POST', agent })
      call.on('socket', (socket) => sockets.add(socket))
      call.end(linesOf('kept', number, 1))
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      answer.resume()
      await once(answer, 'end')
      expect(answer.statusCode).toBe(204)
    }
    agent.destroy()
    expect(sockets.size).toBe(1)
    expect(await server.rows('select count(), sum(n) from kept')).toEqual([[200, sumBelow(200)]])
  })

  test('eight write into one table at one time, over TCP and HTTP', async () => {
    const perConnection = 20_000
    const producers = Array.from({ length: 8 }, async (_, number) => {
      const begin = number * perConnection
      const socket = number % 2 === 0 ? await lineSocket() : null
      for (let at = 0; at < perConnection; at += 2000) {
        const text = linesOf('shared', begin + at, 2000)
        if (socket !== null) await send(socket, text)
        else expect((await server.write(text)).status).toBe(204)
      }
      socket?.end()
    })
    await Promise.all(producers)
    const rows = 8 * perConnection
    const sql = 'select count(), sum(n), count_distinct(s), min(n), max(n) from shared'
    await server.untilRows(sql, [[rows, sumBelow(rows), 10, 0, rows - 1]])
    const unordered = 'select count() from (select timestamp t, lag(timestamp) over () p from shared) where t < p'
    const { status, body } = await server.exec(unordered)
    if (status === 200) expect(body.dataset).toEqual([[0]])
  })

  test('a reader that hardly reads gets all, and others do not wait for it', async () => {
    await server.untilRows('select count() from shared', [[160_000]])
    const sql = encodeURIComponent('select * from shared')
    const call = get(`http://${server.address('http')}/exec?query=${sql}`, { agent: new Agent() })
    const [answer] = (await once(call, 'response')) as [IncomingMessage]
    answer.pause()
    for (let number = 0; number < 50; number++) expect(await server.rows('select count() from kept')).toEqual([[200]])
    expect((await server.write('meanwhile v=1 1\n')).status).toBe(204)
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { dataset: unknown[]; count: number }
    expect([body.dataset.length, body.count]).toEqual([160_000, 160_000])
  })
})

describe('a producer that goes away', () => {
  test('in the middle of a line over TCP: whole lines stay, the half one is none', async () => {
    const socket = await lineSocket()
    await send(socket, `${linesOf('cut', 0, 100)}cut,s=s1 n=100i,v=10`)
    socket.end()
    await server.untilRows('select count(), sum(n), max(v) from cut', [[100, sumBelow(100), 99.5]])
    const other = await lineSocket()
    other.end(linesOf('cut', 100, 1))
    await server.untilRows('select count() from cut', [[101]])
  })

  test('in the middle of an HTTP body: nothing is stored', async () => {
    const [host, port] = server.address('http').split(':')
    const socket = connect({ host: host ?? '', port: Number(port) })
    await once(socket, 'connect')
    const head = `POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n`
    await send(socket, `${head}${linesOf('torn', 0, 200)}`)
    socket.resetAndDestroy()
    expect((await server.write(linesOf('after', 0, 1))).status).toBe(204)
    expect((await server.exec('select * from torn')).body.error).toBe('table does not exist [table=torn]')
  })
})

test('a request with an Idempotency-Key is stored once, also through a crash', async () => {
  const send = (key: string, line: string) => server.write(line, { headers: { 'idempotency-key': key } })
  for (const signal of [null, 'SIGKILL', 'SIGTERM'] as const) {
    if (signal !== null) await server.restart(signal)
    const { status, headers } = await send('first', 'once v=1i 1000')
    expect([status, headers.get('idempotency-replayed')]).toEqual([204, signal === null ? null : 'true'])
    expect((await send('first', 'once v=1i 1000')).headers.get('idempotency-replayed')).toBe('true')
  }
  expect((await send('bad', 'once v=nonsense')).status).toBe(400)
  expect((await send('bad', 'once v=2i 2000')).headers.get('idempotency-replayed')).toBe(null)
  expect((await send('a b', 'once v=3i 2000')).status).toBe(400)
  expect(await server.rows('select v from once')).toEqual([[1], [2]])
})
