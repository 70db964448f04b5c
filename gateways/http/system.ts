// The small answers: health, what clients ask before they write, metrics.

import type { Exchange, HttpContext } from './context.js'
import type { MetricsText } from './metrics-text.js'
import { reply, replyEmpty, replyJson, replyText } from './replies.js'

/** Protocol versions of the line protocol: 1 is text, 2 has binary doubles and arrays. */
const lineVersions = [1, 2]

/** Clients of the line protocol look for a version of at least 2 here. */
const influxVersion = 'v2.7.4'

export function handleHealth({ options, counters }: HttpContext, { response }: Exchange): void {
  const healthy = !options.pessimisticHealth || counters.unhandledErrors === 0
  replyText(response, healthy ? 200 : 500, healthy ? 'OK' : 'unhandled errors occurred, see the log')
}

export function handlePing(_context: HttpContext, { response }: Exchange): void {
  replyEmpty(response, 204, ['X-Influxdb-Version', influxVersion])
}

export function handleSettings({ options }: HttpContext, { response }: Exchange): void {
  replyJson(response, 200, {
    config: {
      'release.type': 'OSS',
      'release.version': options.version,
      'accepting.writes': ['http', 'tcp'],
      'line.proto.support.versions': lineVersions,
      'ilp.proto.transports': ['tcp', 'http'],
      'cairo.max.file.name.length': 127,
    },
    'preferences.version': 0,
    preferences: {},
  })
}

const texts = new WeakMap<HttpContext, Promise<MetricsText>>()

export async function handleMetrics(context: HttpContext, { response }: Exchange): Promise<void> {
  const loading =
    texts.get(context) ?? import('./metrics-text.js').then((module) => module.metricsText(context.metrics))
  texts.set(context, loading)
  const { contentType, text } = await loading
  reply(response, 200, contentType, await text())
}
