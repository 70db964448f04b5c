// Messages on their way to a client: small ones are gathered and leave in one write, blocks of rows go as they are.
// Whoever sends awaits what `flush` and `block` return when much waits: that is the backpressure.

import type { Socket } from 'node:net'

const chunkBytes = 16 * 1024
/** Unsent bytes of a client above which its session waits. */
const waitingBytesMax = 256 * 1024

export class Outbound {
  /** Bytes that went to the socket. */
  sent = 0
  readonly #socket: Socket
  #chunk: Buffer = Buffer.allocUnsafe(chunkBytes)
  #bytes = 0

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Copies the message. */
  put(message: Uint8Array): void {
    if (this.#bytes + message.length > this.#chunk.length) this.#write()
    if (message.length > this.#chunk.length) {
      this.sent += message.length
      this.#socket.write(Buffer.from(message))
      return
    }
    this.#chunk.set(message, this.#bytes)
    this.#bytes += message.length
  }

  /** Sends what was put; a promise when the client has to take some first. */
  flush(): Promise<void> | null {
    this.#write()
    return this.full ? this.drained() : null
  }

  get full(): boolean {
    return this.#socket.writableLength > waitingBytesMax
  }

  drained(): Promise<void> {
    const socket = this.#socket
    if (socket.destroyed || !socket.writable) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        socket.off('drain', done)
        socket.off('close', done)
        resolve()
      }
      socket.on('drain', done)
      socket.on('close', done)
    })
  }

  /** Sends a block; resolves when its memory may be used again. */
  async block(block: Uint8Array): Promise<void> {
    this.#write()
    this.sent += block.length
    await new Promise<void>((resolve) => {
      if (this.#socket.destroyed) resolve()
      else this.#socket.write(block, () => resolve())
    })
  }

  #write(): void {
    if (this.#bytes === 0) return
    this.sent += this.#bytes
    this.#socket.write(this.#chunk.subarray(0, this.#bytes))
    this.#chunk = Buffer.allocUnsafe(chunkBytes)
    this.#bytes = 0
  }
}
