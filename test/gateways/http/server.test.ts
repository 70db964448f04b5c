// Goal: the HTTP gateway maps paths and methods to the right responses, including health and metrics, and handles
// connections, limits and invalid requests as specified.

import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connectionRelations } from '../../../gateways/common/connection-relations.js'
import { connectTo, type TestGateway, testHttp, until } from '../../support/gateway.js'

let gateway: TestGateway

beforeEach(async () => {
  gateway = await testHttp({ pessimisticHealth: true, connectionsMax: 2 })
})
afterEach(() => gateway.close())

test.each([
  ['GET', '/', 200, 'OK'],
  ['GET', '/nope', 404, 'Not Found\r\n'],
  ['GET', '/exec/x', 404, 'Not Found\r\n'],
  ['DELETE', '/nope', 405, 'Method DELETE not supported\r\n'],
  ['DELETE', '/exec', 405, 'Method DELETE not supported\r\n'],
  ['GET', '/write', 405, 'Method GET not supported\r\n'],
  ['POST', '/ping', 405, 'Method POST not supported\r\n'],
  ['GET', '/ping', 204, ''],
])('%s %s answers %i', async (method, path, status, text) => {
  const response = await fetch(gateway.url + path, { method })
  expect(response.status).toBe(status)
  expect(await response.text()).toBe(text)
  if (path === '/ping' && method === 'GET') expect(response.headers.get('x-influxdb-version')).toBe('v2.7.4')
})

test('/settings names the versions of the line protocol', async () => {
  const text = await (await fetch(`${gateway.url}/settings`)).text()
  const settings = JSON.parse(text)
  expect(settings.config['line.proto.support.versions']).toEqual([1, 2, 3])
})

test.each([
  ['executePath', '/exec', '/run', 'http.context.execute'],
  ['exportPath', '/exp', '/a/b', 'http.context.export'],
  ['importPath', '/imp', '/take', 'http.context.import'],
])('%s moves a path: the old one answers no more', async (option, old, path, name) => {
  await gateway.close()
  gateway = await testHttp({ [option]: path })
  const ask = (at: string): Promise<Response> =>
    option === 'importPath'
      ? fetch(`${gateway.url}${at}`, { method: 'POST', body: 'x' })
      : fetch(`${gateway.url}${at}?query=rows+1`)
  expect([404, 405]).toContain((await ask(old)).status)
  expect([200, 400]).toContain((await ask(path)).status)
  const { config } = (await (await fetch(`${gateway.url}/settings`)).json()) as { config: Record<string, unknown> }
  expect(config[name]).toBe(path)
  expect(Object.keys(config).filter((key) => key.startsWith('http.context.'))).toEqual([name])
})

test('/metrics counts', async () => {
  await (await fetch(`${gateway.url}/exec?query=rows+1`)).text()
  await (await fetch(`${gateway.url}/exec?query=nope`)).text()
  await fetch(`${gateway.url}/write`, { method: 'POST', body: 'a b=1i\n' })
  for (let round = 0; round < 2; round++) {
    const response = await fetch(`${gateway.url}/metrics`)
    expect(response.headers.get('content-type')).toContain('version=0.0.4')
    const text = await response.text()
    expect(text).toMatch(/^svc_connections_active\{protocol="http"\} [12]$/m)
    expect(text).toMatch(/^svc_queries_total\{type="select"\} 1$/m)
    expect(text).toMatch(/^svc_query_error_counter 1$/m)
    expect(text).toMatch(/^svc_rows_written_total 1$/m)
    expect(text).toMatch(/^svc_unhandled_errors 0$/m)
  }
})

test('health turns bad with the first unhandled error', async () => {
  expect((await fetch(`${gateway.url}/exec?query=fail+bug`)).status).toBe(500)
  expect((await fetch(`${gateway.url}/`)).status).toBe(500)
  expect(gateway.logged.some((line) => line.includes('E http statement failed'))).toBe(true)
})

test('a client that is found gone while its answer is written is no error of ours', async () => {
  await expect(fetch(`${gateway.url}/exec?query=fail+gone`)).rejects.toThrow()
  expect((await fetch(`${gateway.url}/`)).status).toBe(200)
  expect(gateway.logged.filter((line) => line.includes('E http'))).toEqual([])
})

test('connections are listed, logged and limited', async () => {
  const ask = async (): Promise<Socket> => {
    const socket = await connectTo(gateway.port)
    socket.write('GET /ping HTTP/1.1\r\nHost: x\r\n\r\n')
    await new Promise((resolve) => socket.once('data', resolve))
    return socket
  }
  const [first, second] = [await ask(), await ask()]
  expect(gateway.registry.active('http')).toBe(2)
  await ask()
  expect(gateway.registry.counts.http.rejected).toBe(1)
  first.destroy()
  await until(() => gateway.registry.active('http') === 1)
  const [connections, log] = connectionRelations(gateway.registry)
  const column = (name: string) => connections?.columns.findIndex((entry) => entry.name === name) ?? -1
  const rows = connections?.rows() ?? []
  expect(rows.length).toBe(1)
  expect(rows[0]?.[column('protocol')]).toBe('http')
  expect(rows[0]?.[column('remote_address')]).toBe(`127.0.0.1:${second.localPort}`)
  const eventColumn = log?.columns.findIndex((entry) => entry.name === 'event') ?? -1
  expect(log?.rows().map((row) => row[eventColumn])).toEqual(['OPEN', 'OPEN', 'OPEN', 'REJECT', 'CLOSE'])
  second.destroy()
})

test('a request that is none gets a status', async () => {
  const socket = await connectTo(gateway.port)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  socket.write('nonsense\r\n\r\n')
  await until(() => answer !== '')
  expect(answer).toContain('400 Bad Request')
})

test('requests in one go are answered in order', async () => {
  const socket = await connectTo(gateway.port)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  socket.write('GET /exec?query=rows+1 HTTP/1.1\r\nHost: x\r\n\r\nGET /exec?query=nope HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => answer.includes('nope'))
  expect(answer.indexOf('"rows 1"')).toBeGreaterThan(0)
  socket.destroy()
})

/** What comes back on a connection of its own, until the server closes it. */
async function answerTo(text: string): Promise<string> {
  const socket = await connectTo(gateway.port)
  socket.write(text)
  let answer = ''
  for await (const chunk of socket.setEncoding('latin1')) answer += chunk
  return answer
}

test.each(['/exec', '/exp'])('%s answers HTTP/1.0 without chunks and trailers', async (path) => {
  const [head = '', body = ''] = (await answerTo(`GET ${path}?query=rows+200000&nm=true HTTP/1.0\r\n\r\n`)).split(
    '\r\n\r\n',
  )
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(head).not.toMatch(/^(trailer|transfer-encoding):/im)
  const whole = await (await fetch(`${gateway.url}${path}?query=rows+200000&nm=true`)).text()
  expect(body === whole).toBe(true)
  expect(gateway.counters.unhandledErrors).toBe(0)
})

test('an absolute address means its path and calls its host', async () => {
  const ask = (target: string) => answerTo(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  const whole = await (await fetch(`${gateway.url}/exec?query=rows+1`)).text()
  expect(await ask('http://localhost:1/exec?query=rows+1')).toContain(whole)
  expect(await ask('HTTP://localhost')).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nOK$/)
  expect(await ask('http://localhost/nope')).toContain('404 Not Found')
})
