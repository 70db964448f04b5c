// Entry point of a connector's thread. Decoding records and building lines need a core, so each connector has a thread
// of its own, and the main thread, which serves the sockets, is not delayed.

import { setFlagsFromString } from 'node:v8'
import { parentPort, workerData } from 'node:worker_threads'
import { nonNull } from '../../engine/base/assert.js'
import { AnchoredClock, systemTime } from '../../engine/base/clock.js'
import { type Deferred, deferred } from '../../engine/base/deferred.js'
import type { Log } from '../../engine/base/log.js'
import { KafkaConnector } from './connector.js'
import type { EngineClient, Positions, StoreResult } from './engine-client.js'
import { clientLog, kafkaJsConsumer } from './kafkajs-client.js'
import type { Ask, FromThread, ThreadOptions, ToThread } from './messages.js'
import { schemaRegistry } from './schema-registry.js'

// Fetched records die young; with so little surviving, parallel scavenging costs more CPU than it saves. V8 reads
// this flag at each collection.
setFlagsFromString('--no-parallel-scavenge')

const metricsMs = 500

const port = nonNull(parentPort)
const { options, clockAnchor } = workerData as ThreadOptions
const post = (message: FromThread, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
const log: Log = (level, logger, message) => post({ kind: 'log', level, logger, message })

let nextId = 1
const waiting = new Map<number, Deferred<StoreResult>>()
const asked = new Map<number, Deferred<Positions>>()

function askEngine(ask: Ask): Promise<Positions> {
  const id = nextId++
  const reply = deferred<Positions>()
  asked.set(id, reply)
  post({ kind: 'ask', id, ask })
  return reply.promise
}

const engine: EngineClient = {
  positions: () => askEngine({ what: 'positions' }),
  begin: (places) => askEngine({ what: 'begin', places }),
  committed: () => askEngine({ what: 'committed' }),
  handOver: async () => {
    await askEngine({ what: 'handOver' })
  },
  store: (request) => {
    const id = nextId++
    const reply = deferred<StoreResult>()
    waiting.set(id, reply)
    // Transfers the lines instead of copying them.
    post({ kind: 'store', id, request }, [request.lines.buffer as ArrayBuffer])
    return reply.promise
  },
  rejects: (rejects) => post({ kind: 'rejects', rejects }),
}

const ofClient = clientLog(log, `kafka.${options.name}`)
const connector = new KafkaConnector(options, {
  engine,
  consumer: () => kafkaJsConsumer({ client: options.client, allowedLagMs: options.allowedLagMs, log: ofClient }),
  registry: options.registry.url === '' ? null : schemaRegistry(options.registry),
  log,
  clock: new AnchoredClock(systemTime, clockAnchor),
})

function receive(message: ToThread): void {
  switch (message.kind) {
    case 'start':
      connector.start()
      return
    case 'pause':
      void connector.pause().then(() => {
        post({ kind: 'statistics', statistics: connector.statistics() })
        post({ kind: 'done', what: 'paused' })
      })
      return
    case 'stop':
      void connector.pause('stopped').then(() => post({ kind: 'done', what: 'stopped' }))
      return
    case 'stored':
      waiting.get(message.id)?.resolve(message.result)
      waiting.delete(message.id)
      return
    case 'answer':
      if (message.error === null) asked.get(message.id)?.resolve(message.positions)
      else asked.get(message.id)?.reject(new Error(message.error))
      asked.delete(message.id)
  }
}

port.on('message', receive)
setInterval(() => post({ kind: 'statistics', statistics: connector.statistics() }), metricsMs)
