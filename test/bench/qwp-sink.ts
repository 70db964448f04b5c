// A receiver of QWP that decodes nothing, run as a separate process: messages arrive by the server's own WebSocket stage,
// are acknowledged, and dropped. Its processor time is the floor of what a row can cost. Prints its port.

import { createServer } from 'node:http'
import { acceptedFrame } from '../../gateways/http/qwp-frames.js'
import { acceptWebSocket } from '../../gateways/http/web-sockets.js'

const messageBytesMax = 16 * 1024 * 1024

const server = createServer()
server.on('upgrade', (request, socket, head) => {
  const handshake = { request, socket, head, headers: ['X-QWP-Version: 1'], messageBytesMax, answersPings: false }
  acceptWebSocket(handshake, async (client) => {
    let sequence = 0
    for await (const _message of client.messages) client.send(acceptedFrame(sequence++, []))
    client.close(1000, '')
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) process.stdout.write(`${address.port}\n`)
})
