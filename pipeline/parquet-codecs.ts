// Codecs of Parquet pages that others have written. Snappy comes with the reader; LZO is not read.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { loadZstd } from './zstd.js'

/** By the names of the format: packed bytes, and the length that they had. */
export type ParquetCodecs = Readonly<Record<string, (input: Uint8Array, length: number) => Uint8Array>>

export async function parquetCodecs(): Promise<ParquetCodecs> {
  const { decompress } = await loadZstd()
  return {
    GZIP: (input) => gunzipSync(input),
    BROTLI: (input) => brotliDecompressSync(input),
    ZSTD: (input) => decompress(input),
    LZ4_RAW: (input, length) => unpackLz4(input, length),
    LZ4: (input, length) => unpackHadoopLz4(input, length) ?? unpackLz4(input, length),
  }
}

/** One block of LZ4. Throws when it is damaged. */
export function unpackLz4(input: Uint8Array, length: number): Uint8Array {
  const output = new Uint8Array(length)
  let from = 0
  let to = 0
  const runLength = (nibble: number): number => {
    let run = nibble
    if (nibble < 15) return run
    for (let byte = 255; byte === 255; run += byte) byte = input[from++] ?? 0
    return run
  }
  while (from < input.length) {
    const token = input[from++] ?? 0
    const literals = runLength(token >> 4)
    if (from + literals > input.length || to + literals > length) throw new Error('damaged LZ4 block')
    output.set(input.subarray(from, from + literals), to)
    from += literals
    to += literals
    if (from >= input.length) break
    const distance = (input[from] ?? 0) | ((input[from + 1] ?? 0) << 8)
    from += 2
    const matched = runLength(token & 15) + 4
    if (distance === 0 || distance > to || to + matched > length) throw new Error('damaged LZ4 block')
    // The bytes may overlap: each one is copied behind the one before it.
    for (let end = to + matched; to < end; to++) output[to] = output[to - distance] ?? 0
  }
  if (to !== length) throw new Error('damaged LZ4 block')
  return output
}

/** Frames of {length, packed length}, big-endian, as Hadoop writes them; null when the bytes are no such frames. */
function unpackHadoopLz4(input: Uint8Array, length: number): Uint8Array | null {
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength)
  const output = new Uint8Array(length)
  let to = 0
  for (let from = 0; from < input.length; ) {
    if (from + 8 > input.length) return null
    const size = view.getUint32(from)
    const packed = view.getUint32(from + 4)
    if (to + size > length || from + 8 + packed > input.length) return null
    output.set(unpackLz4(input.subarray(from + 8, from + 8 + packed), size), to)
    to += size
    from += 8 + packed
  }
  return to === length ? output : null
}
