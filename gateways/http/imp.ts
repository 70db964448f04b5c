// POST /imp: a CSV file in a multipart body becomes rows of a table; with `from`, a dump becomes tables (imp-dump.ts).

import type { Readable } from 'node:stream'
import {
  expandingStages,
  ImportError,
  type ImportResult,
  ImportSession,
  parseImportSchema,
  readMultipart,
} from '../../pipeline/ingest.js'
import { answerOf } from '../common/answers.js'
import { importing, refusalOfWrite } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { readOn, refuseUnread } from './guard.js'
import { dumpJson, dumpText, importDump, isDump } from './imp-dump.js'
import { importJson, importText } from './imp-reply.js'
import { checkTableName, type ImpRequest, parseImpRequest, wantsJson } from './imp-request.js'
import { contentTypes, reply, replyBusy, replyText, statusOf } from './replies.js'
import { departure } from './statement.js'

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
    await answer(context, exchange)
  } finally {
    connection.state = 'idle'
    context.imports.leave()
  }
}

async function answer(context: HttpContext, exchange: Exchange): Promise<void> {
  const { response } = exchange
  const { signal } = departure(response)
  try {
    if (isDump(exchange.query)) {
      const dump = await importDump(context, exchange, signal)
      countRows(context, exchange, dump)
      if (wantsJson(exchange.query)) reply(response, 200, contentTypes.json, dumpJson(dump))
      else replyText(response, 200, dumpText(dump))
      return
    }
    const imp = parseImpRequest(exchange.query)
    const result = await importBody(context, exchange, imp, signal)
    countRows(context, exchange, result)
    if (imp.json) reply(response, 200, contentTypes.json, importJson(result))
    else replyText(response, 200, importText(result))
  } catch (error) {
    if (signal.aborted) return
    refuse(exchange, ...refusalOf(context, error))
    readOn(response, 'known')
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
  const { blame, message, place } = answerOf(error)
  if (blame === 'internal') {
    counters.unhandledErrors++
    log('E', 'http', `import failed: ${error instanceof Error ? error.stack : message}`)
  }
  return [
    statusOf(blame),
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
): Promise<ImportResult> {
  const { name, json: _json, ...importOptions } = imp
  const { options } = context
  let session: ImportSession | null = null
  let schema = parseImportSchema('')
  let late = false
  try {
    await readMultipart(
      request,
      request.headers,
      {
        isFile: (part) => part === 'data',
        onField: (part, value) => {
          if (part !== 'schema') throw new ImportError(unknownPart)
          schema = parseImportSchema(value)
          late = session !== null
        },
        onFile: async (_part, filename, stream) => {
          if (session !== null) throw new ImportError('one file an import, please')
          const table = name ?? filename
          if (table === undefined) throw new ImportError('no file name given')
          const { engine } = context
          session = new ImportSession({
            ...importOptions,
            ...{ engine, session: importing(own), connectionId: connection.id, name: checkTableName(table) },
            blockBytes: options.receiveBufferBytes,
            spoolDirectory: options.exportDirectory,
          })
          await session.schema(schema)
          await readInto(session, stream)
        },
      },
      signal,
      expandingStages(request.headers['content-encoding'], options.importExpandedBytesMax),
    )
    const opened = session as ImportSession | null
    if (opened === null) throw new ImportError('no file name given')
    if (late) await opened.schema(schema)
    return await opened.end()
  } finally {
    await (session as ImportSession | null)?.close()
  }
}

async function readInto(session: ImportSession, stream: Readable): Promise<void> {
  for await (const chunk of stream) await session.write(chunk as Buffer)
}
