// Goal: the server for line protocol over TCP stores lines block by block, in order, and records connections and
// rejections; a bad line closes the connection or is skipped, according to the setting.

import { afterEach, expect, test } from 'vitest'
import { connectTo, lineTcpDefaults, type TestGateway, testLineTcp, until } from '../../support/gateway.js'

let gateway: TestGateway

afterEach(() => gateway.close())

/** The engine takes nothing until the answer is called. */
function fillEngine(): () => void {
  let makeRoom: () => void = () => {}
  gateway.engine.room = new Promise((resolve) => {
    makeRoom = resolve
  })
  return () => makeRoom()
}

test('lines are stored as they come, without waiting for more', async () => {
  gateway = await testLineTcp()
  const socket = await connectTo(gateway.port)
  socket.write('a v=1i\nb v=')
  await until(() => gateway.engine.stored.length === 1)
  socket.write('2i\n')
  await until(() => gateway.engine.stored.length === 2)
  expect(gateway.engine.stored).toEqual(['a v=1i', 'b v=2i'])
  const [connection] = gateway.registry.connections()
  expect(connection).toMatchObject({ protocol: 'ilp', rowsReceived: 2, rowsCommitted: 2, rowsRejected: 0 })
  socket.end()
  await until(() => gateway.registry.active('ilp') === 0)
})

test('much data arrives whole, in order, in large blocks', async () => {
  gateway = await testLineTcp()
  const socket = await connectTo(gateway.port)
  const lines = Array.from({ length: 100_000 }, (_, index) => `weather,city=Oslo temperature=${index}`)
  socket.end(`${lines.join('\n')}\n`)
  await until(() => gateway.registry.counts.ilp.closed === 1)
  expect(gateway.engine.stored).toEqual(lines)
  expect(gateway.engine.requests.every(({ blocks }) => blocks.every(({ length }) => length <= 1024 * 1024))).toBe(true)
})

test('a full engine stops reading from the socket', async () => {
  gateway = await testLineTcp()
  const makeRoom = fillEngine()
  const socket = await connectTo(gateway.port)
  const line = `m v="${'x'.repeat(1000)}"\n`
  const bytes = Buffer.from(line.repeat(50_000))
  socket.write(bytes)
  let quiet = 0
  let before = -1
  await until(() => {
    const [connection] = gateway.registry.connections()
    const now = connection?.bytesIn() ?? 0
    quiet = now === before && now > 0 ? quiet + 1 : 0
    before = now
    return quiet > 2000
  })
  expect(before).toBeLessThan(8 * 1024 * 1024)
  makeRoom()
  socket.end()
  await until(() => gateway.registry.counts.ilp.closed === 1)
  expect(gateway.engine.stored.length).toBe(50_000)
})

test('a client that ends the connection sees it close when all rows are stored', async () => {
  gateway = await testLineTcp()
  const makeRoom = fillEngine()
  const socket = await connectTo(gateway.port)
  let closed = false
  socket.on('close', () => {
    closed = true
  })
  socket.resume()
  socket.end('a v=1i\n')
  await until(() => [...gateway.registry.connections()][0]?.bytesIn() === 7)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(closed).toBe(false)
  makeRoom()
  await until(() => closed)
  expect(gateway.engine.stored).toEqual(['a v=1i'])
})

test('a bad line closes the connection; the rows before it are kept', async () => {
  gateway = await testLineTcp()
  const socket = await connectTo(gateway.port)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write('a v=1i\nb v=bad\nc v=1i\n')
  await closed
  await until(() => gateway.registry.counts.ilp.closed === 1)
  expect(gateway.engine.stored).toEqual(['a v=1i'])
  const close = gateway.registry.events().at(-1)
  expect(close).toMatchObject({ event: 'CLOSE', reason: 'Could not parse timestamp: bad' })
  expect(close?.connection).toMatchObject({ rowsCommitted: 1, rowsRejected: 1 })
})

test('or is skipped', async () => {
  gateway = await testLineTcp({ badLine: 'skip' })
  const socket = await connectTo(gateway.port)
  socket.end('a v=1i\nb v=bad\nc v=1i\n')
  await until(() => gateway.registry.counts.ilp.closed === 1)
  expect(gateway.engine.stored).toEqual(['a v=1i', 'c v=1i'])
  expect(gateway.registry.events().at(-1)?.reason).toBe(null)
})

