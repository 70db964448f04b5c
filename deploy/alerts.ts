// Evaluates alerts: runs the query of each on its own schedule, with the right to read only. An alert is pending when
// its query returns rows, and firing when it has returned rows for as long as the definition says. sys.alerts and
// metrics show the states; the server sends nothing.
//
// Invariants:
//   1. An alert has at most one running query; one that takes longer than its interval delays the next.
//   2. An error of a query is the state of that alert and stops no other.
//   3. States are not stored. After a restart every alert is evaluated at once.

import type { Clock } from '../engine/base/clock.js'
import { messageOf } from '../engine/base/errors.js'
import type { Log } from '../engine/base/log.js'
import { readRights } from '../engine/base/rights.js'
import {
  type Engine,
  internalSession,
  type ResultColumn,
  type Session,
  type VirtualRelation,
} from '../engine/engine.js'
import type { ColumnType } from '../engine/types/column-types.js'
import { formatDate, formatTimestamp } from '../engine/types/timestamp.js'
import type { Value } from '../engine/types/value.js'
import { type AlertDefinition, AlertError, type Alerts, durationText } from '../gateways/common/alerts.js'
import type { Metric } from '../gateways/common/metric.js'
import { AlertFile } from './alert-file.js'

const tickMs = 500
const alertsMax = 1000
/** Rows of a result that are counted. */
const rowsMax = 1000
const timeoutMsMax = 60_000
const sampleLengthMax = 500

type State = 'new' | 'inactive' | 'pending' | 'firing' | 'error'

interface Alert {
  readonly definition: AlertDefinition
  state: State
  /** Since when it has this state. */
  sinceMicros: number
  /** Since when the query has returned rows; null: it returns none. */
  rowsSinceMs: number | null
  rows: number
  /** The first row. */
  sample: string
  error: string
  evaluatedMicros: number | null
  tookMs: number
  /** On the monotonic clock. */
  nextMs: number
  isRunning: boolean
  /** Another definition has replaced this one, or the server stops. */
  readonly abort: AbortController
}

interface Answer {
  readonly rows: number
  readonly sample: string
}

export class ServerAlerts implements Alerts {
  readonly #engine: Pick<Engine, 'execute'>
  readonly #clock: Clock
  readonly #file: AlertFile
  readonly #alerts = new Map<string, Alert>()
  /** Serialises changes of the file. */
  #changing: Promise<unknown> = Promise.resolve()
  #evaluations = 0
  #errors = 0
  readonly #timer: NodeJS.Timeout

  constructor(engine: Pick<Engine, 'execute'>, { path, clock, log }: { path: string; clock: Clock; log: Log }) {
    this.#engine = engine
    this.#clock = clock
    this.#file = new AlertFile(path, log)
    for (const definition of this.#file.read()) this.#add(definition)
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  async define(definition: AlertDefinition): Promise<void> {
    this.#file.requireReadable()
    try {
      await this.#ask(definition, new AbortController().signal)
    } catch (thrown) {
      throw new AlertError(`the query fails: ${messageOf(thrown)}`)
    }
    await this.#change(async () => {
      const others = this.#others(definition.name)
      if (others.length >= alertsMax) throw new AlertError(`there are too many alerts [max=${alertsMax}]`)
      await this.#file.write([...others, definition])
      this.#alerts.get(definition.name)?.abort.abort()
      this.#add(definition)
    })
  }

