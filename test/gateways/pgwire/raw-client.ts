// A PostgreSQL client for tests that sends raw messages, for transcripts and invalid input.

import { connect, type Socket } from 'node:net'

export interface ServerMessage {
  readonly type: string
  readonly body: Buffer
}

export class RawClient {
  readonly socket: Socket
  readonly messages: ServerMessage[] = []
  closed = false
  #bytes: Buffer = Buffer.alloc(0)
  #news: (() => void) | null = null

  constructor(port: number) {
    this.socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.socket.on('error', () => {})
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.socket.on('close', () => {
      this.closed = true
      this.#news?.()
    })
  }

  send(type: string, ...fields: readonly (Buffer | string)[]): void {
    this.socket.write(message(type, ...fields))
  }

  /** The next message; null when the connection is closed. */
  async next(): Promise<ServerMessage | null> {
    while (this.messages.length === 0) {
      if (this.closed) return null
      await new Promise<void>((resolve) => {
        this.#news = resolve
      })
    }
    return this.messages.shift() as ServerMessage
  }

  async until(type: string): Promise<ServerMessage | null> {
    for (;;) {
      const received = await this.next()
      if (received === null || received.type === type) return received
    }
  }

  /** Comes in with the password that tests use. */
  async logIn(): Promise<void> {
    this.socket.write(startUp())
    await this.until('R')
    this.send('p', 'quest\0')
    await this.until('Z')
  }

  #take(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    while (this.#bytes.length >= 5 && this.#bytes.length > this.#bytes.readInt32BE(1)) {
      const end = this.#bytes.readInt32BE(1) + 1
      this.messages.push({ type: this.#bytes.toString('latin1', 0, 1), body: this.#bytes.subarray(5, end) })
      this.#bytes = this.#bytes.subarray(end)
    }
    this.#news?.()
  }
}

export function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

export function message(type: string, ...fields: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(fields.map((field) => (typeof field === 'string' ? Buffer.from(field) : field)))
  return Buffer.concat([Buffer.from(type, 'latin1'), int32(body.length + 4), body])
}

export function startUp(): Buffer {
  const body = Buffer.concat([int32(196_608), Buffer.from('user\0admin\0database\0qdb\0\0')])
  return Buffer.concat([int32(body.length + 4), body])
}
