// Goal: options of QWP queries (columnar protocol over WebSocket). Results are compressed with the zstd level that the
// server's setting forces, or else with the level that the client has requested; a change of the setting applies to the
// next query. A request that exceeds a limit of the protocol gets the status for limits. A query whose client grants no
// credit (permission to send more bytes) ends at its deadline, also if timers fire early. Method: the bytes of
// responses are compared.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { type Clock, systemClock } from '../../../engine/base/clock.js'
import type { Engine } from '../../../engine/engine.js'
import { testHttp, until } from '../../support/gateway.js'
import { queryRequest } from '../../support/qwp-messages.js'
import { openTestEngine } from '../../support/test-engine.js'

let directory: string
let engine: Engine
let gateway: Awaited<ReturnType<typeof testHttp>>
const clients: WebSocket[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-qwp-options-'))
  engine = await openTestEngine(directory)
})

afterAll(async () => {
  await engine.close()
  await rm(directory, { recursive: true })
})

afterEach(async () => {
  for (const client of clients.splice(0)) client.terminate()
  await gateway.close()
})

async function connect(headers: Record<string, string> = {}) {
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/read/v1`, { headers, perMessageDeflate: false })
  clients.push(client)
  const messages: Buffer[] = []
  client.on('message', (data) => messages.push(data as Buffer))
  await once(client, 'open')
  await until(() => messages.length === 1)
  return async (request: Uint8Array): Promise<Buffer[]> => {
    messages.length = 0
    client.send(request)
    await until(() => messages.some((message) => message[12] !== 0x11))
    return [...messages]
  }
}

/** The flags of the first batch, and its bytes. */
async function firstBatch(ask: Awaited<ReturnType<typeof connect>>): Promise<{ flags: number; bytes: string }> {
  const sql = 'select x, x * 3 y, x % 7 z from long_sequence(5000)'
  const [batch = Buffer.alloc(12)] = await ask(queryRequest(1n, sql))
  return { flags: batch.readUInt8(5), bytes: batch.toString('hex') }
}

test('a forced level replaces that of the client, and a change applies to the next statement', async () => {
  gateway = await testHttp({}, { real: engine })
  const fast = await connect({ 'X-QWP-Accept-Encoding': 'zstd;level=1' })
  const [one, nine] = [
    await firstBatch(fast),
    await firstBatch(await connect({ 'X-QWP-Accept-Encoding': 'zstd;level=9' })),
  ]
  expect([one.flags, nine.flags]).toEqual([0x1c, 0x1c])
  expect(one.bytes).not.toBe(nine.bytes)
  gateway.reconfigure({ qwpZstdLevel: 9 })
  expect(await firstBatch(fast)).toEqual(nine)
  gateway.reconfigure({})
  expect(await firstBatch(fast)).toEqual(one)
})

test('a forced level compresses nothing for clients that do not accept it', async () => {
  gateway = await testHttp({ qwpZstdLevel: 9 }, { real: engine })
  for (const headers of [{}, { 'X-QWP-Accept-Encoding': 'raw, zstd' }]) {
    expect((await firstBatch(await connect(headers as Record<string, string>))).flags).toBe(0x0c)
  }
})

test('a statement or parameters above their limit have the status of limits, and the connection goes on', async () => {
  gateway = await testHttp({ receiveBufferBytes: 2 * 1024 * 1024 }, { real: engine })
  const ask = await connect()
  const [long = Buffer.alloc(0)] = await ask(queryRequest(0x0102n, ' '.repeat(1024 * 1024 + 1)))
  const text = Buffer.from('the statement is too long [bytes=1048577, limit=1048576]').toString('hex')
  const payload = `130201000000000000${'0b'}3800${text}`
  expect(long.toString('hex')).toBe(`51575031 01 00 0000 44000000 ${payload}`.replaceAll(' ', ''))
  const binds = Array.from({ length: 1025 }, () => ({ type: 'BYTE' as const, value: 1n }))
  const [many = Buffer.alloc(0)] = await ask(queryRequest(2n, 'select 1', { binds }))
  expect(many.toString('latin1', 21)).toBe('\x0b\x31\x00too many parameters [parameters=1025, limit=1024]')
  const [batch] = await ask(queryRequest(3n, 'select 1'))
  expect(batch?.readUInt8(12)).toBe(0x11)
})

test('a query without credit ends at its deadline, also when timers are early', async () => {
  const clock: Clock = {
    nowMicros: () => systemClock.nowMicros(),
    monotonicMs: () => systemClock.monotonicMs() * 0.8,
  }
  gateway = await testHttp({ queryTimeoutMs: 300 }, { real: engine }, clock)
  const ask = await connect()
  const answers = await ask(queryRequest(1n, 'select x from long_sequence(100000000)', { credit: 1 }))
  expect(answers.at(-1)?.toString('latin1')).toContain('timeout, query aborted')
})
