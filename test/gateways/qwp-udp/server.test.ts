// Goal: the receiver of QWP datagrams (columnar protocol over UDP) stores the rows of complete messages. Truncated
// datagrams, garbage, messages that are valid only within a connection, and too many datagrams are counted and dropped,
// and do not affect other datagrams. The receiver runs over a real engine.

import { createSocket, type Socket } from 'node:dgram'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../../engine/engine.js'
import { openQwpUdpGateway, type QwpUdpGateway, type QwpUdpOptions } from '../../../gateways/qwp-udp/server.js'
import { context, until } from '../../support/gateway.js'
import { type ColumnSpec, type MessageSpec, qwpMessage } from '../../support/qwp-messages.js'
import { createRandom } from '../../support/random.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

let directory: string
let engine: Engine
let around: ReturnType<typeof context>
let gateway: QwpUdpGateway | null = null
let sender: Socket

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-qwp-udp-'))
  engine = await openTestEngine(directory)
})

afterAll(async () => {
  await engine.close()
  await rm(directory, { recursive: true })
})

afterEach(async () => {
  sender.close()
  await gateway?.close()
  gateway = null
})

const defaults: QwpUdpOptions = {
  ...{ group: null, receiveBufferBytes: 4 * 1024 * 1024, datagramBytesMax: 65_536, waitingMax: 10_000 },
  ...{ waitingBytesMax: 16 * 1024 * 1024, uncommittedMax: 100_000, commitMs: 10, closed: null },
}

async function open(changes: Partial<QwpUdpOptions> = {}, host = '127.0.0.1') {
  around = context()
  const services = { ...around, engine }
  gateway = await openQwpUdpGateway({ host, port: 0 }, { ...defaults, ...changes }, services)
  sender = createSocket('udp4')
  const { port } = gateway.address
  const send = (bytes: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) =>
      sender.send(bytes, port, '127.0.0.1', (error) => (error ? reject(error) : resolve())),
    )
  return { send, counts: around.counters.qwp.udp }
}

const times: ColumnSpec = { name: '', type: 'TIMESTAMP', values: [1_700_000_000_000_000n] }
const rowMessage = (table: string, value: bigint, spec: MessageSpec = {}): Uint8Array =>
  qwpMessage([{ name: table, columns: [{ name: 'v', type: 'LONG', values: [value] }, times] }], spec)
const seen = ({ stored, malformed, rejected, dropped, refused }: typeof around.counters.qwp.udp): number =>
  stored + malformed + rejected + dropped + refused

