// Goal: the HTTP server closes a connection soon after its last response, even if the client keeps it open, but lets a
// client that is still sending its request finish and read the response; idle connections do not lock out others;
// ambiguous requests are rejected.

import type { Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { connectTo, type TestGateway, testHttp, until } from '../../support/gateway.js'

let gateway: TestGateway

afterEach(() => gateway.close())

interface Talk {
  readonly socket: Socket
  text: string
  ended: boolean
}

async function say(text: string): Promise<Talk> {
  const socket = await connectTo(gateway.port)
  const talk: Talk = { socket, text: '', ended: false }
  socket.on('data', (bytes) => {
    talk.text += bytes.toString('latin1')
  })
  socket.once('close', () => {
    talk.ended = true
  })
  socket.write(text)
  return talk
}

const asks = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`

test.each([
  ['garbage', 'XX\r\n\r\n', 400],
  ['an answer that ends the connection', asks('/ping', 'Connection: close\r\n'), 204],
  ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', 200],
  ['a body that is too large', 'POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\na', 413],
  ['a broken chunk', 'POST /write HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
])('%s: a client that stays is disconnected', async (_name, text, status) => {
  // The test would end before an idle connection did.
  gateway = await testHttp({ keepAliveMs: 3_600_000 })
  // Its own side stays open.
  const talk = await say(text)
  talk.socket.allowHalfOpen = true
  await until(() => talk.text !== '')
  expect(talk.text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  await until(() => gateway.registry.active('http') === 0)
  talk.socket.destroy()
})

test('a client that sends on reads the answer to what is no request', async () => {
  gateway = await testHttp()
  const socket = await connectTo(gateway.port)
  const errors: unknown[] = []
  socket.on('error', (error) => errors.push(error))
  socket.pause()
  socket.write('POST /write HTTP/1.1\r\nHost: x\r\nno header: a\r\nContent-Length: 50000000\r\n\r\n')
  const chunk = Buffer.alloc(100_000, 'x')
  for (let sent = 0; sent < 50_000_000; sent += chunk.length) {
    if (!socket.write(chunk)) await new Promise((resolve) => socket.once('drain', resolve))
  }
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
  })
  socket.resume()
  await until(() => text !== '' || errors.length > 0)
  expect(errors).toEqual([])
  expect(text).toMatch(/^HTTP\/1.1 400 /)
  socket.destroy()
})

describe('places', () => {
  test.each(['', 'XX\r\n\r\n', 'GET / HTTP/1.1\r\nA: '])('those that begin with %j keep nobody out', async (text) => {
    gateway = await testHttp({ connectionsMax: 2 })
    const silent = await Promise.all(Array.from({ length: 80 }, () => say(text)))
    await until(() => gateway.registry.counts.http.opened === 80)
    const talk = await say(asks('/ping'))
    await until(() => talk.text.includes(' 204 '))
    for (const { socket } of [...silent, talk]) socket.destroy()
  })

  test('an address has its own limit, when one is set', async () => {
    gateway = await testHttp({ connectionsPerAddressMax: 1 })
    const first = await say(asks('/ping'))
    await until(() => first.text.includes(' 204 '))
    const second = await say(asks('/ping'))
    await until(() => second.text.includes('too many connections from this address'))
    expect(second.text).toMatch(/^HTTP\/1.1 503 /)
    expect(gateway.registry.events().at(-1)).toMatchObject({
      event: 'REJECT',
      reason: 'net.connection.limit.per.address',
    })
    for (const { socket } of [first, second]) socket.destroy()
  })
})

const post = (headers: string, body = '3\r\na b\r\n0\r\n\r\n'): string =>
  `POST /write HTTP/1.1\r\n${headers}\r\n${body}`

test.each([
  ['two hosts', asks('/ping', 'Host: y\r\n'), 400, 'several Host headers'],
  ['two hosts that are equal', asks('/ping', 'Host: x\r\n'), 400, 'several Host headers'],
  ['a host that is none', 'GET /ping HTTP/1.1\r\nHost: a/b\r\n\r\n', 400, 'not a host and port'],
  ['no host', 'GET /ping HTTP/1.1\r\n\r\n', 400, ''],
  ['gzip, chunked', post('Host: x\r\nTransfer-Encoding: gzip, chunked\r\n'), 501, '\\"gzip\\"'],
  ['two lines', post('Host: x\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n'), 501, '\\"gzip\\"'],
  ['an unknown coding', post('Host: x\r\nTransfer-Encoding: x, chunked\r\n'), 501, '\\"x\\"'],
  ['identity', post('Host: x\r\nTransfer-Encoding: identity, chunked\r\n'), 501, 'identity'],
  ['chunked twice', post('Host: x\r\nTransfer-Encoding: chunked, chunked\r\n'), 400, ''],
  ['chunked before another', post('Host: x\r\nTransfer-Encoding: chunked, gzip\r\n'), 400, ''],
  ['a coding without an end', post('Host: x\r\nTransfer-Encoding: gzip\r\n'), 400, ''],
  ['a length, too', post('Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n'), 400, ''],
  ['two lengths', 'POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\na b', 400, ''],
  ['HTTP/1.0', 'POST /write HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400, ''],
])('%s', async (_name, text, status, words) => {
  gateway = await testHttp()
  const talk = await say(text)
  await until(() => talk.ended)
  expect(talk.text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(talk.text.toLowerCase()).toContain('connection: close')
  expect(talk.text).toContain(words)
  expect(talk.text.match(/HTTP\/1\.1/g)?.length).toBe(1)
  expect(gateway.engine.stored).toEqual([])
})

test.each(['x', 'x:9000', '127.0.0.1:9000', '[::1]:9000', '[fe80::1%25eth0]', 'a.b-c.example'])(
  '%s is a host',
  async (host) => {
    gateway = await testHttp()
    const talk = await say(`GET /ping HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    await until(() => talk.ended)
    expect(talk.text).toMatch(/^HTTP\/1.1 204 /)
  },
)
