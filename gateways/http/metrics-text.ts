// The adapter of prom-client: our table of plain numbers as the text format 0.0.4. Loaded at the first request.

import { Counter, Gauge, Registry } from 'prom-client'
import type { Metric } from '../common/metric.js'

export interface MetricsText {
  readonly contentType: string
  readonly text: () => Promise<string>
}

export function metricsText(metrics: readonly Metric[]): MetricsText {
  const registry = new Registry()
  for (const metric of metrics) register(registry, metric)
  return { contentType: registry.contentType, text: () => registry.metrics() }
}

function register(registry: Registry, { name, type, says, read }: Metric): void {
  const initial = read()
  const labelNames = typeof initial === 'number' ? [] : Object.keys(initial[0]?.labels ?? {})
  const settings = { name, help: says, labelNames, registers: [registry] }
  if (type === 'gauge') {
    const gauge: Gauge = new Gauge({
      ...settings,
      collect: () => eachValue(read(), (labels, value) => gauge.set(labels, value)),
    })
    return
  }
  const counter: Counter = new Counter({
    ...settings,
    collect: () => {
      counter.reset()
      eachValue(read(), (labels, value) => counter.inc(labels, value))
    },
  })
}

function eachValue(
  read: ReturnType<Metric['read']>,
  set: (labels: Record<string, string>, value: number) => void,
): void {
  if (typeof read === 'number') set({}, read)
  else for (const { labels, value } of read) set(labels, value)
}
