// Implements `penstock import`: imports a file or standard input into tables of a running server.
//
//   csv     one request to /imp; the server detects delimiter, header and types
//   parquet one request to /imp
//   lines   line protocol: several requests to /write, each of which consists of whole lines and is atomic
//   sqlite  the output of `sqlite3 data.db .dump`, one request to /imp?from=sqlite

import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type ImportSummary, importText } from '../../gateways/common/import-text.js'
import { type Client, exitCodes, openClient, refusalText, type ServerFlags, ToolError } from './http-client.js'
import { openProgress, type Progress } from './progress.js'

export interface ImportFlags extends ServerFlags {
  readonly format?: string
  readonly fromSqlite?: string
  readonly table?: string
  readonly timestamp?: string
  readonly partitionBy?: string
  readonly delimiter?: string
  readonly header?: boolean
  readonly skipLev?: boolean
  readonly schema?: string
  readonly overwrite?: boolean
  readonly atomicity?: string
  readonly precision?: string
  readonly tables?: string
  readonly unit?: string
  readonly types?: string
  readonly json?: boolean
}

export const importFormats = ['csv', 'parquet', 'lines', 'sqlite'] as const
type Format = (typeof importFormats)[number]

/** Size of one line-protocol request. */
const requestBytes = 8 * 1024 * 1024
const parquetMark = 'PAR1'
const endings: Readonly<Record<string, Format>> = {
  '.csv': 'csv',
  '.tsv': 'csv',
  '.txt': 'csv',
  '.parquet': 'parquet',
  '.lp': 'lines',
  '.line': 'lines',
  '.ilp': 'lines',
  '.sql': 'sqlite',
  '.dump': 'sqlite',
}

export async function runImport(given: string | undefined, flags: ImportFlags): Promise<void> {
  const file = flags.fromSqlite ?? given ?? '-'
  const format = flags.fromSqlite !== undefined ? 'sqlite' : formatOf(file, flags.format)
  const { source, progress } = await openSource(file)
  const client = openClient(flags)
  try {
    if (format === 'lines') await sendLines(client, source, flags)
    else if (format === 'sqlite') await sendDump(client, source, flags)
    else {
      const isChecked = format === 'parquet' || flags.format !== undefined
      await sendFile(client, isChecked ? ofFormat(source, file, format) : source, file, flags)
    }
  } finally {
    progress.end()
    await client.close()
  }
}

function formatOf(file: string, given: string | undefined): Format {
  const known = importFormats.find((name) => name === given)
  if (known !== undefined) return known
  if (given !== undefined) throw new ToolError(`--format is one of ${importFormats.join(', ')}`, exitCodes.usage)
  const guessed = endings[extname(file.replace(/\.gz$/, '')).toLowerCase()]
  if (guessed === undefined) {
    throw new ToolError(
      `the file name does not show the format: set --format ${importFormats.join('|')}`,
      exitCodes.usage,
    )
  }
  return guessed
}

interface Source {
  readonly source: AsyncIterable<Buffer>
  /** Counts bytes of the file, which are compressed ones if it is. */
  readonly progress: Progress
}

async function openSource(file: string): Promise<Source> {
  if (file === '-') {
    const progress = openProgress('import')
    return { source: counted(process.stdin, progress), progress }
  }
  const size = await sizeOf(file)
  const progress = openProgress('import', { total: size })
  const source = createReadStream(file, { highWaterMark: 1024 * 1024 })
  if (!file.endsWith('.gz')) return { source: counted(source, progress), progress }
  return { source: expanded(counted(source, progress), file), progress }
}

/** The content of a gzip file. An async generator, so that nothing is read, and fails, before somebody waits for it. */
async function* expanded(source: AsyncIterable<Buffer>, file: string): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: 1024 * 1024 })
  // An error after the reader has gone is of no interest.
  gunzip.on('error', () => {})
  Readable.from(source)
    .on('error', (error) => gunzip.destroy(error))
    .pipe(gunzip)
  try {
    yield* gunzip
  } catch (error) {
    const isDamage = error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
    throw isDamage ? new ToolError(`${file}: the gzip stream is damaged: ${error.message}`) : error
  }
}

/** Verifies that a file begins as its format does: the server goes by the content alone. */
async function* ofFormat(source: AsyncIterable<Buffer>, file: string, format: Format): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  while (head.length < parquetMark.length) {
    const next = await chunks.next()
    if (next.done === true) break
    head = Buffer.concat([head, next.value])
  }
  const whole = beginningWith(head, chunks)
  if (head[0] === 0x1f && head[1] === 0x8b) {
    yield* ofFormat(expanded(whole, file), file, format)
    return
  }
  const isParquet = head.toString('latin1', 0, parquetMark.length) === parquetMark
  if (format === 'parquet' && !isParquet) throw new ToolError(`not a Parquet file [file=${file}]`)
  if (format === 'csv' && isParquet) throw new ToolError(`a Parquet file, and not CSV [file=${file}]`)
  yield* whole
}

async function* beginningWith(head: Buffer, chunks: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size
  } catch {
    throw new ToolError(`no such file: ${file}`, exitCodes.usage)
  }
}

async function* counted(source: AsyncIterable<Buffer>, progress: Progress): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    yield chunk
    progress.add(chunk.length)
  }
}