  async remove(name: string): Promise<boolean> {
    this.#file.requireReadable()
    return this.#change(async () => {
      const alert = this.#alerts.get(name)
      if (alert === undefined) return false
      await this.#file.write(this.#others(name))
      alert.abort.abort()
      return this.#alerts.delete(name)
    })
  }

  #change<Result>(work: () => Promise<Result>): Promise<Result> {
    const changed = this.#changing.then(work)
    this.#changing = changed.catch(() => {})
    return changed
  }

  close(): void {
    clearInterval(this.#timer)
    for (const { abort } of this.#alerts.values()) abort.abort()
  }

  get relation(): VirtualRelation {
    return {
      name: 'sys.alerts',
      columns: columns.map(([name, type]) => ({ name, type })),
      rows: () => [...this.#alerts.values()].map((alert) => columns.map(([, , value]) => value(alert))),
    }
  }

  get metrics(): Metric[] {
    return [
      {
        name: 'svc_alert_firing',
        type: 'gauge',
        description: 'Whether an alert that is defined in the server is firing: 1 or 0, by name.',
        read: () => this.#labelled(({ state }) => state === 'firing'),
      },
      {
        name: 'svc_alert_failing',
        type: 'gauge',
        description: 'Whether the last evaluation of an alert failed: 1 or 0, by name.',
        read: () => this.#labelled(({ state }) => state === 'error'),
      },
      {
        name: 'svc_alert_evaluations_total',
        type: 'counter',
        description: 'Evaluations of alerts.',
        read: () => this.#evaluations,
      },
      {
        name: 'svc_alert_errors_total',
        type: 'counter',
        description: 'Evaluations of alerts that failed.',
        read: () => this.#errors,
      },
    ]
  }

  #labelled(holds: (alert: Alert) => boolean): { labels: { alert: string }; value: number }[] {
    return [...this.#alerts.values()].map((alert) => ({
      labels: { alert: alert.definition.name },
      value: holds(alert) ? 1 : 0,
    }))
  }

  #others(name: string): AlertDefinition[] {
    return [...this.#alerts.values()].map(({ definition }) => definition).filter((other) => other.name !== name)
  }

  #add(definition: AlertDefinition): void {
    this.#alerts.set(definition.name, {
      ...{ definition, state: 'new', sinceMicros: this.#clock.nowMicros(), rowsSinceMs: null, rows: 0, sample: '' },
      ...{ error: '', evaluatedMicros: null, tookMs: 0, nextMs: 0, isRunning: false, abort: new AbortController() },
    })
  }

  #tick(): void {
    const nowMs = this.#clock.monotonicMs()
    for (const alert of this.#alerts.values()) if (!alert.isRunning && alert.nextMs <= nowMs) void this.#evaluate(alert)
  }

  /** Never rejects. */
  async #evaluate(alert: Alert): Promise<void> {
    const beganMs = this.#clock.monotonicMs()
    alert.isRunning = true
    alert.nextMs = beganMs + alert.definition.everyMs
    try {
      const answer = await this.#ask(alert.definition, alert.abort.signal)
      if (!alert.abort.signal.aborted) this.#settle(alert, answer, beganMs)
    } catch (thrown) {
      if (!alert.abort.signal.aborted) this.#fail(alert, messageOf(thrown))
    }
    alert.evaluatedMicros = this.#clock.nowMicros()
    alert.tookMs = this.#clock.monotonicMs() - beganMs
    alert.isRunning = false
    this.#evaluations++
  }

  #settle(alert: Alert, { rows, sample }: Answer, nowMs: number): void {
    const { forMs } = alert.definition
    if (rows === 0) alert.rowsSinceMs = null
    else alert.rowsSinceMs ??= nowMs
    const isDue = alert.rowsSinceMs !== null && nowMs - alert.rowsSinceMs >= forMs
    Object.assign(alert, { rows, sample, error: '' })
    this.#enter(alert, rows === 0 ? 'inactive' : isDue ? 'firing' : 'pending')
  }

  #fail(alert: Alert, error: string): void {
    this.#errors++
    Object.assign(alert, { rows: 0, sample: '', error, rowsSinceMs: null })
    this.#enter(alert, 'error')
  }

  #enter(alert: Alert, state: State): void {
    if (alert.state === state) return
    alert.state = state
    alert.sinceMicros = this.#clock.nowMicros()
  }

  async #ask({ query, everyMs, user }: AlertDefinition, signal: AbortSignal): Promise<Answer> {
    const session: Session = { ...internalSession(user), readOnly: true, rights: readRights }
    const result = await this.#engine.execute(query, {
      ...{ session, encoding: { kind: 'values' }, parameters: [], skip: 0, rowsMax, countAll: false, columns: null },
      ...{ timeoutMs: Math.min(everyMs, timeoutMsMax), signal, explain: false },
    })
    if (result.kind !== 'rows') throw new AlertError('the statement is no query')
    let rows = 0
    let first: readonly Value[] | undefined
    for await (const batch of result.values) {
      first ??= batch[0]
      rows += batch.length
    }
    await result.summary
    return { rows, sample: first === undefined ? '' : sampleText(result.columns, first) }
  }
}

const columns: readonly (readonly [name: string, type: ColumnType, value: (alert: Alert) => Value])[] = [
  ['name', 'VARCHAR', ({ definition }) => definition.name],
  ['state', 'SYMBOL', ({ state }) => state],
  ['since', 'TIMESTAMP', ({ sinceMicros }) => BigInt(sinceMicros)],
  ['rows', 'LONG', ({ rows }) => BigInt(rows)],
  ['first_row', 'VARCHAR', ({ sample }) => (sample === '' ? null : sample)],
  ['error', 'VARCHAR', ({ error }) => (error === '' ? null : error)],
  ['evaluated_at', 'TIMESTAMP', ({ evaluatedMicros }) => (evaluatedMicros === null ? null : BigInt(evaluatedMicros))],
  ['took_ms', 'LONG', ({ tookMs }) => BigInt(Math.round(tookMs))],
  ['every', 'VARCHAR', ({ definition }) => durationText(definition.everyMs)],
  ['for', 'VARCHAR', ({ definition }) => durationText(definition.forMs)],
  ['query', 'VARCHAR', ({ definition }) => definition.query],
  ['username', 'VARCHAR', ({ definition }) => definition.user],
]

function sampleText(heads: readonly ResultColumn[], row: readonly Value[]): string {
  const text = heads.map(({ name, type }, index) => `${name}=${shown(row[index] ?? null, type.name)}`).join(', ')
  return text.length <= sampleLengthMax ? text : `${text.slice(0, sampleLengthMax)}..`
}

function shown(value: Value, type: ColumnType): string {
  if (value === null) return 'NULL'
  if (typeof value !== 'bigint') return String(value)
  if (type === 'TIMESTAMP' || type === 'TIMESTAMP_NS') return formatTimestamp(value, type)
  return type === 'DATE' ? formatDate(value) : String(value)
}
