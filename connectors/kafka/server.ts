// Hosts the Kafka connectors: starts each on its own thread, stores its blocks in the engine and exposes its
// statistics. A failing connector affects nothing else.
//
//   thread: consumer, records to lines ── block, offset ──> main thread: engine.lines() ── receipt ──> thread

import { Worker } from 'node:worker_threads'
import type { SharedClock } from '../../engine/base/clock.js'
import { type Deferred, deferred } from '../../engine/base/deferred.js'
import { SqlError } from '../../engine/base/errors.js'
import type { Log } from '../../engine/base/log.js'
import type { Engine, LineRequest } from '../../engine/engine.js'
import type { Positions, Reject, StoreRequest, StoreResult } from './engine-client.js'
import type { Ask, FromThread, ThreadOptions, ToThread } from './messages.js'
import { type KafkaOptions, recordColumns } from './options.js'
import { RecordReader } from './record-reader.js'
import { type ConnectorStatistics, noStatistics } from './statistics.js'
import { widenColumns } from './widen-columns.js'

/** Delay before a connector whose thread has died is restarted. */
const restartMs = 5000
/** How long a thread may take to leave its group at shutdown. */
const stopMs = 15_000
/** Fetched records live until they are stored; a large young generation avoids copying them repeatedly. */
const resourceLimits = { maxYoungGenerationSizeMb: 256 }
const emptyLine = new Uint8Array([10])

export interface KafkaServices {
  readonly engine: Engine
  readonly log: Log
  readonly clock: SharedClock
}

/** One connector as SQL and metrics see it. */
export interface KafkaConnectorHandle {
  readonly name: string
  readonly options: KafkaOptions
  readonly statistics: ConnectorStatistics
  /** Resolves when the connector has left its group. */
  pause(): Promise<void>
  resume(): Promise<void>
  close(): Promise<void>
}

/** Throws Error, naming the connector, when its options are invalid. */
export function openKafkaConnector(options: KafkaOptions, services: KafkaServices): KafkaConnectorHandle {
  checkOptions(options)
  return new ConnectorHost(options, services)
}