describe('datagrams', () => {
  test('of whole messages are stored, with symbols of their own', async () => {
    const { send, counts } = await open()
    const columns: ColumnSpec[] = [
      { name: 'k', type: 'SYMBOL', values: ['a', null] },
      { name: 'd', type: 'DOUBLE', values: [1.5, 2.5] },
      { name: '', type: 'TIMESTAMP', values: [1n, 2n] },
    ]
    await send(qwpMessage([{ name: 'whole', columns }], { gorilla: true }))
    await send(rowMessage('whole2', 5n))
    await until(() => counts.stored === 2)
    expect(await rowsFrom(engine, 'select k, d from whole')).toEqual([
      ['a', 1.5],
      [null, 2.5],
    ])
    expect(await rowsFrom(engine, 'select v from whole2')).toEqual([[5n]])
    const [connection] = around.registry.connections()
    expect(connection).toMatchObject({ protocol: 'udp', rowsReceived: 3, rowsCommitted: 3, rowsRejected: 0 })
  })

  test('that are cut anywhere are counted, and those around them stored', async () => {
    const { send, counts } = await open()
    const whole = rowMessage('cut', 1n)
    for (let end = 0; end < whole.length; end++) {
      await send(whole.subarray(0, end))
      if (end % 10 === 0) await send(rowMessage('cut', 2n))
    }
    const good = Math.ceil(whole.length / 10)
    await until(() => counts.stored === good)
    await until(() => counts.malformed === whole.length)
    expect(await rowsFrom(engine, 'select count() from cut where v = 2')).toEqual([[BigInt(good)]])
    expect(counts.rejected).toBe(0)
  })

  test('with a header that fits and a body that does not are rejected alone', async () => {
    const { send, counts } = await open({ commitMs: 100 })
    const whole = Uint8Array.from(rowMessage('bodies', 1n))
    for (let place = 12; place < whole.length; place++) {
      const broken = Uint8Array.from(whole)
      broken[place] = 0xff
      await send(broken)
      await send(rowMessage('kept', 3n))
    }
    const sent = whole.length - 12
    await until(() => seen(counts) === 2 * sent)
    expect(await rowsFrom(engine, 'select count() from kept')).toEqual([[BigInt(sent)]])
    expect(counts.rejected).toBeGreaterThan(0)
  })

  test('that need a connection are malformed', async () => {
    const { send, counts } = await open()
    await send(rowMessage('alone', 1n, { delta: { first: 0, strings: ['a'] } }))
    await send(rowMessage('alone', 1n, { version: 2 }))
    await until(() => counts.malformed === 2)
  })

  test('that are longer than the buffer are malformed', async () => {
    const { send, counts } = await open({ datagramBytesMax: 40 })
    await send(rowMessage('long', 1n))
    await until(() => counts.malformed === 1)
  })

  test('with a value that does not fit lose that row, which sys.rejects lists', async () => {
    const { send, counts } = await open()
    await rowsFrom(engine, 'create table narrow (v byte, ts timestamp) timestamp(ts) partition by day')
    await send(rowMessage('narrow', 1n))
    await send(rowMessage('narrow', 1000n))
    await until(() => counts.stored === 2)
    expect(await rowsFrom(engine, 'select v from narrow')).toEqual([[1]])
    expect(around.counters.rowsRejected).toBe(1)
    const rejects = await rowsFrom(engine, "select reason from sys.rejects where table_name = 'narrow'")
    expect(rejects).toEqual([[expect.stringContaining('out of range')]])
  })

  test('are dropped with a reason while the server is read-only, and taken afterwards', async () => {
    const { send, counts } = await open({ closed: 'rows are not accepted [setting=security.readonly]' })
    await send(rowMessage('readonly', 1n))
    await until(() => counts.refused === 1)
    expect(around.logged.join('\n')).toContain('rows are not accepted [setting=security.readonly]')
    gateway?.reconfigure(defaults)
    await send(rowMessage('readonly', 2n))
    await until(() => counts.stored === 1)
    expect(await rowsFrom(engine, 'select v from readonly')).toEqual([[2n]])
  })
})

test.each([1, 2])('garbage of any length harms nothing [seed=%i]', async (seed) => {
  const { send, counts } = await open()
  const random = createRandom(seed)
  const whole = rowMessage('garbage', 1n)
  for (let round = 0; round < 300; round++) {
    await send(random.fill(new Uint8Array(random.below(2000))))
    const changed = Uint8Array.from(whole)
    for (let change = 0; change <= random.below(3); change++) changed[random.below(changed.length)] = random.below(256)
    await send(changed)
  }
  await send(rowMessage('after_garbage', 1n))
  await until(() => seen(counts) === 601)
  expect(await rowsFrom(engine, 'select count() from after_garbage')).not.toEqual([[0n]])
})

test('a flood is stored or counted as dropped, and other work goes on', async () => {
  const { send, counts } = await open({ waitingMax: 200, waitingBytesMax: 64 * 1024 })
  const started = performance.now()
  let sent = 0
  while (performance.now() - started < 1000) {
    await Promise.all(Array.from({ length: 100 }, () => send(rowMessage('flood', 1n))))
    sent += 100
    if (sent % 1000 === 0) expect(await rowsFrom(engine, 'select 1')).toEqual([[1]])
  }
  // The system drops those for which its buffer has no room.
  await until(() => seen(counts) === counts.stored + counts.dropped && counts.stored > 0)
  await gateway?.close()
  gateway = null
  expect(await rowsFrom(engine, 'select count() from flood')).toEqual([[BigInt(counts.stored)]])
  expect(counts.stored + counts.dropped).toBeLessThanOrEqual(sent)
})

test('a multicast receiver joins its group', async () => {
  const { send, counts } = await open({ group: '224.1.1.1' }, '0.0.0.0')
  await send(rowMessage('unicast_too', 1n))
  await until(() => counts.stored === 1)
})

test('an address that is taken is an error with the address', async () => {
  await open()
  const on = { host: '127.0.0.1', port: gateway?.address.port ?? 0 }
  await expect(openQwpUdpGateway(on, defaults, { ...around, engine })).rejects.toThrow(
    `cannot receive datagrams [address=127.0.0.1:${on.port}]`,
  )
})
