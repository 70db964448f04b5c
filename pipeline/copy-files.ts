// COPY of files: CSV or Parquet into a table, rows of a query into CSV or Parquet. Files lie in two directories, one for each way; a
// name cannot lead out of them, neither by `..` nor by a link. An export is written beside its name and takes it when it
// is whole; a file that was there gives way.

import { createReadStream } from 'node:fs'
import { open, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { CancelledError, SqlError } from '../engine/base/errors.js'
import { makeDirectories } from '../engine/base/files.js'
import type { Copier, CopyRequest, Engine, ExecuteOptions, StopSignal } from '../engine/engine.js'
import { exportOptions, importOptions } from './copy-options.js'
import { expandedFile } from './expanded-body.js'
import { ImportSession } from './import.js'
import { ImportError, parseImportSchema } from './import-schema.js'
import { copyWords } from './import-times.js'
import { ParquetError, type ParquetReading, readParquetFile } from './parquet-file.js'

export interface CopyDirectories {
  readonly importRoot: string
  readonly exportRoot: string
  /** For a temporary file of an import whose types turn out too narrow. */
  readonly spool: string
}

const blockBytes = 1024 * 1024

type CopyEngine = Pick<Engine, 'csv' | 'execute' | 'load' | 'rejects' | 'rows' | 'table'>
type Asked = Pick<ExecuteOptions, 'session' | 'signal' | 'timeoutMs'>

export function fileCopier(engine: CopyEngine, directories: CopyDirectories): Copier {
  return (request, asked) =>
    request.direction === 'from'
      ? importFile(engine, directories, request, asked)
      : exportFile(engine, directories, request, asked)
}

// Import ------------------------------------------------------------------------------------------------------------

async function importFile(
  engine: CopyEngine,
  directories: CopyDirectories,
  request: Extract<CopyRequest, { direction: 'from' }>,
  { session, signal }: Asked,
): Promise<number> {
  const { parquet, pattern, ...options } = importOptions(request)
  const path = await existingFile(directories, request)
  const own = { blockBytes, overwrite: false, skipExtra: false, connectionId: 0, name: request.table }
  const shared = { ...own, words: copyWords, spoolDirectory: directories.spool }
  const importing = new ImportSession({ engine, session, ...shared, ...options })
  try {
    if (pattern !== null && options.timestamp !== null && options.timestamp !== '')
      await importing.schema([{ name: options.timestamp, type: { name: 'TIMESTAMP', a: 0, b: 0 }, pattern }])
    if (parquet) await readRows(path, importing, signal)
    else await readText(path, importing, signal)
    return (await importing.end()).rowsImported
  } catch (error) {
    if (error instanceof ImportError) throw new SqlError(error.message, request.position)
    if (error instanceof ParquetError)
      throw new SqlError(`Parquet file cannot be read: ${error.message} [file=${request.file}]`, request.filePosition)
    throw error
  } finally {
    await importing.close()
  }
}

async function readText(path: string, importing: ImportSession, signal: StopSignal | null): Promise<void> {
  const file = createReadStream(path, { highWaterMark: blockBytes })
  const stop = (): void => {
    const reason = signal?.reason
    file.destroy(new CancelledError(typeof reason === 'string' ? reason : 'the client went away'))
  }
  signal?.addEventListener('abort', stop)
  try {
    for await (const chunk of expandedFile(file, Number.POSITIVE_INFINITY)) await importing.write(chunk)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

/** The types are those of the file, where the table does not say others. */
function readRows(path: string, importing: ImportSession, signal: StopSignal | null): Promise<void> {
  const reading: ParquetReading = {
    columns: (columns) => importing.schema(parseImportSchema(JSON.stringify(columns))),
    lines: (bytes) => importing.write(bytes),
  }
  return readParquetFile(path, reading, signal)
}

/** In the directory of imports, or of exports: what was written can be read again. */
async function existingFile(directories: CopyDirectories, request: CopyRequest): Promise<string> {
  for (const root of [directories.importRoot, directories.exportRoot]) {
    const path = placeIn(root, request)
    const real = await realpath(path).catch(() => null)
    const home = await realpath(root).catch(() => null)
    if (real === null || home === null) continue
    if (!real.startsWith(home + sep)) throw outside(request)
    return real
  }
  throw new SqlError(`file does not exist [file=${request.file}]`, request.filePosition)
}

function placeIn(root: string, request: CopyRequest): string {
  const path = resolve(root, request.file)
  if (request.file === '' || request.file.includes('\0') || !path.startsWith(resolve(root) + sep))
    throw outside(request)
  return path
}

function outside({ file, filePosition }: CopyRequest): SqlError {
  return new SqlError(`file name leads out of its directory [file=${file}]`, filePosition)
}

// Export ------------------------------------------------------------------------------------------------------------

async function exportFile(
  engine: CopyEngine,
  { exportRoot }: CopyDirectories,
  request: Extract<CopyRequest, { direction: 'to' }>,
  { session, signal, timeoutMs }: Asked,
): Promise<number> {
  const { encoding, extension } = exportOptions(request)
  const named = placeIn(exportRoot, request)
  const path = named.toLowerCase().endsWith(`.${extension}`) ? named : `${named}.${extension}`
  makeDirectories(dirname(path))
  const [home, folder] = [await realpath(exportRoot), await realpath(dirname(path))]
  if (folder !== home && !folder.startsWith(home + sep)) throw outside(request)
  const result = await engine.execute(request.query, {
    session,
    signal,
    timeoutMs,
    encoding,
    parameters: [],
    skip: 0,
    rowsMax: Number.POSITIVE_INFINITY,
    countAll: false,
    columns: null,
    explain: false,
    rowsOnly: 'COPY takes a query that gives rows',
  })
  if (result.kind !== 'rows') throw new SqlError('COPY takes a query that gives rows', request.position)
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