function checkOptions(options: KafkaOptions): void {
  try {
    new RecordReader(options.mapping, null)
    new RegExp(options.client.topicPattern)
  } catch (error) {
    throw new Error(`kafka.${options.name}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

function refused(message: string): StoreResult {
  return { kind: 'refused', message, tooLarge: message.startsWith('out of memory') }
}

class ConnectorHost implements KafkaConnectorHandle {
  readonly name: string
  readonly options: KafkaOptions
  statistics: ConnectorStatistics = noStatistics
  readonly #services: KafkaServices
  #worker: Worker
  #wanted: 'running' | 'paused' | 'stopped'
  #doing: { readonly what: 'paused' | 'stopped'; readonly done: Deferred<void> } | null = null
  #restart: NodeJS.Timeout | null = null

  constructor(options: KafkaOptions, services: KafkaServices) {
    this.options = options
    this.name = options.name
    this.#services = services
    const { table } = options.mapping
    if (options.offsetsInLake)
      services.engine.lake.sources.share({ connector: options.name, table, columns: recordColumns })
    this.#wanted = options.enabled ? 'running' : 'paused'
    this.#worker = this.#startThread()
  }

  async pause(): Promise<void> {
    if (this.#wanted !== 'running') return
    this.#wanted = 'paused'
    await this.#ask({ kind: 'pause' }, 'paused')
  }

  async resume(): Promise<void> {
    if (this.#wanted === 'stopped') throw new SqlError('the server is shutting down', 0)
    this.#wanted = 'running'
    this.#post({ kind: 'start' })
  }

  async close(): Promise<void> {
    this.#wanted = 'stopped'
    if (this.#restart !== null) clearTimeout(this.#restart)
    const timer = setTimeout(() => this.#answered('stopped'), stopMs)
    await this.#ask({ kind: 'stop' }, 'stopped')
    clearTimeout(timer)
    await this.#worker.terminate()
  }

  #startThread(): Worker {
    const data: ThreadOptions = { options: this.options, clockAnchor: this.#services.clock.anchor }
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData: data,
      resourceLimits,
      execArgv: [],
    })
    let failure = 'it ended'
    worker.on('message', (message: FromThread) => this.#receive(message))
    worker.on('error', (error) => {
      failure = error instanceof Error ? (error.stack ?? error.message) : String(error)
    })
    worker.on('exit', () => this.#ended(failure))
    if (this.#wanted === 'running') worker.postMessage({ kind: 'start' } satisfies ToThread)
    this.statistics = { ...this.statistics, state: this.#wanted === 'running' ? 'starting' : 'paused' }
    return worker
  }

  #ended(failure: string): void {
    this.#answered('paused')
    this.#answered('stopped')
    if (this.#wanted === 'stopped') return
    this.#services.log('E', `kafka.${this.options.name}`, `the thread failed and is being replaced: ${failure}`)
    const lastErrorMicros = this.#services.clock.nowMicros()
    this.statistics = { ...this.statistics, state: 'retrying', lastError: failure, lastErrorMicros }
    this.#restart = setTimeout(() => {
      this.#worker = this.#startThread()
    }, restartMs)
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'store':
        void this.#store(message.request).then((result) => this.#post({ kind: 'stored', id: message.id, result }))
        return
      case 'ask':
        void this.#answerTo(message.ask).then((answer) => this.#post({ kind: 'answer', id: message.id, ...answer }))
        return
      case 'rejects':
        this.#reject(message.rejects)
        return
      case 'statistics':
        this.statistics = message.statistics
        return
      case 'log':
        this.#services.log(message.level, message.logger, message.message)
        return
      case 'done':
        this.#answered(message.what)
    }
  }

  async #answerTo(ask: Ask): Promise<{ readonly positions: Positions; readonly error: string | null }> {
    const { engine } = this.#services
    const { sources } = engine.lake
    try {
      if (ask.what === 'begin') await sources.begin(this.name, ask.places)
      if (ask.what === 'handOver') await sources.handOver(this.name)
      const positions = ask.what === 'committed' ? sources.committed(this.name) : engine.positions(this.name)
      return { positions, error: null }
    } catch (error) {
      return { positions: [], error: error instanceof Error ? error.message : String(error) }
    }
  }

  async #store(request: StoreRequest): Promise<StoreResult> {
    const { topic, partition, offset, previous, lines, precision } = request
    const sourcePosition = { connector: this.options.name, topic, partition, offset, previous }
    const line: LineRequest = {
      ...{ blocks: [lines.length === 0 ? emptyLine : lines], precision, connectionId: 0, sourcePosition },
      ...{ atomic: true, skipBadLines: true },
    }
    try {
      for (;;) {
        const reason = this.options.offsetsInLake
          ? this.#services.engine.lake.sources.refusal(this.name, request)
          : null
        if (reason !== null) return refused(reason)
        const receipt = await this.#services.engine.lines(line).receipt
        if (receipt.existed) return { kind: 'astray', stored: this.#storedOffset(request) }
        if (receipt.error === null) return { kind: 'stored', rows: receipt.rows }
        if (receipt.error.name !== 'RowError') return refused(receipt.error.message)
        const widened = this.options.widenNumbers ? await widenColumns(receipt.rejects, this.#services) : 'none'
        if (typeof widened === 'number') return { kind: 'split', line: widened }
        if (widened === 'none') return { kind: 'bad', lines: receipt.rejects }
      }
    } catch (error) {
      return refused(error instanceof Error ? error.message : String(error))
    }
  }

  #storedOffset({ topic, partition }: StoreRequest): number {
    const positions = this.#services.engine.positions(this.options.name)
    return positions.find((entry) => entry.topic === topic && entry.partition === partition)?.offset ?? -1
  }

  #reject(rejects: readonly Reject[]): void {
    const connector = this.options.name
    const lines = rejects.map(({ topic, partition, offset, table, reason }) => ({
      ...{ line: 0, message: reason, table },
      record: { connector, topic, partition, offset },
    }))
    this.#services.engine.rejects(0, lines, true)
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #ask(message: ToThread, what: 'paused' | 'stopped'): Promise<void> {
    const done = deferred<void>()
    this.#doing?.done.resolve()
    this.#doing = { what, done }
    this.#post(message)
    return done.promise
  }

  #answered(what: 'paused' | 'stopped'): void {
    if (this.#doing?.what !== what) return
    this.#doing.done.resolve()
    this.#doing = null
  }
}
