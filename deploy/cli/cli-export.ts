// Implements `penstock export`: saves the rows of a SELECT or of a table as a file, or writes them to standard output.
// The server sends a checksum. If it differs, or if the server announced one and it is missing at the end of a file,
// the export fails and removes the incomplete file.

import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32, createGzip } from 'node:zlib'
import {
  type Client,
  exitCodes,
  openClient,
  type Reply,
  refusalOf,
  type ServerFlags,
  ToolError,
} from './http-client.js'
import { checkFolder, formatOfName, isGzip } from './output-file.js'
import { openProgress } from './progress.js'

export interface ExportFlags extends ServerFlags {
  readonly output?: string
  readonly format?: string
  readonly limit?: string
  readonly delimiter?: string
  readonly header?: boolean
  readonly compression?: string
  readonly timeout?: string
}

export const exportFormats = ['csv', 'tsv', 'parquet', 'ndjson', 'jsonl', 'arrow'] as const
export type ExportFormat = (typeof exportFormats)[number]

const endings: Readonly<Record<string, ExportFormat>> = Object.fromEntries(
  exportFormats.map((format) => [`.${format}`, format]),
)

/** Parameters of /exp for each format. */
const servedFormats: Readonly<Record<ExportFormat, Readonly<Record<string, string>>>> = {
  csv: { fmt: 'csv' },
  tsv: { fmt: 'csv', delimiter: '\t' },
  parquet: { fmt: 'parquet' },
  ndjson: { fmt: 'ndjson' },
  jsonl: { fmt: 'ndjson' },
  arrow: { fmt: 'arrow' },
}

export async function runExport(what: string, flags: ExportFlags): Promise<void> {
  const format = formatOf(flags)
  const client = openClient(flags)
  try {
    const rows = await exportRows(client, statementOf(what), format, flags)
    if (flags.output !== undefined && flags.output !== '-') {
      process.stderr.write(`${rows === null ? '' : `${rows} rows to `}${flags.output}\n`)
    }
  } finally {
    await client.close()
  }
}

type RowFlags = Omit<ExportFlags, keyof ServerFlags | 'format'> & {
  /** Adds the rows to the end of the file. */
  readonly append?: boolean
  readonly signal?: AbortSignal
}

/** Saves all rows of a query. Returns the row count if the server reported it. */
export async function exportRows(
  client: Client,
  sql: string,
  format: ExportFormat,
  flags: RowFlags,
): Promise<string | null> {
  const { output, append } = flags
  if (output !== undefined) checkFolder(output)
  const query: Record<string, string> = { query: sql, ...servedFormats[format] }
  if (flags.limit !== undefined) query['limit'] = flags.limit
  if (flags.delimiter !== undefined) query['delimiter'] = flags.delimiter
  if (flags.header === false) query['nm'] = 'true'
  if (flags.compression !== undefined) query['compression_codec'] = flags.compression
  if (flags.timeout !== undefined) query['timeout'] = flags.timeout
  const reply = await client.get('exp', query, flags.signal)
  if (reply.status !== 200) throw await refusalOf(reply)
  return await save(reply, output, append === true)
}

function formatOf({ format, output }: ExportFlags): ExportFormat {
  if (format === undefined) return (output === undefined ? undefined : formatOfName(output, endings)) ?? 'csv'
  const known = exportFormats.find((name) => name === format)
  if (known === undefined) throw new ToolError(`--format is one of ${exportFormats.join(', ')}`, exitCodes.usage)
  return known
}

/** A bare name is a table. */
function statementOf(what: string): string {
  const text = what.trim().replace(/;\s*$/, '')
  if (/^(select|with|show|table|explain|values|from)\b/i.test(text) || text.startsWith('(')) return text
  return /\s/.test(text) && !text.startsWith('"')
    ? text
    : `select * from "${text.replace(/^"|"$/g, '').replaceAll('"', '""')}"`
}

/** Renames the file to its final name when it is complete. Returns the row count if the server reported it. */
async function save(reply: Reply, output: string | undefined, append: boolean): Promise<string | null> {
  let checksum = 0
  const progress = openProgress('export')
  const summing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      checksum = crc32(chunk, checksum)
      progress.add(chunk.length)
      done(null, chunk)
    },
  })
  const partial = output === undefined || output === '-' ? null : `${output}.part`
  const target = partial === null ? process.stdout : createWriteStream(partial)
  try {
    const stages = output !== undefined && isGzip(output) ? [summing, createGzip()] : [summing]
    await pipeline([reply.body, ...stages, target], { end: partial !== null })
    const given = headerOf(reply, 'x-checksum-crc32')
    if (given !== null && Number.parseInt(given, 16) !== checksum >>> 0) {
      throw new ToolError('the export was damaged in transfer: the checksum differs')
    }
    if (given === null && partial !== null && headerOf(reply, 'trailer') !== null)
      throw new ToolError('the export is incomplete')
    if (partial !== null && output !== undefined) await place(partial, output, append)
    return headerOf(reply, 'x-row-count')
  } catch (error) {
    if (partial !== null) await rm(partial, { force: true })
    if (error instanceof ToolError) throw error
    // The reader of a pipe has enough: `penstock export .. | head`.
    if (partial === null && error instanceof Error && 'code' in error && error.code === 'EPIPE') process.exit(0)
    throw new ToolError(`the export was interrupted: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    progress.end()
  }
}

async function place(partial: string, output: string, append: boolean): Promise<void> {
  if (!append) return await rename(partial, output)
  await pipeline(createReadStream(partial), createWriteStream(output, { flags: 'a' }))
  await rm(partial)
}

function headerOf({ headers, trailers }: Reply, name: string): string | null {
  const value = trailers[name] ?? headers[name]
  return typeof value === 'string' ? value : null
}
