// Goal: the HTTP client of the command-line tool gives up when a server does not complete the connection, with or without
// TLS, and does not limit the time that a connected server takes to answer.

import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { exitCodes, openClient } from '../../deploy/cli/http-client.js'
import { readKeyStore } from '../../gateways/common/key-store.js'
import { closeServer, listen } from '../../gateways/common/listen.js'
import { repositoryRoot } from '../support/docs/source-tree.js'

const connectMs = 200
let server: Server | null = null
const sockets = new Set<Socket>()

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  if (server !== null) await closeServer(server)
  server = null
})

async function portOf(opened: Server): Promise<number> {
  server = opened
  opened.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
  return (await listen(opened, { host: '127.0.0.1', port: 0 })).port
}

test('a TLS handshake that never ends is an error', async () => {
  const port = await portOf(createServer())
  const client = openClient({ url: `https://127.0.0.1:${port}`, insecure: true }, connectMs)
  await expect(client.get('ping', {})).rejects.toMatchObject({
    message: expect.stringContaining('no connection within 0.2 s'),
    exitCode: exitCodes.unreachable,
  })
  await client.close()
})

test('a late answer is none', async () => {
  const store = readKeyStore(`${repositoryRoot}/test/support/keys`, '')
  const secure = createSecureServer(store, (socket) => {
    socket.once('data', () => {
      setTimeout(() => socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'), 3 * connectMs)
    })
  })
  const port = await portOf(secure)
  const client = openClient({ url: `https://127.0.0.1:${port}`, insecure: true }, connectMs)
  expect((await client.get('ping', {})).status).toBe(204)
  await client.close()
})
