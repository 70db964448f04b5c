// Codecs of exported Parquet pages. The only importer of zstd-wasm in the engine; it is loaded at its first page. zstd comes
// from node:zlib where it has it (Node 22.15 and newer).

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import * as zlib from 'node:zlib'
import { nodeFiles } from '../../base/files.js'
import { lzoCompress } from '../../kernels/lzo.js'
import { lz4TableBytes, type ParquetKernel } from '../../kernels/parquet.js'
import type { Scratch } from '../../storage/part-scratch.js'
import type { ParquetCodec, ParquetEncoding } from './parquet-encoding.js'

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

/** Compresses bytes that lie at an address; the result belongs to the caller. */
export type PageCompressor = (address: number, bytes: number) => Uint8Array

export function pageCompressor(
  { codec, level }: Pick<ParquetEncoding, 'codec' | 'level'>,
  kernel: ParquetKernel,
  scratch: Scratch,
): PageCompressor {
  const { memory } = scratch
  const copied = (address: number, bytes: number): Uint8Array => memory.u8.slice(address, address + bytes)
  switch (codec) {
    case 'NONE':
      return copied
    case 'SNAPPY':
      return (address, bytes) => snappy(kernel, scratch, address, bytes)
    case 'GZIP':
      return (address, bytes) => zlib.gzipSync(copied(address, bytes), { level })
    case 'BROTLI': {
      const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: level }
      return (address, bytes) => zlib.brotliCompressSync(copied(address, bytes), { params })
    }
    case 'ZSTD': {
      const compress = zstd()
      return (address, bytes) => compress(copied(address, bytes), level)
    }
    case 'LZ4':
      return (address, bytes) => lz4(kernel, scratch, address, bytes)
    case 'LZO':
      return (address, bytes) => framedLzo(copied(address, bytes))
  }
}

function lz4(kernel: ParquetKernel, scratch: Scratch, address: number, bytes: number): Uint8Array {
  const limit = bytes + (bytes >>> 6) + 64
  const target = scratch.room('compressed', limit)
  const size = kernel.lz4Compress(address, bytes, target, limit, scratch.room('lz4Table', lz4TableBytes))
  return scratch.memory.u8.slice(target, target + size)
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
  return scratch.memory.u8.slice(target, target + size)
}

type ZstdCompress = (bytes: Uint8Array, level: number) => Uint8Array

let zstdLoaded: ZstdCompress | null = null

function zstd(): ZstdCompress {
  zstdLoaded ??= 'zstdCompressSync' in zlib ? zstdOfNode() : zstdOfWasm()
  return zstdLoaded
}

function zstdOfNode(): ZstdCompress {
  const { zstdCompressSync, constants } = zlib as unknown as {
    zstdCompressSync(bytes: Uint8Array, options: object): Buffer
    constants: { ZSTD_c_compressionLevel: number }
  }
  return (bytes, level) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: level } })
}

type WasmImports = ConstructorParameters<typeof WebAssembly.Instance>[1]

interface ZstdModule {
  instantiateWasm: (
    imports: WasmImports,
    done: (instance: WebAssembly.Instance) => void,
  ) => WebAssembly.Instance['exports']
  init(bytes: Uint8Array): void
}

/** Query threads run no promises, and the package's own way to start needs one: its module takes an instance as well. */
function zstdOfWasm(): ZstdCompress {
  const require = createRequire(import.meta.url)
  const directory = dirname(require.resolve('@bokuweb/zstd-wasm'))
  const { Module } = require(join(directory, 'module.js')) as { Module: ZstdModule }
  Module.instantiateWasm = (imports, done) => {
    const instance = new WebAssembly.Instance(new WebAssembly.Module(wasmBytes(join(directory, 'zstd.wasm'))), imports)
    done(instance)
    return instance.exports
  }
  Module.init(new Uint8Array(0))
  const { compress } = require('@bokuweb/zstd-wasm') as typeof import('@bokuweb/zstd-wasm')
  return (bytes, level) => compress(bytes as Buffer, level)
}

function wasmBytes(path: string): Uint8Array<ArrayBuffer> {
  const files = nodeFiles()
  const bytes = new Uint8Array(files.size(path))
  const file = files.open(path, 'read')
  try {
    file.read(bytes, 0)
    return bytes
  } finally {
    file.close()
  }
}
