// Handlers of small HTTP endpoints: health, /ping, /settings and preferences, /warnings and /metrics.

import { refusalOfWrite } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { ExecRequestError } from './exec-request.js'
import { refuseUnread } from './guard.js'
import { parseQueryString } from './query-string.js'
import { contentTypes, reply, replyEmpty, replyJson, replyText } from './replies.js'
import { readBody } from './request-body.js'
import { PreferencesConflict } from './settings-store.js'

/** Versions of line protocol: 1 is text, 2 adds binary doubles and arrays, 3 adds decimals. */
const lineVersions = [1, 2, 3]

/** Clients of line protocol require a version of at least 2 here. */
export const influxVersion = 'v2.7.4'

/** Health probes read the status; browsers follow the redirect to the console. */
export function handleHealth(context: HttpContext, { response }: Exchange): void {
  const { home } = context.pages
  if (home !== null) response.setHeader('Refresh', `0; url=${home}`)
  const trouble = unhealthyReason(context)
  replyText(response, trouble === null ? 200 : 500, trouble ?? 'OK')
}

/** What is wrong, if health checks are to tell; null: nothing. */
export function unhealthyReason({ options, counters, engine }: HttpContext): string | null {
  if (!options.pessimisticHealth) return null
  const { logLosses } = engine.metrics().counts
  if (counters.unhandledErrors > 0) return 'unhandled errors occurred, see the log'
  return logLosses > 0 ? lossesText(logLosses) : null
}

function lossesText(count: number): string {
  return `${count} pieces of the write-ahead log are damaged or missing: rows are lost, see db/wal/aside and the log`
}

/** `verbose=true` asks for a body. */
export function handlePing(_context: HttpContext, { response, query }: Exchange): void {
  const verbose = parseQueryString(query).parameters.get('verbose') ?? ''
  const headers = ['X-Influxdb-Version', influxVersion]
  if (['', '0', 'false'].includes(verbose.toLowerCase())) replyEmpty(response, 204, headers)
  else reply(response, 200, contentTypes.json, JSON.stringify({ version: influxVersion }), headers)
}

export async function handleSettings({ options, settings }: HttpContext, { response }: Exchange): Promise<void> {
  const { version, values } = await settings.read()
  replyJson(response, 200, {
    config: {
      'release.type': 'OSS',
      'release.version': options.version,
      'http.settings.readonly': options.readOnly,
      'accepting.writes': options.acceptingWrites,
      'line.proto.support.versions': lineVersions,
      'ilp.proto.transports': ['tcp', 'http'],
      'cairo.max.file.name.length': 127,
      ...movedPaths(options),
    },
    'preferences.version': version,
    preferences: values,
  })
}

/** Tells the console and the command-line tool which paths differ from the defaults. */
function movedPaths({ executePath, exportPath, importPath }: HttpContext['options']): Record<string, string> {
  return {
    ...(executePath === '/exec' ? {} : { 'http.context.execute': executePath }),
    ...(exportPath === '/exp' ? {} : { 'http.context.export': exportPath }),
    ...(importPath === '/imp' ? {} : { 'http.context.import': importPath }),
  }
}

/** PUT replaces the preferences, POST merges into them. */
export async function handleSettingsChange(context: HttpContext, exchange: Exchange): Promise<void> {
  const { request, response, query } = exchange
  const refused = refusalOfWrite(exchange)
  if (refused !== null) return refuseUnread(response, 403, { error: refused })
  const expected = parseQueryString(query).parameters.get('version') ?? ''
  try {
    if (!/^\d{1,15}$/.test(expected)) throw new ExecRequestError(`invalid version [version=${expected}]`, null)
    const values: unknown = jsonOf(await readBody(request))
    if (typeof values !== 'object' || values === null || Array.isArray(values)) {
      throw new ExecRequestError('the body is not a JSON object', null)
    }
    const merge = request.method === 'POST'
    await context.settings.change(Number(expected), values as Readonly<Record<string, unknown>>, merge)
    replyJson(response, 200, { status: 'OK' })
  } catch (error) {
    if (error instanceof PreferencesConflict) replyJson(response, 409, { error: error.message })
    else if (error instanceof ExecRequestError) replyJson(response, 400, { error: error.message })
    else throw error
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ExecRequestError('the body is not JSON', null)
  }
}

/** Returns the problems that an administrator should act on. */
export function handleWarnings({ options, engine, warnings }: HttpContext, { response }: Exchange): void {
  const { counts, writesRefused } = engine.metrics()
  const lost = counts.logLosses > 0 ? [lossesText(counts.logLosses)] : []
  const refused = writesRefused === null ? [] : [writesRefused]
  const current = [...lost, ...refused].map((warning) => ({ tag: 'storage', warning }))
  reply(response, 200, contentTypes.plainJson, JSON.stringify([...options.warnings, ...current, ...warnings()]))
}

export async function handleMetrics({ options, metrics }: HttpContext, { response }: Exchange): Promise<void> {
  if (!options.metricsEnabled) return replyText(response, 404, 'Not Found\r\n')
  const { contentType, text } = await metrics.text()
  reply(response, 200, contentType, text)
}
