// Handles GET and POST /exec: runs one statement and returns its result as JSON. A client disconnect cancels the
// statement.

import { andThen } from '../../engine/base/and-then.js'
import { whenReady } from '../../engine/base/errors.js'
import type { Encoding, ExecuteOptions, ReadyRows, RowsResult, Session, StatementResult } from '../../engine/engine.js'
import { dataType } from '../../engine/types/column-types.js'
import { chooseCoding, compressor, compressWhole, exportBlocks } from '../../pipeline/export.js'
import { countStatement } from '../common/count-statement.js'
import type { LazySignal } from '../common/lazy-signal.js'
import type { Exchange, HttpContext } from './context.js'
import { doneBody, failedTail, planBody, rowsHead, rowsTail, type Times } from './exec-json.js'
import { type ExecRequest, ExecRequestError, parseExecRequest } from './exec-request.js'
import {
  announceTrailers,
  begin,
  contentTypes,
  joinedBytesMax,
  reply,
  replyBusy,
  replyLatin1,
  replyText,
} from './replies.js'
import { bringsBody, headerText, readBody } from './request-body.js'
import { errorReport, logStatement, withErrorResponse } from './statement.js'

/** Trailer with the URL-encoded message of a query that failed after rows were sent. */
const errorTrailer = 'X-Error'
const readOnlyRequest = 'the request asks for a read-only statement [parameter=readonly]'

export function handleExec(context: HttpContext, exchange: Exchange): void | Promise<void> {
  // Matches what clients expect: a statement in the URL is sent with GET.
  if (exchange.request.method === 'POST' && !bringsBody(exchange.request)) {
    replyText(exchange.response, 405, 'Method POST not supported without a body\r\n')
    return
  }
  if (!context.queries.enter()) {
    replyBusy(exchange.response, 'too many queries are running')
    return
  }
  let sql: string | null = null
  const respond = (gone: LazySignal): void | Promise<void> =>
    andThen(parametersOf(exchange), ({ query, parameters }) => {
      const exec = parseExecRequest(query, headerText(exchange.request, 'statement-timeout'), {
        timeoutMs: context.options.queryTimeoutMs,
      })
      sql = exec.sql
      if (exchange.request.method === 'HEAD') return respondToHead(context, exchange, sql)
      return runStatement(context, exchange, exec, parameters, gone)
    })
  return withErrorResponse(context, exchange, respond, {
    sql: () => sql,
    ended: () => context.queries.leave(),
  })
}

function parametersOf({ request, query }: Exchange): ExecBody | Promise<ExecBody> {
  if (request.method !== 'POST') return { query, parameters: [] }
  const type = headerText(request, 'content-type') ?? ''
  return readBody(request).then((body) => parseExecBody(type, body, query))
}

/** Answers HEAD: validates the statement without running it. */
async function respondToHead({ engine }: HttpContext, { response, session }: Exchange, sql: string): Promise<void> {
  await whenReady((planning) => engine.validate(sql, { ...session, planning }))
  begin(response, 200, ['Content-Type', contentTypes.json]).end()
}

function runStatement(
  context: HttpContext,
  exchange: Exchange,
  exec: ExecRequest,
  parameters: ExecBody['parameters'],
  gone: LazySignal,
): void | Promise<void> {
  const begunMs = context.clock.monotonicMs()
  const options = executeOptions(context, exchange.session, exec, parameters, gone)
  return andThen(context.engine.run(exec.sql, options), (result) => {
    countStatement(context.counters, result)
    return andThen(sendResult(context, exchange, exec, result, { begunMs, gone }), () =>
      logStatement(context, exec.sql, result, context.clock.monotonicMs() - begunMs),
    )
  })
}

function executeOptions(
  { options }: HttpContext,
  session: Session,
  exec: ExecRequest,
  parameters: ExecBody['parameters'],
  gone: LazySignal,
): ExecuteOptions {
  const encoding: Encoding = exec.countOnly
    ? { kind: 'count' }
    : { kind: 'json', quoteLargeNumbers: exec.quoteLargeNumbers, geohashAsText: true }
  return {
    session: exec.readOnly ? { ...session, readOnly: true, readOnlyReason: readOnlyRequest } : session,
    encoding,
    parameters,
    skip: exec.countOnly ? 0 : exec.skip,
    rowsMax: exec.countOnly ? 0 : Math.min(exec.rowsMax, options.rowsMax),
    countAll: exec.countOnly,
    columns: exec.columns,
    timeoutMs: exec.timeoutMs,
    signal: gone,
    explain: exec.explain,
    windowBytes: options.sendBufferBytes,
  }
}

interface Run {
  readonly begunMs: number
  readonly gone: LazySignal
}

function sendResult(
  context: HttpContext,
  exchange: Exchange,
  exec: ExecRequest,
  result: StatementResult,
  run: Run,
): void | Promise<void> {
  switch (result.kind) {
    case 'rows':
      return sendRows(context, exchange, exec, result, run)
    case 'done':
      return reply(exchange.response, 200, contentTypes.json, doneBody(exec, result))
    case 'plan':
      return reply(exchange.response, 200, contentTypes.json, planBody(exec, result, timesOf(context, result, run)))
  }
}

