// Goal: QWP messages with rows (columnar protocol over WebSocket) are stored and answered in order, and rejections
// state the reason. No acknowledged row is lost: with groups of messages, messages that wait while writes are rejected,
// a shutdown, or clients that send invalid data. The test parses the responses byte by byte, as clients do.

import { once } from 'node:events'
import { request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { ResourceError, RowError } from '../../../engine/base/errors.js'
import { allRights, readRights } from '../../../engine/base/rights.js'
import type { HttpOptions } from '../../../gateways/http/context.js'
import { type TestGateway, testHttp, until } from '../../support/gateway.js'
import { qwpMessage } from '../../support/qwp-messages.js'

let gateway: TestGateway
const clients: WebSocket[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) client.terminate()
  await gateway.close()
})

async function open(changes: Partial<HttpOptions> = {}): Promise<void> {
  gateway = await testHttp(changes)
}

interface Frame {
  readonly status: number
  readonly sequence?: number
  readonly text?: string
  readonly tables?: Record<string, number>
}

/** A client, its frames as they came, and the headers of the handshake. */
async function connect(path = '/write/v4', headers: Record<string, string> = {}) {
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}${path}`, { headers, perMessageDeflate: false })
  clients.push(client)
  const frames: Frame[] = []
  let answer: Record<string, unknown> = {}
  client.on('message', (data) => frames.push(readFrame(data as Buffer)))
  client.on('upgrade', (response) => {
    answer = response.headers
  })
  const closed = once(client, 'close') as Promise<[number, Buffer]>
  closed.catch(() => {})
  await once(client, 'open')
  return {
    client,
    frames,
    closed,
    answer,
    send: (...messages: Uint8Array[]) => messages.forEach((m) => client.send(m)),
  }
}

function readFrame(frame: Buffer): Frame {
  const status = frame.readUInt8(0)
  if (status !== 0 && status !== 2) {
    const length = frame.readUInt16LE(9)
    expect(frame.length).toBe(11 + length)
    return { status, sequence: Number(frame.readBigInt64LE(1)), text: frame.subarray(11).toString() }
  }
  const tables: Record<string, number> = {}
  let at = status === 0 ? 9 : 1
  const count = frame.readUInt16LE(at)
  at += 2
  for (let index = 0; index < count; index++) {
    const length = frame.readUInt16LE(at)
    tables[frame.subarray(at + 2, at + 2 + length).toString()] = Number(frame.readBigInt64LE(at + 2 + length))
    at += 10 + length
  }
  expect(frame.length).toBe(at)
  return status === 0 ? { status, sequence: Number(frame.readBigInt64LE(1)), tables } : { status, tables }
}

const row = (defer = false) =>
  qwpMessage([{ name: 't', columns: [{ name: 'v', type: 'LONG', values: [1n] }] }], { defer })
const symbols = () => qwpMessage([], { defer: true, delta: { first: 0, strings: ['a'] } })

/** The response to a handshake that is refused. */
function refusal(path: string, headers: Record<string, string> = {}): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const handshake = {
      ...{ Connection: 'Upgrade', Upgrade: 'websocket' },
      ...{ 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==' },
    }
    const asked = request(`${gateway.url}${path}`, { headers: { ...handshake, ...headers } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
    })
    asked.on('error', reject)
    asked.on('upgrade', (_response, socket) => {
      socket.destroy()
      resolve({ status: 101, body: '' })
    })
    asked.end()
  })
}

describe('the handshake', () => {
  test.each(['/write/v4', '/api/v4/write'])('of %s tells version and size', async (path) => {
    await open({ receiveBufferBytes: 128 * 1024 })
    const { answer } = await connect(path, { 'X-QWP-Client-Id': 'test/1', 'X-QWP-Max-Version': '3' })
    expect(answer).toMatchObject({ 'x-qwp-version': '1', 'x-qwp-max-batch-size': String(128 * 1024 - 14) })
    expect(answer).not.toHaveProperty('x-qwp-durable-ack')
    expect([...gateway.registry.connections()].map(({ application }) => application())).toEqual(['test/1'])
  })

  test('promises durable acknowledgements where the commit mode does', async () => {
    await open()
    const headers = { 'X-QWP-Request-Durable-Ack': 'True' }
    const { answer, frames, send } = await connect('/write/v4', headers)
    expect(answer).toMatchObject({ 'x-qwp-durable-ack': 'enabled' })
    gateway.engine.tables = [['t', 7]]
    send(row())
    await until(() => frames.length === 2)
    expect(frames).toEqual([
      { status: 0, sequence: 0, tables: { t: 7 } },
      { status: 2, tables: { t: 7 } },
    ])
    await gateway.close()
    await open({ qwpDurable: false })
    expect((await connect('/write/v4', headers)).answer).not.toHaveProperty('x-qwp-durable-ack')
  })

  test('is refused with the reason', async () => {
    const users = [
      { user: 'writer', password: 'w', rights: allRights },
      { user: 'reader', password: 'r', rights: readRights },
    ]
    gateway = await testHttp({}, { access: { configured: users, anonymous: null } })
    const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` })
    expect((await refusal('/write/v4')).status).toBe(401)
    expect((await refusal('/write/v4', basic('writer:x'))).status).toBe(401)
    expect((await refusal('/write/v4', basic('reader:r'))).status).toBe(403)
    expect((await refusal('/write/v4', { ...basic('writer:w'), 'X-QWP-Max-Version': '0' })).status).toBe(400)
    const foreign = { ...basic('writer:w'), Origin: 'http://elsewhere.example', 'User-Agent': 'Mozilla/5.0' }
    expect((await refusal('/write/v4', foreign)).status).toBe(403)
    expect((await refusal('/write/v4', basic('writer:w'))).status).toBe(101)
  })

  test('of a read-only server is refused', async () => {
    await open({ readOnly: true })
    expect(await refusal('/write/v4')).toMatchObject({ status: 403, body: expect.stringContaining('read-only') })
  })

  test('is for its paths and for WebSocket alone', async () => {
    await open()
    expect((await refusal('/nowhere')).status).toBe(404)
    const other = { Upgrade: 'h2c', Connection: 'Upgrade, HTTP2-Settings', 'HTTP2-Settings': '' }
    expect((await refusal('/ping', other)).status).toBe(204)
    expect((await refusal('/write/v4', other)).status).toBe(426)
    expect((await fetch(`${gateway.url}/write/v4`)).status).toBe(426)
    expect((await refusal('/write/v4', { 'Sec-WebSocket-Key': 'short' })).status).toBe(400)
  })
})

