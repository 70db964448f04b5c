// Which handler answers which method of which path.

import type { Pages } from '../common/pages.js'
import { handleChk } from './chk.js'
import type { Exchange, Handler, HttpContext, HttpOptions } from './context.js'
import { handleExec } from './exec.js'
import { handleExp } from './exp.js'
import { handleImp } from './imp.js'
import { handlePage, handleRedirect } from './page.js'
import { replyEmpty, replyText } from './replies.js'
import {
  handleHealth,
  handleMetrics,
  handlePing,
  handleSettings,
  handleSettingsChange,
  handleWarnings,
} from './system.js'
import { handleValidate } from './validate.js'
import { handleWrite } from './write.js'

export type Routes = ReadonlyMap<string, Readonly<Record<string, Handler>>>

export function routes(options: HttpOptions, pages: Pages): Routes {
  const exec = { GET: handleExec, HEAD: handleExec, POST: handleExec }
  const table = new Map<string, Readonly<Record<string, Handler>>>([
    ['/', { GET: handleHealth, HEAD: handleHealth }],
    ['/ping', { GET: handlePing, HEAD: handlePing }],
    ['/settings', { GET: handleSettings, PUT: handleSettingsChange, POST: handleSettingsChange }],
    ['/warnings', { GET: handleWarnings }],
    ['/api/v1/sql/execute', exec],
    ['/api/v1/sql/validate', { GET: handleValidate }],
  ])
  table.set(options.executePath, exec)
  table.set(options.exportPath, { GET: handleExp, HEAD: handleExp })
  table.set(options.importPath, { POST: handleImp })
  table.set('/chk', { GET: handleChk, HEAD: handleChk })
  if (options.linesEnabled) {
    table.set('/write', { POST: handleWrite })
    table.set('/api/v2/write', { POST: handleWrite })
  }
  for (const [path, page] of pages.files) {
    const handler = handlePage(page)
    table.set(path, { GET: handler, HEAD: handler })
  }
  if (pages.home !== null) {
    const redirect = handleRedirect(pages.home)
    table.set(pages.home.replace(/\/$/, ''), { GET: redirect, HEAD: redirect })
  }
  table.set('/metrics', { GET: handleMetrics, HEAD: handleMetrics })
  return table
}

/** What may be asked of any path: the answer tells that there is nothing. */
const reading: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export function route(table: Routes, context: HttpContext, path: string, exchange: Exchange): Promise<void> | void {
  const handlers = table.get(path)
  const method = exchange.request.method ?? ''
  if (handlers === undefined && reading.has(method)) return replyText(exchange.response, 404, 'Not Found\r\n')
  if (handlers === undefined) return replyText(exchange.response, 405, `Method ${method} not supported\r\n`)
  const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined
  if (handler !== undefined) return handler(context, exchange)
  exchange.response.setHeader('Allow', [...Object.keys(handlers), 'OPTIONS'].join(', '))
  if (method === 'OPTIONS') return replyEmpty(exchange.response, 204)
  replyText(exchange.response, 405, `Method ${method} not supported\r\n`)
}
