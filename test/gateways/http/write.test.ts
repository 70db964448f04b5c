// Goal: line protocol over HTTP is stored whole or not at all, and every refusal says why without losing the connection.

import { request } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ResourceError } from '../../../engine/base/errors.js'
import { connectTo, type TestGateway, testHttp, until } from '../../support/gateway.js'

let gateway: TestGateway

beforeEach(async () => {
  gateway = await testHttp({ lineBodyBytesMax: 100_000 })
})
afterEach(() => gateway.close())

async function write(body: string | Buffer, path = '/write', headers: Record<string, string> = {}) {
  const response = await fetch(gateway.url + path, { method: 'POST', body, headers })
  const text = await response.text()
  return { status: response.status, text, json: text === '' ? null : JSON.parse(text) }
}

describe('stored', () => {
  test.each(['/write', '/api/v2/write?bucket=x&precision=ns'])('by %s', async (path) => {
    expect(await write('a v=1i 1\nb v=2i', path)).toMatchObject({ status: 204, text: '' })
    expect(gateway.engine.stored).toEqual(['a v=1i 1', 'b v=2i'])
    expect(gateway.engine.requests[0]).toMatchObject({ atomic: true, skipBadLines: false, precision: 'n' })
    expect(gateway.counters.rowsWritten).toBe(2)
  })

  test.each([
    ['us', 'u'],
    ['u', 'u'],
    ['ms', 'ms'],
    ['s', 's'],
    ['m', 'm'],
    ['h', 'h'],
    ['', 'n'],
  ])('with precision %s', async (asked, given) => {
    expect((await write('a v=1i 1\n', `/write?precision=${asked}`)).status).toBe(204)
    expect(gateway.engine.requests[0]?.precision).toBe(given)
  })

  test('compressed', async () => {
    expect((await write(gzipSync('a v=1i 1\n'), '/write', { 'Content-Encoding': 'gzip' })).status).toBe(204)
    expect(gateway.engine.stored).toEqual(['a v=1i 1'])
  })

  test('in chunks of unknown total', async () => {
    const status = await new Promise((resolve) => {
      const post = request(`${gateway.url}/write`, { method: 'POST' }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      post.write('a v=')
      setImmediate(() => post.end('1i 1\nb v=1i\n'))
    })
    expect(status).toBe(204)
    expect(gateway.engine.stored).toEqual(['a v=1i 1', 'b v=1i'])
  })

  test('an empty body holds nothing to store', async () => {
    expect((await write('')).status).toBe(204)
    expect(gateway.engine.requests).toEqual([])
  })
})

describe('refused', () => {
  test('a bad line, with its number, and nothing is stored', async () => {
    const { status, json } = await write('a v=1i\nb v=bad\n')
    expect(status).toBe(400)
    expect(json).toEqual({
      code: 'invalid',
      message:
        'failed to parse line protocol:errors encountered on line(s):\nerror in line 2: Could not parse timestamp: bad',
      line: 2,
      errorId: expect.stringMatching(/^[0-9a-f]+-\d+$/),
    })
    expect(gateway.engine.stored).toEqual([])
    expect(gateway.logged.some((line) => line.includes(json.errorId))).toBe(true)
  })

  test('an unknown precision', async () => {
    const { status, json } = await write('a v=1i\n', '/write?precision=NS')
    expect(status).toBe(400)
    expect(json).toMatchObject({ code: 'not supported', line: 0 })
  })

  test('an unknown encoding', async () => {
    expect((await write('a v=1i\n', '/write', { 'Content-Encoding': 'br' })).status).toBe(415)
  })

  test('data that is not compressed as it says, and the connection goes on', async () => {
    const { status, json } = await write('a v=1i\n', '/write', { 'Content-Encoding': 'gzip' })
    expect(status).toBe(400)
    expect(json.message).toBe('request body is no valid gzip data')
    expect((await write('a v=1i\n')).status).toBe(204)
  })

  test('a body that is too large, or expands to too much', async () => {
    const large = 'a v=1i\n'.repeat(20_000)
    expect((await write(large)).status).toBe(413)
    const packed = gzipSync(large)
    expect(packed.length).toBeLessThan(10_000)
    expect((await write(packed, '/write', { 'Content-Encoding': 'gzip' })).status).toBe(413)
    expect(gateway.engine.requests).toEqual([])
    expect((await write('a v=1i\n')).status).toBe(204)
  })

  test('while the server can take no more', async () => {
    gateway.engine.refusal = new ResourceError('the server is shutting down')
    const { status, json } = await write('a v=1i\n')
    expect(status).toBe(503)
    expect(json).toMatchObject({ code: 'not accepting writes', message: 'the server is shutting down', line: 0 })
  })
})

test('a client that goes away in the middle leaves nothing behind', async () => {
  const socket = await connectTo(gateway.port)
  socket.write('POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\na v=1i\n')
  await until(() => gateway.registry.active('http') === 1)
  socket.destroy()
  await until(() => gateway.registry.active('http') === 0)
  expect(gateway.engine.requests).toEqual([])
  for (let round = 0; round < 60; round++) expect((await write('a v=1i\n')).status).toBe(204)
})

test('a slow engine makes writers wait, not fail', async () => {
  let makeRoom: () => void = () => {}
  gateway.engine.room = new Promise((resolve) => {
    makeRoom = resolve
  })
  const answers = Promise.all([write('a v=1i\n'), write('b v=1i\n')])
  await until(() => gateway.registry.active('http') >= 2)
  expect(gateway.engine.stored).toEqual([])
  makeRoom()
  expect((await answers).map(({ status }) => status)).toEqual([204, 204])
})
