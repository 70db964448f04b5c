// The metrics as both HTTP servers show them: one text, made when somebody asks.

import { createRequire } from 'node:module'
import type { Metric as PromMetric } from 'prom-client'
import type { LabelledHistogram, LabelledValue, Metric } from './metric.js'

export interface MetricsSource {
  /** Loads what printing needs, so that the first one who asks does not wait for it; throws when that fails. */
  load(): void
  text(): Promise<{ readonly contentType: string; readonly text: string }>
}

export function metricsSource(metrics: readonly Metric[], prefix: string): MetricsSource {
  let loaded: MetricsText | null = null
  const load = (): MetricsText => {
    loaded ??= metricsText(metrics, prefix)
    return loaded
  }
  return {
    load,
    text: async () => {
      const { contentType, text } = load()
      return { contentType, text: await text() }
    },
  }
}

// The adapter of prom-client: our table of plain numbers as the text format 0.0.4, beside the library's own metrics of
// process, event loop and garbage collector. The library is loaded when it is wanted: it takes a while.

interface MetricsText {
  readonly contentType: string
  readonly text: () => Promise<string>
}

/** `prefix` stands instead of `svc_`. Throws when the library cannot be loaded now; the next call tries again. */
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

/** What the registry asks of a metric when it prints: our numbers are read then, and kept nowhere else. */
function promMetric({ name, type, says, read }: Metric, prefix: string): PromMetric {
  const shown = name.replace(/^svc_/, prefix)
  const get = async () => ({ name: shown, help: says, type, values: valuesOf(shown, read()), aggregator: 'sum' })
  return { name: shown, get } as unknown as PromMetric
}

function valuesOf(name: string, read: ReturnType<Metric['read']>): PromValue[] {
  if (typeof read === 'number') return [{ labels: {}, value: read }]
  return read.flatMap((entry: LabelledValue | LabelledHistogram) =>
    'value' in entry ? [{ labels: entry.labels, value: entry.value }] : histogramValues(name, entry),
  )
}

/** Counts are cumulative in the text. */
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
