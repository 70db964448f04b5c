// Stages: the body of a request as its sender meant it, decompressed, and never more than a bound of it, so that a small
// body cannot become an endless one.
//
//   in     Buffers as the socket delivers them
//   out    Buffers of at most `gunzipChunkBytes`
//   errors BodyTooLarge; those of zlib for bad data

import { type Duplex, pipeline, Readable, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { NetworkError } from '../engine/base/errors.js'
import { ImportError } from './import-schema.js'
import { BodyTooLarge } from './line-body.js'

/** Output of one step of decompression: bounds what is held beyond the limit. */
const gunzipChunkBytes = 256 * 1024

/** The first bytes of every file of gzip. */
const gzipMark = 0x1f8b

/** None when the body is not compressed. Throws NetworkError for an encoding that is not known. */
export function expandingStages(encoding: string | undefined, bytesMax: number): Duplex[] {
  if (encoding === undefined || encoding === 'identity') return []
  if (encoding !== 'gzip') throw new NetworkError(`unsupported content encoding: ${encoding}`)
  return [createGunzip({ chunkSize: gunzipChunkBytes }), bounded(bytesMax)]
}

/** The bytes of a file, decompressed when they are gzip, whatever its name is. */
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

async function* beginningWith(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}

async function* gunzipped(file: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer> {
  const expanded = bounded(bytesMax)
  // Whoever reads the last stage hears of the failure.
  pipeline(Readable.from(file), createGunzip({ chunkSize: gunzipChunkBytes }), expanded, () => {})
  try {
    for await (const chunk of expanded) yield chunk as Buffer
  } catch (error) {
    if (!isZlibError(error)) throw error
    throw new ImportError(`the file is not whole, or no valid gzip: ${error.message}`)
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
