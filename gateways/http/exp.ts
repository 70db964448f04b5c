// Handles GET /exp: returns the rows of a SELECT as a file. The row count and a checksum (CRC-32 of the bytes before
// any content coding) are sent as trailers, or as headers when the response is complete before its first byte is sent.

import type { ServerResponse } from 'node:http'
import { crc32 } from 'node:zlib'
import { assert } from '../../engine/base/assert.js'
import { whenReady } from '../../engine/base/errors.js'
import type { Encoding, RowsResult } from '../../engine/engine.js'
import {
  type ContentCoding,
  chooseCoding,
  compressor,
  compressWhole,
  exportBlocks,
  spoolBlocks,
} from '../../pipeline/export.js'
import { countStatement } from '../common/count-statement.js'
import type { LazySignal } from '../common/lazy-signal.js'
import type { Exchange, HttpContext } from './context.js'
import { type ExpRequest, exportFormats, onlySelect, parseExpRequest } from './exp-request.js'
import { announceTrailers, begin, replyBusy } from './replies.js'
import { headerText } from './request-body.js'
import { logStatement, withErrorResponse } from './statement.js'

/** Responses of at least this many rows are never sent in one piece. */
const longRows = 100_000
const rowsHeader = 'X-Row-Count'
const checksumHeader = 'X-Checksum-CRC32'

export function handleExp(context: HttpContext, exchange: Exchange): void | Promise<void> {
  if (!context.exports.enter()) {
    replyBusy(exchange.response, 'too many exports run now')
    return
  }
  let sql = ''
  const respond = ({ signal }: LazySignal): Promise<void> => {
    const exp = requestOf(context, exchange)
    sql = exp.sql
    return exportRows(context, exchange, exp, signal)
  }
  return withErrorResponse(context, exchange, respond, { sql: () => sql, ended: () => context.exports.leave() })
}

function requestOf({ options, clock }: HttpContext, { request, query }: Exchange): ExpRequest {
  return parseExpRequest(query, headerText(request, 'statement-timeout'), {
    timeoutMs: options.queryTimeoutMs,
    parquetTimeoutMs: options.exportTimeoutMs,
    nowMs: Math.floor(clock.nowMicros() / 1000),
  })
}

async function exportRows(
  context: HttpContext,
  { request, response, session }: Exchange,
  exp: ExpRequest,
  signal: AbortSignal,
): Promise<void> {
  if (request.method === 'HEAD') {
    await whenReady((planning) => context.engine.validate(exp.sql, { ...session, planning }))
    begin(response, 200, fileHeaders(exp)).end()
    return
  }
  const begunMs = context.clock.monotonicMs()
  const result = await context.engine.execute(exp.sql, {
    session,
    encoding: encodingOf(exp),
    parameters: [],
    skip: exp.countOnly ? 0 : exp.skip,
    rowsMax: exp.countOnly ? 0 : exp.rowsMax,
    countAll: exp.countOnly,
    columns: null,
    timeoutMs: exp.timeoutMs,
    signal,
    explain: false,
    rowsOnly: onlySelect,
    windowBytes: context.options.sendBufferBytes,
  })
  countStatement(context.counters, result)
  assert(result.kind === 'rows', 'B4: other statements were refused')
  result.summary.catch(() => {})
  if (exp.format === 'parquet' && !exp.nodelay) await sendCompleted(context, response, exp, result, signal)
  else await sendStream(response, exp, result, chooseCoding(headerText(request, 'accept-encoding')), signal)
  logStatement(context, exp.sql, result, context.clock.monotonicMs() - begunMs)
}

function encodingOf(exp: ExpRequest): Encoding {
  if (exp.countOnly) return { kind: 'count' }
  switch (exp.format) {
    case 'csv':
      return { kind: 'csv', delimiter: exp.delimiter, header: exp.header }
    case 'parquet':
      return exp.parquet
    case 'ndjson':
    case 'arrow':
      return { kind: exp.format }
  }
}

