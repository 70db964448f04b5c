// Goal: each Kafka record is stored exactly once and in order, whatever the consumer group, the brokers and the engine
// do; bad records are reported, and the records around them are stored. Method: fakes (scripted-consumer.ts) replace
// the Kafka client and the engine; the tests make them fail, reassign partitions and reject records.

import { afterEach, expect, test, vi } from 'vitest'
import { KafkaConnector } from '../../../connectors/kafka/connector.js'
import type { KafkaOptions } from '../../../connectors/kafka/options.js'
import { kafkaOptions } from './kafka-support.js'
import { ScriptedConsumer, ScriptedEngine } from './scripted-consumer.js'

const lingerLimits = { timeout: 600_000, interval: 5 }

interface World {
  readonly connector: KafkaConnector
  readonly engine: ScriptedEngine
  readonly consumers: ScriptedConsumer[]
  readonly logged: string[]
  /** The consumer that runs, once it has started. */
  consumer(): Promise<ScriptedConsumer>
}

const worlds: World[] = []

function world(
  changes: Partial<KafkaOptions> = {},
  prepare: (consumer: ScriptedConsumer, index: number) => void = () => {},
) {
  const engine = new ScriptedEngine()
  const consumers: ScriptedConsumer[] = []
  const logged: string[] = []
  const connector = new KafkaConnector(kafkaOptions(changes), {
    engine,
    consumer: () => {
      const consumer = new ScriptedConsumer()
      prepare(consumer, consumers.length)
      consumers.push(consumer)
      return consumer
    },
    registry: null,
    log: (level, _logger, message) => logged.push(`${level} ${message}`),
    clock: { nowMicros: () => 0, monotonicMs: () => performance.now() },
  })
  const consumer = (): Promise<ScriptedConsumer> =>
    vi.waitFor(() => {
      const last = consumers.at(-1)
      expect(last?.events).toBeTruthy()
      return last as ScriptedConsumer
    }, lingerLimits)
  const made: World = { connector, engine, consumers, logged, consumer }
  worlds.push(made)
  connector.start()
  return made
}

afterEach(async () => {
  for (const { connector, engine } of worlds.splice(0)) {
    engine.release()
    await connector.pause('stopped')
  }
})

const until = (check: () => void): Promise<void> => vi.waitFor(check, lingerLimits)

function values(engine: ScriptedEngine): number[] {
  return engine.lines.map((line) => Number(/v=(\d+)i/.exec(line)?.[1]))
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

test('begins at the first offset when nothing is stored, behind the stored one otherwise', async () => {
  const { engine, consumer } = world({}, () => {})
  engine.offsets.set(1, 41)
  const running = await consumer()
  running.assign(0, 1)
  await until(() => expect(running.seeks).toEqual(['1:42', '0:0']))
  expect([...running.paused]).toEqual([])
  await running.deliver(1, 42, 45)
  await until(() => expect(values(engine)).toEqual([42, 43, 44]))
  expect(engine.requests[0]).toMatchObject({ partition: 1, previous: 41, offset: 44, precision: 'n' })
})

test('latest begins at the end', async () => {
  const base = kafkaOptions()
  const { consumer } = world({ client: { ...base.client, offsetReset: 'latest' } })
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks).toEqual(['0:100']))
})

test('blocks of several batches are under way at once, in their order', async () => {
  const { engine, consumer, connector } = world()
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  engine.hold()
  await running.deliver(0, 0, 10)
  await running.deliver(0, 10, 20)
  await until(() => expect(engine.requests.map(({ previous, offset }) => [previous, offset])).toEqual([[-1, 9], [9, 19]])) // biome-ignore format: short
  engine.release()
  await until(() => expect(connector.statistics().partitions[0]?.storedOffset).toBe(19))
  expect(connector.statistics()).toMatchObject({ state: 'running', records: 20, rows: 20, rejected: 0 })
})

test('records that are stored already are left out', async () => {
  const { engine, consumer } = world()
  engine.offsets.set(0, 4)
  const running = await consumer()
  running.assign(0)
  await running.deliver(0, 0, 8)
  await until(() => expect(values(engine)).toEqual([5, 6, 7]))
})

