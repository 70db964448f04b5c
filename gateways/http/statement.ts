// Functions shared by the HTTP endpoints that run SQL statements: cancel the statement when the client disconnects,
// turn its error into a response, count it in the metrics and log it.

import type { ServerResponse } from 'node:http'
import { attempt } from '../../engine/base/and-then.js'
import { redactedText } from '../../engine/base/secret-text.js'
import type { StatementResult } from '../../engine/engine.js'
import { type ErrorReport, errorReportOf } from '../common/error-reports.js'
import { LazySignal } from '../common/lazy-signal.js'
import type { Exchange, HttpContext } from './context.js'
import { errorBody } from './exec-json.js'
import { ExecRequestError } from './exec-request.js'
import { discardRemainder } from './guard.js'
import { abortResponse, contentTypes, reply, statusOf } from './replies.js'

/** A signal that is aborted when the client disconnects before its response is complete. */
export function disconnectSignal(response: ServerResponse): LazySignal {
  const gone = new LazySignal()
  response.on('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  return gone
}

/** Runs a handler and reports its error to the client if it is still connected. */
export function withErrorResponse(
  context: HttpContext,
  { response, connection }: Exchange,
  respond: (gone: LazySignal) => void | Promise<void>,
  statement: { readonly sql: () => string | null; readonly ended: () => void },
): void | Promise<void> {
  const gone = disconnectSignal(response)
  connection.state = 'querying'
  return attempt(
    () => respond(gone),
    (error) => {
      if (gone.aborted) return
      if (isDeparture(error)) abortResponse(response)
      else refuse(context, response, error instanceof ExecRequestError ? error.sql : statement.sql(), error)
    },
    () => {
      connection.state = 'idle'
      statement.ended()
    },
  )
}

/** A failed write is often reported before the response reports that the client disconnected. */
function isDeparture(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET')
}

/** Counts the error, logs it if it is internal, and returns what to report to the client. */
export function errorReport({ counters, log }: HttpContext, sql: string | null, error: unknown): ErrorReport {
  const report = errorReportOf(error)
  counters.queryErrors++
  if (report.category === 'internal') {
    counters.unhandledErrors++
    log(
      'E',
      'http',
      `statement failed: ${error instanceof Error ? error.stack : report.message} [sql=${redactedText(sql ?? '')}]`,
    )
  }
  return report
}

/** Sends an error response, or cuts the response off if a part of it has been sent. */
function refuse(context: HttpContext, response: ServerResponse, sql: string | null, error: unknown): void {
  const { category, message, place, hint } = errorReport(context, sql, error)
  if (response.headersSent) {
    context.log('W', 'http', `response cut off: ${message} [sql=${redactedText(sql ?? '')}]`)
    abortResponse(response)
  } else {
    reply(response, statusOf(category), contentTypes.json, errorBody(sql, message, place, hint))
    discardRemainder(response, 'known')
  }
}

export function logStatement(
  { options, log }: HttpContext,
  sql: string,
  result: StatementResult,
  timeMs: number,
): void {
  if (!options.logQueries) return
  const cached = result.kind === 'rows' && result.cached
  log('I', 'exec', `[exe] ${redactedText(sql)} [cached=${cached}, time=${Math.round(timeMs * 1000) / 1000}ms]`)
}
