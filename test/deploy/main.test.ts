// Goal: startServer() opens the ports that the settings enable, registers the virtual tables with the engine, and
// closes everything in order. If a port is in use, the start ends before the data is opened. Also: the default of
// `memory.bytes` is a share of the machine's memory.

import { afterEach, expect, test } from 'vitest'
import { type Server, startServer } from '../../deploy/main.js'
import { LiveSettings } from '../../deploy/settings/live-settings.js'
import { memoryBytes } from '../../deploy/settings/machine.js'
import { loadSettings } from '../../deploy/settings/settings.js'
import { silentLog } from '../../engine/base/log.js'
import { type FakeEngine, fakeEngine } from '../support/fake-engine.js'
import { connectTo } from '../support/gateway.js'

const ports = [
  'http.net.bind.to=127.0.0.1:0',
  'pg.net.bind.to=127.0.0.1:0',
  'line.tcp.net.bind.to=127.0.0.1:0',
  'http.min.enabled=false',
]
let server: Server | null = null

afterEach(() => server?.close())

function settingsOf(assignments: readonly string[]): LiveSettings {
  const sources = { file: null, environment: {}, assignments }
  return new LiveSettings(loadSettings(sources), () => sources, silentLog)
}

async function open(assignments: readonly string[]): Promise<{ server: Server; engine: FakeEngine }> {
  const engine = fakeEngine()
  server = await startServer({
    root: '/nowhere',
    version: '1.2.3',
    live: settingsOf([...ports, ...assignments]),
    log: silentLog,
    fatal: () => {},
    openEngine: async () => engine,
  })
  return { server, engine }
}

function portOf({ listeners }: Server, name: string): number {
  return listeners.find((listener) => listener.name === name)?.address.port ?? 0
}

test('all listeners serve one engine', async () => {
  const { server, engine } = await open([])
  expect(engine.relations.map(({ name }) => name)).toEqual([
    ...['import_files', 'export_files', 'files', 'glob', 'read_parquet', 'iceberg'],
    ...['sys.connections', 'sys.connection_log', 'memory_metrics', 'object_store', 'sys.alerts', 'backups'],
    ...['sys.connectors', 'sys.connector_partitions'],
  ])
  const base = `http://127.0.0.1:${portOf(server, 'http')}`
  expect(await (await fetch(`${base}/`)).text()).toBe('OK')
  const socket = await connectTo(portOf(server, 'line protocol'))
  socket.end('a v=1i\n')
  await new Promise((resolve) => socket.once('close', resolve))
  expect(engine.stored).toEqual(['a v=1i'])
  expect((await (await fetch(`${base}/settings`)).text()).includes('1.2.3')).toBe(true)
})

test('switches close what is off', async () => {
  const { server } = await open([
    'line.tcp.enabled=false',
    'pg.enabled=false',
    'line.http.enabled=false',
    'metrics.enabled=false',
  ])
  expect(server.listeners.map(({ name }) => name)).toEqual(['http'])
  const base = `http://127.0.0.1:${portOf(server, 'http')}`
  expect((await fetch(`${base}/write`, { method: 'POST', body: 'a v=1i\n' })).status).toBe(405)
  expect((await fetch(`${base}/metrics`)).status).toBe(404)
})

test('the engine closes last, with a running client cut off', async () => {
  const { server, engine } = await open(['shutdown.timeout=50ms'])
  const socket = await connectTo(portOf(server, 'line protocol'))
  socket.write('a v=1i\n')
  const hanging = fetch(`http://127.0.0.1:${portOf(server, 'http')}/exec?query=hang`).catch(() => 'cut off')
  await server.close()
  expect(engine.closed).toBe(true)
  expect(await hanging).toBe('cut off')
})

test('an address in use ends the start before the data is touched', async () => {
  const { server: first } = await open([])
  let isTouched = false
  const taken = `line.tcp.net.bind.to=127.0.0.1:${portOf(first, 'line protocol')}`
  const starting = startServer({
    root: '/nowhere',
    version: '1',
    live: settingsOf([...ports, taken]),
    log: silentLog,
    fatal: () => {},
    openEngine: async () => {
      isTouched = true
      return fakeEngine()
    },
  })
  await expect(starting).rejects.toThrow(/cannot listen on 127\.0\.0\.1:\d+: another process listens there/)
  expect(isTouched).toBe(false)
})

test('memory is a share of the machine in whole pages, within bounds', () => {
  const GIB = 1024 ** 3
  expect(memoryBytes(0, 4 * GIB)).toBe(GIB)
  expect(memoryBytes(0, 8 * GIB)).toBe(3.5 * GIB)
  expect(memoryBytes(0, GIB)).toBe(GIB / 2)
  expect(memoryBytes(GIB + 1, 64 * GIB)).toBe(GIB)
})
