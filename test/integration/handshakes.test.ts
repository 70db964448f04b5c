// Goal: clients that begin a TLS handshake and never finish it do not delay the stop of the server, whether they keep
// the connection open, close their side, or disconnect.

import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { TestServer } from '../support/server.js'

const keys = join(repositoryRoot, 'test/support/keys')
const server = new TestServer([
  'query.threads=1',
  'memory.bytes=600m',
  ...['http', 'http.min', 'line.tcp', 'pg'].flatMap((prefix) => [
    `${prefix}.security.enabled=true`,
    `${prefix}.security.keystore.path=${join(keys, 'cert.pem')},${join(keys, 'key.pem')}`,
  ]),
])

afterAll(() => server.remove())

const hello = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const ports = ['http', 'health', 'line protocol', 'postgres'] as const
/** Far below the limit for handshakes. */
const stopMsMax = 5000

function begin(port: number, bytes: Buffer): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => {})
      socket.resume()
      socket.write(bytes, () => resolve(socket))
    })
  })
}

test.each(['stays', 'ends its side', 'is gone'])('a client that %s', async (then) => {
  await server.start()
  const sockets: Socket[] = []
  for (const name of ports) {
    const port = Number(server.address(name).split(':')[1])
    for (const bytes of [Buffer.alloc(0), hello, sslRequest]) sockets.push(await begin(port, bytes))
  }
  for (const socket of sockets) {
    if (then === 'is gone') socket.destroy()
    else if (then === 'ends its side') socket.end()
  }
  const begun = performance.now()
  await server.end()
  expect(performance.now() - begun).toBeLessThan(stopMsMax)
  for (const socket of sockets) socket.destroy()
})
