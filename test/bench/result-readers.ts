// Readers of results that do nothing but count bytes, so that a benchmark measures the server: one of QWP (columnar
// protocol over WebSocket), one of the PostgreSQL wire protocol. Neither looks at a row.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { queryRequest } from '../support/qwp-messages.js'
import { signIn } from './pg-client.js'
import { execution, preparation } from './pg-messages.js'
import { frameHead, masked, shakeHands } from './qwp-frames.js'

/** Until the kind of a message: the longest header of a frame, and 12 bytes of the message. */
const kindBytes = 13
const kinds = { end: 0x12, error: 0x13 } as const
const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1')

/** Bytes of the result's frames. */
export async function readBatches(port: number, sql: string): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const rest = await shakeHands(socket, '/read/v1')
  const request = Buffer.from(queryRequest(1n, sql))
  const frames = new FrameCounter()
  const ended = untilEnd(socket, (chunk) => frames.take(chunk))
  frames.take(rest)
  socket.write(Buffer.concat([frameHead(request.length), masked(request)]))
  await ended
  socket.destroy()
  return frames.bytes
}

/** Walks from frame to frame of a server, and looks at the kind of each message. */
class FrameCounter {
  bytes = 0
  #head: Buffer = Buffer.alloc(0)
  /** Bytes of the payload that have not come yet. */
  #left = 0

  /** True: the last message of the result has begun. Throws if it is an error. */
  take(chunk: Buffer): boolean {
    this.bytes += chunk.length
    let at = Math.min(this.#left, chunk.length)
    this.#left -= at
    while (at < chunk.length) {
      const head = this.#head.length === 0 ? chunk.subarray(at) : Buffer.concat([this.#head, chunk.subarray(at)])
      const short = (head[1] ?? 0) & 0x7f
      const start = short === 127 ? 10 : short === 126 ? 4 : 2
      const length =
        head.length < start
          ? 0
          : short === 127
            ? Number(head.readBigUInt64BE(2))
            : short === 126
              ? head.readUInt16BE(2)
              : short
      const wanted = start + Math.min(length, kindBytes)
      if (head.length < start || head.length < wanted) {
        this.#head = Buffer.from(head)
        return false
      }
      const kind = length < kindBytes ? 0 : head[start + kindBytes - 1]
      if (kind === kinds.error) throw new Error(head.toString('utf8', start))
      if (kind === kinds.end) return true
      const from = at - this.#head.length
      this.#head = Buffer.alloc(0)
      at = Math.min(chunk.length, from + start + length)
      this.#left = from + start + length - at
    }
    return false
  }
}

/** Bytes of the result's messages. */
export async function readWire(port: number, sql: string): Promise<number> {
  const { socket, answers } = await signIn(port)
  socket.write(preparation(sql))
  await answers.until('Z', 2)
  socket.removeAllListeners('data')
  let bytes = 0
  let tail: Buffer = Buffer.alloc(0)
  const ended = untilEnd(socket, (chunk) => {
    bytes += chunk.length
    const { length } = readyForQuery
    tail = chunk.length >= length ? chunk.subarray(-length) : Buffer.concat([tail, chunk]).subarray(-length)
    return tail.equals(readyForQuery)
  })
  socket.write(execution([]))
  await ended
  socket.destroy()
  return bytes
}

async function untilEnd(socket: Socket, isEnd: (chunk: Buffer) => boolean): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed the connection')))
    socket.on('data', (chunk: Buffer) => {
      try {
        if (isEnd(chunk)) resolve()
      } catch (error) {
        reject(error)
      }
    })
  })
}
