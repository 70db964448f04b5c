// The first bytes of a connection decide whether it is encrypted: an SSLRequest is answered by 'S' and TLS begins, or a
// client begins TLS at once (the first byte of its hello is 22). Everything else is left to the start-up.

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

/** The socket to talk through; null when the client has gone or cheats. */
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
    // Bytes behind the request came unencrypted, perhaps from somebody in between.
    if (socket.readableLength > 0) return null
    socket.write(code === sslRequest ? 'S' : 'N')
    if (code === sslRequest) return upgrade(socket, keys)
  }
}

/** What SCRAM may be bound to; null: the certificate does not say. */
export function endPointOf(socket: Socket): Buffer | null {
  const certificate = socket instanceof TLSSocket ? socket.getCertificate() : null
  const bytes: unknown = certificate !== null && 'raw' in certificate ? certificate.raw : null
  return Buffer.isBuffer(bytes) ? serverEndPoint(bytes) : null
}

function upgrade(socket: Socket, { options }: TlsKeys): Promise<Socket | null> {
  return new Promise((resolve) => {
    const secure = new TLSSocket(socket, { ...options, isServer: true, ALPNProtocols: ['postgresql'] })
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
