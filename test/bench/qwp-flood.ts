// A client that sends QWP (columnar protocol over WebSocket) and never waits for an acknowledgement, run as a separate
// process. It writes frames while the socket accepts them, waits for 'drain' when it does not, and stops when the
// server closes the connections. It keeps two frames of each connection in memory and sends them in turns with new
// timestamps. Prints `ready`, and at the end a line of JSON (FloodReport). Its argument is FloodOptions as JSON.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import {
  connectionMicros,
  type FrameShape,
  frameTemplate,
  readResponses,
  shakeHands,
  symbolMessage,
  writeFrame,
} from './qwp-frames.js'

export interface FloodOptions extends FrameShape {
  readonly port: number
  readonly connections: number
}

export interface FloodReport {
  readonly seconds: number
  readonly cpuSeconds: number
  /** Frames of each connection. */
  readonly sent: readonly number[]
  readonly acknowledged: readonly number[]
  readonly frameBytes: number
  /** How long the connections waited for the socket, on average. */
  readonly heldSeconds: number
  /** What the process held for a connection, and what all of them had sent without an acknowledgement, at most. */
  readonly bufferedBytesMax: number
  readonly unacknowledgedBytesMax: number
}

interface Flow {
  sent: number
  acknowledged: number
  heldMs: number
  bufferedBytes: number
}

function unacknowledged(flows: readonly Flow[]): number {
  return flows.reduce((sum, flow) => sum + flow.sent - flow.acknowledged, 0)
}

/** Whether the socket takes more. False: it is closed. */
async function drained(socket: Socket, flow: Flow, closed: AbortSignal): Promise<boolean> {
  const begunMs = performance.now()
  await once(socket, 'drain', { signal: closed }).catch(() => {})
  flow.heldMs += performance.now() - begunMs
  return !closed.aborted
}

async function main(options: FloodOptions): Promise<FloodReport> {
  let unacknowledgedMax = 0
  const flows: Flow[] = []
  const flood = async (socket: Socket, index: number): Promise<void> => {
    const flow: Flow = { sent: 0, acknowledged: 0, heldMs: 0, bufferedBytes: 0 }
    flows.push(flow)
    const closing = new AbortController()
    socket.on('error', () => {})
    socket.on('close', () => closing.abort())
    const head = await shakeHands(socket)
    writeFrame(socket, symbolMessage())
    // The first acknowledgement is that of the symbols.
    flow.acknowledged = -1
    readResponses(socket, head, () => flow.acknowledged++)
    const templates = allTemplates[index] ?? []
    while (!closing.signal.aborted) {
      const template = templates[flow.sent % templates.length]
      if (template === undefined) return
      template.stamp(flow.sent++)
      const goesOn = writeFrame(socket, template.bytes)
      flow.bufferedBytes = Math.max(flow.bufferedBytes, socket.writableLength)
      unacknowledgedMax = Math.max(unacknowledgedMax, unacknowledged(flows))
      if (!goesOn && !(await drained(socket, flow, closing.signal))) return
      if (goesOn) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  // A socket may hold one of its frames while the other is stamped.
  const allTemplates = Array.from({ length: options.connections }, (_, index) =>
    [0, 1].map((number) => frameTemplate(options, number, index * connectionMicros)),
  )
  const sockets = Array.from({ length: options.connections }, () => connect(options.port, '127.0.0.1'))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const frameBytes = allTemplates[0]?.[0]?.bytes.length ?? 0
  process.stdout.write('ready\n')
  const before = process.cpuUsage()
  const begunMs = performance.now()
  await Promise.all(sockets.map(flood))
  const { user, system } = process.cpuUsage(before)
  return {
    ...{ seconds: (performance.now() - begunMs) / 1000, cpuSeconds: (user + system) / 1e6, frameBytes },
    sent: flows.map((flow) => flow.sent),
    acknowledged: flows.map((flow) => Math.max(0, flow.acknowledged)),
    heldSeconds: flows.reduce((sum, flow) => sum + flow.heldMs, 0) / flows.length / 1000,
    bufferedBytesMax: Math.max(...flows.map((flow) => flow.bufferedBytes)),
    unacknowledgedBytesMax: unacknowledgedMax * frameBytes,
  }
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}')))}\n`)
