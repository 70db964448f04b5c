// Negotiates TLS from the first bytes of a PostgreSQL connection: an SSLRequest is answered with 'S' and TLS starts,
// or the client starts TLS directly (its first byte is then 22). A GSSENCRequest is answered with 'N'. All other first
// bytes are left unread, for start-up.ts.

import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { serverEndPoint } from '../../common/channel-binding.js'
import { readBytes } from '../../common/first-bytes.js'
import type { TlsKeys } from '../../common/tls.js'

const sslRequest = 80_877_103
const gssRequest = 80_877_104
const requestBytes = 8
const clientHello = 22
const firstBytesMs = 60_000

/** Returns the socket to use; null when the client disconnected or violated the protocol. */
export async function encrypted(socket: Socket, keys: TlsKeys): Promise<Socket | null> {
  for (;;) {
    const first = await readBytes(socket, requestBytes, firstBytesMs)
    if (first === null) return null
    const code = first.readInt32BE(4)
    if (first[0] === clientHello) {
      socket.unshift(first)
      return upgrade(socket, keys)
    }
    if (first.readInt32BE(0) !== requestBytes || (code !== sslRequest && code !== gssRequest)) {
      socket.unshift(first)
      return socket
    }
    // Bytes after the request arrived unencrypted, possibly injected by a man in the middle.
    if (socket.readableLength > 0) return null
    socket.write(code === sslRequest ? 'S' : 'N')
    if (code === sslRequest) return upgrade(socket, keys)
  }
}

/** Channel-binding data for SCRAM; null: the certificate does not support it. */
export function endPointOf(socket: Socket): Buffer | null {
  const certificate = socket instanceof TLSSocket ? socket.getCertificate() : null
  const bytes: unknown = certificate !== null && 'raw' in certificate ? certificate.raw : null
  return Buffer.isBuffer(bytes) ? serverEndPoint(bytes) : null
}

/** Shares the secure context: to make one for each connection would block the event loop for milliseconds. */
function upgrade(socket: Socket, { context }: TlsKeys): Promise<Socket | null> {
  return new Promise((resolve) => {
    const secure = new TLSSocket(socket, { secureContext: context, isServer: true, ALPNProtocols: ['postgresql'] })
    const failed = (): void => {
      secure.destroy()
      resolve(null)
    }
    secure.once('error', failed).once('close', failed)
    secure.once('secure', () => {
      secure.off('error', failed).off('close', failed)
      resolve(secure)
    })
  })
}
