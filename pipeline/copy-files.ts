// Runs COPY with files on the server: imports CSV or Parquet into a table, exports a query to CSV or Parquet. Imports
// and exports have one directory each (copy-paths.ts). An export is written to a temporary name and renamed when
// complete.

import { constants } from 'node:fs'
import { type FileHandle, open, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { CancelledError, SqlError } from '../engine/base/errors.js'
import { makeDirectories } from '../engine/base/files.js'
import {
  type Copier,
  type CopyRequest,
  type Engine,
  type ExecuteOptions,
  mayHoldSmallest,
  type ResultColumn,
  type StopSignal,
  type TableShape,
} from '../engine/engine.js'
import type { DataType } from '../engine/types/column-types.js'
import { exportOptions, importOptions } from './copy-options.js'
import { type CopyDirectories, existingFile, type NamedFile, outside, pathIn } from './copy-paths.js'
import { expandedFile } from './expanded-body.js'
import { ImportSession } from './import.js'
import { ImportError } from './import-schema.js'
import { copyWords } from './import-times.js'

const blockBytes = 1024 * 1024

/** Options that request all rows of a query. */
const wholeResult = {
  encoding: { kind: 'csv', delimiter: 44, header: true },
  parameters: [],
  skip: 0,
  rowsMax: Number.POSITIVE_INFINITY,
  countAll: false,
  columns: null,
  explain: false,
} as const

const queryWanted = 'COPY needs a query that returns rows'

type CopyEngine = Pick<Engine, 'csv' | 'execute' | 'load' | 'rejects' | 'rows' | 'table' | 'validate'>
type Requested = Pick<ExecuteOptions, 'session' | 'signal' | 'timeoutMs'>

export function fileCopier(engine: CopyEngine, directories: CopyDirectories): Copier {
  return (request, requested) =>
    request.direction === 'from'
      ? importFile(engine, directories, request, requested)
      : exportFile(engine, directories, request, requested)
}

// Import ------------------------------------------------------------------------------------------------------------

async function importFile(
  engine: CopyEngine,
  directories: CopyDirectories,
  request: Extract<CopyRequest, { direction: 'from' }>,
  requested: Requested,
): Promise<number> {
  const { parquet, pattern, ...options } = importOptions(request)
  const path = existingFile(directories, request)
  const own = { blockBytes, overwrite: false, skipExtra: false, connectionId: 0, name: request.table }
  const shared = { ...own, words: copyWords, spoolDirectory: directories.spool }
  const columns = parquet ? columnsOf(engine, request, requested) : []
  const isSingle = columns.length === 1
  const importing = new ImportSession({
    ...{ engine, session: requested.session, ...shared, ...options },
    nullText: isSingle ? nullText : undefined,
  })
  try {
    if (pattern !== null && options.timestamp !== null && options.timestamp !== '')
      await importing.schema([{ name: options.timestamp, type: { name: 'TIMESTAMP', a: 0, b: 0 }, pattern }])
    if (parquet) await readRows(engine, request, path, importing, columns, requested)
    else await readText(path, request, importing, requested.signal)
    return (await importing.end()).rowsImported
  } catch (error) {
    if (error instanceof ImportError) throw new SqlError(error.message, request.position)
    throw error
  } finally {
    await importing.close()
  }
}

async function readText(
  path: string,
  named: NamedFile,
  importing: ImportSession,
  signal: StopSignal | null,
): Promise<void> {
  const opened = await openRegular(path, named)
  const file = opened.createReadStream({ highWaterMark: blockBytes })
  const stop = (): void => {
    const reason = signal?.reason
    file.destroy(new CancelledError(typeof reason === 'string' ? reason : 'the client disconnected'))
  }
  signal?.addEventListener('abort', stop)
  try {
    for await (const chunk of expandedFile(file, Number.POSITIVE_INFINITY)) await importing.write(chunk)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

/**
 * Opens the file and checks its kind again, since it may have been replaced: opening a pipe would wait for its
 * writer.
 */
async function openRegular(path: string, { file, filePosition }: NamedFile): Promise<FileHandle> {
  const opened = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if ((await opened.stat()).isFile()) return opened
  await opened.close()
  throw new SqlError(`not a regular file [file=${file}]`, filePosition)
}

/**
 * Reads the rows with read_parquet(), which must accept the file's name. Column types are those of the file unless
 * the table has others. Binary values are written as hexadecimal digits, which the import decodes. Integers are read
 * exactly if some may be the number that represents NULL, so that the import reports it.
 */
async function readRows(
  engine: CopyEngine,
  { file, filePosition, table }: Extract<CopyRequest, { direction: 'from' }>,
  path: string,
  importing: ImportSession,
  columns: readonly ResultColumn[],
  { session, signal }: Requested,
): Promise<void> {
  try {
    const strings = textColumns(engine.table(table))
    const list = columns.map(({ name, type }) => copiedColumn(name, type, strings))
    await importing.schema(columns.map(({ name, type }) => ({ name, type, pattern: null })))
    const options = mayHoldSmallest({ name: file, path, position: filePosition }) ? ", 'exact'" : ''
    const rows = await engine.execute(`select ${list.join()} from ${sourceOf(file, options)}`, {
      ...wholeResult,
      session: reading(session),
      signal,
      timeoutMs: 0,
    })
    if (rows.kind !== 'rows') throw new SqlError('COPY FROM needs a query that returns rows', filePosition)
    const marked = columns.length === 1 ? new NullLines() : null
    for await (const block of rows.blocks) {
      const bytes = Buffer.from(block)
      await importing.write(marked?.mark(bytes) ?? bytes)
    }
    await rows.summary
  } catch (error) {
    throw atFile(error, filePosition)
  }
}

/** Returns the columns of a Parquet file. */
function columnsOf(
  engine: CopyEngine,
  { file, filePosition }: CopyRequest,
  { session }: Requested,
): readonly ResultColumn[] {
  try {
    return engine.validate(`select * from ${sourceOf(file)}`, reading(session)).columns ?? []
  } catch (error) {
    throw atFile(error, filePosition)
  }
}

function sourceOf(file: string, options = ''): string {
  return `read_parquet('${file.replaceAll("'", "''")}'${options})`
}

/** A session that may read the file: importing needs the right to write only. */
function reading(session: Requested['session']): Requested['session'] {
  return { ...session, rights: { ...session.rights, read: true } }
}

/** Moves the position of an error from the internal statement to the file name. */
function atFile(error: unknown, position: number): unknown {
  return error instanceof SqlError ? new SqlError(error.message, position) : error
}

/** Representation of NULL where an empty field is not possible. */
const nullText = '\\N'

/** Writes NULL as a word in a single-column file, since imports skip empty lines. */
class NullLines {
  #atStart = true
  #quoted = false

  mark(bytes: Buffer): Buffer {
    const parts: Buffer[] = []
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === 0x22) this.#quoted = !this.#quoted
      if (this.#atStart && (byte === 0x0d || byte === 0x0a)) {
        parts.push(bytes.subarray(from, at), Buffer.from(nullText))
        from = at
      }
      this.#atStart = byte === 0x0a && !this.#quoted
    }
    return Buffer.concat([...parts, bytes.subarray(from)])
  }
}

function copiedColumn(name: string, { name: type }: DataType, strings: ReadonlySet<string>): string {
  const quoted = `"${name.replaceAll('"', '""')}"`
  if (type !== 'BINARY') return quoted
  if (strings.has(name.toLowerCase())) return `convert_from(${quoted}, 'UTF8') ${quoted}`
  return `case when ${quoted} is not null then '\\x' || encode(${quoted}, 'hex') end ${quoted}`
}

/** Text columns of an existing table, which take binary values as text. */
function textColumns(table: TableShape | undefined): ReadonlySet<string> {
  const strings = table?.columns.filter(({ type }) => ['VARCHAR', 'STRING', 'SYMBOL'].includes(type.name)) ?? []
  return new Set(strings.map(({ name }) => name.toLowerCase()))
}

// Export ------------------------------------------------------------------------------------------------------------

async function exportFile(
  engine: CopyEngine,
  { exportRoot }: CopyDirectories,
  request: Extract<CopyRequest, { direction: 'to' }>,
  { session, signal, timeoutMs }: Requested,
): Promise<number> {
  const { encoding, extension } = exportOptions(request)
  const named = pathIn(exportRoot, request)
  const path = named.toLowerCase().endsWith(`.${extension}`) ? named : `${named}.${extension}`
  makeDirectories(dirname(path))
  const [home, folder] = [await realpath(exportRoot), await realpath(dirname(path))]
  if (folder !== home && !folder.startsWith(home + sep)) throw outside(request)
  const result = await engine.execute(request.query, {
    ...wholeResult,
    ...{ session, signal, timeoutMs, encoding, rowsOnly: queryWanted },
  })
  if (result.kind !== 'rows') throw new SqlError(queryWanted, request.position)
  const unfinished = join(folder, `.${Date.now()}-${process.pid}.part`)
  try {
    await writeFile(unfinished, result.blocks)
    const { rows } = await result.summary
    await rename(unfinished, path)
    return rows
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

async function writeFile(path: string, blocks: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'wx')
  try {
    for await (const block of blocks) {
      for (let at = 0; at < block.length; ) at += (await file.write(block, at)).bytesWritten
    }
    await file.sync()
  } finally {
    await file.close()
  }
}
