// Goal: checks of an HTTP request before its handler runs. Pages of other sites cannot change anything, unknown Host names
// are rejected, CORS follows the settings, missing credentials are rejected before the body is read, exceeded limits are
// reported with 503, slow clients are closed, and every response has the security headers. Passwords are never logged, and
// file names cannot inject headers.

import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { allRights, readRights } from '../../../engine/base/rights.js'
import { isForeign } from '../../../gateways/http/access.js'
import { isKnownHost } from '../../../gateways/http/guard.js'
import { connectTo, type TestGateway, testHttp, until } from '../../support/gateway.js'

const browser = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36'
const host = 'db.example:9000'
let gateway: TestGateway | null = null

afterEach(async () => {
  await gateway?.close()
  gateway = null
})

const locked = {
  access: {
    configured: [
      { user: 'admin', password: 'secret', rights: allRights },
      { user: 'viewer', password: 'look', rights: readRights },
    ],
    anonymous: null,
  },
}
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

test.each<[string, IncomingHttpHeaders, boolean]>([
  ['curl', { 'user-agent': 'curl/8.5.0' }, false],
  ['no agent', {}, false],
  ['a driver', { 'user-agent': 'python-requests/2.32' }, false],
  ['PowerShell', { 'user-agent': 'Mozilla/5.0 (Windows NT; en-US) WindowsPowerShell/5.1' }, false],
  ['own page', { 'user-agent': browser, 'sec-fetch-site': 'same-origin' }, false],
  ['typed address', { 'user-agent': browser, 'sec-fetch-site': 'none' }, false],
  ['other site', { 'user-agent': browser, 'sec-fetch-site': 'cross-site' }, true],
  ['other port of the host', { 'user-agent': browser, 'sec-fetch-site': 'same-site' }, true],
  ['own origin', { 'user-agent': browser, origin: `http://${host}` }, false],
  ['other origin', { 'user-agent': browser, origin: 'http://evil.example' }, true],
  ['other origin without an agent', { origin: 'http://evil.example' }, true],
  ['opaque origin', { 'user-agent': browser, origin: 'null' }, true],
  ['own page over plain HTTP', { 'user-agent': browser, referer: `http://${host}/console/` }, false],
  ['image of another page', { 'user-agent': browser, referer: 'http://evil.example/x' }, true],
  ['image of a page that hides', { 'user-agent': browser }, true],
  ['behind a proxy', { 'user-agent': browser, origin: 'https://q.example', 'x-forwarded-host': 'q.example' }, false],
  ['bearer token', { 'user-agent': browser, authorization: 'Bearer x' }, false],
  ['basic credentials', { 'user-agent': browser, authorization: 'Basic x', 'sec-fetch-site': 'cross-site' }, true],
  ['allowed origin', { 'sec-fetch-site': 'cross-site', origin: 'https://app.example' }, false],
])('whose page: %s', (_name, headers, foreign) => {
  expect(isForeign({ host, ...headers }, ['https://app.example'])).toBe(foreign)
})

test.each([
  [undefined, true],
  ['127.0.0.1:9000', true],
  ['192.168.7.9', true],
  ['[::1]:9000', true],
  ['localhost:9000', true],
  ['LOCALHOST', true],
  ['db.localhost:9000', true],
  ['penstock', true],
  ['host.docker.internal:9000', true],
  ['db.example.com:9000', true],
  ['evil.example:9000', false],
  ['localhost.evil.example', false],
  ['127.0.0.1.evil.example:9000', false],
  ['evil.example.', false],
  ['1.2.3.4.5', false],
])('called as %s', (name, known) => {
  expect(isKnownHost(name, ['db.example.com'])).toBe(known)
})

