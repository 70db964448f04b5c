// Baseline of the Kafka benchmark (suite-kafka.ts), run as a separate process: a kafkajs consumer that only counts
// records. Prints `ready`, and at the end a line of JSON: the time from connecting to the last record, and the
// processor time that this process used meanwhile.

import { kafkaClient } from '../support/kafka-load.js'

interface CounterOptions {
  readonly broker: string
  readonly topic: string
  readonly group: string
  readonly records: number
}

const { broker, topic, group, records } = JSON.parse(process.argv[2] ?? '{}') as CounterOptions
const consumer = kafkaClient(broker).consumer({ groupId: group })
process.stdout.write('ready\n')
const start = performance.now()
const cpu = process.cpuUsage()
let seen = 0
await new Promise<void>((resolve, reject) => {
  const run = async (): Promise<void> => {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      eachBatch: async ({ batch }) => {
        seen += batch.messages.length
        if (seen >= records) resolve()
      },
    })
  }
  run().catch(reject)
})
const { user, system } = process.cpuUsage(cpu)
const seconds = (performance.now() - start) / 1000
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6 })}\n`)
process.exit(0)
