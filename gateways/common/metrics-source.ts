// The metrics as both HTTP servers show them: one text, made when somebody asks.

import type { Metric } from './metric.js'
import type { MetricsText } from './metrics-text.js'

export interface MetricsSource {
  /** Loads what printing needs, so that the first one who asks does not wait for it. */
  load(): Promise<void>
  text(): Promise<{ readonly contentType: string; readonly text: string }>
}

export function metricsSource(metrics: readonly Metric[], prefix: string): MetricsSource {
  let loading: Promise<MetricsText> | null = null
  const loaded = (): Promise<MetricsText> => {
    loading ??= import('./metrics-text.js').then((module) => module.metricsText(metrics, prefix))
    return loading
  }
  return {
    load: async () => void (await loaded()),
    text: async () => {
      const { contentType, text } = await loaded()
      return { contentType, text: await text() }
    },
  }
}