test('a name that leads here by somebody else reads nothing where no credentials are asked for', async () => {
  const ask = async (path: string, name: string): Promise<string> => {
    const socket = await connectTo(gateway?.port ?? 0)
    socket.end(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    let text = ''
    for await (const chunk of socket) text += chunk
    return text
  }
  gateway = await testHttp({ hostNames: [] })
  for (const path of ['/exec?query=rows+1', '/exp?query=rows+1', '/', '/metrics', '/settings', '/console/']) {
    expect(await ask(path, 'evil.example:9000'), path).toMatch(/^HTTP\/1\.1 403 /)
  }
  expect(await ask('http://evil.example:9000/exec?query=rows+1', '127.0.0.1')).toMatch(/^HTTP\/1\.1 403 /)
  expect(gateway.engine.executed.length).toBe(0)
  expect(await ask('/exec?query=rows+1', '127.0.0.1')).toMatch(/^HTTP\/1\.1 200 /)
  await gateway.close()
  gateway = await testHttp({ hostNames: [] }, locked)
  expect(await ask('/', 'evil.example:9000')).toMatch(/^HTTP\/1\.1 403 [\s\S]*WWW-Authenticate/)
})

describe('a page of another site', () => {
  const foreign = { 'sec-fetch-site': 'cross-site', 'user-agent': browser }

  test.each([
    ['POST', '/write', 'a b=1i\n'],
    ['POST', '/imp?name=x', '--x--'],
    ['PUT', '/settings?version=0', '{}'],
    ['POST', '/settings?version=0', '{}'],
  ])('%s %s is refused', async (method, path, body) => {
    gateway = await testHttp()
    const headers = { ...foreign, 'content-type': 'multipart/form-data; boundary=x' }
    const answer = await fetch(gateway.url + path, { method, body, headers })
    expect(answer.status).toBe(403)
    expect(await answer.text()).toContain('another site')
    expect(gateway.engine.requests.length).toBe(0)
  })

  test('statements of it run read-only', async () => {
    gateway = await testHttp()
    await fetch(`${gateway.url}/exec?query=rows+1`, { headers: foreign })
    expect(gateway.engine.executed[0]?.options.session).toMatchObject({ user: 'admin', readOnly: true })
    await fetch(`${gateway.url}/exec?query=rows+1`)
    expect(gateway.engine.executed[1]?.options.session).toMatchObject({ user: 'admin', readOnly: false })
  })
})

test('read-only: nothing is written, queries are answered', async () => {
  gateway = await testHttp({ readOnly: true })
  const answer = await fetch(`${gateway.url}/write`, { method: 'POST', body: 'a b=1i\n' })
  expect(answer.status).toBe(403)
  expect(await answer.json()).toMatchObject({ message: 'this server takes read-only queries' })
  await fetch(`${gateway.url}/exec?query=rows+1`)
  expect(gateway.engine.executed[0]?.options.session.readOnly).toBe(true)
})

test('every answer has the headers of security', async () => {
  gateway = await testHttp()
  for (const path of [
    '/',
    '/exec?query=rows+1',
    '/exec?query=nope',
    '/exp?query=rows+1',
    '/nope',
    '/ping',
    '/metrics',
  ]) {
    const answer = await fetch(gateway.url + path)
    await answer.arrayBuffer()
    expect(answer.headers.get('x-content-type-options'), path).toBe('nosniff')
    expect(answer.headers.get('x-frame-options'), path).toBe('DENY')
    expect(answer.headers.get('cross-origin-resource-policy'), path).toBe('same-origin')
    expect(answer.headers.get('access-control-allow-origin'), path).toBeNull()
  }
})

describe('CORS', () => {
  const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,x-y' }

  test('a preflight of an allowed origin is answered, without credentials', async () => {
    gateway = await testHttp({ corsOrigins: ['https://app.example'] }, locked)
    const headers = { origin: 'https://app.example', ...preflight }
    const answer = await fetch(`${gateway.url}/write`, { method: 'OPTIONS', headers })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization,x-y')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    expect(answer.headers.get('vary')).toBe('Origin')
  })

  test.each([
    ['/write', 'POST, OPTIONS'],
    ['/exec', 'GET, HEAD, POST, OPTIONS'],
    ['/settings', 'GET, PUT, POST, OPTIONS'],
    ['/api/v1/saved', 'GET, PUT, DELETE, OPTIONS'],
    ['/api/v1/alerts', 'PUT, DELETE, OPTIONS'],
    ['/nope', 'OPTIONS'],
  ])('a preflight of %s names the methods of the path', async (path, methods) => {
    gateway = await testHttp({ corsOrigins: ['*'] })
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'DELETE' }
    const answer = await fetch(gateway.url + path, { method: 'OPTIONS', headers })
    expect(answer.headers.get('access-control-allow-methods')).toBe(methods)
  })

  test('others get nothing', async () => {
    gateway = await testHttp({ corsOrigins: ['https://app.example'] })
    const headers = { origin: 'https://evil.example', ...preflight }
    const answer = await fetch(`${gateway.url}/write`, { method: 'OPTIONS', headers })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })

  test('an allowed page writes', async () => {
    gateway = await testHttp({ corsOrigins: ['*'] })
    const headers = { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }
    const answer = await fetch(`${gateway.url}/write`, { method: 'POST', body: 'a b=1i\n', headers })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })
})

/** Sends text, gives what comes back until the other side closes or `done` is in it. */
async function talk(strings: readonly string[], done = '\u0000'): Promise<string> {
  const socket = await connectTo((gateway as TestGateway).port)
  let answer = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk) => {
    answer += chunk
  })
  for (const text of strings) socket.write(text)
  await until(() => socket.destroyed || socket.readableEnded || answer.includes(done))
  socket.destroy()
  return answer
}

