// Goal: /exec responds with the specified JSON and statuses, streams large results no faster than they are read, and
// cancels queries of clients that have gone.

import { gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { zstd } from '../../../engine/base/zstd.js'
import { connectTo, type TestGateway, testHttp, until } from '../../support/gateway.js'

let gateway: TestGateway

beforeEach(async () => {
  gateway = await testHttp()
})
afterEach(() => gateway.close())

async function exec(query: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(`${gateway.url}/exec?${query}`, { headers })
  return { status: response.status, text: await response.text() }
}

const columns = '"columns":[{"name":"x","type":"LONG"},{"name":"a","type":"ARRAY","dim":2,"elemType":"DOUBLE"}]'

describe('rows', () => {
  test('come in the specified order of members', async () => {
    const { status, text } = await exec('query=rows+2')
    expect(status).toBe(200)
    expect(text).toBe(`{"query":"rows 2",${columns},"timestamp":-1,"dataset":[[0],[1]],"count":2}`)
  })

  test.each([
    ['limit=1', '"dataset":[[0]],"count":1}'],
    ['limit=0', '"dataset":[],"count":0}'],
    ['limit=2,2', '"dataset":[[2],[3]],"count":2}'],
    ['limit=', '"dataset":[[0],[1],[2],[3],[4]],"count":5}'],
    ['count=1', '"dataset":[[0],[1],[2],[3],[4]],"count":5}'],
    ['count=true', '{"query":"rows 5","count":5}'],
    ['nm=TRUE', '{"query":"rows 5","dataset":[[0],[1],[2],[3],[4]],"count":5}'],
    ['explain=true', '{"query":"rows 5","explain":{"plan":["scan fake"]}}'],
  ])('with %s', async (parameter, ending) => {
    const { status, text } = await exec(`query=rows+5&${parameter}`)
    expect(status).toBe(200)
    expect(text.endsWith(ending), text).toBe(true)
  })

  test('are timed on demand', async () => {
    const { text } = await exec('query=rows+1&timings=true')
    const { timings } = JSON.parse(text)
    expect(timings).toEqual({ compiler: 0.25, execute: expect.any(Number), count: 1 })
  })

  test('stop at the limit of the server', async () => {
    const { text } = await exec('query=rows+20000+100000')
    expect(JSON.parse(text)).toMatchObject({ count: 10_000, capped: true, rowsMax: 10_000 })
    expect(JSON.parse((await exec('query=rows+20000+100000&limit=10000')).text).capped).toBe(undefined)
  })

  test('of many blocks arrive whole', async () => {
    await gateway.close()
    gateway = await testHttp({ rowsMax: 1_000_000 })
    const { text } = await exec('query=rows+300000+50000')
    const { dataset, count } = JSON.parse(text)
    expect(count).toBe(300_000)
    expect(dataset.length).toBe(300_000)
    expect(dataset[299_999]).toEqual([299_999])
    expect(gateway.engine.returned.count).toBe(1)
  })

  test('pass what was asked on to the engine', async () => {
    await exec('query=rows+1&quoteLargeNum=true&cols=a,%22b,c%22,', { 'Statement-Timeout': '250' })
    const options = gateway.engine.executed[0]?.options
    expect(options?.encoding).toMatchObject({ kind: 'json', quoteLargeNumbers: true })
    expect(options?.columns).toEqual(['a', 'b,c'])
    expect(options?.timeoutMs).toBe(250)
  })
})

test.each(['gzip', 'zstd'])('answers are compressed for who reads %s', async (coding) => {
  for (const query of ['rows+9000+100000', 'rows+9000+2000']) {
    const plain = await exec(`query=${query}`)
    const { headers, body } = await request(`${gateway.url}/exec?query=${query}`, {
      headers: { 'accept-encoding': coding },
    })
    expect(headers['content-encoding']).toBe(coding)
    const bytes = Buffer.from(await body.arrayBuffer())
    const text = coding === 'gzip' ? gunzipSync(bytes) : Buffer.from(zstd().decompress(bytes, 100_000_000))
    expect(text.toString()).toBe(plain.text)
  }
})

test('other statements answer ddl OK', async () => {
  expect((await exec('query=create+x')).text).toBe('{"query":"create x","ddl":"OK"}')
  expect((await exec('query=update+3')).text).toBe('{"query":"update 3","ddl":"OK","updated":3}')
})

describe('errors', () => {
  test.each([
    ['query=fail+sql', 400, '{"query":"fail sql","error":"unexpected token","position":7}'],
    ['query=nope', 400, '{"query":"nope","error":"table does not exist [table=nope]","position":0}'],
    [
      'query=fail+timeout',
      400,
      "Query timeout. Please add HTTP header 'Statement-Timeout' with timeout in ms [timeout=50ms]",
    ],
    ['query=fail+resource', 503, 'no memory now'],
    ['query=fail+bug', 500, 'a bug'],
    ['', 400, '{"query":"","error":"empty query","position":0}'],
    ['query=++', 400, '{"query":"  ","error":"empty query","position":0}'],
    [
      'query=select%20%27%E9%27',
      400,
      '{"query":"select \'￩\'","error":"Bad UTF8 encoding in query text","position":0}',
    ],
    ['query=select%2', 400, 'invalid encoding of the parameter query'],
    ['query=select%zz', 400, 'invalid encoding'],
    ['query=rows+1&limit=-1', 400, 'invalid limit'],
    ['query=rows+1&limit=1,2,3', 400, 'invalid limit'],
    ['query=rows+1&cols=,a', 400, 'empty column in query parameter'],
    ['query=rows+1&cols=%5C', 400, 'empty column in query parameter'],
  ])('%s', async (query, status, text) => {
    const answer = await exec(query)
    expect(answer.text).toContain(text)
    expect(answer.status).toBe(status)
    expect(JSON.parse(answer.text)).toHaveProperty('error')
  })

  test('of a header', async () => {
    expect((await exec('query=rows+1', { 'Statement-Timeout': 'x' })).status).toBe(400)
    expect((await exec('query=rows+1', { 'Statement-Timeout': '0' })).status).toBe(200)
  })

  test('behind the first rows stand in the answer and in its trailer', async () => {
    const { body, trailers } = await request(`${gateway.url}/exec?query=late+sql`)
    const { dataset, count, error, position } = JSON.parse(await body.text())
    expect([dataset.length > 0, count, error, position]).toEqual([true, undefined, 'unexpected token', 7])
    expect(trailers).toEqual({ 'x-error': 'unexpected%20token' })
    expect(gateway.counters.queryErrors).toBe(1)
  })
})

describe('POST', () => {
  async function post(query: string, body: string, type: string | null): Promise<{ status: number; text: string }> {
    const headers: Record<string, string> = type === null ? {} : { 'content-type': type }
    const { statusCode, body: text } = await request(`${gateway.url}/exec?${query}`, { method: 'POST', body, headers })
    return { status: statusCode, text: await text.text() }
  }

  test.each([
    ['query=rows+2&limit=1', 'application/x-www-form-urlencoded'],
    ['{"query":"rows 2","limit":1}', 'application/json'],
  ])('%s counts more than the address', async (body, type) => {
    const { status, text } = await post('query=nope&limit=0&nm=true', body, type)
    expect([status, text]).toEqual([200, '{"query":"rows 2","dataset":[[0]],"count":1}'])
  })

  test('without a body is none', async () => {
    expect((await post('query=rows+1', '', null)).status).toBe(405)
    expect((await post('query=rows+1', '', 'application/x-www-form-urlencoded')).status).toBe(200)
    expect((await post('query=rows+1', 'x', null)).status).toBe(400)
  })
})

test('a plan is timed on demand, too', async () => {
  const { timings } = JSON.parse((await exec('query=rows+1&explain=true&timings=true')).text)
  expect(timings).toEqual({ compiler: 0.1, execute: expect.any(Number), count: 1 })
})

test('the last of several values of a parameter counts', async () => {
  expect(JSON.parse((await exec('query=%zz&query=nope&query=rows+1')).text).query).toBe('rows 1')
})

test('UTF-8 and escapes are decoded, plus means blank', async () => {
  await exec('query=rows+1+%2B%C3%A9%F0%9F%98%80')
  expect(gateway.engine.executed[0]?.sql).toBe('rows 1 +é😀')
})

test('a client that goes away cancels its statement', async () => {
  const socket = await connectTo(gateway.port)
  socket.write('GET /exec?query=hang HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => gateway.engine.executed.length === 1)
  socket.destroy()
  await until(() => gateway.engine.executed[0]?.options.signal?.aborted === true)
})

test('a client that ends its side gets a long answer whole', async () => {
  await gateway.close()
  gateway = await testHttp({ rowsMax: 2_000_000 })
  const socket = await connectTo(gateway.port)
  socket.pause()
  socket.write('GET /exec?query=rows+1500000+100000 HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => gateway.engine.pulled.bytes > 0)
  socket.end()
  let last = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    last = Buffer.concat([last, chunk]).subarray(-40)
  })
  socket.resume()
  await until(() => socket.readableEnded)
  expect(last.toString()).toContain('],"count":1500000}\r\n0\r\n\r\n')
})

test('a client that ends its side and waits gets its answer once, however late', async () => {
  const socket = await connectTo(gateway.port)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  // Long enough for two bytes that are sent ahead.
  socket.end('GET /exec?query=later+300 HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => answer.length === 2)
  expect(answer).toBe('HT')
  await until(() => socket.readableEnded)
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\{"query":"later 300","ddl":"OK"\}$/)
})

test('a client that does not read holds the result back', async () => {
  await gateway.close()
  gateway = await testHttp({ rowsMax: 100_000_000 })
  const socket = await connectTo(gateway.port)
  socket.pause()
  socket.write('GET /exec?query=rows+50000000+1000000 HTTP/1.1\r\nHost: x\r\n\r\n')
  let pulled = -1
  let quiet = 0
  // Quiet for many turns of the event loop: nothing is asked for any more.
  await until(() => {
    quiet = gateway.engine.pulled.bytes === pulled && pulled > 0 ? quiet + 1 : 0
    pulled = gateway.engine.pulled.bytes
    return quiet > 2000
  })
  expect(pulled).toBeLessThan(50_000_000)
  socket.destroy()
  await until(() => gateway.engine.returned.count === 1)
})

test('too many statements at one time are refused', async () => {
  await gateway.close()
  gateway = await testHttp({ queriesMax: 1 })
  const socket = await connectTo(gateway.port)
  socket.write('GET /exec?query=hang HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => gateway.engine.executed.length === 1)
  expect((await exec('query=rows+1')).status).toBe(503)
  socket.destroy()
})