test('a batch that begins too late is asked for again', async () => {
  const { engine, consumer, logged } = world({}, (made) => {
    made.bounds0 = { first: 20, end: 100 }
  })
  engine.offsets.set(0, 4)
  const running = await consumer()
  running.assign(0)
  await running.deliver(0, 9, 12)
  expect(running.seeks).toEqual(['0:5', '0:5'])
  await running.deliver(0, 5, 12)
  await until(() => expect(values(engine)).toEqual(range(5, 12)))
  await running.deliver(0, 20, 22)
  expect(running.seeks.at(-1)).toBe('0:12')
  await running.deliver(0, 20, 22)
  await until(() => expect(values(engine)).toEqual([...range(5, 12), 20, 21]))
  expect(logged.at(-1)).toContain('records have been deleted from the partition [ticks-0, from=12, to=19]')
})

test('a partition that was made anew is read anew', async () => {
  const { engine, consumer } = world()
  engine.offsets.set(0, 400)
  const running = await consumer()
  running.assign(0)
  await running.deliver(0, 0, 3, undefined, 3)
  await until(() => expect(values(engine)).toEqual([0, 1, 2]))
  expect(engine.offsets.get(0)).toBe(2)
})

test('tombstones and batches without records move the offset', async () => {
  const { engine, consumer } = world()
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  await running.deliver(0, 0, 3, () => null)
  await until(() => expect(engine.offsets.get(0)).toBe(2))
  expect(engine.lines).toEqual([])
})

test('bad records go to the dead letters before the block around them is stored', async () => {
  const { engine, consumer, connector } = world({ deadLetterTopic: 'dead' })
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  running.sendError = new Error('not now')
  const textOf = (offset: number): string =>
    offset === 3 ? '{"v":' : offset === 5 || offset === 6 ? '{"t":"bad"}' : `{"v":${offset}}`
  await running.deliver(0, 0, 10, textOf)
  await running.deliver(0, 10, 12)
  await until(() => expect(values(engine)).toEqual([0, 1, 2, 4, 7, 8, 9, 10, 11]))
  expect(engine.noted.map(({ offset, reason, table }) => [offset, reason, table])).toEqual([
    [3, 'invalid JSON: no value [offset=5]', ''],
    [5, 'it is bad', 'ticks'],
    [6, 'it is bad', 'ticks'],
  ])
  expect(running.letters.map(({ topic, letter }) => [topic, letter.headers['__connect.errors.offset']])).toEqual([
    ['dead', '3'],
    ['dead', '5'],
    ['dead', '6'],
  ])
  expect(Buffer.from(running.letters[0]?.letter.value ?? []).toString()).toBe('{"v":')
  expect(connector.statistics()).toMatchObject({ rejected: 3, records: 12, rows: 9 })
})

test('a block is divided where a column that it creates must be widened', async () => {
  const { engine, consumer, connector } = world()
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  engine.answers.push({ kind: 'split', line: 4 })
  await running.deliver(0, 0, 10)
  await running.deliver(0, 10, 12)
  await until(() => expect(values(engine)).toEqual(range(0, 12)))
  expect(engine.requests.slice(-3).map(({ previous, offset }) => [previous, offset])).toEqual([[-1, 2], [2, 9], [9, 11]]) // biome-ignore format: short
  // The first record alone cannot be divided.
  engine.answers.push({ kind: 'split', line: 1 })
  await running.deliver(0, 12, 15)
  await until(() => expect(values(engine)).toEqual([...range(0, 12), 13, 14]))
  expect(engine.noted.map(({ offset }) => offset)).toEqual([12])
  expect(connector.statistics()).toMatchObject({ rejected: 1 })
})

test('a block that is all bad moves the offset', async () => {
  const { engine, consumer } = world()
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  await running.deliver(0, 0, 4, () => 'nothing')
  await until(() => expect(engine.offsets.get(0)).toBe(3))
  expect(engine.noted.length).toBe(4)
})

