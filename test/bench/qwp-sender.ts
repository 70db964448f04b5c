// Load generator for QWP (columnar protocol over WebSocket) and line protocol, run as a separate process. It encodes
// the rows before the clock starts and then sends them repeatedly with new timestamps, so that it takes little
// processor time itself. Prints `ready`, `sent`, and a line of JSON (SenderReport). Its argument is QwpSenderOptions as
// JSON.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import {
  type FrameShape,
  firstMicros,
  frameTemplate,
  numberAt,
  readResponses,
  shakeHands,
  symbolMessage,
  symbolOf,
  type Template,
  writeFrame,
} from './qwp-frames.js'

export interface QwpSenderOptions extends FrameShape {
  readonly protocol: 'qwp' | 'lines'
  readonly port: number
  readonly frames: number
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

const stampDigits = 19

const options: QwpSenderOptions = JSON.parse(process.argv[2] ?? '{}')

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

async function sendFrames(socket: Socket, templates: readonly Template[]): Promise<number[]> {
  const { frames, inFlight } = options
  const head = await shakeHands(socket)
  const sentMs: number[] = []
  const waitsMs: number[] = []
  const send = (bytes: Buffer): void => {
    writeFrame(socket, bytes)
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
    send(symbolMessage())
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
const make = (index: number): Template =>
  options.protocol === 'qwp' ? frameTemplate(options, index) : lineTemplate(index)
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