describe('credentials', () => {
  test('are checked before a body comes', async () => {
    gateway = await testHttp({}, locked)
    const head = 'POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n'
    const refused = await talk([`${head}\r\n`])
    expect(refused).toMatch(/^HTTP\/1.1 403 /)
    const admitted = await talk([`${head}Authorization: ${basic('admin:secret')}\r\n\r\n`], '100 Continue')
    expect(admitted).toMatch(/^HTTP\/1.1 100 Continue/)
  })

  test('a stranger with a body gets to the answer, and the connection goes on', async () => {
    gateway = await testHttp({}, locked)
    const body = 'a b=1i\n'.repeat(100)
    const stranger = `POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const friend = `GET /ping HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('viewer:look')}\r\n\r\n`
    const answer = await talk([stranger, friend], ' 204 ')
    expect(answer).toMatch(/ 403 [\s\S]* 204 /)
    expect(gateway.engine.requests.length).toBe(0)
  })

  test('health may be let out', async () => {
    gateway = await testHttp({ healthNeedsCredentials: false }, locked)
    expect((await fetch(gateway.url)).status).toBe(200)
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(403)
  })

  test('who is asking stands in sys.connections', async () => {
    gateway = await testHttp({}, locked)
    await (await fetch(gateway.url, { headers: { authorization: basic('viewer:look') } })).text()
    expect([...gateway.registry.connections()].map(({ principal }) => principal)).toEqual(['viewer'])
  })

  test('no password is ever logged', async () => {
    gateway = await testHttp({}, locked)
    for (const text of ['admin:hunter2', 'hunter2:x']) {
      await fetch(`${gateway.url}/exec?query=fail+bug`, { headers: { authorization: basic(text) } })
    }
    const statement = encodeURIComponent("create user bob with password 'hunter2'")
    await fetch(`${gateway.url}/exec?query=${statement}`, { headers: { authorization: basic('admin:secret') } })
    const log = gateway.logged.join('\n')
    expect(log).not.toContain('hunter2')
    expect(log).not.toContain(createHmac('sha256', 'x').update('hunter2').digest('hex'))
  })
})

describe('limits', () => {
  test('a connection beyond the limit is answered 503 with Retry-After', async () => {
    gateway = await testHttp({ connectionsMax: 1 })
    const first = await connectTo(gateway.port)
    first.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await new Promise((resolve) => first.once('data', resolve))
    const answer = await talk(['GET / HTTP/1.1\r\nHost: x\r\n\r\n'])
    expect(answer).toMatch(/^HTTP\/1.1 503 /)
    expect(answer.toLowerCase()).toContain('retry-after: 1')
    expect(answer.toLowerCase()).toContain('connection: close')
    first.destroy()
  })

  test.each([
    ['queriesMax', '/exec?query=hang', '/exec?query=rows+1', 'GET'],
    ['exportsMax', '/exp?query=hang', '/exp?query=rows+1', 'GET'],
  ] as const)('%s', async (limit, busy, path, method) => {
    gateway = await testHttp({ [limit]: 1 })
    const abort = new AbortController()
    const hanging = fetch(gateway.url + busy, { signal: abort.signal }).catch(() => {})
    await until(() => gateway?.engine.executed.length === 1)
    const answer = await fetch(gateway.url + path, { method })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    abort.abort()
    await hanging
  })

  test('line protocol beyond its limit', async () => {
    gateway = await testHttp({ lineRequestsMax: 0 })
    const answer = await fetch(`${gateway.url}/write`, { method: 'POST', body: 'a b=1i\n' })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
  })

  test('headers beyond their limit', async () => {
    gateway = await testHttp({ headerBytesMax: 64 * 1024 })
    const answer = await talk([`GET /exec?query=${'x'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`])
    expect(answer).toMatch(/^HTTP\/1.1 431 /)
  })

  test.each([
    ['nothing', []],
    ['half of its headers', ['GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ']],
    ['half of its body', ['POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc']],
    ['half of a statement', ['POST /exec HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc']],
  ])('a client that sends %s is closed', async (_name, strings) => {
    gateway = await testHttp({ keepAliveMs: 300 })
    await talk(strings)
  })

  test('a statement that takes long is left alone', async () => {
    gateway = await testHttp({ keepAliveMs: 100 })
    const abort = new AbortController()
    let ended = false
    const hanging = fetch(`${gateway.url}/exec?query=hang`, { signal: abort.signal })
      .catch(() => {})
      .finally(() => {
        ended = true
      })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(ended).toBe(false)
    abort.abort()
    await hanging
  })
})

test('names of files cannot inject headers', async () => {
  gateway = await testHttp()
  const name = encodeURIComponent('a"\r\nSet-Cookie: x=1\r\n\r\n<script>')
  const answer = await fetch(`${gateway.url}/exp?query=rows+1&filename=${name}`)
  await answer.arrayBuffer()
  expect([200, 400]).toContain(answer.status)
  expect(answer.headers.get('set-cookie')).toBeNull()
})
