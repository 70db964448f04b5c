// Writes records about the server into its own tables. `telemetry` gets events such as starts, without statement texts;
// `_query_trace` gets the statements of connections that have query tracing on. Nothing is sent to other machines.

import type { Clock } from '../engine/base/clock.js'
import type { Log } from '../engine/base/log.js'
import { redactedText } from '../engine/base/secret-text.js'
import type { Engine, EngineHooks, Session } from '../engine/engine.js'
import type { Metric } from '../gateways/common/metric.js'
import { EventTable } from './event-table.js'
import type { Settings } from './settings/settings.js'

type Event = 'DB_START' | 'DB_STOP' | 'TABLE_CREATE' | 'QUERY_EXEC'
type Origin = 'SERVER' | 'HTTP' | 'PG' | 'ILP'

const storeMs = 1000
/** Maximum number of buffered statements. */
const tracesMax = 10_000
const ownTables: ReadonlySet<string> = new Set(['telemetry', '_query_trace'])
const origins: Record<Session['protocol'] | 'ilp', Origin> = { http: 'HTTP', pg: 'PG', ilp: 'ILP', internal: 'SERVER' }

export class Telemetry {
  readonly hooks: Required<Pick<EngineHooks, 'systemTable' | 'observer'>>
  readonly #settings: () => Settings
  readonly #clock: Clock
  readonly #log: Log
  #events: EventTable | null = null
  #traces: EventTable | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(settings: () => Settings, clock: Clock, log: Log) {
    this.#settings = settings
    this.#clock = clock
    this.#log = log
    this.hooks = {
      systemTable: (name) =>
        ownTables.has(name) ? (settings()['telemetry.hide.tables'] ? 'hidden' : 'shown') : undefined,
      observer: {
        tableCreated: (name, session) => {
          if (!ownTables.has(name)) this.#note('TABLE_CREATE', origins[session?.protocol ?? 'ilp'])
        },
        statementEnded: (session, sql, micros) => {
          this.#note('QUERY_EXEC', origins[session.protocol])
          if (session.trace?.on === true) this.#trace(session, sql, micros)
        },
      },
    }
  }

  /** Starts recording; called when the server has started. */
  async start(engine: Engine): Promise<void> {
    const settings = this.#settings()
    const weeks = settings['telemetry.table.ttl.weeks']
    this.#events = new EventTable(engine, {
      name: 'telemetry',
      columns: [
        ['created', 'TIMESTAMP'],
        ['event', 'SYMBOL'],
        ['origin', 'SYMBOL'],
      ],
      keep: weeks === 0 ? null : `${weeks} WEEKS`,
      capacity: settings['telemetry.queue.capacity'],
      log: this.#log,
    })
    this.#traces = new EventTable(engine, {
      name: '_query_trace',
      columns: [
        ['ts', 'TIMESTAMP'],
        ['query_text', 'VARCHAR'],
        ['execution_micros', 'LONG'],
        ['principal', 'VARCHAR'],
      ],
      keep: '1 DAY',
      capacity: tracesMax,
      log: this.#log,
    })
    await this.#events.continueTable()
    this.#note('DB_START', 'SERVER')
    await this.#events.store()
    this.#timer = setInterval(() => void this.#store(), storeMs)
    this.#timer.unref()
  }

  /** Stores the buffered events, and the event that the server stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#note('DB_STOP', 'SERVER')
    await this.#store()
  }

  get metrics(): Metric[] {
    return [
      {
        name: 'svc_telemetry_dropped_total',
        type: 'counter',
        description: 'Events and traced statements that could not be stored.',
        read: () => (this.#events?.dropped ?? 0) + (this.#traces?.dropped ?? 0),
      },
    ]
  }

  async #store(): Promise<void> {
    await Promise.all([this.#events?.store(), this.#traces?.store()])
  }

  #note(event: Event, origin: Origin): void {
    if (this.#settings()['telemetry.enabled']) this.#events?.note([this.#clock.nowMicros(), event, origin])
  }

  #trace({ user }: Session, sql: string, micros: number): void {
    if (!this.#settings()['query.tracing.enabled']) return
    this.#traces?.note([this.#clock.nowMicros(), redactedText(sql), micros, user])
  }
}
