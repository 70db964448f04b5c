// `node dist/test/crash/kafka-shared.js [--python P] [--engine pyiceberg] [--kafka 4.3.1] [--records n] [--events n]
// [--seed n] [--port n]`: three servers of one consumer group divide the partitions of a topic of a real Kafka broker, and
// append to one Iceberg table, whose snapshots have the offsets. Servers are killed with SIGKILL, restarted, or stopped
// (SIGSTOP) for longer than their session lasts, so partitions move, and some records are read by several servers. At the
// end each record is in the table exactly once, and in exactly one server.
//
// $PENSTOCK_CATALOG is the external catalog, and PyIceberg or another engine (test/interop/lake_shared.py) reads the table.
// Without it, a catalog of this process is used, and DuckDB reads the files.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { randomNumbers } from '../bench/line-template.js'
import { KafkaBroker } from '../support/kafka-broker.js'
import { createTopic, kafkaClient, produce, readingSettings } from '../support/kafka-load.js'
import { openTestCatalog } from '../support/lake/rest-catalog.js'
import { readShared } from '../support/lake/shared-lake.js'
import { TestServer } from '../support/server.js'
import { catalogUrl, figuresIn, sharedLakeSettings } from '../support/shared-servers.js'

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    engine: { type: 'string', default: 'pyiceberg' },
    kafka: { type: 'string', default: '4.3.1' },
    records: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '8' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    port: { type: 'string', default: '17180' },
  },
})

const topic = 'readings'
const partitions = 6
const records = Number(values.records)
const random = randomNumbers(Number(values.seed))
const begun = performance.now()
const settleMs = 600_000
/** Longer than the session of a member of the group. */
const stoppedMs = 9000
const create =
  'create table if not exists readings (id long, device symbol, site symbol, temperature double, humidity double,' +
  ' pressure double, ok boolean, "count" long, status varchar, kafka_topic symbol, kafka_partition long,' +
  ' kafka_offset long, timestamp timestamp) timestamp(timestamp) partition by hour lake on'

