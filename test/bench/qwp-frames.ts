// Builds frames of QWP (columnar protocol over WebSocket) for load generators, in the form that the official clients
// send: symbols refer to the dictionary of the connection, and timestamps are stored as changes of the difference
// between neighbours. A frame is encoded and masked once. Before each repetition only its first two timestamps are
// replaced, on which the others depend, so that sending costs little. Also opens the WebSocket and reads the
// acknowledgements.

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
    applyMask(bytes, at, at + 16)
  }
  return { bytes: masked(bytes), stamp }
}

/** Of all frames. The receiver cannot know that it stays the same. */
const mask = [0x37, 0xfa, 0x21, 0x3d] as const

export function masked(bytes: Buffer): Buffer {
  applyMask(bytes, 0, bytes.length)
  return bytes
}

function applyMask(bytes: Buffer, from: number, to: number): void {
  for (let at = from; at < to; at++) bytes[at] = (bytes[at] ?? 0) ^ (mask[at & 3] ?? 0)
}

/** The message that comes before all frames: their symbols, masked. */
export function symbolMessage(): Buffer {
  const strings = Array.from({ length: symbolCount }, (_, index) => `s${index}`)
  return masked(Buffer.from(qwpMessage([], { delta: { first: 0, strings } })))
}

export function frameHead(bytes: number): Buffer {
  const large = bytes > 0xffff
  const short = bytes < 126
  const head = Buffer.alloc((large ? 10 : short ? 2 : 4) + 4)
  head.writeUInt8(0x82, 0)
  head.writeUInt8(0x80 | (large ? 127 : short ? bytes : 126), 1)
  if (large) head.writeBigUInt64BE(BigInt(bytes), 2)
  else if (!short) head.writeUInt16BE(bytes, 2)
  head.set(mask, head.length - 4)
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

/** Asks for an endpoint. Returns what came behind the response. */
export async function shakeHands(socket: Socket, path = '/write/v4'): Promise<Buffer> {
  const lines = [
    `GET ${path} HTTP/1.1`,
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
