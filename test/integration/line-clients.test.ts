// Goal: the official client library of the line protocol (npm) writes each of its types over HTTP and TCP in versions 1
// and 2 of the protocol; queries return the same values, also after a clean restart and after a kill; errors reach the
// client.

import { Sender } from '@questdb/nodejs-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m'])

beforeAll(() => server.start())
afterAll(() => server.remove())

interface Way {
  readonly name: string
  readonly version: number
  readonly configuration: () => string
}

const http = () => `http::addr=${server.address('http')}`
const tcp = () => `tcp::addr=${server.address('line protocol')}`

/** Over TCP the client cannot ask: auto is version 1 there. */
const ways: readonly Way[] = [
  { name: 'http v1', version: 1, configuration: () => `${http()};protocol_version=1` },
  { name: 'http v2', version: 2, configuration: () => `${http()};protocol_version=2` },
  { name: 'http auto', version: 2, configuration: http },
  { name: 'tcp v1', version: 1, configuration: () => `${tcp()};protocol_version=1` },
  { name: 'tcp v2', version: 2, configuration: () => `${tcp()};protocol_version=2` },
  { name: 'tcp auto', version: 1, configuration: tcp },
]

async function connected(configuration: string): Promise<Sender> {
  const sender = await Sender.fromConfig(configuration, { log: () => {} })
  if (configuration.startsWith('tcp')) await sender.connect()
  return sender
}

const oddText = 'quote " back \\ new\nline, comma = snow \u2603 \u{1f600}'
const oddSymbol = 'sp ace,com=ma\\ "q" \u{1f600}'
const nanos = 1_700_000_000_123_456_789n

async function writeEveryType({ version, configuration }: Way, table: string): Promise<void> {
  const sender = await connected(configuration())
  sender.table(table).symbol('plain', 'a').symbol('odd one', oddSymbol)
  sender.intColumn('whole', -9_007_199_254_740_991).floatColumn('half', 0.5).floatColumn('tiny', 5e-324)
  sender.floatColumn('huge', 1.7976931348623157e308).booleanColumn('yes', true).booleanColumn('no', false)
  sender.stringColumn('text', oddText).stringColumn('empty', '').timestampColumn('when', 1_700_000_000_123_456n, 'us')
  sender.timestampColumn('millis', 1_700_000_000_123, 'ms')
  if (version > 1) {
    sender.arrayColumn('one', [1.5, -2, 1e300]).arrayColumn('none', [])
    sender.arrayColumn('two', [[1, 2], [3, 4]]) // biome-ignore format: a matrix
  }
  await sender.at(nanos, 'ns')
  await sender.table(table).symbol('plain', 'b').intColumn('whole', 7).at(1_700_000_001_000n, 'ms')
  await sender.flush()
  await sender.close()
}

async function expectEveryType({ version }: Way, table: string): Promise<void> {
  await server.untilRows(`select count() from tables() where table_name = '${table}'`, [[1]])
  await server.untilRows(`select count() from '${table}'`, [[2]])
  const columns = `plain, "odd one", whole, half, tiny, huge, yes, no, text, empty, "when", millis`
  expect(await server.rows(`select ${columns} from '${table}' limit 1`)).toEqual([
    [
      ...['a', oddSymbol, -9_007_199_254_740_991, 0.5, 5e-324, 1.7976931348623157e308, true, false, oddText, ''],
      ...['2023-11-14T22:13:20.123456Z', '2023-11-14T22:13:20.123000Z'],
    ],
  ])
  expect(await server.rows(`select ${columns} from '${table}' limit 1, 2`)).toEqual([
    ['b', null, 7, null, null, null, false, false, null, null, null, null],
  ])
  const [first, second] = await server.rows(`select timestamp from '${table}'`)
  expect(String(first?.[0])).toMatch(/^2023-11-14T22:13:20\.123456(789)?Z$/)
  expect(String(second?.[0])).toMatch(/^2023-11-14T22:13:21\.0+Z$/)
  if (version > 1) await expectArrays(table)
}

async function expectArrays(table: string): Promise<void> {
  const matrix = [1, 3].map((first) => [first, first + 1])
  expect(await server.rows(`select one, two, none from '${table}'`)).toEqual([
    [[1.5, -2, 1e300], matrix, []],
    [null, null, null],
  ])
}

describe('every type', () => {
  for (const way of ways) {
    test(way.name, async () => {
      await writeEveryType(way, `every ${way.name}`)
      await expectEveryType(way, `every ${way.name}`)
    })
  }

  test('is there behind a clean end, a kill, and a checkpoint', async () => {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await server.restart(signal)
      for (const way of ways) await expectEveryType(way, `every ${way.name}`)
    }
    await server.rows('checkpoint')
    for (const way of ways) await expectEveryType(way, `every ${way.name}`)
    await server.restart('SIGKILL')
    for (const way of ways) await expectEveryType(way, `every ${way.name}`)
  })
})

describe('the client flushes by itself', () => {
  for (const [name, base] of Object.entries({ http, tcp })) {
    test(name, async () => {
      const sender = await connected(`${base()};auto_flush_rows=100;protocol_version=2`)
      for (let row = 0; row < 1000; row++) {
        sender.table(`auto_${name}_${row % 3}`).symbol('s', `s${row % 7}`)
        await sender
          .floatColumn('v', row)
          .intColumn('n', row)
          .at(row * 1000, 'us')
      }
      await sender.flush()
      await sender.close()
      for (const table of [0, 1, 2]) {
        const own = Array.from({ length: 1000 }, (_, row) => row).filter((row) => row % 3 === table)
        const sum = own.reduce((total, row) => total + row, 0)
        const sql = `select count(), sum(v), sum(n), count_distinct(s) from auto_${name}_${table}`
        await server.untilRows(sql, [[own.length, sum, sum, 7]])
      }
    })
  }
})

describe('errors', () => {
  test('a value of another type reaches the client, and nothing of its request is stored', async () => {
    const sender = await connected(http())
    await sender.table('typed').intColumn('n', 1).at(1, 'us')
    await sender.flush()
    await sender.table('typed').intColumn('n', 2).at(2, 'us')
    await sender.table('typed_new').intColumn('n', 2).at(2, 'us')
    await sender.table('typed').stringColumn('n', 'text').at(3, 'us')
    await expect(sender.flush()).rejects.toThrow(/cast error from protocol type: STRING to column type: LONG/)
    await sender.close()
    expect(await server.rows('select count() from typed')).toEqual([[1]])
    expect((await server.exec('select * from typed_new')).body.error).toBe('table does not exist [table=typed_new]')
  })

  test('over TCP the rows before the bad line stay, and the line is recorded', async () => {
    const sender = await connected(`${tcp()};protocol_version=2`)
    await sender.table('typed_tcp').intColumn('n', 1).at(1, 'us')
    await sender.table('typed_tcp').stringColumn('n', 'text').at(2, 'us')
    await sender.flush()
    await server.untilRows('select count() from typed_tcp', [[1]])
    await server.untilRows(`select count() from sys.rejects where reason like '%typed_tcp%'`, [[1]])
    await sender.close()
  })
})
