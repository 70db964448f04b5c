// Buffers messages to a client: small ones are collected and sent in one write, blocks of rows are sent without
// copying. `flush` and `block` return promises that the sender awaits when much is unsent: that is the backpressure.
//
// A response that is not known yet can reserve its position in the stream: messages after it are held back until it is
// filled in, while those before it are sent at the next flush.

import type { Socket } from 'node:net'
import { type ClientEncoding, recodedMessages } from './client-encoding.js'

const chunkBytes = 16 * 1024
/** Collected bytes that are sent without a flush; below this, a client is not woken for half a response. */
const gatheredBytesMax = 64 * 1024
/** Unsent bytes above which the session waits. */
const waitingBytesMax = 256 * 1024
/** Time limit for sending the final messages of a session that is ended by the server. */
const farewellMs = 1000
/** Limit of reserved places. */
const placesMax = 4096

interface Place {
  bytes: Uint8Array | null
  /** Approximate size of the bytes that are not known yet. */
  readonly expected: number
}

export class Outbound {
  /** Bytes passed to the socket. */
  sent = 0
  /** The client's encoding; null: UTF-8. Rows arrive already converted. */
  encoding: ClientEncoding | null = null
  readonly #socket: Socket
  #chunk: Buffer = Buffer.allocUnsafe(chunkBytes)
  #bytes = 0
  /** Full chunks to send before the current one. */
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  /** Reserved places and the messages that wait behind them, in order. */
  readonly #queue: Place[] = []
  #queuedBytes = 0
  #settled: (() => void) | null = null

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Copies the message. */
  put(written: Uint8Array): void {
    const message = this.encoding === null ? written : recodedMessages(written, this.encoding)
    if (this.#bytes + message.length > this.#chunk.length) this.#gather()
    if (message.length > this.#chunk.length) {
      this.#write()
      this.#send([Buffer.from(message)])
      return
    }
    // For a few bytes, a loop is faster than a call of set().
    if (message.length > 32) this.#chunk.set(message, this.#bytes)
    else for (let index = 0; index < message.length; index++) this.#chunk[this.#bytes + index] = message[index]!
    this.#bytes += message.length
  }

  /** Reserves a place for about `expected` bytes; the returned function fills it. */
  place(expected: number): (message: Uint8Array) => void {
    this.#gather()
    for (const bytes of this.#taken()) this.#wait({ bytes, expected: bytes.length })
    const place: Place = { bytes: null, expected }
    this.#wait(place)
    return (message) => {
      place.bytes = this.encoding === null ? message : recodedMessages(message, this.encoding)
      this.#advance()
    }
  }

  /** Sends the collected messages; returns a promise when the client must read some first. */
  flush(): Promise<void> | null {
    this.#write()
    if (this.#queue.length > 0) this.#advance()
    return this.full ? this.drained() : null
  }

  /** The session ends: stops waiting for a client that does not read. */
  closeSoon(): void {
    const socket = this.#socket
    if (socket.writableLength > 0) socket.destroy()
    else setTimeout(() => socket.destroy(), farewellMs).unref()
  }

  get full(): boolean {
    return this.#socket.writableLength + this.#queuedBytes > waitingBytesMax || this.#queue.length > placesMax
  }

  async drained(): Promise<void> {
    const socket = this.#socket
    if (this.#queue.length > 0) await this.settled()
    if (socket.destroyed || !socket.writable || socket.writableLength <= waitingBytesMax) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        socket.off('drain', done)
        socket.off('close', done)
        resolve()
      }
      socket.on('drain', done)
      socket.on('close', done)
    })
  }

  get isSettled(): boolean {
    return this.#queue.length === 0
  }

  /** Resolves when all reserved places are filled. */
  async settled(): Promise<void> {
    if (this.#queue.length === 0) return
    await new Promise<void>((resolve) => {
      const before = this.#settled
      this.#settled = () => {
        before?.()
        resolve()
      }
    })
  }

  /** Sends a block; resolves when its memory may be reused. */
  async block(block: Uint8Array): Promise<void> {
    this.#write()
    if (this.#queue.length > 0) await this.settled()
    this.sent += block.length
    await new Promise<void>((resolve) => {
      if (this.#socket.destroyed) resolve()
      else this.#socket.write(block, () => resolve())
    })
  }

  #write(): void {
    this.#gather()
    if (this.#gatheredBytes > 0) this.#send(this.#taken())
  }

  /** Starts a new chunk. */
  #gather(): void {
    if (this.#bytes === 0) return
    const bytes = this.#chunk.subarray(0, this.#bytes)
    // After a short response, the rest of the chunk is used for the next ones.
    this.#chunk =
      this.#bytes * 2 > this.#chunk.length ? Buffer.allocUnsafe(chunkBytes) : this.#chunk.subarray(this.#bytes)
    if (this.#chunk.length < 1024) this.#chunk = Buffer.allocUnsafe(chunkBytes)
    this.#bytes = 0
    this.#gathered.push(bytes)
    this.#gatheredBytes += bytes.length
    if (this.#gatheredBytes >= gatheredBytesMax) this.#send(this.#taken())
  }

  #taken(): Uint8Array[] {
    const taken = this.#gathered
    if (taken.length > 0) this.#gathered = []
    this.#gatheredBytes = 0
    return taken
  }

  #wait(place: Place): void {
    this.#queue.push(place)
    this.#queuedBytes += place.expected
  }

  #send(chunks: readonly Uint8Array[]): void {
    if (this.#queue.length > 0) {
      for (const bytes of chunks) this.#wait({ bytes, expected: bytes.length })
      return
    }
    const [first] = chunks
    if (first === undefined) return
    const bytes = chunks.length === 1 ? first : Buffer.concat(chunks)
    this.sent += bytes.length
    this.#socket.write(bytes)
  }

  #advance(): void {
    const empty = this.#queue.findIndex(({ bytes }) => bytes === null)
    const ready = this.#queue.splice(0, empty < 0 ? this.#queue.length : empty)
    const bytes = Buffer.concat(ready.map((place) => place.bytes as Uint8Array))
    if (bytes.length > 0) {
      this.#queuedBytes -= ready.reduce((sum, { expected }) => sum + expected, 0)
      this.sent += bytes.length
      this.#socket.write(bytes)
    }
    if (this.#queue.length > 0) return
    this.#queuedBytes = 0
    const settled = this.#settled
    this.#settled = null
    settled?.()
  }
}