describe('messages', () => {
  test('are answered in their order', async () => {
    await open()
    const { frames, send } = await connect()
    send(row(), row(), row())
    await until(() => frames.length === 3)
    expect(frames.map(({ status, sequence }) => [status, sequence])).toEqual([
      [0, 0],
      [0, 1],
      [0, 2],
    ])
    expect(gateway.engine.requests[0]).toMatchObject({ format: 'qwp', atomic: true, partial: false })
    expect(gateway.counters.qwp).toMatchObject({ accepted: 3, rejected: 0 })
  })

  test('that the engine rejects do not end the connection', async () => {
    await open()
    const { frames, send } = await connect()
    gateway.engine.rejectNext = new RowError(`column: v; ${'ä'.repeat(2000)}`, 1)
    send(row(), row())
    await until(() => frames.length === 2)
    expect(frames[0]).toMatchObject({ status: 3, sequence: 0, text: expect.stringMatching(/^column: v; .*…$/) })
    expect(Buffer.byteLength(frames[0]?.text ?? '')).toBeLessThanOrEqual(1024)
    expect(frames[1]).toMatchObject({ status: 0, sequence: 1 })
    expect(gateway.counters.qwp).toMatchObject({ accepted: 1, rejected: 1 })
  })

  test('of bad values are stored in part, if the setting says so', async () => {
    await open({ qwpBadValue: 'skip' })
    const { frames, send } = await connect()
    send(row())
    await until(() => frames.length === 1)
    expect(gateway.engine.requests[0]).toMatchObject({ partial: true, skipBadLines: true })
  })

  test('that are text or too long end the connection', async () => {
    await open({ receiveBufferBytes: 64 * 1024 })
    const text = await connect()
    text.client.send('text')
    expect((await text.closed)[0]).toBe(1003)
    const long = await connect()
    long.client.send(Buffer.alloc(64 * 1024))
    expect((await long.closed)[0]).toBe(1009)
  })
})

