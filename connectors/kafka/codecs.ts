// The compressions of Kafka that kafkajs leaves to others: Snappy, LZ4 and Zstandard. Gzip it has itself.
//
// Snappy of the Java clients comes in the framing of xerial: magic (8 bytes) | version u32 | compatible u32, then blocks of
// a length u32, big-endian, and so many bytes of raw Snappy.

import * as zlib from 'node:zlib'
import { compressFrame, decompressFrame } from 'lz4-napi'
import snappy from 'snappy'

interface Codec {
  compress(encoder: { readonly buffer: Buffer }): Promise<Buffer>
  decompress(bytes: Buffer): Promise<Buffer>
}

const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const xerialHeaderBytes = 16
const MIB = 1024 * 1024
/** Frames do not say how large their content is: tried one after the other. */
const zstdContentBytes = [4 * MIB, 32 * MIB, 256 * MIB]

export const snappyCodec: Codec = {
  compress: ({ buffer }) => snappy.compress(buffer),
  decompress: async (bytes) => {
    if (!bytes.subarray(0, xerialMagic.length).equals(xerialMagic)) return rawSnappy(bytes)
    const blocks: Buffer[] = []
    for (let at = xerialHeaderBytes; at < bytes.length; ) {
      const length = bytes.readUInt32BE(at)
      blocks.push(await rawSnappy(bytes.subarray(at + 4, at + 4 + length)))
      at += 4 + length
    }
    return Buffer.concat(blocks)
  },
}

async function rawSnappy(bytes: Buffer): Promise<Buffer> {
  return (await snappy.uncompress(bytes, { asBuffer: true })) as Buffer
}

export const lz4Codec: Codec = {
  compress: ({ buffer }) => compressFrame(buffer),
  decompress: (bytes) => decompressFrame(bytes),
}

/** node:zlib's where this Node has it (22.15 and newer), else a WebAssembly build. */
export const zstdCodec: Codec = {
  compress: async ({ buffer }) => {
    if ('zstdCompressSync' in zlib) return (zlib as unknown as ZlibZstd).zstdCompressSync(buffer)
    return Buffer.from((await loadedZstd()).compress(buffer))
  },
  decompress: async (bytes) => {
    if ('zstdDecompressSync' in zlib) return (zlib as unknown as ZlibZstd).zstdDecompressSync(bytes)
    const { decompress } = await loadedZstd()
    for (const defaultHeapSize of zstdContentBytes) {
      try {
        return Buffer.from(decompress(bytes, { defaultHeapSize }))
      } catch (error) {
        if (defaultHeapSize === zstdContentBytes.at(-1)) throw error
      }
    }
    return Buffer.alloc(0)
  },
}

interface ZlibZstd {
  zstdCompressSync(bytes: Uint8Array): Buffer
  zstdDecompressSync(bytes: Uint8Array): Buffer
}

type ZstdModule = typeof import('@bokuweb/zstd-wasm')
let zstdLoading: Promise<ZstdModule> | null = null

function loadedZstd(): Promise<ZstdModule> {
  zstdLoading ??= import('@bokuweb/zstd-wasm').then(async (loaded) => {
    await loaded.init()
    return loaded
  })
  // A file that could not be opened just now can be later.
  zstdLoading.catch(() => {
    zstdLoading = null
  })
  return zstdLoading
}
