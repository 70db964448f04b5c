// Goal: from the moment when the ports are bound until the server is ready, HTTP and the PostgreSQL protocol respond
// that the server is starting, and line protocol over TCP closes the connection; after that, the same ports serve.
// Method: a server whose engine opens only when the test tells it.

import { Agent, get } from 'node:http'
import { createServer } from 'node:net'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Server, startServer } from '../../deploy/main.js'
import { LiveSettings } from '../../deploy/settings/live-settings.js'
import { loadSettings } from '../../deploy/settings/settings.js'
import { silentLog } from '../../engine/base/log.js'
import type { Engine } from '../../engine/engine.js'
import { fakeEngine } from '../support/fake-engine.js'
import { connectTo } from '../support/gateway.js'

interface Starting {
  readonly ports: { readonly http: number; readonly health: number; readonly line: number; readonly pg: number }
  readonly server: Promise<Server>
  readonly openEngine: (engine: Engine | Error) => void
}

let starting: Starting

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  )
  await new Promise((resolve) => server.close(resolve))
  return port
}

beforeEach(async () => {
  const ports = { http: await freePort(), health: await freePort(), line: await freePort(), pg: await freePort() }
  const assignments = [
    `http.net.bind.to=127.0.0.1:${ports.http}`,
    `http.min.net.bind.to=127.0.0.1:${ports.health}`,
    `line.tcp.net.bind.to=127.0.0.1:${ports.line}`,
    `pg.net.bind.to=127.0.0.1:${ports.pg}`,
  ]
  const sources = { file: null, environment: {}, assignments }
  let openEngine: Starting['openEngine'] = () => {}
  const opened = new Promise<Engine>((resolve, reject) => {
    openEngine = (engine) => (engine instanceof Error ? reject(engine) : resolve(engine))
  })
  const options = { root: '/nowhere', version: '1', log: silentLog, fatal: () => {}, openEngine: () => opened }
  const live = new LiveSettings(loadSettings(sources), () => sources, silentLog)
  const server = startServer({ ...options, live })
  server.catch(() => {})
  starting = { ports, server, openEngine }
  await untilListening(ports.health)
})

afterEach(async () => {
  starting.openEngine(fakeEngine())
  await starting.server.then((server) => server.close()).catch(() => {})
})

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => null)
    if (answer !== null) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function startUpError(port: number): Promise<string> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'admin', password: 'quest', database: 'qdb' })
  client.on('error', () => {})
  try {
    await client.connect()
    return 'connected'
  } catch (error) {
    return String((error as { code?: string }).code)
  } finally {
    await client.end().catch(() => {})
  }
}

async function closes(port: number): Promise<boolean> {
  const socket = await connectTo(port)
  socket.resume()
  return new Promise((resolve) => {
    const impatience = setTimeout(() => {
      socket.destroy()
      resolve(false)
    }, 500)
    socket.once('close', () => {
      clearTimeout(impatience)
      resolve(true)
    })
  })
}

test('every interface says that the server is starting, then serves', async () => {
  const { ports, openEngine, server } = starting
  for (const [port, path] of [
    ...['/', '/exec?query=select%201', '/ping', '/metrics', '/settings'].map((path) => [ports.http, path] as const),
    ...['/', '/metrics'].map((path) => [ports.health, path] as const),
  ]) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    expect([port, path, answer.status]).toEqual([port, path, 503])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    await answer.text()
  }
  const body = Buffer.alloc(4 * 1024 * 1024, 'a v=1i\n')
  const refused = await fetch(`http://127.0.0.1:${ports.http}/write`, { method: 'POST', body })
  expect(refused.status).toBe(503)
  await refused.text()
  expect(await startUpError(ports.pg)).toBe('57P03')
  expect(await closes(ports.line)).toBe(true)

  openEngine(fakeEngine())
  await server
  for (const port of [ports.http, ports.health]) {
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('OK')
  }
  expect(await startUpError(ports.pg)).not.toBe('57P03')
  expect(await closes(ports.line)).toBe(false)
})

test('a client that keeps its connections is told to open another one', async () => {
  const { ports, openEngine, server } = starting
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = () =>
    new Promise<readonly [status: number | undefined, connection: string | undefined]>((resolve, reject) => {
      const asked = get({ host: '127.0.0.1', port: ports.http, agent }, (response) => {
        response.resume()
        response.on('end', () => resolve([response.statusCode, response.headers.connection]))
      })
      asked.on('error', reject)
    })
  expect(await ask()).toEqual([503, 'close'])
  openEngine(fakeEngine())
  await server
  expect(await ask()).toEqual([200, 'keep-alive'])
  agent.destroy()
})

test('a start that fails gives the ports back', async () => {
  const { ports, openEngine, server } = starting
  openEngine(new Error('no data'))
  await expect(server).rejects.toThrow('no data')
  for (const port of Object.values(ports)) {
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
  }
})
