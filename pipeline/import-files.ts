// Imports the files of one request: CSV and Parquet files, which are told apart by their first bytes. CSV files of the
// same table are concatenated; later ones may repeat the header of the first. A Parquet file cannot share its table
// with another file of the request. No table gets rows before all files have been read, with one exception (import.ts):
// large files for a table with DEDUP when bad rows are skipped.

import type { ResultColumn } from '../engine/engine.js'
import { delimiterLine, sampleOf } from './csv-sample.js'
import type { ImportSession } from './import.js'
import type { ImportOptions, ImportResult } from './import-options.js'
import { ImportError, type SchemaColumn } from './import-schema.js'
import { importParquet, type ParquetFile, type ParquetImport, parquetColumns, parquetOptions } from './parquet-rows.js'
import { lookForParquet, type ParquetUploads } from './parquet-uploads.js'

const lineFeed = 0x0a
const quote = 0x22
/** A longer first line is not a header. */
const headerBytesMax = 1024 * 1024
const byteOrderMark = Buffer.from('\ufeff')

export interface ImportFilesOptions {
  readonly open: (table: string, options: Partial<ImportOptions>) => ImportSession
  readonly uploads: ParquetUploads
  /** Reads Parquet files. */
  readonly reader: ParquetImport
}

interface Table {
  readonly session: ImportSession
  readonly upload: { readonly file: ParquetFile; readonly columns: readonly ResultColumn[] } | null
  endsLine: boolean
  count: number
}

export class ImportFiles {
  readonly #options: ImportFilesOptions
  readonly #tables = new Map<string, Table>()
  #schema: readonly SchemaColumn[] = []
  #isClosed = false
  /** Serialises the reading of files. */
  #reading: Promise<void> = Promise.resolve()

  constructor(options: ImportFilesOptions) {
    this.#options = options
  }

  /** Sets the schema; applies also to earlier files as long as none of their rows has been sent. */
  schema(schema: readonly SchemaColumn[]): void {
    this.#schema = schema
    this.#reading = this.#reading.then(async () => {
      for (const { session } of this.#tables.values()) await session.schema(schema)
    })
    this.#reading.catch(() => {})
  }

  /** Resolves when the file has been received. `title`: its name in errors. */
  add(table: string, file: AsyncIterable<Buffer>, title: string): Promise<void> {
    this.#reading = this.#reading.then(() => this.#read(table, file, title))
    return this.#reading
  }

  /** Returns one result per table, in order; stores nothing before all files have been read. */
  async end(): Promise<readonly ImportResult[]> {
    await this.#reading
    for (const { session, upload } of this.#tables.values()) {
      if (upload === null) continue
      const into = { session, schema: this.#schema }
      await importParquet(this.#options.reader, upload.file, upload.columns, into)
    }
    const sessions = [...this.#tables.values()].map(({ session }) => session)
    for (const session of sessions) await session.prepare()
    const results: ImportResult[] = []
    for (const session of sessions) results.push(await session.commit())
    return results
  }

  /** Releases all resources, also when it rejects. Does not wait for the file being read. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#reading.catch(() => {})
    const closings = await Promise.allSettled([...this.#tables.values()].map((table) => this.#closeTable(table)))
    for (const closing of closings) if (closing.status === 'rejected') throw closing.reason
  }

  async #closeTable({ session, upload }: Table): Promise<void> {
    try {
      await session.close()
    } finally {
      if (upload !== null) await this.#options.uploads.remove(upload.file)
    }
  }

  async #read(table: string, received: AsyncIterable<Buffer>, title: string): Promise<void> {
    if (this.#isClosed) return
    const known = this.#tables.get(table)
    const { isParquet, whole: file } = await lookForParquet(received)
    this.#checkOpen()
    if (known !== undefined && (isParquet || known.upload !== null))
      throw new ImportError(`a Parquet file must be the only file of its table [table=${table}]`)
    if (isParquet) return this.#receive(table, file, title)
    const into = known ?? { session: this.#options.open(table, {}), upload: null, endsLine: true, count: 0 }
    if (known === undefined) {
      this.#tables.set(table, into)
      await into.session.schema(this.#schema)
    }
    if (!into.endsLine) await into.session.write(Buffer.from('\n'))
    const header = into.count++ === 0 ? null : await into.session.header()
    for await (const chunk of header === null && into.count === 1 ? file : following(file, header)) {
      if (chunk.length > 0) into.endsLine = chunk.at(-1) === lineFeed
      await into.session.write(chunk)
    }
  }

  /** Nothing closes a session that is opened later. */
  #checkOpen(): void {
    if (this.#isClosed) throw new ImportError('the import was cancelled')
  }

  async #receive(table: string, bytes: AsyncIterable<Buffer>, title: string): Promise<void> {
    const { open, uploads, reader } = this.#options
    const file = await uploads.receive(bytes, title)
    try {
      this.#checkOpen()
      const columns = parquetColumns(reader, file)
      const session = open(table, parquetOptions(columns))
      this.#tables.set(table, { session, upload: { file, columns }, endsLine: true, count: 1 })
    } catch (error) {
      await uploads.remove(file)
      throw error
    }
  }
}

/** Returns the rows of a file that follows another one, without a repeated header. */
async function* following(
  file: AsyncIterable<Buffer>,
  header: { readonly names: readonly string[]; readonly delimiter: string } | null,
): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0)
  for await (const chunk of file) {
    if (head === null) {
      yield chunk
      continue
    }
    head = Buffer.concat([head, chunk])
    if (lineEnd(head) < 0 && head.length < headerBytesMax) continue
    yield withoutHeader(head, header)
    head = null
  }
  if (head !== null) yield withoutHeader(head, header)
}

function withoutHeader(
  bytes: Buffer,
  header: { readonly names: readonly string[]; readonly delimiter: string } | null,
): Buffer {
  const afterMark = bytes.subarray(0, 3).equals(byteOrderMark) ? bytes.subarray(3) : bytes
  const text = afterMark.subarray(delimiterLine(afterMark)?.bytes ?? 0)
  const end = lineEnd(text)
  const line = end < 0 ? text : text.subarray(0, end + 1)
  const [names = []] = sampleOf(line, true, header?.delimiter ?? ',')?.records ?? []
  if (header === null || names.length === 0) return text
  if (names.length === header.names.length && names.every((name, index) => name === header.names[index]))
    return text.subarray(line.length)
  const sorted = (list: readonly string[]): string => JSON.stringify([...list].sort())
  if (sorted(names) === sorted(header.names))
    throw new ImportError('the files of one table must have their columns in the same order')
  return text
}

/** Offset of the line feed that ends the first line, outside of quotes; -1: none. */
function lineEnd(bytes: Buffer): number {
  let isQuoted = false
  for (const [at, byte] of bytes.entries()) {
    if (byte === quote) isQuoted = !isQuoted
    else if (byte === lineFeed && !isQuoted) return at
  }
  return -1
}
