// GET /exec: one statement, its result as JSON. A client that goes away cancels its statement.

import type { ServerResponse } from 'node:http'
import type { Encoding, ExecuteOptions, RowsResult, StatementResult } from '../../engine/engine.js'
import { exportBlocks } from '../../pipeline/export.js'
import { answerOf } from '../common/answers.js'
import type { Exchange, HttpContext } from './context.js'
import { doneBody, errorBody, planBody, rowsHead, rowsTail } from './exec-json.js'
import { type ExecRequest, ExecRequestError, parseExecRequest } from './exec-request.js'
import { contentTypes, reply, replyText, statusOf } from './replies.js'

export async function handleExec(context: HttpContext, exchange: Exchange): Promise<void> {
  if (!context.queries.enter()) {
    replyText(exchange.response, 503, 'too many queries run now\r\n')
    return
  }
  exchange.connection.state = 'querying'
  try {
    await answerStatement(context, exchange)
  } finally {
    exchange.connection.state = 'idle'
    context.queries.leave()
  }
}

async function answerStatement(context: HttpContext, { request, response, query }: Exchange): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  let sql = ''
  try {
    const exec = parseExecRequest(query, headerText(request.headers['statement-timeout']), {
      timeoutMs: context.options.queryTimeoutMs,
    })
    sql = exec.sql
    const begunMs = context.clock.monotonicMs()
    const result = await context.engine.execute(sql, executeOptions(context, exec, gone.signal))
    countStatement(context, result)
    await sendResult(context, response, exec, result, { begunMs, signal: gone.signal })
    logStatement(context, sql, result, context.clock.monotonicMs() - begunMs)
  } catch (error) {
    if (error instanceof ExecRequestError) sql = error.sql
    if (!gone.signal.aborted) refuse(context, response, sql, error)
  }
}

function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

function executeOptions({ session, options }: HttpContext, exec: ExecRequest, signal: AbortSignal): ExecuteOptions {
  const encoding: Encoding = exec.countOnly
    ? { kind: 'count' }
    : { kind: 'json', quoteLargeNumbers: exec.quoteLargeNumbers, geohashAsText: true }
  return {
    session,
    encoding,
    parameters: [],
    skip: exec.countOnly ? 0 : exec.skip,
    rowsMax: exec.countOnly ? 0 : Math.min(exec.rowsMax, options.rowsMax),
    countAll: exec.countOnly,
    columns: exec.columns,
    timeoutMs: exec.timeoutMs,
    signal,
    explain: exec.explain,
  }
}

interface Run {
  readonly begunMs: number
  readonly signal: AbortSignal
}

async function sendResult(
  context: HttpContext,
  response: ServerResponse,
  exec: ExecRequest,
  result: StatementResult,
  run: Run,
): Promise<void> {
  switch (result.kind) {
    case 'rows':
      return sendRows(context, response, exec, result, run)
    case 'done':
      return reply(response, 200, contentTypes.json, doneBody(exec, result))
    case 'plan':
      return reply(response, 200, contentTypes.json, planBody(exec, result))
  }
}

async function sendRows(
  { clock }: HttpContext,
  response: ServerResponse,
  exec: ExecRequest,
  result: RowsResult,
  { begunMs, signal }: Run,
): Promise<void> {
  // Read behind the last block; a failure reaches us through the blocks as well.
  result.summary.catch(() => {})
  const tail = async (): Promise<Buffer> => {
    const { rows } = await result.summary
    const executeMs = Math.max(0, clock.monotonicMs() - begunMs - result.compilerMs)
    return rowsTail(exec, rows, { compilerMs: result.compilerMs, executeMs })
  }
  await exportBlocks({
    blocks: result.blocks,
    head: rowsHead(exec, result),
    tail,
    target: {
      whole: (body) => reply(response, 200, contentTypes.json, body),
      begin: () => response.writeHead(200, ['Content-Type', contentTypes.json]),
    },
    signal,
  })
}

/** Behind the first byte of an answer an error can only cut it off, which the client sees as a broken chunk. */
function refuse({ counters, log }: HttpContext, response: ServerResponse, sql: string, error: unknown): void {
  const { blame, message, place } = answerOf(error)
  counters.queryErrors++
  if (blame === 'internal') {
    counters.unhandledErrors++
    log('E', 'http', `statement failed: ${error instanceof Error ? error.stack : message} [sql=${sql}]`)
  }
  if (response.headersSent) response.destroy()
  else reply(response, statusOf(blame), contentTypes.json, errorBody(sql, message, place))
}

function countStatement({ counters }: HttpContext, result: StatementResult): void {
  if (result.kind === 'rows') {
    counters.queries.select++
    if (result.cached) counters.queryCacheHits++
    else counters.queryCacheMisses++
  } else if (result.kind === 'done' && result.tag === 'INSERT') {
    counters.queries.insert++
    counters.rowsWritten += result.rows
  } else if (result.kind === 'done' && result.tag === 'UPDATE') counters.queries.update++
  else counters.queries.other++
}

function logStatement({ options, log }: HttpContext, sql: string, result: StatementResult, timeMs: number): void {
  if (!options.logQueries) return
  const cached = result.kind === 'rows' && result.cached
  log('I', 'exec', `[exe] ${sql} [cached=${cached}, time=${Math.round(timeMs * 1000) / 1000}ms]`)
}