test('a refusal is tried again; what has no room goes in parts', async () => {
  const { engine, consumer, connector } = world()
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  engine.answers.push({ kind: 'refused', message: 'the disk is full', tooLarge: false })
  engine.answers.push({ kind: 'refused', message: 'out of memory for rows', tooLarge: true })
  await running.deliver(0, 0, 8)
  await running.deliver(0, 8, 9)
  await until(() => expect(values(engine)).toEqual(range(0, 9)))
  expect(engine.requests.slice(-3).map(({ offset }) => offset)).toEqual([3, 7, 8])
  expect(connector.statistics()).toMatchObject({ state: 'running', retries: 2, lastError: 'out of memory for rows' })
})

test('another offset is stored than we think: what is stored is left out, or all is fetched again', async () => {
  const { engine, consumer } = world()
  const running = await consumer()
  running.assign(0, 1)
  await until(() => expect(running.seeks.length).toBe(2))
  // The answer was lost: the block is stored.
  engine.answers.push({ kind: 'astray', stored: 9 })
  await running.deliver(0, 0, 10)
  engine.offsets.set(0, 9)
  await running.deliver(0, 10, 12)
  await until(() => expect(values(engine)).toEqual([10, 11]))
  // Something else is stored.
  engine.offsets.set(1, 5)
  await running.deliver(1, 0, 3)
  await until(() => expect(running.seeks.at(-1)).toBe('1:6'))
  await running.deliver(1, 6, 8)
  await until(() => expect(engine.offsets.get(1)).toBe(7))
})

test('an engine that is behind pauses the partitions until half of it is stored', async () => {
  const { engine, consumer, connector } = world()
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks.length).toBe(1))
  engine.hold()
  const long = 'x'.repeat(100_000)
  let next = 0
  while (running.paused.size === 0) {
    await running.deliver(0, next, next + 40, () => `{"t":"${long}"}`)
    next += 40
  }
  expect(connector.statistics().state).toBe('waiting')
  expect(running.heartbeats).toBeGreaterThan(0)
  expect(engine.requests.length).toBeLessThan(30)
  engine.release()
  await until(() => expect(running.paused.size).toBe(0))
  expect(connector.statistics().state).toBe('running')
  await until(() => expect(engine.lines.length).toBe(next))
})

test('brokers that cannot be reached are tried again, quietly', async () => {
  const { consumers, connector, logged, engine } = world({}, (consumer, index) => {
    if (index < 3) consumer.unreachable = new Error('connect ECONNREFUSED')
  })
  await until(() => expect(consumers.length).toBe(4))
  await until(() => expect(consumers[3]?.events).toBeTruthy())
  expect(logged.filter((text) => text.includes('ECONNREFUSED')).length).toBe(1)
  expect(connector.statistics()).toMatchObject({ retries: 3, lastError: 'connect ECONNREFUSED' })
  consumers[3]?.assign(0)
  await until(() => expect(consumers[3]?.seeks.length).toBe(1))
  await consumers[3]?.deliver(0, 0, 2)
  await until(() => expect(values(engine)).toEqual([0, 1]))
  expect(connector.statistics().state).toBe('running')
  expect(consumers.slice(0, 3).every(({ stopped }) => stopped)).toBe(true)
})

test('a consumer that fails is followed by another, behind what was fetched', async () => {
  const { consumer, consumers, engine } = world()
  const first = await consumer()
  first.assign(0)
  await until(() => expect(first.seeks.length).toBe(1))
  engine.hold()
  await first.deliver(0, 0, 5)
  first.events?.failed(new Error('session expired'))
  await until(() => expect(consumers.length).toBe(2))
  const second = await consumer()
  second.assign(0)
  expect(second.seeks).toEqual(['0:5'])
  engine.release()
  await second.deliver(0, 5, 7)
  await until(() => expect(values(engine)).toEqual(range(0, 7)))
})

test('new topics of a pattern mean another consumer, without an error', async () => {
  const { consumer, consumers, connector } = world()
  const first = await consumer()
  first.events?.outdated()
  await until(() => expect(consumers.length).toBe(2))
  expect(connector.statistics()).toMatchObject({ retries: 0, lastError: '' })
})

test('gives up after so many attempts, and begins again when asked', async () => {
  const { consumers, connector, logged } = world({ maxRetries: 2 }, (consumer, index) => {
    if (index < 3) consumer.unreachable = new Error('no route')
  })
  await until(() => expect(connector.statistics().state).toBe('failed'))
  expect(consumers.length).toBe(3)
  expect(logged.at(-1)).toBe('E gave up after 2 attempts: no route')
  connector.start()
  await until(() => expect(consumers.length).toBe(4))
})