function sendRows(
  context: HttpContext,
  { request, response }: Exchange,
  exec: ExecRequest,
  result: RowsResult,
  run: Run,
): void | Promise<void> {
  const coding = chooseCoding(headerText(request, 'accept-encoding'))
  const encoded = coding === null ? [] : ['Content-Encoding', coding, 'Vary', 'Accept-Encoding']
  const whole = (body: Buffer): void => {
    const compressed = coding === null ? null : compressWhole(coding, body)
    if (compressed === null) reply(response, 200, contentTypes.json, body)
    else reply(response, 200, contentTypes.json, compressed, encoded)
  }
  const head = rowsHead(exec, result)
  const { ready } = result
  if (ready !== null) {
    const tail = tailOf(context, exec, result, ready, run)
    const short = coding === null ? latin1Of(head, ready.blocks, tail) : null
    if (short !== null) return replyLatin1(response, 200, contentTypes.json, short)
    return whole(Buffer.concat([Buffer.from(head), ...ready.blocks, Buffer.from(tail)]))
  }
  // Awaited after the last block. A failure also surfaces through the blocks.
  result.summary.catch(() => {})
  return exportBlocks({
    blocks: result.blocks,
    head: Buffer.from(head),
    tail: async () => Buffer.from(tailOf(context, exec, result, await result.summary, run)),
    target: {
      whole,
      begin: () => {
        const trailers = announceTrailers(response, [errorTrailer])
        return begin(response, 200, ['Content-Type', contentTypes.json, ...trailers, ...encoded])
      },
    },
    get signal() {
      return run.gone.signal
    },
    through: coding === null ? null : compressor(coding),
    broken: (error) => {
      const { message, place } = errorReport(context, exec.sql, error)
      response.addTrailers({ [errorTrailer]: encodeURIComponent(message) })
      return failedTail(exec, message, place)
    },
  })
}

/** A short body with one character for each byte; null when it is long. */
function latin1Of(head: string, blocks: readonly Buffer[], tail: string): string | null {
  let body = isAscii(head) ? head : Buffer.from(head).toString('latin1')
  let bytes = body.length + tail.length
  for (const block of blocks) {
    bytes += block.length
    if (bytes > joinedBytesMax) return null
    body += block.toString('latin1')
  }
  return body + tail
}

const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

function tailOf(
  context: HttpContext,
  exec: ExecRequest,
  result: RowsResult,
  { rows, cut }: Pick<ReadyRows, 'rows' | 'cut'>,
  run: Run,
): string {
  const { options } = context
  const rowsCap = cut && !exec.countOnly && exec.rowsMax > options.rowsMax ? options.rowsMax : null
  return rowsTail(exec, rows, timesOf(context, result, run), rowsCap)
}

function timesOf({ clock }: HttpContext, { compilerMs }: { readonly compilerMs: number }, { begunMs }: Run): Times {
  return { compilerMs, executeMs: Math.max(0, clock.monotonicMs() - begunMs - compilerMs) }
}

// POST /exec takes its parameters from the body: a form, or JSON `{query, params, limit, ...}`. They override those
// of the URL.

type BindParameters = ExecuteOptions['parameters']

interface ExecBody {
  /** Encoded like a query string. */
  readonly query: string
  readonly parameters: BindParameters
}

function parseExecBody(contentType: string, body: string, query: string): ExecBody {
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) return { query: `${query}&${body}`, parameters: [] }
  if (/^application\/json\b/i.test(contentType)) return parseJson(body, query)
  throw new ExecRequestError('expected a body of application/json or application/x-www-form-urlencoded', null)
}

function parseJson(body: string, query: string): ExecBody {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    throw new ExecRequestError('the body is not JSON', null)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new ExecRequestError('the body is not a JSON object', null)
  }
  const { params = [], ...members } = parsed as Readonly<Record<string, unknown>>
  if (!Array.isArray(params)) throw new ExecRequestError('params is not an array', null)
  const encoded = new URLSearchParams()
  for (const [name, value] of Object.entries(members)) {
    if (value !== null && typeof value !== 'object') encoded.set(name, String(value))
  }
  return { query: `${query}&${encoded}`, parameters: params.map(bindParameter) }
}

function bindParameter(value: unknown): BindParameters[number] {
  switch (typeof value) {
    case 'boolean':
      return { value, type: dataType('BOOLEAN') }
    case 'string':
      return { value, type: dataType('VARCHAR') }
    case 'number':
      return Number.isSafeInteger(value)
        ? { value: BigInt(value), type: dataType('LONG') }
        : { value, type: dataType('DOUBLE') }
    default:
      if (value === null) return { value: null, type: dataType('VARCHAR') }
      throw new ExecRequestError('params may contain only numbers, strings, booleans and null', null)
  }
}
