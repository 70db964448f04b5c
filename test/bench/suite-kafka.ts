// Benchmark of the Kafka connector: ingests JSON records of ten fields from a real broker. For comparison, a kafkajs
// consumer only counts the same records. Both are measured from connecting to the last record. The difference in
// processor time is the cost of connector, log, memtables and flushes.

import { canRunKafka, KafkaBroker } from '../support/kafka-broker.js'
import { createTopic, kafkaClient, produce, readingSettings } from '../support/kafka-load.js'
import { startPenstock } from './peers.js'
import { queryRows, runModule, usageOf } from './processes.js'

const topic = 'bench-readings'
const partitions = 4

export interface KafkaSuiteOptions {
  readonly version: string
  readonly records: number
  readonly runs: number
  readonly settings: readonly string[]
}

interface Measurement {
  readonly seconds: number
  readonly cpuSeconds: number
}

export async function kafka(options: KafkaSuiteOptions, print: (line: string) => void): Promise<void> {
  if (!canRunKafka()) {
    print('skipped: Java and Maven are needed')
    return
  }
  const { records, runs, version } = options
  const broker = new KafkaBroker({ version, port: 21_000 + (process.pid % 2000) * 2 })
  try {
    await broker.start()
    const client = kafkaClient(broker.address)
    await createTopic(client, topic, partitions)
    await produce(client, { topic, partitions, from: 0, to: records })
    for (let run = 0; run < runs; run++) {
      const counter = await count(broker.address, records, run)
      print(report('kafkajs', records, counter))
      const own = await store(broker.address, options)
      print(report('penstock', records, own))
      const share = ((own.cpuSeconds - counter.cpuSeconds) / records) * 1e6
      print(`ratio ${(counter.seconds / own.seconds).toFixed(2)}, own share ${share.toFixed(2)} CPU-s/M records`)
    }
  } finally {
    await broker.remove()
  }
}

async function count(broker: string, records: number, run: number): Promise<Measurement> {
  const argument = { broker, topic, group: `counter-${run}`, records }
  return JSON.parse(await runModule('./kafka-counter.js', argument, () => {})) as Measurement
}

async function store(broker: string, { records, settings }: KafkaSuiteOptions): Promise<Measurement> {
  const own = ['kafka.plant.enabled=false', ...readingSettings('plant', broker, topic), ...settings]
  const { server, end } = await startPenstock(own)
  try {
    const start = performance.now()
    const cpu = usageOf(server.pid).cpuSeconds
    await queryRows(server.httpPort, 'alter connector plant resume')
    for (;;) {
      const counted = await queryRows(server.httpPort, 'select count() from readings').catch(() => [[0]])
      const seen = Number(counted[0]?.[0] ?? 0)
      if (seen === records) break
      if (seen > records) throw new Error(`counted ${seen} of ${records} rows`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    return { seconds: (performance.now() - start) / 1000, cpuSeconds: usageOf(server.pid).cpuSeconds - cpu }
  } finally {
    await end()
  }
}

function report(name: string, records: number, { seconds, cpuSeconds }: Measurement): string {
  const rate = `${(records / seconds / 1000).toFixed(0)} K records/s`
  const cpu = `${((cpuSeconds / records) * 1e6).toFixed(2)} CPU-s/M records`
  return `${name.padEnd(9)} ${rate.padStart(16)}  ${cpu}, ${seconds.toFixed(1)} s`
}
