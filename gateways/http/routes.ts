// Maps method and path of a request to its handler. Includes the handlers of /chk, /api/v1/sql/validate and static pages.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { whenReady } from '../../engine/base/errors.js'
import { requireRight } from '../../engine/base/rights.js'
import { errorReportOf } from '../common/error-reports.js'
import { type Page, type Pages, redirectsOf } from '../common/pages.js'
import { handleAlert, handleAlertRemoval } from './alerts.js'
import type { Exchange, Handler, HttpContext, HttpOptions } from './context.js'
import { handleExec } from './exec.js'
import { columnJson, errorBody } from './exec-json.js'
import { ExecRequestError, parseExecRequest } from './exec-request.js'
import { handleExp } from './exp.js'
import { handleIceberg, icebergPath } from './iceberg.js'
import { handleImp } from './imp.js'
import { handleInfluxHealth, handleInfluxQuery, handleReady } from './influx.js'
import { parseQueryString } from './query-string.js'
import { contentTypes, reply, replyEmpty, replyJson, replyText, statusOf } from './replies.js'
import { handleSaved, handleSavedChange, handleSavedRemoval } from './saved.js'
import { handleSession, handleSignIn, handleSignOut } from './session.js'
import { sessionPath } from './session-cookie.js'
import {
  handleHealth,
  handleMetrics,
  handlePing,
  handleSettings,
  handleSettingsChange,
  handleWarnings,
} from './system.js'
import { upgradePaths } from './upgrades.js'
import { handleWrite } from './write.js'
import { writePathV3 } from './write-request.js'

export type Routes = ReadonlyMap<string, Readonly<Record<string, Handler>>>

export function routes(options: HttpOptions, pages: Pages): Routes {
  const exec = { GET: handleExec, HEAD: handleExec, POST: handleExec }
  const table = new Map<string, Readonly<Record<string, Handler>>>([
    ['/', { GET: handleHealth, HEAD: handleHealth }],
    ['/ping', { GET: handlePing, HEAD: handlePing }],
    ['/health', { GET: handleInfluxHealth, HEAD: handleInfluxHealth }],
    ['/ready', { GET: handleReady, HEAD: handleReady }],
    ['/settings', { GET: handleSettings, PUT: handleSettingsChange, POST: handleSettingsChange }],
    ['/warnings', { GET: handleWarnings }],
    ['/api/v1/alerts', { PUT: handleAlert, DELETE: handleAlertRemoval }],
    ['/api/v1/saved', { GET: handleSaved, PUT: handleSavedChange, DELETE: handleSavedRemoval }],
    ['/api/v1/sql/execute', exec],
    ['/api/v1/sql/validate', { GET: handleValidate }],
  ])
  if (options.linesEnabled) {
    for (const path of ['/write', '/api/v2/write', writePathV3]) table.set(path, { POST: handleWrite })
    table.set('/query', { GET: handleInfluxQuery, POST: handleInfluxQuery })
  }
  for (const path of upgradePaths) table.set(path, { GET: handleNoUpgrade })
  // Paths that settings have moved take precedence.
  table.set(options.executePath, exec)
  table.set(options.exportPath, { GET: handleExp, HEAD: handleExp })
  table.set(options.importPath, { POST: handleImp })
  table.set('/chk', { GET: handleChk, HEAD: handleChk })
  if (pages.home !== null) table.set(sessionPath, { GET: handleSession, POST: handleSignIn, DELETE: handleSignOut })
  for (const [path, page] of pages.files) {
    const handler = handlePage(page)
    table.set(path, { GET: handler, HEAD: handler })
  }
  for (const [path, target] of redirectsOf(pages)) {
    const redirect = handleRedirect(target)
    table.set(path, { GET: redirect, HEAD: redirect })
  }
  table.set('/metrics', { GET: handleMetrics, HEAD: handleMetrics })
  return table
}

