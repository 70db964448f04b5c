// A receiver of QWP (columnar protocol over WebSocket) that decodes nothing, run as a separate process. It reads
// messages with the server's own WebSocket code, acknowledges and discards them. Its processor time is the lower bound
// for any server that uses this code. Prints its port.

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
