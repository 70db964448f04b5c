// Types of metrics: each has a name, a type, a help text and a function that reads its value. Hot paths only
// increment plain numbers; values are collected when a scrape asks for them. Names start with `svc_`, which a setting
// replaces.

import type { Histogram } from '../../engine/engine.js'

export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly description: string
  readonly read: () => number | readonly LabelledValue[] | readonly LabelledHistogram[]
}

/**
 * Makes metrics of statistics that a part of the server reports now and then. They are 0 before its first report.
 * `prefix`: of their names.
 */
export function reportedMetric<Statistics>(prefix: string, latest: () => Statistics | null) {
  return (
    name: string,
    type: 'counter' | 'gauge',
    description: string,
    read: (statistics: Statistics) => number,
  ): Metric => ({
    ...{ name: `${prefix}_${name}`, type, description },
    read: () => {
      const statistics = latest()
      return statistics === null ? 0 : read(statistics)
    },
  })
}

export interface LabelledValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface LabelledHistogram extends Histogram {
  readonly labels: Readonly<Record<string, string>>
}

/** Bucket bounds of request durations, in seconds. */
const durationBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60] as const

/** Histograms of request durations by endpoint. */
export class Durations {
  readonly #counts = new Map<string, { counts: number[]; sum: number }>()

  observe(endpoint: string, seconds: number): void {
    const known = this.#counts.get(endpoint) ?? this.#add(endpoint)
    let bucket = 0
    while (bucket < durationBounds.length && seconds > (durationBounds[bucket] as number)) bucket++
    known.counts[bucket] = (known.counts[bucket] as number) + 1
    known.sum += seconds
  }

  histograms(label: string): LabelledHistogram[] {
    return [...this.#counts].map(([endpoint, { counts, sum }]) => ({
      labels: { [label]: endpoint },
      bounds: durationBounds,
      counts,
      sum,
    }))
  }

  #add(endpoint: string): { counts: number[]; sum: number } {
    const added = { counts: new Array<number>(durationBounds.length + 1).fill(0), sum: 0 }
    this.#counts.set(endpoint, added)
    return added
  }
}

/** Datagrams of QWP by what became of them. */
interface DatagramCounts {
  stored: number
  /** They are no messages. */
  malformed: number
  /** The engine cannot store them. */
  rejected: number
  /** They came too fast. */
  dropped: number
  /** The server is read-only. */
  refused: number
}

/** Counters that all gateways share. */
export interface GatewayCounters {
  /** Statements by type. */
  readonly queries: Record<'select' | 'insert' | 'update' | 'other', number>
  queryErrors: number
  queryCacheHits: number
  queryCacheMisses: number
  rowsWritten: number
  /** Rows rejected individually. */
  rowsRejected: number
  unhandledErrors: number
  /** Messages of QWP: stored, rejected, and batches of results with their bytes as sent. */
  readonly qwp: { accepted: number; rejected: number; batches: number; batchBytes: number; udp: DatagramCounts }
  /** HTTP responses by status class. */
  readonly responses: Record<'2xx' | '3xx' | '4xx' | '5xx', number>
  /** HTTP request durations by endpoint. */
  readonly durations: Durations
}

/** `unhandled` is called after each unhandled error. */
export function gatewayCounters(unhandled: () => void = () => {}): GatewayCounters {
  let unhandledErrors = 0
  return {
    queries: { select: 0, insert: 0, update: 0, other: 0 },
    queryErrors: 0,
    queryCacheHits: 0,
    queryCacheMisses: 0,
    rowsWritten: 0,
    rowsRejected: 0,
    get unhandledErrors() {
      return unhandledErrors
    },
    set unhandledErrors(count) {
      unhandledErrors = count
      unhandled()
    },
    qwp: {
      ...{ accepted: 0, rejected: 0, batches: 0, batchBytes: 0 },
      udp: { stored: 0, malformed: 0, rejected: 0, dropped: 0, refused: 0 },
    },
    responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 },
    durations: new Durations(),
  }
}
