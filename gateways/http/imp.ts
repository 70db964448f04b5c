// Handles POST /imp: imports CSV and Parquet files of a multipart body into tables; `from` selects a dump instead
// (imp-dump.ts), and `preview` returns the first rows of a Parquet file and stores nothing (imp-preview.ts).

import type { Readable } from 'node:stream'
import {
  expandedFile,
  expandingStages,
  ImportError,
  ImportFiles,
  type ImportResult,
  ImportSession,
  parseImportSchema,
  readMultipart,
} from '../../pipeline/ingest.js'
import { errorReportOf } from '../common/error-reports.js'
import { importText } from '../common/import-text.js'
import { importing, refusalOfWrite } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { discardRemainder, refuseUnread } from './guard.js'
import { dumpJson, dumpText, importDump, isDump } from './imp-dump.js'
import { previewBody, previewRows } from './imp-preview.js'
import { checkFormat, checkTableName, type ImpRequest, parseImpRequest, wantsJson } from './imp-request.js'
import { contentTypes, reply, replyBusy, replyText, statusOf } from './replies.js'
import { disconnectSignal } from './statement.js'

const unknownPart = "invalid value in 'Content-Disposition' multipart header"

export async function handleImp(context: HttpContext, exchange: Exchange): Promise<void> {
  const { request, response, connection } = exchange
  const contentType = request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\b/i.test(contentType)) {
    request.resume()
    return replyText(response, 400, 'Non-multipart POST not supported\r\n')
  }
  const refused = refusalOfWrite(exchange)
  if (refused !== null) return refuseUnread(response, 403, { status: refused, error: refused, position: 0 })
  if (!context.imports.enter()) return replyBusy(response, 'too many imports run now')
  connection.state = 'writing'
  try {
    await respond(context, exchange)
  } finally {
    connection.state = 'idle'
    context.imports.leave()
  }
}

async function respond(context: HttpContext, exchange: Exchange): Promise<void> {
  const { response } = exchange
  const { signal } = disconnectSignal(response)
  try {
    checkFormat(exchange.query)
    if (isDump(exchange.query)) {
      const dump = await importDump(context, exchange, signal)
      countRows(context, exchange, dump)
      if (wantsJson(exchange.query)) reply(response, 200, contentTypes.json, dumpJson(dump))
      else replyText(response, 200, dumpText(dump))
      return
    }
    const rows = previewRows(exchange.query)
    if (rows !== null) {
      reply(response, 200, contentTypes.json, await previewBody(context, exchange, { rows, signal }))
      return
    }
    const imp = parseImpRequest(exchange.query)
    const results = await importBody(context, exchange, imp, signal)
    for (const result of results) countRows(context, exchange, result)
    if (imp.json) reply(response, 200, contentTypes.json, importJson(results))
    else replyText(response, 200, importText(results))
  } catch (error) {
    if (signal.aborted) return
    refuse(exchange, ...refusalOf(context, error))
    discardRemainder(response, 'known')
  }
}

function countRows(
  { counters }: HttpContext,
  { connection }: Exchange,
  { rowsImported, rowsRejected }: { readonly rowsImported: number; readonly rowsRejected: number },
): void {
  connection.rowsReceived += rowsImported + rowsRejected
  connection.rowsCommitted += rowsImported
  connection.rowsRejected += rowsRejected
  counters.rowsWritten += rowsImported
  counters.rowsRejected += rowsRejected
}

function refusalOf({ log, counters }: HttpContext, error: unknown): [status: number, text: string] {
  if (error instanceof ImportError) return [400, error.message]
  const { category, message, place } = errorReportOf(error)
  if (category === 'internal') {
    counters.unhandledErrors++
    log('E', 'http', `import failed: ${error instanceof Error ? error.stack : message}`)
  }
  return [
    statusOf(category),
    place > 0 && error instanceof Error && error.name === 'RowError' ? `line ${place}: ${message}` : message,
  ]
}

function refuse({ response, query }: Exchange, status: number, text: string): void {
  if (wantsJson(query)) reply(response, status, contentTypes.json, JSON.stringify({ status: text }))
  else replyText(response, status, text)
}

async function importBody(
  context: HttpContext,
  { request, connection, session: own }: Exchange,
  imp: ImpRequest,
  signal: AbortSignal,
): Promise<readonly ImportResult[]> {
  const { name, json: _json, ...importOptions } = imp
  const { options, engine, uploads } = context
  const session = importing(own)
  const files = new ImportFiles({
    open: (table, ofFile) =>
      new ImportSession({
        ...importOptions,
        ...{ engine, session, connectionId: connection.id, name: table },
        blockBytes: options.receiveBufferBytes,
        spoolDirectory: options.exportDirectory,
        ...ofFile,
      }),
    uploads,
    reader: { engine, session, signal },
  })
  try {
    await readMultipart(
      request,
      request.headers,
      {
        isFile: (part) => part === 'data',
        onField: (part, value) => {
          if (part !== 'schema') throw new ImportError(unknownPart)
          files.schema(parseImportSchema(value))
        },
        onFile: async (_part, filename, stream) =>
          files.add(tableOf(name, filename), expanded(stream, options), filename ?? name ?? ''),
      },
      signal,
      expandingStages(request.headers['content-encoding'], options.importExpandedBytesMax),
    )
    const results = await files.end()
    if (results.length === 0) throw new ImportError('no file name given')
    return results
  } finally {
    await files.close()
  }
}

/** A compressed file takes the name of the file that it contains. */
function tableOf(name: string | null, filename: string | undefined): string {
  const table = name ?? filename?.replace(/\.gz$/i, '')
  if (table === undefined) throw new ImportError('no file name given')
  return checkTableName(table)
}

function expanded(stream: Readable, { importExpandedBytesMax }: HttpContext['options']): AsyncIterable<Buffer> {
  return expandedFile(stream, importExpandedBytesMax)
}

/** For several tables: the totals, and `imports` with the result of each. */
function importJson(results: readonly ImportResult[]): string {
  const [first, ...others] = results
  if (first !== undefined && others.length === 0) return JSON.stringify(resultJson(first))
  const sum = (countOf: (result: ImportResult) => number): number =>
    results.reduce((total, each) => total + countOf(each), 0)
  return JSON.stringify({
    status: 'OK',
    ...{ rowsRejected: sum(({ rowsRejected }) => rowsRejected), rowsImported: sum(({ rowsImported }) => rowsImported) },
    imports: results.map(resultJson),
  })
}

function resultJson(result: ImportResult): object {
  const { location, rowsRejected, rowsImported, header, partitionBy, timestamp, warnings, columns, rejects } = result
  return {
    ...{ status: 'OK', location, rowsRejected, rowsImported, header, partitionBy },
    ...(timestamp === null ? {} : { timestamp }),
    ...(warnings.length === 0 ? {} : { warnings }),
    columns,
    ...(rejects.length === 0 ? {} : { rejects }),
  }
}
