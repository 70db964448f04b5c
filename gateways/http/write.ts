// Handles POST /write, /api/v2/write and /api/v3/write_lp, which store line protocol. The body of a request is stored
// atomically; status 204 means that it is stored. write-request.ts describes the parameters. In a multipart body, every
// part contains lines, whatever its name.

import type { IncomingMessage } from 'node:http'
import type { Receipt } from '../../engine/engine.js'
import { ingestLineBody } from '../../pipeline/ingest.js'
import { refusalOfWrite } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { discardRemainder, refuseUnread } from './guard.js'
import { replyEmpty, replyJson } from './replies.js'
import { nextErrorId, partialBody, refusalOf, refusalOfReceipt, type WriteRefusal } from './write-errors.js'
import { writePathV3, writeRequestOf } from './write-request.js'

const replayedHeader = 'Idempotency-Replayed'

export async function handleWrite(context: HttpContext, exchange: Exchange): Promise<void> {
  const { request, response, connection } = exchange
  const refused = refusalOfWrite(exchange)
  if (refused !== null) {
    const body = { code: 'forbidden', message: refused, error: refused, position: 0 }
    return refuseUnread(response, 403, body)
  }
  if (!context.lineRequests.enter()) {
    refuse(context, exchange, {
      status: 503,
      code: 'not accepting writes',
      message: 'too many requests are running',
      line: 0,
    })
    return
  }
  connection.state = 'writing'
  request.setTimeout(context.options.keepAliveMs)
  try {
    const refusal = await store(context, exchange)
    if (refusal === null) {
      if (!response.destroyed) replyEmpty(response, 204)
    } else if ('rejects' in refusal) reportRejects(context, exchange, refusal)
    else refuse(context, exchange, refusal)
  } finally {
    request.setTimeout(0)
    connection.state = 'idle'
    context.lineRequests.leave()
  }
}

async function store(context: HttpContext, exchange: Exchange): Promise<WriteRefusal | Receipt | null> {
  const { request, response, query, connection } = exchange
  const { linePrefixParts } = context.options
  const asked = writeRequestOf(request, query, isV3(request), linePrefixParts)
  if ('code' in asked) return asked
  const { precision, partial, gzip, key, tablePrefix } = asked
  const gone = new AbortController()
  const leave = (): void => gone.abort()
  response.once('close', leave)
  try {
    const receipt = await ingestLineBody(request, {
      engine: context.engine,
      connectionId: connection.id,
      precision,
      gzip,
      headers: request.headers,
      partial,
      contentLength: contentLength(request),
      bodyBytesMax: context.options.lineBodyBytesMax,
      blockBytesMax: context.options.receiveBufferBytes,
      budget: context.lineBudget,
      key,
      tablePrefix,
      signal: gone.signal,
    })
    if (receipt === null) return null
    connection.rowsReceived += receipt.rows + receipt.rejected
    connection.rowsRejected += receipt.rejected
    context.counters.rowsRejected += receipt.rejected
    const refusal = refusalOfReceipt(receipt, partial)
    if (refusal !== null) return refusal
    if (receipt.existed) response.setHeader(replayedHeader, 'true')
    connection.rowsCommitted += receipt.rows
    context.counters.rowsWritten += receipt.rows
    return receipt.rejects.length > 0 ? receipt : null
  } catch (error) {
    if (gone.signal.aborted) return null
    return logged(context, error)
  } finally {
    response.off('close', leave)
  }
}

function isV3({ url = '' }: IncomingMessage): boolean {
  return url.replace(/[?#].*$/s, '').endsWith(writePathV3)
}

function logged({ log, counters }: HttpContext, error: unknown): WriteRefusal {
  const refusal = refusalOf(error)
  if (refusal.status === 500) {
    counters.unhandledErrors++
    log('E', 'http', `write failed: ${error instanceof Error ? error.stack : String(error)}`)
  }
  return refusal
}

function contentLength(request: IncomingMessage): number | null {
  const text = request.headers['content-length']
  return text === undefined ? null : Number(text)
}

/** Reports the rejected lines of a request whose good lines are stored. */
function reportRejects({ log }: HttpContext, { response }: Exchange, receipt: Receipt): void {
  const { rows, rejects, rejected } = receipt
  const first = rejects[0]
  log('W', 'http', `lines refused: ${first?.message} [line=${first?.line}, refused=${rejected}, stored=${rows}]`)
  if (response.destroyed) return
  replyJson(response, 400, partialBody(receipt))
  discardRemainder(response, 'known')
}

function refuse({ log }: HttpContext, { response }: Exchange, refusal: WriteRefusal): void {
  const { status, code, message, line } = refusal
  const errorId = nextErrorId()
  log(status >= 500 ? 'E' : 'W', 'http', `write refused: ${message} [errorId=${errorId}]`)
  if (response.destroyed) return
  // Version 3 reads `error`.
  const body = { code, message, line, errorId }
  replyJson(response, status, isV3(response.req) ? { error: message, ...body } : body)
  discardRemainder(response, 'known')
}
