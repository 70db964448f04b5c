// Load generator for QWP and line protocol, run as a separate process: replays rows that were encoded before the clock
// starts, with new timestamps, so that it costs little itself. Prints `ready`, `sent`, and a line of JSON (SenderReport).
// Its argument is QwpSenderOptions as JSON.
//
// Frames are those of the official clients: symbols of the connection's dictionary, timestamps as differences of
// differences. The mask of WebSocket frames is 0.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ColumnSpec, qwpMessage } from '../support/qwp-messages.js'

export interface QwpSenderOptions {
  readonly protocol: 'qwp' | 'lines'
  readonly port: number
  readonly table: string
  readonly columns: number
  readonly frames: number
  readonly frameRows: number
  /** Frames that are sent before the first of them is acknowledged; of lines, their copies. */
  readonly inFlight: number
}

export interface SenderReport {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly bytes: number
  /** From sending a frame until it is acknowledged, sorted. */
  readonly waitsMs: readonly number[]
}

const firstMicros = 1_704_067_200_000_000
const symbolCount = 100
const stampDigits = 19

const options: QwpSenderOptions = JSON.parse(process.argv[2] ?? '{}')

function symbolOf(row: number): number {
  return (row * 31) % symbolCount
}

function numberAt(row: number, column: number): number {
  return ((row * 7919 + column * 104_729) % 100_000) / 100
}

/** The rows of one block, and how they get the times of the block of that number. */
interface Template {
  readonly bytes: Buffer
  readonly stamp: (block: number) => void
}

function frameTemplate(index: number): Template {
  const { table, columns, frameRows } = options
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
    const first = BigInt(firstMicros + block * frameRows)
    bytes.writeBigInt64LE(first, at)
    bytes.writeBigInt64LE(first + 1n, at + 8)
  }
  return { bytes, stamp }
}

function lineTemplate(index: number): Template {
  const { table, columns, frameRows } = options
  const ends: number[] = []
  const lines: string[] = []
  let length = 0
  for (let row = index * frameRows; row < (index + 1) * frameRows; row++) {
    const fields = Array.from({ length: columns - 2 }, (_, column) => `v${column}=${numberAt(row, column)}`)
    const line = `${table},k=s${symbolOf(row)} ${fields.join(',')} ${'0'.repeat(stampDigits)}\n`
    length += line.length
    ends.push(length - 1)
    lines.push(line)
  }
  const bytes = Buffer.from(lines.join(''))
  const stamp = (block: number): void => {
    const first = firstMicros + block * frameRows
    for (let row = 0; row < frameRows; row++) bytes.write(`${first + row}000`, (ends[row] ?? 0) - stampDigits, 'latin1')
  }
  return { bytes, stamp }
}

function frameHead(bytes: number): Buffer {
  const large = bytes > 0xffff
  const head = Buffer.alloc((large ? 10 : 4) + 4)
  head.writeUInt8(0x82, 0)
  head.writeUInt8(0x80 | (large ? 127 : 126), 1)
  if (large) head.writeBigUInt64BE(BigInt(bytes), 2)
  else head.writeUInt16BE(bytes, 2)
  return head
}

/** Calls back for each acknowledgement. Fails on any other response. */
function readResponses(socket: Socket, head: Buffer, acknowledged: () => void): void {
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

async function shakeHands(socket: Socket): Promise<Buffer> {
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

async function sendFrames(socket: Socket, templates: readonly Template[]): Promise<number[]> {
  const { frames, inFlight } = options
  const head = await shakeHands(socket)
  const sentMs: number[] = []
  const waitsMs: number[] = []
  const send = (bytes: Buffer): void => {
    socket.cork()
    socket.write(frameHead(bytes.length))
    socket.write(bytes)
    socket.uncork()
    sentMs.push(performance.now())
  }
  await new Promise<void>((resolve, reject) => {
    let next = 0
    let answered = 0
    const more = (): void => {
      for (; next < frames && sentMs.length - answered < inFlight; next++) {
        const template = templates[next % templates.length]
        template?.stamp(next)
        if (template !== undefined) send(template.bytes)
      }
    }
    socket.on('error', reject)
    const strings = Array.from({ length: symbolCount }, (_, index) => `s${index}`)
    send(Buffer.from(qwpMessage([], { delta: { first: 0, strings } })))
    readResponses(socket, head, () => {
      // The first one is that of the symbols.
      if (answered > 0) waitsMs.push(performance.now() - (sentMs[answered] ?? 0))
      answered++
      if (answered === frames + 1) resolve()
      else more()
    })
  })
  return waitsMs.sort((left, right) => left - right)
}

async function sendLines(socket: Socket, templates: readonly Template[]): Promise<void> {
  for (let block = 0; block < options.frames; block++) {
    const template = templates[block % templates.length]
    template?.stamp(block)
    // A copy, because the socket may still hold the block when it is stamped again.
    if (template !== undefined && !socket.write(Buffer.from(template.bytes))) await once(socket, 'drain')
  }
}

const count = Math.min(options.inFlight, options.frames)
const make = options.protocol === 'qwp' ? frameTemplate : lineTemplate
const templates = Array.from({ length: count }, (_, index) => make(index))
const socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true })
await once(socket, 'connect')
process.stdout.write('ready\n')
const before = process.cpuUsage()
const begunMs = performance.now()
let waitsMs: readonly number[] = []
if (options.protocol === 'qwp') waitsMs = await sendFrames(socket, templates)
else await sendLines(socket, templates)
const { user, system } = process.cpuUsage(before)
process.stdout.write('sent\n')
const bytes = templates.reduce((sum, template) => sum + template.bytes.length, 0)
const report: SenderReport = {
  ...{ seconds: (performance.now() - begunMs) / 1000, cpuSeconds: (user + system) / 1e6, waitsMs },
  bytes: (bytes / count) * options.frames,
}
process.stdout.write(`${JSON.stringify(report)}\n`)
socket.end()
