// Handles POST /imp?from=sqlite: imports a SQLite dump, sent as the part `data` of a multipart body, into tables.
//
//   tables      a,b             import only these tables
//   timestamp   ts | a.ts,b.at | none    designated timestamps; default: detected
//   unit        s|ms|us|ns|julian        unit of numeric timestamps; default: detected from their magnitude
//   partitionBy DAY             partitioning of tables with a designated timestamp
//   types       a.x:DOUBLE,y:SYMBOL      column types
//   overwrite   true            replace existing tables; default: append to them
//   atomicity   skipRow         skip rows that cannot be stored (default); abort: the first one ends the import
//   fmt         text | json

import { ImportError, parseImportSchema, readMultipart } from '../../pipeline/ingest.js'
import { type DumpRequest, type DumpResult, type DumpTimeUnit, dumpTimeUnits } from '../common/dump-import.js'
import { importing } from './access.js'
import type { Exchange, HttpContext } from './context.js'
import { parseImpRequest } from './imp-request.js'
import { parseQueryString, type QueryParameters } from './query-string.js'

export function isDump(queryString: string): boolean {
  return parseQueryString(queryString).parameters.has('from')
}

/** Reads the body and sends the result. Rejects with ImportError or an error of the engine. */
export async function importDump(
  context: HttpContext,
  { request, query, connection, session: own }: Exchange,
  signal: AbortSignal,
): Promise<DumpResult> {
  const { parameters } = parseQueryString(query)
  const from = parameters.get('from') ?? ''
  const { openDump } = context
  if (from !== 'sqlite' || openDump === null)
    throw new ImportError(`unsupported import source, expected sqlite [from=${from}]`)
  const session = openDump({
    ...parseDumpRequest(query, parameters),
    session: importing(own),
    connectionId: connection.id,
  })
  let files = 0
  try {
    await readMultipart(
      request,
      request.headers,
      {
        isFile: (part) => part === 'data',
        onField: (part) => {
          throw new ImportError(`a dump must be in the part data [part=${part}]`)
        },
        onFile: async (_part, _filename, stream) => {
          if (++files > 1) throw new ImportError('an import accepts one dump only')
          for await (const chunk of stream) await session.write(chunk as Buffer)
        },
      },
      signal,
    )
    if (files === 0) throw new ImportError('the body has no part data')
    return await session.end()
  } finally {
    await session.close()
  }
}

function parseDumpRequest(query: string, parameters: QueryParameters): Omit<DumpRequest, 'session' | 'connectionId'> {
  const { overwrite, partitionBy } = parseImpRequest(query)
  const atomicity = parameters.get('atomicity') ?? 'skipRow'
  if (!/^(skiprow|abort)$/i.test(atomicity)) {
    throw new ImportError(`invalid atomicity, expected abort or skipRow [value=${atomicity}]`)
  }
  const unit = parameters.get('unit') ?? ''
  const known = dumpTimeUnits.find((name) => name === unit)
  if (unit !== '' && known === undefined) {
    throw new ImportError(`invalid unit, expected ${dumpTimeUnits.join(', ')} [value=${unit}]`)
  }
  return {
    overwrite,
    tables: listOf(parameters.get('tables')),
    timestamps: listOf(parameters.get('timestamp')),
    partitionBy: partitionBy ?? 'DAY',
    unit: (known ?? null) as DumpTimeUnit | null,
    types: listOf(parameters.get('types')).map(parseType),
    skipRows: atomicity.toLowerCase() === 'skiprow',
  }
}

function listOf(text: string | undefined): string[] {
  return (text ?? '').split(',').filter((name) => name !== '')
}

function parseType(text: string): DumpRequest['types'][number] {
  const colon = text.lastIndexOf(':')
  const column = text.slice(0, colon).toLowerCase()
  if (colon <= 0) throw new ImportError(`invalid types, expected table.column:TYPE [value=${text}]`)
  const [known] = parseImportSchema(JSON.stringify([{ name: column, type: text.slice(colon + 1) }]))
  if (known === undefined || known.type === null) throw new ImportError(`invalid types [value=${text}]`)
  return { column, type: known.type }
}

export function dumpJson(result: DumpResult): string {
  return JSON.stringify({ status: 'OK', ...result })
}

export function dumpText({ tables, views, rowsImported, rowsRejected, reports, reportCount }: DumpResult): string {
  const lines = tables.flatMap(({ name, rowsImported: rows, timestamp, partitionBy, columns }) => [
    `${name}: ${rows} rows, timestamp ${timestamp ?? 'none'}, partition by ${partitionBy}`,
    ...columns.map((column) => `  ${column.name} ${column.type}`),
  ])
  const made = views.map((view) => `view ${view}`)
  const reported = reports.map(
    ({ line, table, reason }) => `line ${line}${table === '' ? '' : `, ${table}`}: ${reason}`,
  )
  const more = reportCount > reports.length ? [`and ${reportCount - reports.length} more`] : []
  const total = `${rowsImported} rows imported, ${rowsRejected} rejected`
  return `${[...lines, ...made, ...reported, ...more, total].join('\r\n')}\r\n`
}