/** Headers for file name and type. A non-ASCII name is sent in both forms of RFC 6266. */
function fileHeaders({ format, filename, countOnly }: ExpRequest): string[] {
  const ascii = filename.replace(/[^\x20-\x7e]/g, '_')
  const extended = ascii === filename ? '' : `; filename*=UTF-8''${encodeURIComponent(filename)}`
  const { contentType } = exportFormats[countOnly ? 'csv' : format]
  return ['Content-Type', contentType, 'Content-Disposition', `attachment; filename="${ascii}"${extended}`]
}

/** Response to `count=true`: a CSV file with one number. */
function countBody(rows: number): Buffer {
  return Buffer.from(`"count"\r\n${rows}\r\n`)
}

/** Whether the response is known to be long, so that it need not be buffered to see whether it is short. */
function isLong({ skip, rowsMax, countOnly }: ExpRequest, { rowsCertain }: RowsResult): boolean {
  return !countOnly && Math.min(rowsCertain() - skip, rowsMax) >= longRows
}

/** Sends rows while the query produces them. An error after the first byte can only cut the response off. */
async function sendStream(
  response: ServerResponse,
  exp: ExpRequest,
  result: RowsResult,
  coding: ContentCoding | null,
  signal: AbortSignal,
): Promise<void> {
  let checksum = 0
  let rows = 0
  const ends = (): string[] => [rowsHeader, String(rows), checksumHeader, hex(checksum)]
  const encoded = coding === null ? [] : ['Content-Encoding', coding, 'Vary', 'Accept-Encoding']
  await exportBlocks({
    blocks: result.blocks,
    head: Buffer.alloc(0),
    tail: async () => {
      rows = (await result.summary).rows
      const counted = exp.countOnly ? countBody(rows) : Buffer.alloc(0)
      checksum = crc32(counted, checksum)
      if (response.headersSent) response.addTrailers({ [rowsHeader]: String(rows), [checksumHeader]: hex(checksum) })
      return counted
    },
    target: {
      whole: async (body) => {
        const compressed = compressWhole(coding, body)
        const sent = compressed ?? body
        const length = ['Content-Length', String(sent.length), ...(compressed === null ? [] : encoded)]
        begin(response, 200, [...fileHeaders(exp), ...length, ...ends()]).end(sent)
      },
      begin: () => {
        const trailers = announceTrailers(response, [rowsHeader, checksumHeader])
        return begin(response, 200, [...fileHeaders(exp), ...encoded, ...trailers])
      },
    },
    signal,
    atOnce: exp.nodelay || isLong(exp, result),
    observe: (block) => {
      checksum = crc32(block, checksum)
    },
    through: coding === null ? null : compressor(coding),
  })
}

/** Completes the file before sending it, so that an error gets a 400 and the length is known. */
async function sendCompleted(
  { options }: HttpContext,
  response: ServerResponse,
  exp: ExpRequest,
  result: RowsResult,
  signal: AbortSignal,
): Promise<void> {
  let checksum = 0
  const observed = async function* (): AsyncGenerator<Uint8Array> {
    for await (const block of result.blocks) {
      checksum = crc32(block, checksum)
      yield block
    }
  }
  const file = await spoolBlocks(observed(), options.exportDirectory, signal)
  try {
    const { rows } = await result.summary
    if (exp.countOnly) checksum = crc32(countBody(rows))
    const ends = [rowsHeader, String(rows), checksumHeader, hex(checksum)]
    await exportBlocks({
      blocks: exp.countOnly ? oneBlock(countBody(rows)) : file.read(),
      head: Buffer.alloc(0),
      tail: async () => Buffer.alloc(0),
      target: {
        whole: (body) => {
          begin(response, 200, [...fileHeaders(exp), 'Content-Length', String(body.length), ...ends])
          response.end(body)
        },
        begin: () => begin(response, 200, [...fileHeaders(exp), 'Content-Length', String(file.bytes), ...ends]),
      },
      signal,
    })
  } finally {
    await file.close()
  }
}

async function* oneBlock(block: Buffer): AsyncGenerator<Uint8Array> {
  yield block
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}
