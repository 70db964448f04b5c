// Codecs of exported Parquet pages.
//
// What takes long goes in steps, and the query can end between them: GZIP and BROTLI as one stream (stepped-zlib.ts), ZSTD
// at its slow levels as several frames, which every decoder reads as one text. Frames of 256 KiB cost 3 % of the ratio at
// level 22, and one takes a tenth of a second; LZ4, Snappy and LZO take a hundredth for a page.

import { type Zstd, zstd } from '../../base/zstd.js'
import { lzoCompress } from '../../kernels/lzo.js'
import { lz4TableBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { Scratch } from '../../storage/part/part-scratch.js'
import type { ParquetCodec, ParquetEncoding } from './parquet-encoding.js'
import { brotliCodec, compressInSteps, gzipCodec } from './stepped-zlib.js'

/** As on disk. LZ4 is LZ4_RAW: the older one has a framing that readers disagree about. */
export const codecIds: Readonly<Record<ParquetCodec, number>> = {
  NONE: 0,
  SNAPPY: 1,
  GZIP: 2,
  LZO: 3,
  BROTLI: 4,
  ZSTD: 6,
  LZ4: 7,
}

/** Bytes to compress. */
interface Packing {
  readonly address: number
  readonly bytes: number
  /** Free bytes in front of the result. */
  readonly before: number
  /** False: somebody has found that these bytes hold no repetitions, so that Snappy and LZ4 need not look for any. */
  readonly gain: boolean
}

/** The result, with the bytes in front of it, lies in memory that was taken for it. */
export type PageCompressor = (packing: Packing) => Uint8Array

/** `take`: memory that lives as long as the row group. `alive` throws when the query is over. */
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
    memory.u8.set(bytes, address + before)
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
    memory.u8.copyWithin(target + before + start.length, address, address + bytes)
    return memory.u8.subarray(target, target + before + start.length + bytes)
  }
}

/** Bytes from the middle that are compressed to see whether it pays, and by how much it has to. */
const sampleBytes = 16 * 1024
const gainMin = 0.85

function pays(pack: (address: number, bytes: number) => Uint8Array, address: number, bytes: number): boolean {
  if (bytes < sampleBytes * 4) return true
  return pack(address + (bytes >>> 1), sampleBytes).length < sampleBytes * gainMin
}

interface CodecWays {
  /** What precedes bytes that are not compressed. */
  readonly head: 'snappy' | 'lz4' | null
  readonly match: ((kernel: ParquetKernel, scratch: Scratch, address: number, bytes: number) => Uint8Array) | null
  readonly foreign: ((bytes: Uint8Array) => Uint8Array) | null
}

function codecOf(codec: ParquetCodec, level: number, alive: () => void): CodecWays {
  const foreign = (compress: (bytes: Uint8Array) => Uint8Array): CodecWays => ({
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

/** What before plain bytes makes them a block of the codec; null where there is no such thing. */
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

function literalHead(form: CodecWays['head'], bytes: number): number[] {
  if (form === null) return []
  const head: number[] = []
  if (form === 'lz4') {
    // The literals of a last sequence.
    head.push(Math.min(bytes, 15) << 4)
    let rest = bytes - 15
    for (; rest >= 255; rest -= 255) head.push(255)
    if (rest >= 0) head.push(rest)
    return head
  }
  // Their number as a varint, then the tag of a literal with its length in four bytes.
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

/** Hadoop's framing, which Parquet's LZO means: bytes before and after compression, big-endian, then the block. */
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

/** It also finds gains that are too small for what they cost. */
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

/** Magic, a header that says the size in four bytes, and raw blocks of at most 128 KiB, each behind type and size in 24 bits. */
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
