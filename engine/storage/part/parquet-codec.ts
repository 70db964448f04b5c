// Compresses and decompresses the pages of parts (Parquet files), from and to addresses of the shared memory.

import { assert } from '../../base/assert.js'
import { zstd } from '../../base/zstd.js'
import { lz4TableBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { Scratch } from './part-scratch.js'

/** Parquet's numbers of the codecs, as stored in files. */
export const pageCodecs = { none: 0, zstd: 6, lz4_raw: 7 } as const
export type PageCodec = keyof typeof pageCodecs

const zstdLevel = 3

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
): Compressed {
  if (codec === 'none') return { address, bytes }
  if (codec === 'zstd') return compressZstd(scratch, address, bytes)
  const limit = bytes + (bytes >>> 6) + 64
  const target = scratch.room('compressed', limit)
  const table = scratch.room('lz4Table', lz4TableBytes)
  const packed = kernel.lz4Compress(address, bytes, target, limit, table)
  assert(packed <= limit, 'K3: compression stays within its bound')
  return { address: target, bytes: packed }
}

function compressZstd(scratch: Scratch, address: number, bytes: number): Compressed {
  const packed = zstd().compress(scratch.memory.u8.slice(address, address + bytes), zstdLevel)
  const target = scratch.room('compressed', packed.length)
  scratch.memory.put(packed, target)
  return { address: target, bytes: packed.length }
}

/** Returns false if the bytes do not decompress to a page of that size. */
export function decompressPage(
  kernel: ParquetKernel,
  u8: Uint8Array,
  codec: number,
  from: Compressed,
  target: number,
  targetBytes: number,
): boolean {
  if (codec === pageCodecs.lz4_raw) {
    return kernel.lz4Decompress(from.address, from.bytes, target, targetBytes) === targetBytes
  }
  if (codec === pageCodecs.zstd) {
    const bytes = unpackZstd(u8.slice(from.address, from.address + from.bytes), targetBytes)
    if (bytes?.length !== targetBytes) return false
    u8.set(bytes, target)
    return true
  }
  return false
}

function unpackZstd(bytes: Uint8Array, bytesMax: number): Uint8Array | null {
  try {
    return zstd().decompress(bytes, bytesMax)
  } catch {
    return null
  }
}
