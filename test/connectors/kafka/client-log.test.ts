// Goal: if the Kafka client library (kafkajs) logs the same message repeatedly, the server's log contains it once for
// each error that caused it.

import { expect, test } from 'vitest'
import { clientLog } from '../../../connectors/kafka/kafkajs-client.js'

test('a message that repeats itself is logged once', () => {
  const logged: string[] = []
  const log = clientLog((level, logger, message) => logged.push(`${level} ${logger} ${message}`), 'kafka.plant')
  const entry = (message: string, error?: string) =>
    log({ namespace: '', level: 1, label: 'ERROR', log: { timestamp: '', message, error } as never })
  for (let round = 0; round < 50; round++) {
    entry('no broker', 'ECONNREFUSED')
    entry('no broker', 'ETIMEDOUT')
    entry('gone')
  }
  expect(logged).toEqual([
    'W kafka.plant no broker: ECONNREFUSED',
    'W kafka.plant no broker: ETIMEDOUT',
    'W kafka.plant gone',
  ])
})
