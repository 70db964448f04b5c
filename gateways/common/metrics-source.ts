// Produces the Prometheus text of all metrics, for /metrics of the HTTP gateway and of the health-check server.

import { createRequire } from 'node:module'
import type { Metric as PromMetric } from 'prom-client'
import type { LabelledHistogram, LabelledValue, Metric } from './metric.js'

export interface MetricsSource {
  text(): Promise<{ readonly contentType: string; readonly text: string }>
}

export function metricsSource(metrics: readonly Metric[], prefix: string): MetricsSource {
  let loaded: MetricsText | null = null
  return {
    text: async () => {
      loaded ??= metricsText(metrics, prefix)
      return { contentType: loaded.contentType, text: await loaded.text() }
    },
  }
}

// The only module that uses prom-client: it formats our metrics as text format 0.0.4 and adds the library's own
// metrics of process, event loop and garbage collector. The library is loaded on demand because loading is slow.

interface MetricsText {
  readonly contentType: string
  readonly text: () => Promise<string>
}

/** `prefix` replaces `svc_`. Throws when the library cannot be loaded; the next call tries again. */
function metricsText(metrics: readonly Metric[], prefix: string): MetricsText {
  const { collectDefaultMetrics, Registry } = createRequire(import.meta.url)(
    'prom-client',
  ) as typeof import('prom-client')
  const registry = new Registry()
  for (const metric of metrics) registry.registerMetric(promMetric(metric, prefix))
  collectDefaultMetrics({ register: registry, prefix })
  return { contentType: registry.contentType, text: () => registry.metrics() }
}

interface PromValue {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
}

/** Wraps a metric for the registry, which reads our numbers whenever it prints and stores none itself. */
function promMetric({ name, type, description, read }: Metric, prefix: string): PromMetric {
  const shown = name.replace(/^svc_/, prefix)
  const get = async () => ({ name: shown, help: description, type, values: valuesOf(shown, read()), aggregator: 'sum' })
  return { name: shown, get } as unknown as PromMetric
}

function valuesOf(name: string, read: ReturnType<Metric['read']>): PromValue[] {
  if (typeof read === 'number') return [{ labels: {}, value: read }]
  return read.flatMap((entry: LabelledValue | LabelledHistogram) =>
    'value' in entry ? [{ labels: entry.labels, value: entry.value }] : histogramValues(name, entry),
  )
}

/** The text format has cumulative bucket counts. */
function histogramValues(name: string, { labels, bounds, counts, sum }: LabelledHistogram): PromValue[] {
  let total = 0
  const buckets = counts.map((count, index): PromValue => {
    total += count
    const le = bounds[index] ?? '+Inf'
    return { labels: { le, ...labels }, value: total, metricName: `${name}_bucket` }
  })
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: total, metricName: `${name}_count` },
  ]
}
