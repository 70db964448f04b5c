// Goal: line protocol over HTTP is stored atomically, or without its bad lines if the request accepts that; every
// rejection states its reason, and a bad request does not end the connection.

import { request } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ResourceError } from '../../../engine/base/errors.js'
import { partialBody } from '../../../gateways/http/write-errors.js'
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
  ])('with precision %s', async (requested, given) => {
    expect((await write('a v=1i 1\n', `/write?precision=${requested}`)).status).toBe(204)
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

function parts(...strings: readonly string[]): [string, Record<string, string>] {
  const bodies = strings.map(
    (text, index) => `--cut\r\nContent-Disposition: form-data; name="p${index}"\r\n\r\n${text}\r\n`,
  )
  return [`${bodies.join('')}--cut--\r\n`, { 'Content-Type': 'multipart/form-data; boundary=cut' }]
}

describe('parts of a multipart body', () => {
  test('are one request, and each begins a line', async () => {
    const [body, headers] = parts('a v=1i 1', 'b v=2i 2\nc v="--cut" 3\n', '', 'd v=4i 4')
    expect((await write(body, '/write', headers)).status).toBe(204)
    expect(gateway.engine.stored).toEqual(['a v=1i 1', 'b v=2i 2', 'c v="--cut" 3', 'd v=4i 4'])
    expect(gateway.engine.requests.length).toBe(1)
    const packed = { ...headers, 'Content-Encoding': 'gzip' }
    expect((await write(gzipSync(body), '/api/v2/write', packed)).status).toBe(204)
    expect(gateway.engine.stored.length).toBe(8)
  })

  test('are refused together', async () => {
    const [body, headers] = parts('a v=1i 1', 'bad')
    expect(await write(body, '/write', headers)).toMatchObject({ status: 400, json: { line: 2 } })
    expect(gateway.engine.stored).toEqual([])
  })

  test('are refused where the body is malformed, too large, or of too many parts; the connection goes on', async () => {
    const [body, headers] = parts('a v=1i 1')
    expect((await write(body.slice(0, -9), '/write', headers)).status).toBe(400)
    expect((await write(body, '/write', { 'Content-Type': 'multipart/form-data' })).status).toBe(400)
    expect((await write(parts('a v=1i\n'.repeat(20_000))[0], '/write', headers)).status).toBe(413)
    const many = await write(parts(...Array(101).fill('a v=1i'))[0], '/write', headers)
    expect(many).toMatchObject({ status: 400, json: { message: 'too many parts in the multipart body [max=100]' } })
    expect(gateway.engine.stored).toEqual([])
    expect((await write(body, '/write', headers)).status).toBe(204)
  })
})

test('a partial answer says how many lines were refused when it does not list them all', () => {
  const rejects = [{ line: 3, message: 'bad', table: 't', text: 'x' }]
  expect(partialBody({ rejects, rejected: 1 })).not.toHaveProperty('rejected')
  expect(partialBody({ rejects, rejected: 70_000 })).toMatchObject({ rejected: 70_000, data: [{ line_number: 3 }] })
})

describe('a request that accepts to be stored in part', () => {
  test.each(['/write', '/api/v2/write'])('stores the good lines and names the bad ones on %s', async (path) => {
    const { status, json } = await write('a v=1i\nb bad\nc v=1i\n', `${path}?accept_partial=true`)
    expect(status).toBe(400)
    expect(json).toEqual({
      error: 'partial write of line protocol occurred',
      data: [{ original_line: '', line_number: 2, error_message: 'Could not parse timestamp: bad' }],
    })
    expect(gateway.engine.stored).toEqual(['a v=1i', 'c v=1i'])
    expect(gateway.engine.requests[0]).toMatchObject({ atomic: true, skipBadLines: true, partial: true })
    expect(gateway.counters).toMatchObject({ rowsWritten: 2, rowsRejected: 1 })
  })

  test('is like others when all lines are good', async () => {
    expect((await write('a v=1i\n', '/write?accept_partial=true')).status).toBe(204)
    expect((await write('a v=1i\nb bad\n', '/write?accept_partial=false')).status).toBe(400)
    expect(gateway.engine.stored).toEqual(['a v=1i'])
  })

  test('says true or false', async () => {
    const { status, json } = await write('a v=1i\n', '/write?accept_partial=1')
    expect(status).toBe(400)
    expect(json.message).toBe('invalid accept_partial, expected true or false [value=1]')
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
    expect(json.message).toBe('request body is not valid gzip data')
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
