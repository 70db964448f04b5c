// The metrics as both HTTP servers show them: one text, made when somebody asks.

import type { Metric } from './metric.js'
import { type MetricsText, metricsText } from './metrics-text.js'

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
