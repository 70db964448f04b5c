// Frames of QWP in the form of the official clients, for senders that replay them: symbols of the connection's
// dictionary, timestamps as differences of differences. A frame is encoded once, and gets new times before it is sent
// again, so that it costs the sender little. The mask of WebSocket frames is 0.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type ColumnSpec, qwpMessage } from '../support/qwp-messages.js'

export interface FrameShape {
  readonly table: string
  readonly columns: number
  readonly frameRows: number
}

/** The rows of one block, and how they get the times of the block of that number. */
export interface Template {
  readonly bytes: Buffer
  readonly stamp: (block: number) => void
}

export const firstMicros = 1_704_067_200_000_000
/** Of senders with several connections: the times of each are this much behind those of the one before. */
export const connectionMicros = 1e12
const symbolCount = 100

export function symbolOf(row: number): number {
  return (row * 31) % symbolCount
}

export function numberAt(row: number, column: number): number {
  return ((row * 7919 + column * 104_729) % 100_000) / 100
}

/** Rows have a distance of a microsecond, from `firstMicros` and so many microseconds on. */
export function frameTemplate(shape: FrameShape, index: number, microsBefore = 0): Template {
  const { table, columns, frameRows } = shape
  const rows = Array.from({ length: frameRows }, (_, row) => index * frameRows + row)
  const ids = rows.map(symbolOf)
  const numbers: ColumnSpec[] = Array.from({ length: columns - 2 }, (_, column) => ({
    ...{ name: `v${column}`, type: 'DOUBLE' as const, values: rows.map((row) => numberAt(row, column)) },
  }))
  const symbol: ColumnSpec = { name: 'k', type: 'SYMBOL', values: ids.map(String), ids }
  const time: ColumnSpec = { name: '', type: 'TIMESTAMP', values: rows.map((row) => BigInt(firstMicros + row)) }
  const flags = { gorilla: true, delta: { first: symbolCount, strings: [] } }
  const bytes = Buffer.from(qwpMessage([{ name: table, columns: [symbol, ...numbers, time] }], flags))
  // Equal distances are one bit each, behind the first two times.
  const at = bytes.length - Math.ceil((frameRows - 2) / 8) - 16
  const stamp = (block: number): void => {
    const first = BigInt(firstMicros + microsBefore + block * frameRows)
    bytes.writeBigInt64LE(first, at)
    bytes.writeBigInt64LE(first + 1n, at + 8)
  }
  return { bytes, stamp }
}

/** The message that comes before all frames: their symbols. */
export function symbolMessage(): Buffer {
  const strings = Array.from({ length: symbolCount }, (_, index) => `s${index}`)
  return Buffer.from(qwpMessage([], { delta: { first: 0, strings } }))
}

export function frameHead(bytes: number): Buffer {
  const large = bytes > 0xffff
  const head = Buffer.alloc((large ? 10 : 4) + 4)
  head.writeUInt8(0x82, 0)
  head.writeUInt8(0x80 | (large ? 127 : 126), 1)
  if (large) head.writeBigUInt64BE(BigInt(bytes), 2)
  else head.writeUInt16BE(bytes, 2)
  return head
}

/** Writes a frame; false: the socket asks to wait for 'drain'. */
export function writeFrame(socket: Socket, bytes: Buffer): boolean {
  socket.cork()
  socket.write(frameHead(bytes.length))
  const goesOn = socket.write(bytes)
  socket.uncork()
  return goesOn
}

/** Asks for the endpoint that takes rows. Returns what came behind the response. */
export async function shakeHands(socket: Socket): Promise<Buffer> {
  const lines = [
    'GET /write/v4 HTTP/1.1',
    ...['Host: 127.0.0.1', 'Connection: Upgrade', 'Upgrade: websocket'],
    ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='],
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  let answer = Buffer.alloc(0)
  while (!answer.includes('\r\n\r\n')) answer = Buffer.concat([answer, ((await once(socket, 'data')) as [Buffer])[0]])
  if (!answer.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(answer.toString())
  return answer.subarray(answer.indexOf('\r\n\r\n') + 4)
}

/** Calls back for each acknowledgement. Throws on any other response. */
export function readResponses(socket: Socket, head: Buffer, acknowledged: () => void): void {
  let rest = head
  const take = (): void => {
    for (;;) {
      const short = rest[1] ?? 0
      const start = short === 126 ? 4 : 2
      if (rest.length < start) return
      const end = start + (short === 126 ? rest.readUInt16BE(2) : short)
      if (rest.length < end) return
      const status = rest[start]
      if (rest[0] === 0x82 && status !== 0)
        throw new Error(`a frame was refused: ${rest.toString('latin1', start + 11, end)}`)
      if (rest[0] === 0x88) throw new Error('the server closed the connection')
      rest = rest.subarray(end)
      if (status === 0) acknowledged()
    }
  }
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    take()
  })
  take()
}