test('a line that the end of the connection cut is not stored', async () => {
  gateway = await testLineTcp()
  const socket = await connectTo(gateway.port)
  socket.end('a v=1i\nb v=12')
  await until(() => gateway.registry.counts.ilp.closed === 1)
  expect(gateway.engine.stored).toEqual(['a v=1i'])
  expect(gateway.registry.events().at(-1)?.reason).toContain('connection closed within a line')
})

test('connections beyond the limit are turned away and recorded', async () => {
  gateway = await testLineTcp({ connectionsMax: 1 })
  const first = await connectTo(gateway.port)
  first.write('a v=1i\n')
  await until(() => gateway.engine.stored.length === 1)
  await connectTo(gateway.port)
  await until(() => gateway.registry.counts.ilp.rejected === 1)
  expect(gateway.registry.events().at(-1)).toMatchObject({ event: 'REJECT', reason: 'line.tcp.net.connection.limit' })
  first.end()
})

test('a silent sender gives way to one with rows; one whose rows wait for room does not', async () => {
  gateway = await testLineTcp({ connectionsMax: 2 })
  const silent = await connectTo(gateway.port)
  await until(() => gateway.registry.active('ilp') === 1)
  const makeRoom = fillEngine()
  const first = await connectTo(gateway.port)
  first.end('a v=1i\n')
  await until(() => [...gateway.registry.connections()].some((connection) => connection.bytesIn() === 7))
  await new Promise((resolve) => setTimeout(resolve, 50))
  const second = await connectTo(gateway.port)
  second.end('b v=1i\n')
  await until(() => silent.destroyed || silent.readableEnded)
  makeRoom()
  await until(() => gateway.registry.active('ilp') === 0)
  expect(gateway.engine.stored.toSorted()).toEqual(['a v=1i', 'b v=1i'])
  expect(gateway.registry.events().map(({ reason }) => reason)).toContainEqual(
    expect.stringContaining('evicted in favour'),
  )
})

test('where keys are wanted a sender without one is refused at once, recorded with the reason, and logged once', async () => {
  gateway = await testLineTcp({ authRequired: true })
  for (let index = 0; index < 5; index++) {
    const socket = await connectTo(gateway.port)
    socket.resume()
    socket.write('weather,city=Oslo temperature=3.5\n')
    await until(() => socket.destroyed || socket.readableEnded)
  }
  await until(() => gateway.registry.counts.ilp.rejected === 5)
  const rejected = gateway.registry.events().filter(({ event }) => event === 'REJECT')
  expect(rejected.length).toBe(5)
  expect(rejected[0]?.reason).toBe(
    'authentication failed: the client sent a row instead of a key id [setting=line.tcp.auth.required]',
  )
  expect(gateway.logged.filter((line) => line.includes('refused'))).toEqual([
    'W ilp refused: authentication failed: the client sent a row instead of a key id [setting=line.tcp.auth.required] [from=127.0.0.1]',
  ])
  expect(gateway.engine.stored).toEqual([])
})

test('a closed server takes nothing, and ends those that are there when it closes', async () => {
  gateway = await testLineTcp()
  const early = await connectTo(gateway.port)
  early.write('a v=1i\n')
  await until(() => gateway.engine.stored.length === 1)
  line().reconfigure({ ...lineTcpDefaults, closed: 'rows are not accepted [setting=security.readonly]' })
  await until(() => early.destroyed || early.readableEnded)
  const late = await connectTo(gateway.port)
  late.resume()
  late.write('a v=2i\n')
  await until(() => late.destroyed || late.readableEnded)
  expect(gateway.engine.stored).toEqual(['a v=1i'])
  expect(gateway.registry.events().at(-1)).toMatchObject({
    event: 'REJECT',
    reason: 'rows are not accepted [setting=security.readonly]',
  })
})

test('keys that are wanted from now on cut off those that showed none', async () => {
  gateway = await testLineTcp()
  const early = await connectTo(gateway.port)
  early.write('a v=1i\n')
  await until(() => gateway.engine.stored.length === 1)
  line().reconfigure({ ...lineTcpDefaults, authRequired: true })
  await until(() => early.destroyed || early.readableEnded)
})

function line(): Awaited<ReturnType<typeof testLineTcp>> {
  return gateway as Awaited<ReturnType<typeof testLineTcp>>
}
