// Stages: decompress a request body, up to a limit, so that a small body cannot expand without bound.
//
//   in     Buffers as the socket delivers them
//   out    Buffers of at most `gunzipChunkBytes`
//   errors BodyTooLarge; for invalid data errors of zlib, or from expandedFile() ImportError

import { type Duplex, pipeline, Readable, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { NetworkError } from '../engine/base/errors.js'
import { ImportError } from './import-schema.js'
import { BodyTooLarge } from './line-body.js'
import { beginningWith } from './parquet-uploads.js'

/** Output size of one decompression step; bounds what is buffered beyond the limit. */
const gunzipChunkBytes = 256 * 1024

/** Magic number of gzip files. */
const gzipMark = 0x1f8b

/** Returns no stages when the body is not compressed. Throws NetworkError for an unknown encoding. */
export function expandingStages(encoding: string | undefined, bytesMax: number): Duplex[] {
  if (encoding === undefined || encoding === 'identity') return []
  if (encoding !== 'gzip') throw new NetworkError(`unsupported content encoding: ${encoding}`)
  return [createGunzip({ chunkSize: gunzipChunkBytes }), bounded(bytesMax)]
}

/** Returns the bytes of a file, decompressed if they are gzip, whatever the file's name. */
export async function* expandedFile(file: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer> {
  const chunks = file[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  let isOver = false
  while (head.length < 2 && !isOver) {
    const next = await chunks.next()
    isOver = next.done === true
    if (next.done !== true) head = Buffer.concat([head, next.value])
  }
  const whole = beginningWith(head, chunks)
  if (head.length < 2 || head.readUInt16BE(0) !== gzipMark) yield* whole
  else yield* gunzipped(whole, bytesMax)
}

async function* gunzipped(file: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer> {
  const expanded = bounded(bytesMax)
  // The reader of the last stage gets the error.
  pipeline(Readable.from(file), createGunzip({ chunkSize: gunzipChunkBytes }), expanded, () => {})
  try {
    for await (const chunk of expanded) yield chunk as Buffer
  } catch (error) {
    if (!isZlibError(error)) throw error
    throw new ImportError(`the file is incomplete or not valid gzip: ${error.message}`)
  }
}

function isZlibError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
}

function bounded(bytesMax: number): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      bytes += chunk.length
      if (bytes > bytesMax) callback(new BodyTooLarge(bytesMax))
      else callback(null, chunk)
    },
  })
}
