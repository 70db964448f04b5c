// Compresses pages of exported Parquet files.
//
// Slow codecs run in steps, so that the query can be cancelled between them: GZIP and BROTLI as one stream
// (stepped-zlib.ts), ZSTD at slow levels as several frames, which every decoder concatenates. Frames of 256 KiB cost 3
// % of the compression ratio at level 22 and take about a tenth of a second each. LZ4, Snappy and LZO take about ten
// milliseconds for a page, and run in one step.

import { type Zstd, zstd } from '../../base/zstd.js'
import { lzoCompress } from '../../kernels/lzo.js'
import { lz4TableBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { Scratch } from '../../storage/part/part-scratch.js'
import type { ParquetCodec, ParquetEncoding } from './parquet-encoding.js'
import { brotliCodec, compressInSteps, gzipCodec } from './stepped-zlib.js'

/** Codec numbers of the format. LZ4 is LZ4_RAW: readers disagree on the framing of the older LZ4. */
export const codecIds: Readonly<Record<ParquetCodec, number>> = {
  NONE: 0,
  SNAPPY: 1,
  GZIP: 2,
  LZO: 3,
  BROTLI: 4,
  ZSTD: 6,
  LZ4: 7,
}

/** The bytes to compress. */
interface Packing {
  readonly address: number
  readonly bytes: number
  /** Bytes to leave free before the result. */
  readonly before: number
  /** False: the bytes are known to be incompressible, so Snappy and LZ4 do not try. */
  readonly gain: boolean
}

/** Returns the result, with the free bytes before it, in newly allocated memory. */
export type PageCompressor = (packing: Packing) => Uint8Array

/** `take` allocates memory that lives as long as the row group. `alive` throws when the query has ended. */
export function pageCompressor(
  { codec, level }: Pick<ParquetEncoding, 'codec' | 'level'>,
  kernel: ParquetKernel,
  scratch: Scratch,
  take: (bytes: number) => number,
  alive: () => void,
): PageCompressor {
  const { memory } = scratch
  const placed = (before: number, bytes: Uint8Array): Uint8Array => {
    const address = take(before + bytes.length)
    memory.put(bytes, address + before)
    return memory.u8.subarray(address, address + before + bytes.length)
  }
  const { head, match, foreign } = codecOf(codec, level, alive)
  return ({ address, bytes, before, gain }) => {
    alive()
    if (foreign !== null) return placed(before, foreign(memory.u8.slice(address, address + bytes)))
    const pack = match === null || !gain ? null : (from: number, count: number) => match(kernel, scratch, from, count)
    if (pack !== null && pays(pack, address, bytes)) return placed(before, pack(address, bytes))
    const target = take(before + headBytesMax + bytes + (bytes >>> 7))
    const start = literalHead(head, bytes)
    memory.u8.set(start, target + before)
    memory.copy(target + before + start.length, address, address + bytes)
    return memory.u8.subarray(target, target + before + start.length + bytes)
  }
}

/** Compresses a sample from the middle of a page; compressing the page must reduce it to this fraction at least. */
const sampleBytes = 16 * 1024
const gainMin = 0.85

function pays(pack: (address: number, bytes: number) => Uint8Array, address: number, bytes: number): boolean {
  if (bytes < sampleBytes * 4) return true
  return pack(address + (bytes >>> 1), sampleBytes).length < sampleBytes * gainMin
}

interface CodecFunctions {
  /** Kind of header before bytes that are stored uncompressed. */
  readonly head: 'snappy' | 'lz4' | null
  readonly match: ((kernel: ParquetKernel, scratch: Scratch, address: number, bytes: number) => Uint8Array) | null
  readonly foreign: ((bytes: Uint8Array) => Uint8Array) | null
}

function codecOf(codec: ParquetCodec, level: number, alive: () => void): CodecFunctions {
  const foreign = (compress: (bytes: Uint8Array) => Uint8Array): CodecFunctions => ({
    head: null,
    match: null,
    foreign: compress,
  })
  switch (codec) {
    case 'NONE':
      return { head: null, match: null, foreign: null }
    case 'SNAPPY':
      return { head: 'snappy', match: snappy, foreign: null }
    case 'LZ4':
      return { head: 'lz4', match: lz4, foreign: null }
    case 'GZIP':
    case 'BROTLI': {
      const stepped = codec === 'GZIP' ? gzipCodec(level) : brotliCodec(level)
      return foreign((bytes) => compressInSteps(stepped, bytes, alive))
    }
    case 'ZSTD': {
      const { compress } = zstd()
      return foreign((bytes) => zstdWhereItPays(bytes, (input) => zstdFrames(input, level, compress, alive)))
    }
    case 'LZO':
      return foreign(framedLzo)
  }
}

const headBytesMax = 16

/** The header that turns plain bytes into a block of the codec; null when the codec has no such form. */
export function plainHead(codec: ParquetCodec, bytes: number): readonly number[] | null {
  switch (codec) {
    case 'NONE':
      return []
    case 'SNAPPY':
      return literalHead('snappy', bytes)
    case 'LZ4':
      return literalHead('lz4', bytes)
    default:
      return null
  }
}

function literalHead(form: CodecFunctions['head'], bytes: number): number[] {
  if (form === null) return []
  const head: number[] = []
  if (form === 'lz4') {
    // LZ4: the literals of a last sequence.
    head.push(Math.min(bytes, 15) << 4)
    let rest = bytes - 15
    for (; rest >= 255; rest -= 255) head.push(255)
    if (rest >= 0) head.push(rest)
    return head
  }
  // Snappy: the length as a varint, then a literal tag with a length of four bytes.
  let rest = bytes
  for (; rest >= 128; rest >>>= 7) head.push((rest & 127) | 128)
  head.push(rest)
  const last = bytes - 1
  if (bytes > 0) head.push(63 << 2, last & 255, (last >>> 8) & 255, (last >>> 16) & 255, last >>> 24)
  return head
}

function lz4(kernel: ParquetKernel, scratch: Scratch, address: number, bytes: number): Uint8Array {
  const limit = bytes + (bytes >>> 6) + 64
  const target = scratch.room('compressed', limit)
  const size = kernel.lz4Compress(address, bytes, target, limit, scratch.room('lz4Table', lz4TableBytes))
  return scratch.memory.u8.subarray(target, target + size)
}

/** Hadoop's framing, which Parquet's LZO uses: uncompressed and compressed length, big-endian, then the block. */
function framedLzo(bytes: Uint8Array): Uint8Array {
  const block = lzoCompress(bytes)
  const framed = Buffer.alloc(8 + block.length)
  framed.writeUInt32BE(bytes.length, 0)
  framed.writeUInt32BE(block.length, 4)
  framed.set(block, 8)
  return framed
}

function snappy(kernel: ParquetKernel, scratch: Scratch, address: number, bytes: number): Uint8Array {
  const target = scratch.room('compressed', bytes + Math.ceil(bytes / 6) + 64)
  const size = kernel.snappyCompress(address, bytes, target, scratch.room('lz4Table', lz4TableBytes))
  return scratch.memory.u8.subarray(target, target + size)
}

/** ZSTD finds even small gains, which are not worth their cost. */
const zstdGainMin = 0.9
const zstdBlockBytesMax = 128 * 1024

function zstdWhereItPays(bytes: Uint8Array, compress: (bytes: Uint8Array) => Uint8Array): Uint8Array {
  if (bytes.length < sampleBytes * 4) return compress(bytes)
  const middle = bytes.length >>> 1
  const sample = compress(bytes.subarray(middle, middle + sampleBytes))
  return sample.length < sampleBytes * zstdGainMin ? compress(bytes) : zstdStored(bytes)
}

const zstdSlowLevel = 13
const zstdFrameBytesMax = { slow: 256 * 1024, quick: 4 * 1024 * 1024 }

function zstdFrames(bytes: Uint8Array, level: number, compress: Zstd['compress'], alive: () => void): Uint8Array {
  const frameBytes = level >= zstdSlowLevel ? zstdFrameBytesMax.slow : zstdFrameBytesMax.quick
  if (bytes.length <= frameBytes) return compress(bytes, level)
  const frames: Uint8Array[] = []
  for (let from = 0; from < bytes.length; from += frameBytes) {
    alive()
    frames.push(compress(bytes.subarray(from, from + frameBytes), level))
  }
  return Buffer.concat(frames)
}

/**
 * A ZSTD frame of uncompressed data: magic, a header with the size in four bytes, and raw blocks of at most 128 KiB,
 * each after its type and size in 24 bits.
 */
function zstdStored(bytes: Uint8Array): Uint8Array {
  const blocks = Math.ceil(bytes.length / zstdBlockBytesMax)
  const frame = Buffer.allocUnsafe(9 + blocks * 3 + bytes.length)
  frame.writeUInt32LE(0xfd2fb528, 0)
  frame.writeUInt8(0xa0, 4)
  frame.writeUInt32LE(bytes.length, 5)
  let at = 9
  for (let from = 0; from < bytes.length; from += zstdBlockBytesMax) {
    const block = bytes.subarray(from, from + zstdBlockBytesMax)
    const last = from + block.length === bytes.length ? 1 : 0
    frame.writeUIntLE(block.length * 8 + last, at, 3)
    frame.set(block, at + 3)
    at += 3 + block.length
  }
  return frame
}
