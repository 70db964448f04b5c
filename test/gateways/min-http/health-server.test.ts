// Goal: the health-check server responds on every path with the status that the main thread has set in shared memory,
// and on /metrics with the metrics, if they are enabled.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeServer, listen } from '../../../gateways/common/listen.js'
import { healthServer, healthStates, healthWord } from '../../../gateways/min-http/health-server.js'

const flag = new Int32Array(new SharedArrayBuffer(4))
let metrics: { contentType: string; text: string } | null = null
const { server } = healthServer(flag, async () => metrics)
let url = ''

beforeAll(async () => {
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 })
  url = `http://127.0.0.1:${port}`
})
afterAll(async () => {
  const closed = closeServer(server)
  server.closeAllConnections()
  await closed
})

test.each(['/', '/ping', '/any/where'])('%s is well', async (path) => {
  const response = await fetch(url + path)
  expect(response.status).toBe(200)
  expect(await response.text()).toBe('OK')
})

test('the flag makes it ill', async () => {
  Atomics.store(flag, healthWord, healthStates.unhealthy)
  expect((await fetch(url)).status).toBe(500)
})

test('metrics come from elsewhere, or are not there', async () => {
  expect((await fetch(`${url}/metrics`)).status).toBe(404)
  metrics = { contentType: 'text/plain; version=0.0.4', text: 'a 1\n' }
  const response = await fetch(`${url}/metrics?x=1`)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4')
  expect(await response.text()).toBe('a 1\n')
})