describe('groups', () => {
  test('are one request, whose acknowledgement comes with the last message', async () => {
    await open()
    const { frames, send } = await connect()
    send(...Array.from({ length: 200 }, () => row(true)))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(frames).toEqual([])
    send(qwpMessage([]))
    await until(() => frames.length === 1)
    expect(frames[0]).toMatchObject({ status: 0, sequence: 200 })
    expect(gateway.engine.requests.map(({ blocks }) => blocks.length)).toEqual([201])
  })

  test('of symbols alone are acknowledged at once', async () => {
    await open()
    const { frames, send } = await connect()
    send(symbols(), symbols())
    await until(() => frames.length === 2)
    expect(frames.map(({ sequence }) => sequence)).toEqual([0, 1])
  })

  test('are rejected message by message', async () => {
    await open()
    const { frames, send } = await connect()
    gateway.engine.rejectNext = new RowError('bad', 1)
    send(row(true), row(true), row(), row())
    await until(() => frames.length === 4)
    expect(frames.map(({ status, sequence }) => [status, sequence])).toEqual([
      [3, 0],
      [3, 1],
      [3, 2],
      [0, 3],
    ])
  })

  test('that take too much memory are rejected to their end', async () => {
    await open({ qwpGroupsBytesMax: 100 })
    const { frames, send } = await connect()
    send(row(true), row(true), row(true), row(true), row(), row())
    await until(() => frames.length === 6)
    expect(frames.map(({ status }) => status)).toEqual([5, 5, 5, 5, 5, 0])
    expect(frames[0]?.text).toContain('qwp.groups.bytes.max')
  })

  test('without their last message are forgotten', async () => {
    await open()
    const { client, send, closed } = await connect()
    send(row(true))
    client.close()
    await closed
    await until(() => gateway.registry.active('http') === 0)
    expect(gateway.engine.requests).toEqual([])
  })
})

describe('a server that refuses writes', () => {
  test('holds messages until it accepts them', async () => {
    await open({ qwpHoldMs: 60_000 })
    const { frames, send } = await connect()
    gateway.engine.refusal = new ResourceError('the disk is full')
    send(row())
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(frames).toEqual([])
    gateway.engine.refusal = null
    await until(() => frames.length === 1)
    expect(frames[0]).toMatchObject({ status: 0, sequence: 0 })
  })

  test('closes connections in order after a while, and rejects nothing', async () => {
    await open({ qwpHoldMs: 50 })
    const { frames, send, closed } = await connect()
    gateway.engine.refusal = new ResourceError('the disk is full')
    send(row(), row())
    const [code, reason] = await closed
    expect([code, String(reason)]).toEqual([1001, 'writes are refused: the disk is full'])
    expect(frames).toEqual([])
    gateway.engine.refusal = null
  })

  test('does not hold messages when it shuts down', async () => {
    await open({ qwpHoldMs: 60_000 })
    const { frames, send, closed } = await connect()
    gateway.engine.refusal = new ResourceError('the disk is full')
    const [connection] = gateway.registry.connections()
    const handshake = connection?.bytesIn() ?? 0
    send(row())
    await until(() => (connection?.bytesIn() ?? 0) > handshake)
    const closing = gateway.close()
    expect((await closed)[0]).toBe(1001)
    await closing
    expect(frames).toEqual([])
    gateway.engine.refusal = null
    await open()
  })
})

test('a shutdown answers what came and closes in order', async () => {
  await open()
  const { frames, send, closed } = await connect()
  send(row())
  await until(() => gateway.engine.requests.length === 1)
  const closing = gateway.close()
  expect((await closed)[0]).toBe(1001)
  await closing
  expect(frames).toHaveLength(1)
  await open()
})

test('a shutdown takes no message that comes later, and answers those before', async () => {
  await open()
  const { frames, send, closed } = await connect()
  let makeRoom = (): void => {}
  gateway.engine.room = new Promise((resolve) => {
    makeRoom = resolve
  })
  const [connection] = gateway.registry.connections()
  const handshake = connection?.bytesIn() ?? 0
  send(row())
  await until(() => (connection?.bytesIn() ?? 0) > handshake)
  const closing = gateway.close()
  send(row())
  await new Promise((resolve) => setTimeout(resolve, 20))
  makeRoom()
  expect((await closed)[0]).toBe(1001)
  await closing
  expect(frames.map(({ sequence }) => sequence)).toEqual([0])
  await open()
})

test('the reason of a close fits its frame, in whole characters', async () => {
  await open({ qwpHoldMs: 10 })
  const { send, closed } = await connect()
  gateway.engine.refusal = new ResourceError('ä'.repeat(100))
  send(row())
  const [code, reason] = await closed
  expect([code, String(reason)]).toEqual([1001, `writes are refused: ${'ä'.repeat(50)}…`])
  gateway.engine.refusal = null
})
