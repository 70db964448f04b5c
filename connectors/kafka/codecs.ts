// Compresses and decompresses Kafka's record batches: Snappy, LZ4 and Zstandard, which kafkajs lacks, and gzip, for
// which kafkajs has no size limit. The size of the output is limited; in Snappy, that of each block.
//
// The Java clients frame Snappy in xerial blocks: magic (8 bytes) | version u32 | compatible u32, then blocks of a
// length u32, big-endian, and that many bytes of raw Snappy.

import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { compressFrame, decompressFrame } from 'lz4-napi'
import snappy from 'snappy'
import { zstd } from '../../engine/base/zstd.js'

interface Codec {
  compress(encoder: { readonly buffer: Buffer }): Promise<Buffer>
  decompress(bytes: Buffer): Promise<Buffer>
}

const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const xerialHeaderBytes = 16
/** A fetch returns at most 8 MiB unless a single batch is larger. */
const contentBytesMax = 256 * 1024 * 1024
const zstdLevel = 3

const gzip = promisify(zlib.gzip)
const unzip: (bytes: Buffer, options: zlib.ZlibOptions) => Promise<Buffer> = promisify(zlib.unzip)

export const gzipCodec: Codec = {
  compress: ({ buffer }) => gzip(buffer),
  decompress: (bytes) => unzip(bytes, { maxOutputLength: contentBytesMax }),
}

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
  if (snappySize(bytes) > contentBytesMax)
    throw new Error(`a block of Snappy declares too many bytes [max=${contentBytesMax}]`)
  return (await snappy.uncompress(bytes, { asBuffer: true })) as Buffer
}

/** The declared size: a little-endian base-128 varint. */
function snappySize(bytes: Buffer): number {
  let size = 0
  for (const [index, byte] of bytes.subarray(0, 5).entries()) {
    size += (byte & 127) * 2 ** (index * 7)
    if (byte < 128) break
  }
  return size
}

export const lz4Codec: Codec = {
  compress: ({ buffer }) => compressFrame(buffer),
  decompress: (bytes) => decompressFrame(bytes),
}

export const zstdCodec: Codec = {
  compress: async ({ buffer }) => asBuffer(zstd().compress(buffer, zstdLevel)),
  decompress: async (bytes) => asBuffer(zstd().decompress(bytes, contentBytesMax)),
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
