// Goal: a client of QWP queries (columnar protocol over WebSocket) gets the rows that other clients get, of every type
// and for every order of messages that the protocol allows. Credit, cancellation, deadlines and disconnects stop its
// statements; an invalid message gets an error with its status and does not affect other clients. The test decodes the
// bytes as clients do.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { allRights, readRights } from '../../../engine/base/rights.js'
import type { Engine } from '../../../engine/engine.js'
import type { HttpOptions } from '../../../gateways/http/context.js'
import { type TestGateway, testHttp, until } from '../../support/gateway.js'
import { cancelRequest, creditRequest, type QuerySpec, queryRequest } from '../../support/qwp-messages.js'
import { ResultReader, type ServerMessage } from '../../support/qwp-results.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

let directory: string
let engine: Engine
let gateway: TestGateway
const clients: WebSocket[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-qwp-read-'))
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

async function open(changes: Partial<HttpOptions> = {}, access: Parameters<typeof testHttp>[1] = {}): Promise<void> {
  gateway = await testHttp(changes, { ...access, real: engine })
}

async function connect(headers: Record<string, string> = {}) {
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/read/v1`, { headers, perMessageDeflate: false })
  clients.push(client)
  const reader = new ResultReader()
  const raw: Buffer[] = []
  const messages: ServerMessage[] = []
  let answer: Record<string, unknown> = {}
  client.on('message', (data) => {
    raw.push(data as Buffer)
    messages.push(reader.read(data as Buffer))
  })
  client.on('upgrade', (response) => {
    answer = response.headers
  })
  const closed = once(client, 'close') as Promise<[number, Buffer]>
  closed.catch(() => {})
  await once(client, 'open')
  const ended = (request: bigint, from = 0): Promise<void> =>
    until(() => messages.slice(from).some((m) => m.request === request && m.kind !== 'batch'))
  return {
    ...{ client, reader, raw, messages, closed, answer, ended },
    send: (...sent: Uint8Array[]) => {
      for (const message of sent) client.send(message)
    },
    /** What came for the statement, from its first message to its last one. */
    query: async (sql: string, options: QuerySpec = {}, id = 1n) => {
      const from = messages.length
      client.send(queryRequest(id, sql, options))
      await ended(id, from)
      return messages.slice(from)
    },
  }
}

const rowsOf = (messages: readonly ServerMessage[]): unknown[][] => messages.flatMap(({ values = [] }) => values)

/** Bytes as hexadecimal digits. */
const hex = (text: string): string => text.replace(/\s+/g, '')

describe('the bytes', () => {
  test('of the greeting', async () => {
    await open()
    const { raw } = await connect()
    await until(() => raw.length === 1)
    const [info = Buffer.alloc(0)] = raw
    expect(info.toString('hex', 0, 26)).toBe(hex('51575031 01 00 0000 1a000000 18 00 0000000000000000 0a000000'))
    expect(Number(info.readBigInt64LE(26)) / 1e6).toBeCloseTo(Date.now(), -5)
    expect(info.toString('hex', 34)).toBe('00000000')
  })

  /** The body of a result of one row, after the names of its columns. */
  const columns: [string, string, string][] = [
    ['BOOLEAN', 'true v', '01 00 01'],
    ['BYTE', 'cast(7 as byte) v', '02 00 07'],
    ['SHORT', 'cast(-2 as short) v', '03 00 feff'],
    ['INT', 'cast(3 as int) v', '04 00 03000000'],
    ['INT NULL', 'cast(null as int) v', '04 01 01'],
    ['LONG', 'cast(4 as long) v', '05 00 0400000000000000'],
    ['LONG NULL', 'cast(null as long) v', '05 01 01'],
    ['FLOAT', 'cast(1.5 as float) v', '06 00 0000c03f'],
    ['FLOAT NULL', 'cast(null as float) v', '06 01 01'],
    ['DOUBLE', '1.3 v', '07 00 cdccccccccccf43f'],
    ['DOUBLE NULL', 'cast(null as double) v', '07 01 01'],
    ['TIMESTAMP', "cast('1970-01-01T00:00:00.000005Z' as timestamp) v", '0a 00 00 0500000000000000'],
    ['TIMESTAMP NULL', 'cast(null as timestamp) v', '0a 01 01 00'],
    ['TIMESTAMP_NS', "cast('1970-01-01T00:00:00.000000006Z' as timestamp_ns) v", '10 00 00 0600000000000000'],
    ['DATE', 'cast(7 as date) v', '0b 00 00 0700000000000000'],
    ['DATE NULL', 'cast(null as date) v', '0b 01 01 00'],
    ['UUID', "cast('11223344-5566-7788-99aa-bbccddeeff00' as uuid) v", '0c 00 00ffeeddccbbaa998877665544332211'],
    ['UUID NULL', 'cast(null as uuid) v', '0c 01 01'],
    ['LONG256', "cast('0x0102' as long256) v", `0d 00 0201${'00'.repeat(30)}`],
    ['LONG256 NULL', 'cast(null as long256) v', '0d 01 01'],
    ['GEOHASH', "cast('u33' as geohash(3c)) v", '0e 00 0f 6368'],
    ['GEOHASH of 20 bits', "cast('u33d' as geohash(4c)) v", '0e 00 14 6c0c0d'],
    ['GEOHASH NULL', 'cast(null as geohash(3c)) v', '0e 01 01 0f'],
    ['VARCHAR', "cast('hé' as varchar) v", '0f 00 00000000 03000000 68c3a9'],
    ['VARCHAR empty', "cast('' as varchar) v", '0f 00 00000000 00000000'],
    ['VARCHAR NULL', 'cast(null as varchar) v', '0f 01 01 00000000'],
    ['STRING', "cast('s' as string) v", '0f 00 00000000 01000000 73'],
    ['ARRAY', 'array[[1.0],[2.0]] v', '11 00 02 02000000 01000000 000000000000f03f 0000000000000040'],
    ['ARRAY NULL', 'cast(null as double[]) v', '11 01 01'],
    ['DECIMAL64', 'cast(1.25 as decimal(10,2)) v', '13 00 02 7d00000000000000'],
    ['DECIMAL64 NULL', 'cast(null as decimal(10,2)) v', '13 01 01 02'],
    ['DECIMAL128', 'cast(-1 as decimal(30,0)) v', `14 00 00 ${'ff'.repeat(16)}`],
    ['DECIMAL256', 'cast(1 as decimal(60,1)) v', `15 00 01 0a${'00'.repeat(31)}`],
    ['DECIMAL256 NULL', 'cast(null as decimal(60,1)) v', '15 01 01 01'],
    ['CHAR', "cast('ß' as char) v", '16 00 df00'],
    ['IPv4', "cast('10.0.0.1' as ipv4) v", '18 00 0100000a'],
    ['IPv4 NULL', 'cast(null as ipv4) v', '18 01 01'],
  ]

  test.each(columns)('of a column of %s', async (_name, expression, bytes) => {
    await open()
    const { raw, query } = await connect()
    await query(`select ${expression}`, {}, 0x0102n)
    const [, batch = Buffer.alloc(0), end = Buffer.alloc(0)] = raw
    const [type = '', ...rest] = bytes.split(' ')
    const payload = hex(`11 0201000000000000 00 0000 00 01 01 0176 ${type} ${rest.join('')}`)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(payload.length / 2)
    expect(batch.toString('hex')).toBe(hex(`51575031 01 0c 0100 ${length.toString('hex')} ${payload}`))
    expect(end.toString('hex')).toBe(hex('51575031 01 00 0000 0b000000 12 0201000000000000 00 01'))
  })

  test('of symbols, whose dictionary grows with the batches and is cleared before the next result', async () => {
    await open()
    const { raw, messages, query } = await connect({ 'X-QWP-Max-Batch-Rows': '2' })
    await rowsFrom(engine, 'create table if not exists syms (k symbol)')
    await rowsFrom(engine, "insert into syms values ('a'), (null), ('b'), ('a')")
    await query('select k from syms')
    expect(raw.slice(1, 3).map((message) => message.toString('hex', 12))).toEqual([
      hex('11 0100000000000000 00 0001 0161 00 02 01 016b 09 01 02 00'),
      hex('11 0100000000000000 01 0101 0162 00 02 00 01 00'),
    ])
    await query('select k from syms')
    expect(messages.slice(4).map(({ kind }) => kind)).toEqual(['reset', 'batch', 'batch', 'end'])
    expect(raw[4]?.toString('hex')).toBe(hex('51575031 01 00 0000 02000000 17 01'))
    expect(rowsOf(messages.slice(4))).toEqual([['a'], [null], ['b'], ['a']])
  })

  test('of a statement that is done, of an error, and of a result without rows', async () => {
    await open()
    const { raw, query } = await connect()
    await query('create table if not exists done (x long)')
    await query('insert into done values (1), (2)')
    await query('select * from nowhere')
    await query('select x from done where x > 5')
    expect(raw.slice(1).map((message) => message.toString('hex', 12))).toEqual([
      hex('16 0100000000000000 09 00'),
      hex('16 0100000000000000 02 02'),
      hex(
        `13 0100000000000000 05 3200 ${Buffer.from('table does not exist [table=nowhere] [position=14]').toString('hex')}`,
      ),
      hex('11 0100000000000000 00 0000 00 00 01 0178 05 00'),
      hex('12 0100000000000000 00 00'),
    ])
  })
})

const everyType = `create table every as (select
  rnd_boolean() b, rnd_byte() y, rnd_short() s, rnd_char() c, rnd_int(-9, 9, 2) i, rnd_long(-9, 9, 2) l,
  rnd_float(2) f, rnd_double(2) d, rnd_symbol('x', 'yy', null) k, rnd_varchar(0, 9, 2) v, rnd_str(1, 9, 2) t,
  rnd_uuid4(2) u, rnd_long256() w, rnd_bin(1, 9, 2) n, rnd_ipv4() p, rnd_geohash(7) g1, rnd_geohash(15) g2,
  rnd_geohash(20) g3, rnd_geohash(60) g4, rnd_date(to_date('2020', 'yyyy'), to_date('2021', 'yyyy'), 2) e,
  rnd_timestamp(to_timestamp('2020', 'yyyy'), to_timestamp('2021', 'yyyy'), 2) m,
  cast(rnd_timestamp(to_timestamp('2020', 'yyyy'), to_timestamp('2021', 'yyyy'), 2) as timestamp_ns) q,
  cast(rnd_int(-99, 99, 2) as decimal(9, 2)) d1, cast(rnd_int(-99, 99, 2) as decimal(30, 2)) d2,
  cast(rnd_int(-99, 99, 2) as decimal(70, 2)) d3, case when x % 3 = 0 then null else array[[x, 2.0], [3.0, 4.0]] end a,
  timestamp_sequence('2024-01-01', 1000000) ts from long_sequence(1000)) timestamp(ts) partition by hour`

describe('rows', () => {
  test('of every type are those of other clients, from memory and from parts', async () => {
    await open()
    await rowsFrom(engine, everyType)
    const expected = await rowsFrom(engine, 'select * from every')
    for (const headers of [{}, { 'X-QWP-Max-Batch-Rows': '37' }, { 'X-QWP-Accept-Encoding': 'zstd;level=3, raw' }]) {
      const { query, reader } = await connect(headers)
      const messages = await query('select * from every')
      expect(rowsOf(messages)).toEqual(expected)
      expect(gateway.counters.qwp.batches).toBeGreaterThanOrEqual(messages.length - 1)
      expect(reader.names.slice(0, 3)).toEqual(['b', 'y', 's'])
      expect(messages.at(-1)).toMatchObject({ kind: 'end', rows: 1000 })
      expect(messages.filter(({ kind }) => kind === 'batch').map(({ number }) => number)).toEqual(
        Array.from({ length: messages.length - 1 }, (_, index) => index),
      )
      expect(messages.some(({ isCompressed }) => isCompressed === true)).toBe('X-QWP-Accept-Encoding' in headers)
    }
  })

  test('of a long result that several threads encode come in order', async () => {
    await open()
    await rowsFrom(
      engine,
      'create table long as (select x, x * 0.5 d, x::timestamp ts from long_sequence(150000)) timestamp(ts)',
    )
    const { query } = await connect()
    const rows = rowsOf(await query('select x, d from long'))
    expect(rows).toHaveLength(150_000)
    expect(rows.every(([x, d], index) => x === BigInt(index + 1) && d === (index + 1) / 2)).toBe(true)
  })

  test('of types without a form in QWP are text', async () => {
    await open()
    const { query } = await connect()
    const sql = "select interval('2024-01-01', '2024-01-02') v from long_sequence(2)"
    expect(rowsOf(await query(sql))[0]?.[0]).toContain('2024-01-01')
  })
})

describe('parameters', () => {
  const binds: [string, string, QuerySpec['binds'], unknown][] = [
    ['BOOLEAN', '$1 = true', [{ type: 'BOOLEAN', value: true }], true],
    ['BYTE', '$1 + 0', [{ type: 'BYTE', value: -3 }], -3],
    ['SHORT', '$1 + 0', [{ type: 'SHORT', value: -300 }], -300],
    ['INT', '$1 + 0', [{ type: 'INT', value: 7 }], 7],
    ['LONG', '$1', [{ type: 'LONG', value: 2n ** 40n }], 2n ** 40n],
    ['LONG NULL', '$1', [{ type: 'LONG', value: null }], null],
    ['FLOAT', '$1', [{ type: 'FLOAT', value: 1.5 }], 1.5],
    ['DOUBLE', '$1', [{ type: 'DOUBLE', value: 2.25 }], 2.25],
    ['VARCHAR', '$1', [{ type: 'VARCHAR', value: 'größe' }], 'größe'],
    ['VARCHAR NULL', '$1', [{ type: 'VARCHAR', value: null }], null],
    ['TIMESTAMP', '$1', [{ type: 'TIMESTAMP', value: 5n }], 5n],
    ['TIMESTAMP_NANOS', '$1', [{ type: 'TIMESTAMP_NANOS', value: 6n }], 6n],
    ['DATE', '$1', [{ type: 'DATE', value: 7n }], 7n],
    ['UUID', '$1', [{ type: 'UUID', value: 99n }], 99n],
    ['LONG256', '$1', [{ type: 'LONG256', value: 2n ** 200n }], 2n ** 200n],
    ['GEOHASH', '$1', [{ type: 'GEOHASH', value: 5n, parameter: 10 }], 5n],
    ['CHAR', '$1', [{ type: 'CHAR', value: 'z' }], 'z'],
    ['IPv4', '$1', [{ type: 'IPv4', value: 16909060 }], 16909060],
    ['DECIMAL64', '$1', [{ type: 'DECIMAL64', value: 125n, parameter: 2 }], 125n],
    ['DECIMAL128', '$1', [{ type: 'DECIMAL128', value: -5n, parameter: 1 }], -5n],
    ['DECIMAL256 NULL', '$1', [{ type: 'DECIMAL256', value: null, parameter: 1 }], null],
    [
      'DOUBLE_ARRAY',
      '$1',
      [{ type: 'DOUBLE_ARRAY', value: { shape: [2], values: [1, 2] } }],
      { shape: [2], data: Float64Array.of(1, 2) },
    ],
    [
      'LONG_ARRAY',
      '$1',
      [{ type: 'LONG_ARRAY', value: { shape: [1], values: [3] } }],
      { shape: [1], data: Float64Array.of(3) },
    ],
    ['BINARY', '$1', [{ type: 'BINARY', value: Uint8Array.of(1, 0, 255) }], Uint8Array.of(1, 0, 255)],
  ]

  test.each(binds)('of type %s', async (_name, expression, values, expected) => {
    await open()
    const { query } = await connect()
    const messages = await query(`select ${expression} v`, { binds: values ?? [] })
    expect(messages.at(-1)).toMatchObject({ kind: 'end', rows: 1 })
    expect(rowsOf(messages)).toEqual([[expected]])
  })

  test('that do not fit the statement are distinguished from statements that are wrong', async () => {
    await open()
    const { query } = await connect()
    await rowsFrom(engine, 'create table if not exists fits (x long, ts timestamp)')
    const misfit = await query('select * from fits where ts = $1', { binds: [{ type: 'VARCHAR', value: 'abc' }] })
    expect(misfit.at(-1)).toMatchObject({ kind: 'error', status: 3 })
    expect(
      (await query('select * from fits where x = $2', { binds: [{ type: 'LONG', value: 1n }] })).at(-1),
    ).toMatchObject({
      ...{ kind: 'error', status: 3 },
    })
    expect((await query('selec $1', { binds: [{ type: 'LONG', value: 1n }] })).at(-1)).toMatchObject({
      kind: 'error',
      status: 5,
    })
  })
})

describe('credit', () => {
  test('lets one batch pass, and then as many as the client grants', async () => {
    await open()
    const { messages, raw, send, ended } = await connect({ 'X-QWP-Max-Batch-Rows': '1000' })
    send(queryRequest(1n, 'select x from long_sequence(100000)', { credit: 1 }))
    await until(() => messages.length === 2)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(messages).toHaveLength(2)
    send(creditRequest(1n, (raw[1]?.length ?? 0) - 1))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(messages).toHaveLength(2)
    send(creditRequest(1n, 1))
    await until(() => messages.length === 3)
    send(creditRequest(2n, 10 ** 9))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(messages).toHaveLength(3)
    send(creditRequest(1n, 2n ** 63n - 1n), creditRequest(1n, 2n ** 63n - 1n))
    await ended(1n)
    expect(rowsOf(messages)).toHaveLength(100_000)
  })

  test('that never comes holds neither a thread nor other clients, and ends at the deadline', async () => {
    await open({ queryTimeoutMs: 300 })
    const { send, messages } = await connect()
    send(queryRequest(1n, 'select x from long_sequence(100000000)', { credit: 1 }))
    await until(() => messages.length >= 2)
    const other = await connect()
    expect(rowsOf(await other.query('select count() from long_sequence(1000)'))).toEqual([[1_000n]])
    // On a busy machine the deadline may pass before the first batch.
    await until(() => messages.at(-1)?.kind === 'error')
    expect(messages.length).toBeLessThanOrEqual(3)
    expect(messages.at(-1)).toMatchObject({ kind: 'error', status: 11, text: 'timeout, query aborted' })
  })
})

describe('a statement', () => {
  const endless = 'select x from long_sequence(100000000000)'

  test('is cancelled by its number, and the connection goes on', async () => {
    await open()
    const { send, messages, ended, query } = await connect()
    send(queryRequest(1n, endless, { credit: 1 }), cancelRequest(2n))
    await until(() => messages.length === 2)
    send(cancelRequest(1n))
    await ended(1n)
    expect(messages.at(-1)).toMatchObject({ kind: 'error', status: 10, text: 'cancelled by the client' })
    expect(rowsOf(await query('select 1'))).toEqual([[1]])
  })

  test('runs alone: another one gets an error', async () => {
    await open()
    const { send, messages, ended } = await connect()
    send(queryRequest(1n, endless, { credit: 1 }), queryRequest(2n, 'select 1'))
    await ended(2n)
    expect(messages.find(({ request }) => request === 2n)).toMatchObject({ kind: 'error', status: 11 })
    send(cancelRequest(1n))
    await ended(1n)
  })

  test('of a client that leaves ends', async () => {
    await open()
    const { client, send, messages } = await connect()
    send(queryRequest(1n, endless, { credit: 1 }))
    await until(() => messages.length === 2)
    expect(engine.metrics().queries).toBeGreaterThan(0)
    client.terminate()
    await until(() => engine.metrics().queries === 0)
    await until(() => gateway.registry.active('http') === 0)
  })

  test('ends with its own deadline, whose status only clients get that set one', async () => {
    await open()
    const { query } = await connect()
    const messages = await query('select sum(x % 7) from long_sequence(1000000000000)', { timeoutMs: 100 })
    expect(messages.at(-1)).toMatchObject({ kind: 'error', status: 14 })
  })

  test('is refused above the limit of statements', async () => {
    await open({ queriesMax: 0 })
    const { query } = await connect()
    expect(await query('select 1')).toMatchObject([{ kind: 'error', status: 11 }])
  })

  test('is ended in order by a shutdown', async () => {
    await open()
    const { send, messages, closed } = await connect()
    send(queryRequest(1n, endless, { credit: 1 }))
    await until(() => messages.length === 2)
    const closing = gateway.close()
    expect((await closed)[0]).toBe(1001)
    await closing
    expect(messages.at(-1)).toMatchObject({ kind: 'error', status: 10, text: 'the server shuts down' })
    await open()
  })
})

describe('messages that break the format', () => {
  test('of a known request get an error, and the connection goes on', async () => {
    await open()
    const { send, messages, query } = await connect()
    const whole = queryRequest(5n, 'select $1', { binds: [{ type: 'LONG', value: 1n }] })
    for (let end = 9; end < whole.length; end++) send(whole.subarray(0, end))
    send(
      Buffer.concat([whole, Buffer.of(0, 0)]),
      Buffer.concat([whole, Buffer.of(0x40)]),
      Buffer.concat([whole, Buffer.of(2)]),
    )
    const broken = whole.length - 9 + 3
    await until(() => messages.length === 1 + broken)
    for (const message of messages.slice(1)) expect(message).toMatchObject({ kind: 'error', request: 5n, status: 5 })
    expect(rowsOf(await query('select 1'))).toEqual([[1]])
  })

  test.each([
    ['nothing', ''],
    ['an unknown kind', '51575031'],
    ['no number', '1001'],
  ])('%s: the connection ends', async (_name, bytes) => {
    await open()
    const { send, messages, closed } = await connect()
    send(Buffer.from(bytes, 'hex'))
    expect((await closed)[0]).toBe(1002)
    expect(messages.at(-1)).toMatchObject({ kind: 'error', request: -1n, status: 5 })
  })

  test('text and too long ones end the connection', async () => {
    await open({ receiveBufferBytes: 64 * 1024 })
    const text = await connect()
    text.client.send('text')
    expect((await text.closed)[0]).toBe(1003)
    const long = await connect()
    long.client.send(Buffer.alloc(64 * 1024))
    expect((await long.closed)[0]).toBe(1009)
  })
})

describe('access', () => {
  const users = [
    { user: 'writer', password: 'w', rights: allRights },
    { user: 'reader', password: 'r', rights: readRights },
  ]
  const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` })

  function statusOf(headers: Record<string, string>): Promise<number> {
    const handshake = {
      ...{ Connection: 'Upgrade', Upgrade: 'websocket' },
      ...{ 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==' },
    }
    return new Promise((resolve, reject) => {
      const asked = httpRequest(`${gateway.url}/read/v1`, { headers: { ...handshake, ...headers } })
      asked.on('response', (response) => resolve(response.resume().statusCode ?? 0))
      asked.on('upgrade', (_response, socket) => {
        socket.destroy()
        resolve(101)
      })
      asked.on('error', reject)
      asked.end()
    })
  }

  test('needs credentials, and no page of another site has it', async () => {
    await open({}, { access: { configured: users, anonymous: null } })
    expect(await statusOf({})).toBe(401)
    expect(await statusOf(basic('reader:x'))).toBe(401)
    expect(await statusOf({ ...basic('reader:r'), Origin: 'http://elsewhere.example' })).toBe(403)
    expect(await statusOf({ ...basic('reader:r'), 'X-QWP-Max-Batch-Rows': 'many' })).toBe(400)
    expect(await statusOf({ ...basic('reader:r'), 'X-QWP-Max-Version': '0' })).toBe(400)
    expect(await statusOf(basic('reader:r'))).toBe(101)
  })

  test('of a reader does not let it write', async () => {
    await open({}, { access: { configured: users, anonymous: null } })
    const { query } = await connect(basic('reader:r'))
    expect(rowsOf(await query('select 1'))).toEqual([[1]])
    expect(await query('create table forbidden (x long)')).toMatchObject([{ kind: 'error', status: 8 }])
    expect([...gateway.registry.connections()].map(({ principal }) => principal)).toEqual(['reader'])
  })

  test('of a read-only server does not let anybody write', async () => {
    await open({ readOnly: true })
    const { query } = await connect()
    expect(await query('create table forbidden (x long)')).toMatchObject([{ kind: 'error', status: 8 }])
  })

  test('answers the headers of the handshake', async () => {
    await open()
    expect((await connect()).answer).not.toHaveProperty('x-qwp-content-encoding')
    const { answer } = await connect({ 'X-QWP-Accept-Encoding': 'br, zstd;level=99', 'X-QWP-Client-Id': 'test/1' })
    expect(answer).toMatchObject({ 'x-qwp-version': '1', 'x-qwp-content-encoding': 'zstd' })
    expect([...gateway.registry.connections()].map(({ application }) => application())).toContain('test/1')
    const raw = await connect({ 'X-QWP-Accept-Encoding': 'raw, zstd' })
    expect(raw.answer).not.toHaveProperty('x-qwp-content-encoding')
  })
})
