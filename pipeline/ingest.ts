// Entry point of ingestion: stores line protocol from a stream or a request body, and messages of QWP (columnar
// protocol over WebSocket); used by gateways and connectors.

import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ingestBlockBytesMax, lineBytesMax } from '../engine/base/limits.js'
import type { Engine, LinePrecision, Receipt } from '../engine/engine.js'
import { type BlockPool, blockPool } from './block-pool.js'
import type { ByteBudget } from './byte-budget.js'
import { expandingStages } from './expanded-body.js'
import { lineBlocks } from './line-blocks.js'
import { escapedPrefix, type LineBody, type LineBodyOptions, lineBody, prefixLines } from './line-body.js'
import { isMultipart, linesOfParts } from './line-parts.js'
import { type LineSinkOptions, lineSink } from './line-sink.js'
import { type QwpSinkOptions, qwpSink } from './qwp-sink.js'

export { ByteBudget } from './byte-budget.js'
export { fileCopier } from './copy-files.js'
export type { CopyDirectories } from './copy-paths.js'
export { expandedFile, expandingStages } from './expanded-body.js'
export { copyRelations } from './file-lists.js'
export { IcebergTables } from './iceberg-tables.js'
export { ImportSession } from './import.js'
export { ImportFiles } from './import-files.js'
export type { ImportOptions, ImportResult } from './import-options.js'
export { ImportError, parseImportSchema } from './import-schema.js'
export { dropTable, finishStaging, recoverImports, run as runStatement, stagingName } from './import-staging.js'
export { BodyTooLarge } from './line-body.js'
export { refusalOf } from './line-sink.js'
export { readMultipart } from './multipart.js'
export { previewParquet } from './parquet-rows.js'
export { lookForParquet, ParquetUploads } from './parquet-uploads.js'
export { QwpDatagrams } from './qwp-datagrams.js'
export { HoldExpired } from './qwp-sink.js'
export { RemoteFiles, type RemoteFilesOptions } from './remote-files.js'

/** Free blocks to keep: enough for the connections that are active at the same time. */
const pooledBlocksMax = 16

const pool: BlockPool = blockPool(ingestBlockBytesMax, pooledBlocksMax)
const limits = { blockBytesMax: ingestBlockBytesMax, lineBytesMax, pool }

/** Stores the lines of a connection until it ends. Rejects with the reason when the connection must be closed. */
export async function ingestLineStream(source: Readable, options: LineSinkOptions, signal: AbortSignal): Promise<void> {
  await pipeline(source, lineBlocks(limits), lineSink(options), { signal })
}

/**
 * Stores the QWP messages of a connection until it ends. Rejects with the reason when the connection must be closed.
 */
export async function ingestMessages(source: Readable, options: QwpSinkOptions): Promise<void> {
  await pipeline(source, qwpSink(options))
}

export interface LineBodyRequest {
  readonly engine: Pick<Engine, 'lines'>
  readonly connectionId: number
  readonly precision: LinePrecision
  readonly gzip: boolean
  /** They determine whether the body is multipart. */
  readonly headers: IncomingHttpHeaders
  /** Store the good lines together and report the bad ones; otherwise one bad line rejects the request. */
  readonly partial: boolean
  readonly contentLength: number | null
  readonly bodyBytesMax: number
  /** Size of a block of lines; at most the limit of the ingest ring. */
  readonly blockBytesMax: number
  readonly budget: ByteBudget
  /** Idempotency key: a request whose key was stored before is not stored again; its receipt has `existed`. */
  readonly key?: string | null
  /** Precedes the names of tables. */
  readonly tablePrefix?: string
  readonly signal: AbortSignal
}

/** Stores the lines of one body, all or none, or the good ones. Null when the body contains no line. */
export async function ingestLineBody(source: Readable, request: LineBodyRequest): Promise<Receipt | null> {
  const { engine, connectionId, precision } = request
  const blockBytesMax = Math.min(request.blockBytesMax, ingestBlockBytesMax)
  const body = await lineBody(...bodyOf(source, request, blockBytesMax))
  if (body.blocks.length === 0) {
    body.release()
    return null
  }
  const blocks = blocksOf(body, request, blockBytesMax)
  const { key = null, partial } = request
  // The key is stored as a source of one message, which has no predecessor.
  const sourcePosition =
    key === null ? {} : { sourcePosition: { connector: '', topic: key, partition: 0, offset: 0, previous: -1 } }
  const ticket = engine.lines({
    blocks,
    precision,
    atomic: true,
    skipBadLines: partial,
    partial,
    connectionId,
    ...sourcePosition,
  })
  // If the engine rejects the request, both promises reject; `taken` reports the error.
  ticket.receipt.catch(() => {})
  try {
    await ticket.taken
  } finally {
    body.release()
  }
  return await ticket.receipt
}

function blocksOf(
  { blocks, grow, release }: LineBody,
  { tablePrefix = '' }: LineBodyRequest,
  bytesMax: number,
): Uint8Array[] {
  const lines = blocks.map(({ bytes }) => bytes)
  if (tablePrefix === '') return lines
  try {
    return prefixLines(lines, escapedPrefix(tablePrefix), bytesMax, grow)
  } catch (error) {
    release()
    throw error
  }
}

function bodyOf(source: Readable, request: LineBodyRequest, blockBytesMax: number): [Readable, LineBodyOptions] {
  const { headers, gzip, bodyBytesMax, signal } = request
  const options = { ...request, ...limits, blockBytesMax }
  if (!isMultipart(headers)) return [source, options]
  const through = expandingStages(gzip ? 'gzip' : undefined, bodyBytesMax)
  const contentLength = gzip ? null : options.contentLength
  return [linesOfParts(source, headers, signal, through), { ...options, gzip: false, contentLength }]
}
