// `node dist/test/crash/kafka-lake.js --python P [--kafka 4.3.1] [--records n] [--kills n] [--seed n] [--port n]`: three
// servers, each of which reads a topic of its own from a real Kafka broker, append to one Iceberg table through the
// external catalog in $PENSTOCK_CATALOG, as in deploy/lake. Servers are killed with SIGKILL at random times. At the end
// each record is in the table exactly once.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { randomNumbers } from '../bench/line-template.js'
import { KafkaBroker } from '../support/kafka-broker.js'
import { createTopic, kafkaClient, produce, readingSettings } from '../support/kafka-load.js'
import { TestServer } from '../support/server.js'
import { catalogUrl, figuresIn, sharedLakeSettings, untilInLake } from '../support/shared-servers.js'

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    kafka: { type: 'string', default: '4.3.1' },
    records: { type: 'string', default: '1500000' },
    kills: { type: 'string', default: '6' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    port: { type: 'string', default: '17140' },
  },
})

const partitions = 2
const topics = ['readings-1', 'readings-2', 'readings-3']
const records = Number(values.records)
const random = randomNumbers(Number(values.seed))
const begun = performance.now()
const settleMs = 600_000
const create =
  'create table if not exists readings (id long, device symbol, site symbol, temperature double, humidity double,' +
  ' pressure double, ok boolean, "count" long, status varchar, timestamp timestamp) timestamp(timestamp)' +
  ' partition by hour lake on'

function say(text: string): void {
  process.stdout.write(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}\n`)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Records from..to-1 of a topic. */
function shareOf(index: number): { from: number; to: number } {
  const size = Math.ceil(records / topics.length)
  return { from: index * size, to: Math.min(records, (index + 1) * size) }
}

async function rowCount(server: TestServer): Promise<number> {
  return Number((await server.rows('select count() from readings'))[0]?.[0])
}

async function check(servers: readonly TestServer[]): Promise<void> {
  const end = performance.now() + settleMs
  for (const [index, server] of servers.entries()) {
    const { from, to } = shareOf(index)
    while ((await rowCount(server)) < to - from) {
      if (performance.now() > end) throw new Error(`a server has ${await rowCount(server)} rows of ${to - from}`)
      await pause(500)
    }
    await untilInLake(server, 'readings')
  }
  const figures = [
    ['count', '*'],
    ['sum', 'id'],
    ['min', 'id'],
    ['max', 'id'],
    ['count', 'site'],
    ['sum', 'count'],
  ]
  const found = figuresIn({ python: values.python, engine: 'pyiceberg', table: 'readings', figures })
  let counts = 0
  for (let id = 0; id < records; id++) counts += id % 65536
  const wanted = [records, (records * (records - 1)) / 2, 0, records - 1, records, counts]
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`wanted ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`)
}

async function run(broker: KafkaBroker, servers: readonly TestServer[]): Promise<void> {
  await broker.start()
  const client = kafkaClient(broker.address)
  for (const topic of topics) await createTopic(client, topic, partitions)
  say(`Kafka ${values.kafka}, ${records} records, seed ${values.seed}`)
  for (const server of servers) await server.start()
  for (const server of servers) await server.rows(create)
  const producing = Promise.all(topics.map((topic, index) => produce(client, { topic, partitions, ...shareOf(index) })))
  producing.catch(() => {})
  for (let kill = 1; kill <= Number(values.kills); kill++) {
    await pause(random() * 4000)
    const server = servers[Math.floor(random() * servers.length)]
    if (server === undefined) throw new Error('there is no such server')
    const rows = await rowCount(server)
    await server.restart('SIGKILL')
    say(`kill ${kill}: server ${servers.indexOf(server) + 1} with ${rows} rows`)
  }
  await producing
  await check(servers)
  say('each record is in the table exactly once')
}

if (catalogUrl === '') throw new Error('PENSTOCK_CATALOG names no catalog')
const folder = mkdtempSync(join(tmpdir(), 'penstock-lake-'))
const broker = new KafkaBroker({ version: values.kafka, port: Number(values.port) })
const servers = topics.map(
  (topic) =>
    new TestServer([
      ...sharedLakeSettings(folder),
      ...readingSettings('plant', broker.address, topic),
      ...[`kafka.plant.group.id=${topic}`, 'kafka.plant.session.timeout.ms=6s'],
    ]),
)
try {
  await run(broker, servers)
} finally {
  for (const server of servers) await server.remove()
  await broker.remove()
  rmSync(folder, { recursive: true, force: true })
}
