// Decompresses pages of Parquet files that other programs wrote, and so cannot be trusted. A page header tells the
// decompressed size. The page is rejected if the codec cannot produce that many bytes from the compressed ones, and the
// decompressor cannot write more. LZO is not supported.

import * as zlib from 'node:zlib'
import { zstd } from '../base/zstd.js'
import type { ForeignKernel } from '../kernels/foreign.js'
import type { ParquetKernel } from '../kernels/parquet.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'

export interface ForeignCodecs {
  readonly parquet: ParquetKernel
  readonly foreign: ForeignKernel
}

export interface PackedBytes {
  readonly address: number
  readonly bytes: number
  /** Exact size of the decompressed bytes. */
  readonly wanted: number
  /** Bytes to leave free before the result. */
  readonly ahead: number
  /** Allocates room for both. */
  readonly take: () => number
}

const codecs = { none: 0, snappy: 1, gzip: 2, lzo: 3, brotli: 4, lz4: 5, zstd: 6, lz4Raw: 7 } as const

/**
 * Maximal compression ratio of a codec: a token of 3 bytes gives 64 bytes in Snappy, 2 bits give 258 in GZIP, a byte
 * 255 in LZ4, and a block of 4 bytes 128 KiB in ZSTD.
 */
const ratios: Readonly<Record<number, number>> = {
  [codecs.none]: 1,
  [codecs.snappy]: 22,
  [codecs.gzip]: 1032,
  [codecs.brotli]: Number.POSITIVE_INFINITY,
  [codecs.lz4]: 255,
  [codecs.zstd]: 32_768,
  [codecs.lz4Raw]: 255,
}
/** Allowance for headers and first blocks. */
const ratioSlack = 256 * 1024

export function largestOf(codec: number, bytes: number, file: ForeignFile, place: ForeignPlace): number {
  const ratio = ratios[codec]
  if (ratio === undefined)
    throw file.error(
      codec === codecs.lzo ? 'LZO compression is not supported' : `compression codec ${codec} is unknown`,
      place,
    )
  return bytes * ratio + ratioSlack
}

/** Address of the free bytes followed by the result; -1 when the input is invalid. */
export function decompress(
  { parquet, foreign }: ForeignCodecs,
  memory: SharedMemory,
  codec: number,
  packed: PackedBytes,
): number {
  const { address, bytes, wanted, ahead, take } = packed
  switch (codec) {
    case codecs.snappy: {
      if (snappySize(memory.u8, address, bytes) !== wanted) return -1
      const target = take()
      return foreign.snappyDecompress(address, bytes, target + ahead, wanted) === wanted ? target : -1
    }
    case codecs.lz4Raw:
    case codecs.lz4: {
      const target = take()
      const unpack = (from: number, size: number, to: number, whole: number): boolean =>
        parquet.lz4Decompress(from, size, to, whole) === whole
      if (codec === codecs.lz4 && hadoopLz4(memory.u8, packed, target + ahead, unpack)) return target
      return unpack(address, bytes, target + ahead, wanted) ? target : -1
    }
    default: {
      const output = byLibrary(codec, memory.u8.slice(address, address + bytes), wanted)
      if (output === null || output.length !== wanted) return -1
      const target = take()
      memory.put(output, target + ahead)
      return target
    }
  }
}

/** The size in the header of a Snappy block; -1 if it is invalid. */
function snappySize(u8: Uint8Array, address: number, bytes: number): number {
  let size = 0
  for (let i = 0; i < Math.min(5, bytes); i++) {
    const byte = u8[address + i]!
    size += (byte & 127) * 2 ** (i * 7)
    if (byte < 128) return size
  }
  return -1
}

/**
 * Hadoop's framing of LZ4: {length, compressed length}, big-endian, before each block. False when the bytes have
 * another form.
 */
function hadoopLz4(
  u8: Uint8Array,
  { address, bytes, wanted }: PackedBytes,
  target: number,
  unpack: (from: number, size: number, to: number, whole: number) => boolean,
): boolean {
  const word = (at: number): number => u8[at]! * 2 ** 24 + (u8[at + 1]! << 16) + (u8[at + 2]! << 8) + u8[at + 3]!
  let done = 0
  for (let at = address; at < address + bytes; ) {
    if (at + 8 > address + bytes) return false
    const [whole, size] = [word(at), word(at + 4)]
    if (whole > wanted - done || size > address + bytes - at - 8) return false
    if (!unpack(at + 8, size, target + done, whole)) return false
    done += whole
    at += 8 + size
  }
  return done === wanted
}

function byLibrary(codec: number, input: Uint8Array, wanted: number): Uint8Array | null {
  const options = { maxOutputLength: Math.max(1, wanted) }
  try {
    if (codec === codecs.gzip) return zlib.gunzipSync(input, options)
    if (codec === codecs.brotli) return zlib.brotliDecompressSync(input, options)
    return zstd().decompress(input, wanted)
  } catch {
    return null
  }
}
