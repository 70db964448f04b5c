// Stage: compresses a response with a content coding that the client accepts.
//
//   in     Buffers of any size
//   out    gzip, or one zstd frame per buffer
//   owner  the input belongs to the stage until its callback

import { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { zstd } from '../engine/base/zstd.js'

export type ContentCoding = 'gzip' | 'zstd'

/** A low level: higher ones compress text more slowly than it can be sent. */
const gzipLevel = 3
const zstdLevel = 1
/** Smaller bodies fit into a packet uncompressed. */
const wholeBytesMin = 1024
const gzipChunkBytes = 64 * 1024

/** Returns the coding that `Accept-Encoding` prefers; null for none. */
export function chooseCoding(accepted: string | undefined): ContentCoding | null {
  if (accepted === undefined || accepted === '') return null
  let best: ContentCoding | null = null
  let bestWeight = 0
  for (const entry of accepted.toLowerCase().split(',')) {
    const [name = '', ...parameters] = entry.split(';').map((text) => text.trim())
    if (name !== 'gzip' && name !== 'zstd') continue
    const weight = weightOf(parameters)
    if (weight > bestWeight || (weight === bestWeight && name === 'zstd' && weight > 0)) {
      best = name
      bestWeight = weight
    }
  }
  return best
}

function weightOf(parameters: readonly string[]): number {
  const quality = parameters.find((parameter) => parameter.startsWith('q='))
  if (quality === undefined) return 1
  const weight = Number(quality.slice(2))
  return weight > 0 && weight <= 1 ? weight : 0
}

/** Compresses a whole response; null when it is too short to benefit. */
export function compressWhole(coding: ContentCoding | null, body: Buffer): Uint8Array | null {
  if (coding === null || body.length < wholeBytesMin) return null
  return coding === 'gzip' ? zlib.gzipSync(body, { level: gzipLevel }) : zstd().compress(body, zstdLevel)
}

export function compressor(coding: ContentCoding): Transform {
  return coding === 'gzip' ? zlib.createGzip({ level: gzipLevel, chunkSize: gzipChunkBytes }) : zstdFrames()
}

function zstdFrames(): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      let packed: Uint8Array
      try {
        packed = zstd().compress(chunk, zstdLevel)
      } catch (error) {
        callback(error as Error)
        return
      }
      callback(null, packed)
    },
  })
}
