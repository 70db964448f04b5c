// Tracks TLS handshakes that are not complete. A TLS server of Node.js reports two sockets for a connection: the
// accepted one first, and another one after the handshake, which carries the protocol. The client's address tells which
// two belong together. When a server closes, Node.js does not end connections in the middle of a handshake, so this
// class does.

import type { Socket } from 'node:net'
import { remoteAddress } from './listen.js'

export class Handshakes<State> {
  readonly #pending = new Map<string, { readonly socket: Socket; readonly state: State }>()

  /** Keeps what is known of an accepted socket until its handshake is complete or the socket is closed. */
  begin(socket: Socket, state: State): void {
    const address = remoteAddress(socket)
    this.#pending.set(address, { socket, state })
    socket.once('close', () => this.#pending.delete(address))
  }

  /** What is known of a socket whose handshake is complete; undefined if it was closed meanwhile. */
  complete(socket: Socket): State | undefined {
    const address = remoteAddress(socket)
    const known = this.#pending.get(address)
    this.#pending.delete(address)
    return known?.state
  }

  /** Ends connections whose handshake is not complete. */
  end(): void {
    for (const { socket } of this.#pending.values()) socket.destroy()
  }
}
