// A minimal client of the PostgreSQL wire protocol for load generators: signs in over a bare socket and only counts the
// messages of the server.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Walks over the messages of the server and counts them by type. */
export class Answers {
  /** Messages by the code of their type. */
  readonly counts = new Float64Array(256)
  bytes = 0
  failure: string | null = null
  readonly #socket: Socket
  /** Bytes of the message under way that have not come yet. */
  #pending = 0
  #head: Buffer = Buffer.alloc(0)
  #news: (() => void) | null = null

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('close', () => {
      this.failure ??= 'the server closed the connection'
      this.#news?.()
    })
  }

  count(type: string): number {
    return this.counts[type.charCodeAt(0)]!
  }

  /** Until so many messages of the type have come. */
  async until(type: string, count: number): Promise<void> {
    while (this.count(type) < count) {
      if (this.failure !== null) throw new Error(this.failure)
      await new Promise<void>((resolve) => {
        this.#news = resolve
      })
    }
    if (this.failure !== null) throw new Error(this.failure)
  }

  #take(chunk: Buffer): void {
    this.bytes += chunk.length
    let bytes = chunk
    if (this.#head.length > 0) {
      bytes = Buffer.concat([this.#head, chunk])
      this.#head = Buffer.alloc(0)
    }
    let at = Math.min(this.#pending, bytes.length)
    this.#pending -= at
    for (; bytes.length - at >= 5; ) {
      const type = bytes[at]!
      const end = at + 1 + bytes.readUInt32BE(at + 1)
      this.counts[type] = this.counts[type]! + 1
      if (type === 69) this.failure ??= bytes.toString('latin1', at + 5, Math.min(end, bytes.length))
      // COPY: the server is ready for data; a password is asked for.
      if (type === 82 && end <= bytes.length && bytes.readInt32BE(at + 5) === 3) this.#socket.write(password)
      this.#pending = Math.max(0, end - bytes.length)
      at = Math.min(end, bytes.length)
    }
    if (at < bytes.length) this.#head = bytes.subarray(at)
    this.#news?.()
    this.#news = null
  }
}

const password = Buffer.from('p\0\0\0\x0aquest\0', 'latin1')

function startUp(): Buffer {
  const parameters = Buffer.from('user\0admin\0database\0qdb\0\0')
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + parameters.length, 0)
  head.writeInt32BE(196_608, 4)
  return Buffer.concat([head, parameters])
}

export interface PgClient {
  readonly socket: Socket
  readonly answers: Answers
}

/** Connects and waits until the server is ready for a query. */
export async function signIn(port: number): Promise<PgClient> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const answers = new Answers(socket)
  socket.write(startUp())
  await answers.until('Z', 1)
  return { socket, answers }
}
