// Stages: the body of a request as its sender meant it, decompressed, and never more than a bound of it, so that a small
// body cannot become an endless one.
//
//   in     Buffers as the socket delivers them
//   out    Buffers of at most `gunzipChunkBytes`
//   errors BodyTooLarge; those of zlib for bad data

import { type Duplex, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { NetworkError } from '../engine/base/errors.js'
import { BodyTooLarge } from './line-body.js'

/** Output of one step of decompression: bounds what is held beyond the limit. */
const gunzipChunkBytes = 256 * 1024

/** None when the body is not compressed. Throws NetworkError for an encoding that is not known. */
export function expandingStages(encoding: string | undefined, bytesMax: number): Duplex[] {
  if (encoding === undefined || encoding === 'identity') return []
  if (encoding !== 'gzip') throw new NetworkError(`unsupported content encoding: ${encoding}`)
  return [createGunzip({ chunkSize: gunzipChunkBytes }), bounded(bytesMax)]
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
