// Messages on their way to a client: small ones are gathered and leave in one write, blocks of rows go as they are.
// Whoever sends awaits what `flush` and `block` return when much waits: that is the backpressure.
//
// An answer that is not known yet keeps its place: what comes behind it waits until it is. What comes before it leaves at
// the next flush, so that work may be handed on first.

import type { Socket } from 'node:net'
import { type ClientEncoding, recodedMessages } from './client-encoding.js'

const chunkBytes = 16 * 1024
/** So much is gathered before it leaves without a flush: a client is not woken for the half of its answers. */
const gatheredBytesMax = 64 * 1024
/** Unsent bytes of a client above which its session waits. */
const waitingBytesMax = 256 * 1024
/** Time to take what a session that is ended from outside has left to say. */
const farewellMs = 1000
/** Answers that are not known yet. */
const placesMax = 4096

interface Place {
  bytes: Uint8Array | null
  /** About; of bytes that are not known yet. */
  readonly expected: number
}

export class Outbound {
  /** Bytes that went to the socket. */
  sent = 0
  /** Of the client's texts; null: UTF-8. Rows come in it. */
  encoding: ClientEncoding | null = null
  readonly #socket: Socket
  #chunk: Buffer = Buffer.allocUnsafe(chunkBytes)
  #bytes = 0
  /** Full chunks that leave before it. */
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  /** Behind an answer that is not known: what waits with it, in order. */
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
    // A call for a few bytes takes longer than the bytes.
    if (message.length > 32) this.#chunk.set(message, this.#bytes)
    else for (let index = 0; index < message.length; index++) this.#chunk[this.#bytes + index] = message[index]!
    this.#bytes += message.length
  }

  /** Keeps a place for about so many bytes; the function that is answered fills it. */
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

  /** Sends what was put; a promise when the client has to take some first. */
  flush(): Promise<void> | null {
    this.#write()
    if (this.#queue.length > 0) this.#advance()
    return this.full ? this.drained() : null
  }

  /** The session ends: a client that takes nothing is not waited for. */
  hurry(): void {
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

  /** Resolves when no place is empty. */
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

  /** Sends a block; resolves when its memory may be used again. */
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

  /** Begins a new chunk. */
  #gather(): void {
    if (this.#bytes === 0) return
    const bytes = this.#chunk.subarray(0, this.#bytes)
    // A short answer leaves most of the chunk for the next ones.
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