/** Methods that get a 404 for an unknown path; others get a 405. */
const reading: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export function route(table: Routes, context: HttpContext, path: string, exchange: Exchange): Promise<void> | void {
  const handlers = table.get(path)
  const method = exchange.request.method ?? ''
  if (handlers === undefined && path.startsWith(icebergPath) && method !== 'OPTIONS')
    return handleIceberg(context, path, exchange)
  if (handlers === undefined && reading.has(method)) return replyText(exchange.response, 404, 'Not Found\r\n')
  if (handlers === undefined) return replyText(exchange.response, 405, `Method ${method} not supported\r\n`)
  const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined
  if (handler !== undefined) return handler(context, exchange)
  exchange.response.setHeader('Allow', methodsOf(table, path).join(', '))
  if (method === 'OPTIONS') return replyEmpty(exchange.response, 204)
  replyText(exchange.response, 405, `Method ${method} not supported\r\n`)
}

export function methodsOf(table: Routes, path: string): readonly string[] {
  return [...Object.keys(table.get(path) ?? {}), 'OPTIONS']
}

/** A path of a WebSocket protocol, without the request to change to it. */
function handleNoUpgrade(_context: HttpContext, { response }: Exchange): void {
  response.setHeader('Upgrade', 'websocket')
  replyText(response, 426, 'this path accepts WebSocket connections only\r\n')
}

// GET /chk: whether a table exists.

function handleChk({ engine }: HttpContext, { response, query, session }: Exchange): void {
  requireRight(session, 'read')
  const { parameters } = parseQueryString(query)
  const name = parameters.get('j') ?? ''
  const status = engine.tableExists(name) ? 'Exists' : 'Does not exist'
  if (name === '') replyText(response, 200, 'table name missing\r\n')
  else if (parameters.get('f') === 'json') reply(response, 200, contentTypes.plainJson, JSON.stringify({ status }))
  else replyText(response, 200, `${status}\r\n`)
}

/** Redirects a path without its trailing slash to the one with it. */
function handleRedirect(path: string): Handler {
  return (_context, { response }) => {
    response.writeHead(301, ['Location', path, 'Content-Length', '0']).end()
  }
}

// GET /api/v1/sql/validate: checks a statement without running it.

async function handleValidate(context: HttpContext, { response, query, session }: Exchange): Promise<void> {
  let sql: string | null = ''
  try {
    const exec = parseExecRequest(query, undefined, { timeoutMs: 0 })
    sql = exec.sql
    const { queryType, columns, timestampIndex } = await whenReady((planning) =>
      context.engine.validate(exec.sql, { ...session, planning }),
    )
    const kind = queryType === 'SELECT' ? {} : { queryType }
    const rows = columns === null ? {} : { columns: columns.map(columnJson), timestamp: timestampIndex }
    replyJson(response, 200, { query: sql, ...kind, ...rows })
  } catch (error) {
    if (error instanceof ExecRequestError) sql = error.sql
    const { category, message, place, hint } = errorReportOf(error)
    reply(response, statusOf(category), contentTypes.json, errorBody(sql, message, place, hint))
  }
}

/** Smaller bodies fit into a packet uncompressed. */
const packedBytesMin = 1400
const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i

function handlePage({ contentType, body, etag }: Page): Handler {
  let packed: Promise<Buffer> | null = null
  return async ({ pages }, { request, response }) => {
    const shared = [...pages.headers, 'ETag', etag, 'Vary', 'Accept-Encoding']
    if (request.headers['if-none-match'] === etag) {
      response.writeHead(304, shared).end()
      return
    }
    const isPacked = body.length >= packedBytesMin && acceptsGzip.test(String(request.headers['accept-encoding'] ?? ''))
    if (isPacked) packed ??= promisify(gzip)(body, { level: 9 })
    const sent = isPacked && packed !== null ? await packed : body
    const coding = isPacked ? ['Content-Encoding', 'gzip'] : []
    response.writeHead(200, [...shared, 'Content-Type', contentType, ...coding, 'Content-Length', String(sent.length)])
    response.end(request.method === 'HEAD' ? undefined : sent)
  }
}
