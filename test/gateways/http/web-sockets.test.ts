// Goal: a WebSocket connection that is reset while the server holds it back delivers no message with wrong bytes. Frames
// are unmasked chunk by chunk, and the chunks of a paused connection are taken in another way than those of others.
// Method: a client that writes frames byte by byte, so that the test decides where a chunk ends.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { acceptWebSocket, type MessageSocket } from '../../../gateways/http/web-sockets.js'
import { connectTo, until } from '../../support/gateway.js'

const mask = Buffer.of(0x5a, 0xc3, 0x17, 0x88)
let server: Server

afterEach(() => server.close())

function frame(payload: Buffer): Buffer {
  const header = Buffer.of(0x82, 0xfe, payload.length >> 8, payload.length & 0xff)
  return Buffer.concat([header, mask, payload.map((byte, at) => byte ^ (mask[at & 3] ?? 0))])
}

async function open(): Promise<{ readonly client: Socket; readonly socket: Duplex; readonly accepted: MessageSocket }> {
  server = createServer()
  const opened = new Promise<{ readonly socket: Duplex; readonly accepted: MessageSocket }>((resolve) => {
    server.on('upgrade', (request, socket, head) => {
      const handshake = { request, socket, head, headers: [], messageBytesMax: 1024 * 1024, answersPings: true }
      acceptWebSocket(handshake, (accepted) => resolve({ socket, accepted }))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = await connectTo((server.address() as AddressInfo).port)
  client.write(
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  )
  await once(client, 'data')
  return { client, ...(await opened) }
}

test('a frame over two chunks, of which the second comes while the connection is paused', async () => {
  const { client, socket, accepted } = await open()
  const sent = [1, 2, 3].map((byte) => Buffer.alloc(1000, byte))
  const bytes = Buffer.concat(sent.map(frame))
  const cut = bytes.length - 400
  client.write(bytes.subarray(0, cut))
  await until(() => socket.isPaused())
  client.write(bytes.subarray(cut))
  await until(() => socket.readableLength === 400)
  client.resetAndDestroy()
  await new Promise((resolve) => socket.once('close', resolve))
  const received: Buffer[] = []
  for await (const message of accepted.messages) received.push(message)
  expect(received).toEqual(sent.slice(0, received.length))
  expect(received.length).toBeGreaterThanOrEqual(2)
  await accepted.closed
})
