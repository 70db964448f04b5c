// Runs COPY with files on the server: imports CSV or Parquet into a table, exports a query to CSV or Parquet. An import
// reads from the import directory or the export directory, an export writes to the latter (copy-paths.ts). An export is
// written to a temporary name and renamed when complete.

import { constants } from 'node:fs'
import { type FileHandle, open, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { CancelledError, SqlError } from '../engine/base/errors.js'
import { makeDirectories } from '../engine/base/files.js'
import type { Copier, CopyRequest, Engine, ExecuteOptions, StopSignal } from '../engine/engine.js'
import { exportOptions, importOptions } from './copy-options.js'
import { type CopyDirectories, existingFile, type NamedFile, outside, pathIn } from './copy-paths.js'
import { expandedFile } from './expanded-body.js'
import { ImportSession } from './import.js'
import { ImportError } from './import-schema.js'
import { copyWords } from './import-times.js'
import { importParquet, parquetColumns, parquetOptions, wholeResult } from './parquet-rows.js'

const blockBytes = 1024 * 1024

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
  const file = { name: request.file, title: request.file, path, position: request.filePosition }
  const reader = { engine, session: requested.session, signal: requested.signal }
  const own = { blockBytes, overwrite: false, skipExtra: false, connectionId: 0, name: request.table }
  const shared = { ...own, words: copyWords, spoolDirectory: directories.spool }
  const columns = parquet ? parquetColumns(reader, file) : []
  const importing = new ImportSession({
    ...{ engine, session: requested.session, ...shared, ...options },
    ...(parquet ? parquetOptions(columns) : {}),
  })
  try {
    if (parquet) await importParquet(reader, file, columns, { session: importing, schema: [] })
    else {
      if (pattern !== null && options.timestamp !== null && options.timestamp !== '') {
        const type = { name: 'TIMESTAMP', a: 0, b: 0 } as const
        await importing.schema([{ name: options.timestamp, type, pattern, as: null }])
      }
      await readText(path, request, importing, requested.signal)
    }
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
  if (folder !== home && !folder.startsWith(home + sep)) throw outside(request, 'copy.export.root')
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
