// Compresses and decompresses the pages of parts (Parquet files), from and to addresses of the shared memory.

import * as zlib from 'node:zlib'
import { assert } from '../../base/assert.js'
import { zstd } from '../../base/zstd.js'
import type { Kernels } from '../../kernels/load.js'
import { lz4TableBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { ColumnCodec } from '../schema/schema.js'
import type { Scratch } from './part-scratch.js'

/** Parquet's numbers of the codecs, as stored in files. */
export const pageCodecs = { none: 0, snappy: 1, gzip: 2, brotli: 4, zstd: 6, lz4_raw: 7 } as const
export type PageCodec = keyof typeof pageCodecs

/** The codecs whose levels differ from the default only for columns with PARQUET(..). */
const levelsUsual = { gzip: 6, brotli: 1, zstd: 3 } as const

export function pageCodecOf(codec: ColumnCodec): PageCodec {
  return codec === 'uncompressed' ? 'none' : codec
}

export interface Compressed {
  readonly address: number
  readonly bytes: number
}

/** Compresses into the scratch buffer 'compressed'. An incompressible page becomes slightly larger. */
export function compressPage(
  kernel: ParquetKernel,
  scratch: Scratch,
  codec: PageCodec,
  address: number,
  bytes: number,
  level?: number,
): Compressed {
  if (codec === 'none') return { address, bytes }
  if (codec === 'zstd' || codec === 'gzip' || codec === 'brotli')
    return compressByLibrary(scratch, codec, address, bytes, level ?? levelsUsual[codec])
  if (codec === 'snappy') {
    const target = scratch.room('compressed', bytes + Math.ceil(bytes / 6) + 64)
    const packed = kernel.snappyCompress(address, bytes, target, scratch.room('lz4Table', lz4TableBytes))
    return { address: target, bytes: packed }
  }
  const limit = bytes + (bytes >>> 6) + 64
  const target = scratch.room('compressed', limit)
  const table = scratch.room('lz4Table', lz4TableBytes)
  const packed = kernel.lz4Compress(address, bytes, target, limit, table)
  assert(packed <= limit, 'K3: compression stays within its bound')
  return { address: target, bytes: packed }
}

function compressByLibrary(
  scratch: Scratch,
  codec: keyof typeof levelsUsual,
  address: number,
  bytes: number,
  level: number,
): Compressed {
  const input = scratch.memory.u8.slice(address, address + bytes)
  const packed = packedBy(codec, input, level)
  const target = scratch.room('compressed', packed.length)
  scratch.memory.put(packed, target)
  return { address: target, bytes: packed.length }
}

function packedBy(codec: keyof typeof levelsUsual, input: Uint8Array, level: number): Uint8Array {
  if (codec === 'zstd') return zstd().compress(input, level)
  if (codec === 'gzip') return zlib.gzipSync(input, { level })
  return zlib.brotliCompressSync(input, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: level } })
}

/** Returns false if the bytes do not decompress to a page of that size. */
export function decompressPage(
  kernels: Pick<Kernels, 'parquet' | 'foreign'>,
  u8: Uint8Array,
  codec: number,
  from: Compressed,
  target: number,
  targetBytes: number,
): boolean {
  if (codec === pageCodecs.lz4_raw) {
    return kernels.parquet.lz4Decompress(from.address, from.bytes, target, targetBytes) === targetBytes
  }
  if (codec === pageCodecs.snappy) {
    return kernels.foreign.snappyDecompress(from.address, from.bytes, target, targetBytes) === targetBytes
  }
  const bytes = unpacked(codec, u8.slice(from.address, from.address + from.bytes), targetBytes)
  if (bytes?.length !== targetBytes) return false
  u8.set(bytes, target)
  return true
}

function unpacked(codec: number, bytes: Uint8Array, bytesMax: number): Uint8Array | null {
  const options = { maxOutputLength: Math.max(1, bytesMax) }
  try {
    if (codec === pageCodecs.zstd) return zstd().decompress(bytes, bytesMax)
    if (codec === pageCodecs.gzip) return zlib.gunzipSync(bytes, options)
    return codec === pageCodecs.brotli ? zlib.brotliDecompressSync(bytes, options) : null
  } catch {
    return null
  }
}