function say(text: string): void {
  process.stdout.write(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}\n`)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function numbers(server: TestServer, sql: string): Promise<number[]> {
  return (await server.rows(sql))[0]?.map(Number) ?? []
}

const figures = [
  ['count', '*'],
  ['sum', 'id'],
  ['min', 'id'],
  ['max', 'id'],
  ['count', 'site'],
  ['sum', 'count'],
] as const

function wantedFigures(): number[] {
  let counts = 0
  for (let id = 0; id < records; id++) counts += id % 65536
  return [records, (records * (records - 1)) / 2, 0, records - 1, records, counts]
}

/** Rows of all servers: those that others have, too, disappear when their server learns of it. */
async function untilComplete(servers: readonly TestServer[]): Promise<void> {
  const end = performance.now() + settleMs
  for (let calm = 0; calm < 4; ) {
    await pause(500)
    const counts = await Promise.all(servers.map((server) => numbers(server, 'select count() from readings')))
    const states = await Promise.all(
      servers.map((server) => server.rows("select state, failure from lake_tables() where table_name = 'readings'")),
    )
    const sum = counts.reduce((all, [count = 0]) => all + count, 0)
    const isDone = sum === records && states.every(([row]) => row?.[0] === 'committed')
    calm = isDone ? calm + 1 : 0
    if (performance.now() > end) throw new Error(`rows ${counts.join(' + ')} of ${records}, ${JSON.stringify(states)}`)
  }
}

async function check(servers: readonly TestServer[], read: () => unknown[] | Promise<unknown[]>): Promise<void> {
  await untilComplete(servers)
  const wanted = JSON.stringify(wantedFigures())
  const found = JSON.stringify(await read())
  if (found !== wanted) throw new Error(`wanted ${wanted}, found ${found}`)
  const sums = await Promise.all(servers.map((server) => numbers(server, 'select sum(id) from readings')))
  const sum = sums.reduce((all, [one = 0]) => all + one, 0)
  if (sum !== (records * (records - 1)) / 2) throw new Error(`the servers have other rows: their sum of id is ${sum}`)
}

/** How often a server found that others had committed what it had read, too. */
function discards(servers: readonly TestServer[]): number {
  const logs = servers.flatMap(({ root }) =>
    readdirSync(join(root, 'log')).map((name) => readFileSync(join(root, 'log', name), 'utf8')),
  )
  return logs.join('').split('rows that other servers have committed are discarded').length - 1
}

async function disturb(servers: readonly TestServer[], event: number): Promise<void> {
  const number = Math.floor(random() * servers.length)
  const server = servers[number]
  if (server === undefined) throw new Error('there is no such server')
  const kind = ['SIGKILL', 'SIGTERM', 'SIGSTOP', 'SIGKILL'][Math.floor(random() * 4)]
  say(`event ${event}: ${kind} for server ${number + 1}`)
  if (kind === 'SIGKILL' || kind === 'SIGTERM') await server.restart(kind)
  else {
    process.kill(server.pid, 'SIGSTOP')
    await pause(stoppedMs)
    process.kill(server.pid, 'SIGCONT')
  }
}

async function run(broker: KafkaBroker, servers: readonly TestServer[], read: () => Promise<unknown[]>): Promise<void> {
  await broker.start()
  const client = kafkaClient(broker.address)
  await createTopic(client, topic, partitions)
  say(`Kafka ${values.kafka}, ${records} records, seed ${values.seed}`)
  await Promise.all(servers.map((server) => server.start()))
  for (const server of servers) await server.rows(create)
  const events = Number(values.events)
  const slice = Math.ceil(records / (events + 1))
  for (let event = 0; event <= events; event++) {
    const range = { from: event * slice, to: Math.min(records, (event + 1) * slice) }
    const producing = produce(client, { topic, partitions, ...range })
    producing.catch(() => {})
    await pause(random() * 4000)
    if (event > 0) await disturb(servers, event)
    await producing
  }
  say('all are produced')
  await check(servers, read)
  const counts = await Promise.all(servers.map((server) => numbers(server, 'select count() from readings')))
  say(`rows of the servers: ${counts.join(', ')}; rows were discarded ${discards(servers)} times`)
  say('each record is in the table exactly once')
}

const folder = mkdtempSync(join(tmpdir(), 'penstock-lake-'))
const own = catalogUrl === '' ? await openTestCatalog() : null
const broker = new KafkaBroker({ version: values.kafka, port: Number(values.port) })
const catalogSettings =
  own === null
    ? []
    : [
        ...[`lake.catalog.url=${own.url}`, 'lake.catalog.warehouse=main'],
        ...[`lake.catalog.client.id=${own.client.id}`, `lake.catalog.client.secret=${own.client.secret}`],
      ]
const servers = [1, 2, 3].map(
  () =>
    new TestServer([
      ...sharedLakeSettings(folder).filter((setting) => own === null || !setting.startsWith('lake.catalog.url')),
      ...catalogSettings,
      ...readingSettings('plant', broker.address, topic),
      ...['kafka.plant.group.id=readings', 'kafka.plant.session.timeout.ms=6s', 'kafka.plant.offsets.in.lake=true'],
      'kafka.plant.retry.backoff.ms=500ms',
    ]),
)

async function readTable(): Promise<unknown[]> {
  const { python, engine } = values
  if (own === null) return figuresIn({ python, engine, table: 'readings', figures })
  const metadata = own.tables.get('qdb.readings')
  if (metadata === undefined) throw new Error('the catalog has no such table')
  const expressions = figures.map(([name, column]) => `${name}(${column === '*' ? '*' : `"${column}"`})`)
  return ((await readShared(metadata, expressions.join()))[0] ?? []).map(Number)
}

try {
  await run(broker, servers, readTable)
} finally {
  for (const server of servers) await server.remove()
  await broker.remove()
  await own?.close()
  rmSync(folder, { recursive: true, force: true })
}