test('pause leaves the group and tells it how far we are; resume goes on behind what is stored', async () => {
  const { consumer, consumers, connector, engine } = world()
  const first = await consumer()
  first.assign(0)
  await until(() => expect(first.seeks.length).toBe(1))
  await first.deliver(0, 0, 5)
  await until(() => expect(engine.offsets.get(0)).toBe(4))
  await connector.pause()
  expect(first.stopped).toBe(true)
  expect(first.commits).toEqual(['0:5'])
  expect(connector.statistics().state).toBe('paused')
  connector.start()
  await until(() => expect(consumers.length).toBe(2))
  const second = await consumer()
  second.assign(0)
  expect(second.seeks).toEqual(['0:5'])
})

test('a rebalance: partitions go and come back, each record is stored once', async () => {
  const { consumer, connector, engine } = world()
  const running = await consumer()
  running.assign(0, 1)
  await until(() => expect(running.seeks.length).toBe(2))
  await running.deliver(0, 0, 5)
  await running.deliver(1, 0, 5)
  running.assign(0)
  await running.deliver(0, 5, 8)
  expect(connector.statistics().partitions.map(({ assigned }) => assigned)).toEqual([true, false])
  running.assign(0, 1)
  expect(running.seeks.slice(-2)).toEqual(['0:8', '1:5'])
  await running.deliver(1, 5, 6)
  await until(() => expect(values(engine).sort((x, y) => x - y)).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7]))
})

test('with offsets in the lake a partition begins where the table ends, once that is known', async () => {
  const { engine, consumer, logged } = world({ offsetsInLake: true })
  engine.lakeOffsets = null
  engine.offsets.set(0, 9)
  const running = await consumer()
  running.assign(0, 1)
  await until(() => expect(logged.join()).toContain('the catalog does not answer'))
  expect(running.seeks).toEqual([])
  expect([...running.paused]).toEqual([0, 1])
  await running.deliver(0, 10, 12)
  engine.lakeOffsets = new Map([[0, 30]])
  await until(() => expect(running.seeks).toEqual(['0:30', '1:0']))
  await until(() => expect([...running.paused]).toEqual([]))
  await running.deliver(0, 30, 33)
  await until(() => expect(values(engine)).toEqual([30, 31, 32]))
  expect(engine.requests[0]).toMatchObject({ partition: 0, previous: 29, offset: 32 })
})

test('with offsets in the lake a moved offset is followed, and rows are handed over to the next server', async () => {
  const { engine, consumer, connector } = world({ offsetsInLake: true })
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks).toEqual(['0:0']))
  await running.deliver(0, 0, 20)
  await until(() => expect(engine.offsets.get(0)).toBe(19))
  // Others have committed these records, and the engine has discarded its rows of them.
  engine.offsets.set(0, 14)
  engine.lakeOffsets = new Map([[0, 15]])
  await until(() => expect(running.seeks).toEqual(['0:0', '0:15']))
  expect(running.commits).toContain('0:15')
  running.events?.reassigning()
  expect(engine.handOvers).toBe(1)
  await connector.pause()
  expect(engine.handOvers).toBe(2)
})

test('with offsets in the lake deleted records behind the offset stop the partition', async () => {
  const { engine, consumer } = world({ offsetsInLake: true })
  engine.lakeOffsets = new Map([[0, 12]])
  const running = await consumer()
  running.assign(0)
  await until(() => expect(running.seeks).toEqual(['0:12']))
  // Batches of aborted transactions are never delivered.
  await running.deliver(0, 13, 14)
  await running.deliver(0, 13, 14)
  await until(() => expect(values(engine)).toEqual([13]))
  running.seeks.length = 0
  running.bounds0 = { first: 20, end: 100 }
  await running.deliver(0, 20, 22)
  expect(running.seeks).toEqual(['0:14'])
  await expect(running.deliver(0, 20, 22)).rejects.toThrow(
    'records after the offset in the table were deleted [ticks-0, from=14, to=19]',
  )
  expect(values(engine)).toEqual([13])
})
