// Stage: collects the body of one request as blocks of whole lines. It is the last stage of line protocol over HTTP,
// where a request is atomic and therefore goes to the engine as a whole.
//
//   in     Buffer chunks of the body, possibly compressed
//   out    the blocks, as the result of the promise; the last line may lack its newline
//   state  the body, at most bodyBytesMax bytes, within the budget that all requests share
//   owner  the caller releases each block and the reserved bytes
//   errors BodyTooLarge; ResourceError when the budget is used up; NetworkError for invalid compressed data. The source
//          stays open after each, so that the error can be sent to the client

import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { NetworkError } from '../engine/base/errors.js'
import { lineBytesMax } from '../engine/base/limits.js'
import { lineEnd } from '../engine/engine.js'
import type { ByteBudget } from './byte-budget.js'
import { type LineBlock, LineCutter, type LineCutterOptions } from './line-cutter.js'

export class BodyTooLarge extends NetworkError {
  constructor(bytesMax: number) {
    super(`request body is too large [bytesMax=${bytesMax}]`)
    this.name = 'BodyTooLarge'
  }
}

export interface LineBodyOptions extends LineCutterOptions {
  readonly bodyBytesMax: number
  readonly gzip: boolean
  /** Size of the body as transferred; null when unknown. */
  readonly contentLength: number | null
  readonly budget: ByteBudget
  readonly signal: AbortSignal
}

export interface LineBody {
  readonly blocks: readonly LineBlock[]
  /** Size of the decompressed body. */
  readonly bytes: number
  /** Reserves more of the budget, or throws ResourceError. */
  readonly grow: (bytes: number) => void
  /** Returns blocks and budget. */
  readonly release: () => void
}

/** Output size of one decompression step; bounds what is buffered beyond the limit. */
const gunzipChunkBytes = 64 * 1024

export async function lineBody(source: Readable, options: LineBodyOptions): Promise<LineBody> {
  const { bodyBytesMax, contentLength, budget, signal, gzip } = options
  if (contentLength !== null && contentLength > bodyBytesMax) throw new BodyTooLarge(bodyBytesMax)
  let reserved = contentLength === null ? 0 : await budget.reserve(contentLength, signal)
  const blocks: LineBlock[] = []
  const release = (): void => {
    for (const block of blocks) block.release()
    budget.release(reserved)
  }

  const grow = (more: number): void => {
    budget.grow(more)
    reserved += more
  }

  const gather = async (chunks: AsyncIterable<Buffer>): Promise<number> => {
    const cutter = new LineCutter(options)
    let bytes = 0
    for await (const chunk of chunks) {
      bytes += chunk.length
      if (bytes > bodyBytesMax) throw new BodyTooLarge(bodyBytesMax)
      if (bytes > reserved && (contentLength === null || gzip)) {
        budget.grow(bytes - reserved)
        reserved = bytes
      }
      cutter.append(chunk, blocks)
    }
    const rest = cutter.rest()
    if (rest !== null) blocks.push(rest)
    return bytes
  }

  const chunks = source.iterator({ destroyOnReturn: false })
  try {
    // A pipeline of one stage would be expensive here, and a lost connection ends the source without one.
    const bytes = gzip
      ? await pipeline(chunks, createGunzip({ chunkSize: gunzipChunkBytes }), gather, { signal })
      : await gather(chunks)
    return { blocks, bytes, grow, release }
  } catch (error) {
    release()
    throw isZlibError(error) ? new NetworkError('request body is not valid gzip data', { cause: error }) : error
  }
}

function isZlibError(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code
  return typeof code === 'string' && (code.startsWith('Z_') || code === 'ERR_ZLIB_INITIALIZATION_FAILED')
}

const newline = 0x0a
const carriageReturn = 0x0d
const hash = 0x23

/** The prefix as line protocol writes it within a name. */
export function escapedPrefix(prefix: string): Buffer {
  return Buffer.from(prefix.replace(/[\\, =]/g, '\\$&'))
}

/**
 * The lines with the prefix, as new blocks of at most `blockBytesMax`, unless a line is longer. `grown` is called with
 * the bytes of each block, and may throw.
 */
export function prefixLines(
  blocks: readonly Uint8Array[],
  prefix: Buffer,
  blockBytesMax: number,
  grown: (bytes: number) => void,
): Buffer[] {
  const prefixed: Buffer[] = []
  let pieces: Uint8Array[] = []
  let bytes = 0
  const close = (): void => {
    grown(bytes)
    if (bytes > 0) prefixed.push(Buffer.concat(pieces, bytes))
    pieces = []
    bytes = 0
  }
  for (const block of blocks) {
    for (let at = 0; at < block.length; ) {
      const end = lineEnd(block, at, block.length, lineBytesMax)
      const first = block[at]
      const isRow = first !== hash && first !== newline && first !== carriageReturn
      const line = isRow ? [prefix, block.subarray(at, end)] : [block.subarray(at, end)]
      const size = line.reduce((sum, { length }) => sum + length, 0)
      if (bytes + size > blockBytesMax) close()
      pieces.push(...line)
      bytes += size
      at = end
    }
  }
  close()
  return prefixed
}
