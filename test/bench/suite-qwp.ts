// Benchmark of QWP (columnar protocol over WebSocket): rows in, as messages that were encoded before the clock starts,
// and rows out, beside the same rows by line protocol over TCP and as an Arrow stream of /exp. Reports rows per second
// and the server's processor time per row. The client counts bytes and does not decode them, so it is no bottleneck.

import { once } from 'node:events'
import { connect } from 'node:net'
import { WebSocket } from 'ws'
import { type ColumnSpec, queryRequest, qwpMessage } from '../support/qwp-messages.js'
import type { Peer } from './peers.js'
import { queryRows, usageOf } from './processes.js'

const frameRows = 1000
/** Frames that are sent before the first of them is acknowledged. */
const framesInFlight = 64
const firstMicros = 1_704_067_200_000_000

export async function qwp(peer: Peer, rows: number, print: (line: string) => void): Promise<void> {
  for (const columns of [5, 20]) {
    const frames = Math.max(1, Math.floor(rows / frameRows))
    print(
      await measured(peer, `in, QWP, ${columns} columns`, frames * frameRows, () => sendFrames(peer, columns, frames)),
    )
    print(
      await measured(peer, `in, lines, ${columns} columns`, frames * frameRows, () => sendLines(peer, columns, frames)),
    )
  }
  const table = 'q20'
  const [[stored] = []] = await queryRows(peer.server.httpPort, `select count() from ${table}`)
  const count = Number(stored)
  print(await measured(peer, 'out, QWP', count, () => readBatches(peer, `select * from ${table}`)))
  print(await measured(peer, 'out, /exp as Arrow', count, () => readArrow(peer, `select * from ${table}`)))
}

async function measured(peer: Peer, label: string, rows: number, work: () => Promise<void>): Promise<string> {
  const before = usageOf(peer.server.pid)
  const begunMs = performance.now()
  await work()
  const seconds = (performance.now() - begunMs) / 1000
  const micros = ((usageOf(peer.server.pid).cpuSeconds - before.cpuSeconds) / rows) * 1e6
  return `${label.padEnd(24)} ${Math.round(rows / seconds)} rows/s, ${micros.toFixed(2)} us of processor time a row`
}

function frameOf(columns: number, index: number): Uint8Array {
  const row = (position: number): number => index * frameRows + position
  const values = Array.from({ length: frameRows }, (_, position) => position)
  const numbers: ColumnSpec[] = Array.from({ length: columns - 1 }, (_, column) => ({
    ...{ name: `v${column}`, type: 'DOUBLE' as const },
    values: values.map((position) => row(position) * 0.5 + column),
  }))
  const symbol: ColumnSpec = { name: 'k', type: 'SYMBOL', values: values.map((position) => `k${row(position) % 100}`) }
  const times = values.map((position) => BigInt(firstMicros + row(position)))
  return qwpMessage([
    { name: `q${columns}`, columns: [symbol, ...numbers, { name: '', type: 'TIMESTAMP', values: times }] },
  ])
}

async function sendFrames(peer: Peer, columns: number, count: number): Promise<void> {
  const frames = Array.from({ length: count }, (_, index) => frameOf(columns, index))
  const client = new WebSocket(`ws://127.0.0.1:${peer.server.httpPort}/write/v4`, { perMessageDeflate: false })
  await once(client, 'open')
  let sent = 0
  let answered = 0
  await new Promise<void>((resolve, reject) => {
    const send = (): void => {
      while (sent < count && sent - answered < framesInFlight) client.send(frames[sent++] as Uint8Array)
    }
    client.on('message', (data: Buffer) => {
      if (data[0] !== 0) return reject(new Error(`a frame was refused [status=${data[0]}]`))
      answered++
      if (answered === count) resolve()
      else send()
    })
    client.on('close', () => reject(new Error('the server closed the connection')))
    send()
  })
  client.removeAllListeners('close')
  client.close()
}

async function sendLines(peer: Peer, columns: number, frames: number): Promise<void> {
  const socket = connect(peer.server.linePort, '127.0.0.1')
  await once(socket, 'connect')
  for (let frame = 0; frame < frames; frame++) {
    let lines = ''
    for (let row = frame * frameRows; row < (frame + 1) * frameRows; row++) {
      const fields = Array.from({ length: columns - 1 }, (_, column) => `v${column}=${row * 0.5 + column}`)
      lines += `l${columns},k=k${row % 100} ${fields.join(',')} ${firstMicros + row}000\n`
    }
    if (!socket.write(lines)) await once(socket, 'drain')
  }
  socket.end()
  const wanted = frames * frameRows
  for (;;) {
    const [[found] = []] = await queryRows(peer.server.httpPort, `select count() from l${columns}`).catch(() => [[0]])
    if (Number(found) >= wanted) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function readBatches(peer: Peer, sql: string): Promise<void> {
  const client = new WebSocket(`ws://127.0.0.1:${peer.server.httpPort}/read/v1`, { perMessageDeflate: false })
  await once(client, 'open')
  const ended = new Promise<void>((resolve, reject) => {
    client.on('message', (data: Buffer) => {
      if (data[12] === 0x12) resolve()
      else if (data[12] === 0x13) reject(new Error(data.toString('utf8', 24)))
    })
    client.on('close', () => reject(new Error('the server closed the connection')))
  })
  client.send(queryRequest(1n, sql))
  await ended
  client.removeAllListeners('close')
  client.close()
}

async function readArrow(peer: Peer, sql: string): Promise<void> {
  const url = `http://127.0.0.1:${peer.server.httpPort}/exp?fmt=arrow&query=${encodeURIComponent(sql)}`
  const response = await fetch(url)
  if (!response.ok || response.body === null) throw new Error(await response.text())
  let bytes = 0
  for await (const chunk of response.body) bytes += chunk.length
  if (bytes === 0) throw new Error('there is no result')
}
