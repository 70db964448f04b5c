// `node dist/test/crash/kafka.js [--kafka 3.9.1] [--records n] [--kills n] [--rebalances n] [--seed n] [--port n]`:
// kills the server with SIGKILL at random times while it consumes JSON records in four partitions of a real Kafka
// broker. Meanwhile another member of its consumer group takes partitions, reads from them, commits, and leaves. At
// the end each record must be stored exactly once.

import { parseArgs } from 'node:util'
import { randomNumbers } from '../bench/line-template.js'
import { canRunKafka, KafkaBroker } from '../support/kafka-broker.js'
import { createTopic, kafkaClient, produce, readingSettings } from '../support/kafka-load.js'
import { TestServer } from '../support/server.js'

const { values } = parseArgs({
  options: {
    kafka: { type: 'string', default: '3.9.1' },
    records: { type: 'string', default: '5000000' },
    kills: { type: 'string', default: '10' },
    rebalances: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    port: { type: 'string', default: '17100' },
    set: { type: 'string', multiple: true, default: [] },
  },
})

const topic = 'plant-readings'
const group = 'penstock-plant'
const partitions = 4
const settleMs = 600_000
const random = randomNumbers(Number(values.seed))
const records = Number(values.records)
const begun = performance.now()

function say(text: string): void {
  process.stdout.write(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}\n`)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Rows that a query sees; 0 while there is no table. */
async function rowCount(server: TestServer): Promise<number> {
  const { body } = await server.exec('select count() from readings')
  return Number(body.dataset?.[0]?.[0] ?? 0)
}

/** Kills the server within its share of the records, a random while after their first ones are there. */
async function kill(server: TestServer, number: number, kills: number): Promise<void> {
  const enough = (records * (number - 1 + random())) / (kills + 1)
  for (let rows = 0; rows < enough; rows = await rowCount(server)) await pause(50)
  await pause(random() * 1500)
  const rows = await rowCount(server)
  await server.end('SIGKILL')
  await server.start()
  const after = await rowCount(server)
  if (after < rows) throw new Error(`rows that a query had shown are gone [before=${rows}, after=${after}]`)
  say(`kill ${number}: ${rows} rows before, ${after} after`)
}

/** Another member joins, takes its share, commits far ahead, and leaves. */
async function rebalance(broker: string, number: number): Promise<void> {
  const consumer = kafkaClient(broker).consumer({ groupId: group, sessionTimeout: 10_000 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let taken = 0
  await consumer.run({
    eachBatch: async ({ batch }) => {
      taken += batch.messages.length
    },
  })
  await pause(4000)
  await consumer.disconnect()
  say(`rebalance ${number}: the other member took ${taken} records`)
}

async function untilAllStored(server: TestServer): Promise<void> {
  const end = performance.now() + settleMs
  for (;;) {
    const rows = await rowCount(server)
    if (rows >= records) return
    if (performance.now() > end) throw new Error(`only ${rows} of ${records} rows`)
    await pause(1000)
  }
}

async function check(server: TestServer): Promise<void> {
  await pause(2000)
  const found = await server.rows(
    'select count(), count_distinct(id), sum(id), min(id), max(id), sum(count) from readings',
  )
  let counts = 0
  for (let id = 0; id < records; id++) counts += id % 65536
  const wanted = [[records, records, (records * (records - 1)) / 2, 0, records - 1, counts]]
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    throw new Error(`wanted ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`)
  }
  await server.untilRows('select state, partitions, lag, rejected from sys.connectors', [['running', 4, 0, 0]], 60_000)
}

async function run(): Promise<void> {
  const broker = new KafkaBroker({ version: values.kafka, port: Number(values.port) })
  const server = new TestServer([...readingSettings('plant', broker.address, topic), 'kafka.plant.session.timeout.ms=6s', ...values.set]) // biome-ignore format: one call
  try {
    await broker.start()
    const client = kafkaClient(broker.address)
    await createTopic(client, topic, partitions)
    say(`Kafka ${values.kafka}, ${records} records, seed ${values.seed}`)
    const producing = produce(client, { topic, partitions, from: 0, to: records }).then(() => say('all are produced'))
    producing.catch(() => {})
    await server.start()
    const kills = Number(values.kills)
    const rebalances = Number(values.rebalances)
    const others: Promise<void>[] = []
    for (let number = 1, moved = 0; number <= kills; number++) {
      if (moved < rebalances && number > (moved * kills) / rebalances) others.push(rebalance(broker.address, ++moved))
      await kill(server, number, kills)
    }
    await Promise.all([producing, ...others])
    await untilAllStored(server)
    await check(server)
    await server.restart('SIGKILL')
    await untilAllStored(server)
    await check(server)
    say('each record is there exactly once')
  } finally {
    await server.remove()
    await broker.remove()
  }
}

if (!canRunKafka()) {
  process.stdout.write('skipped: Java and Maven are needed\n')
} else await run()