async function sendFile(
  client: Client,
  source: AsyncIterable<Buffer>,
  file: string,
  flags: ImportFlags,
): Promise<void> {
  const name = flags.table ?? (file === '-' ? undefined : basename(file).replace(/(\.[^.]*)?(\.gz)?$/, ''))
  if (name === undefined || name === '') throw new ToolError('standard input needs --table', exitCodes.usage)
  const query = {
    // Only JSON names the rejected rows.
    ...{ name, fmt: flags.json === true || showsRejects(flags) ? 'json' : 'text' },
    ...given({
      ...{ timestamp: flags.timestamp, partitionBy: flags.partitionBy, delimiter: flags.delimiter },
      ...{ atomicity: flags.atomicity, overwrite: flags.overwrite, forceHeader: flags.header, unit: flags.unit },
      skipLev: flags.skipLev,
    }),
  }
  const fields = flags.schema === undefined ? {} : { schema: flags.schema }
  show(await upload(client, query, fields, name, source), flags)
}

async function sendDump(client: Client, source: AsyncIterable<Buffer>, flags: ImportFlags): Promise<void> {
  const query = {
    ...{ from: 'sqlite', fmt: flags.json === true ? 'json' : 'text' },
    ...given({
      ...{ timestamp: flags.timestamp, partitionBy: flags.partitionBy, tables: flags.tables ?? flags.table },
      ...{ unit: flags.unit, types: flags.types, overwrite: flags.overwrite, atomicity: flags.atomicity },
    }),
  }
  write(await upload(client, query, {}, 'dump.sql', source))
}

function given(values: Readonly<Record<string, string | boolean | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
  )
}

async function upload(
  client: Client,
  query: Record<string, string>,
  fields: Readonly<Record<string, string>>,
  name: string,
  source: AsyncIterable<Buffer>,
): Promise<string> {
  const boundary = `penstock-${Math.random().toString(36).slice(2)}${Date.now().toString(36)}`
  const body = multipart(boundary, fields, name, source)
  const reply = await client.post('imp', query, body, `multipart/form-data; boundary=${boundary}`)
  if (reply.status !== 200) throw new ToolError(await refusalText(reply))
  return await reply.body.text()
}

function showsRejects({ json, atomicity }: ImportFlags): boolean {
  return json !== true && atomicity?.toLowerCase() === 'skiprow'
}

/** Prints a response, and the rejected rows to standard error. */
function show(text: string, flags: ImportFlags): void {
  if (!showsRejects(flags)) {
    write(text)
    return
  }
  const result: ImportSummary = JSON.parse(text)
  write(importText([result]))
  const { rejects = [], rowsRejected } = result
  const lines = rejects.map(({ line, reason }) => `line ${line}: ${reason}\n`)
  const more = rowsRejected - rejects.length
  process.stderr.write(`${lines.join('')}${more > 0 ? `and ${more} more rejected rows\n` : ''}`)
}

function write(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text.replaceAll('\r\n', '\n') : `${text}\n`)
}

async function* multipart(
  boundary: string,
  fields: Readonly<Record<string, string>>,
  name: string,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  for (const [field, value] of Object.entries(fields)) {
    yield Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`)
  }
  const file = name.replace(/["\r\n]/g, '_')
  yield Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="data"; filename="${file}"\r\n\r\n`)
  yield* source
  yield Buffer.from(`\r\n--${boundary}--\r\n`)
}

async function sendLines(client: Client, source: AsyncIterable<Buffer>, flags: ImportFlags): Promise<void> {
  const query = { precision: flags.precision ?? 'n' }
  let lines = 0
  for await (const { bytes, count } of wholeLines(source)) {
    const reply = await client.post('write', query, bytes, 'text/plain')
    if (reply.status >= 300) {
      const stored = lines === 0 ? 'nothing was stored' : `lines 1 to ${lines} are stored, the rest is not`
      throw new ToolError(`${await linesRefusal(reply, lines)} (${stored})`)
    }
    await reply.body.text()
    lines += count
  }
  process.stdout.write(flags.json === true ? `${JSON.stringify({ status: 'OK', lines })}\n` : `${lines} lines stored\n`)
}

/** Converts line numbers: the server counts from the start of the request. */
async function linesRefusal(reply: Parameters<typeof refusalText>[0], before: number): Promise<string> {
  const text = await refusalText(reply)
  return text
    .replace(/^failed to parse line protocol:errors encountered on line\(s\):\s*/, '')
    .replace(/\bline (\d+)\b/, (_, line: string) => `line ${Number(line) + before}`)
}

async function* wholeLines(source: AsyncIterable<Buffer>): AsyncGenerator<{ bytes: Buffer; count: number }> {
  let chunks: Buffer[] = []
  let size = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    size += chunk.length
    if (size < requestBytes) continue
    const bytes = Buffer.concat(chunks)
    const end = bytes.lastIndexOf(0x0a) + 1
    if (end === 0) continue
    yield { bytes: bytes.subarray(0, end), count: linesIn(bytes.subarray(0, end)) }
    chunks = [bytes.subarray(end)]
    size = bytes.length - end
  }
  const rest = Buffer.concat(chunks)
  if (rest.length > 0) yield { bytes: rest, count: linesIn(rest) + (rest.at(-1) === 0x0a ? 0 : 1) }
}

function linesIn(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count++
  return count
}
