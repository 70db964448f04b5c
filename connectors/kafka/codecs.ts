// Compresses and decompresses Kafka's record batches: Snappy, LZ4 and Zstandard, which kafkajs lacks, and gzip, for
// which kafkajs has no size limit. The content of a batch is limited, before memory is taken for it: batches are untrusted.
//
// The Java clients frame Snappy in xerial blocks: magic (8 bytes) | version u32 | compatible u32, then blocks of a
// length u32, big-endian, and that many bytes of raw Snappy.
//
// An LZ4 frame may declare no size, and the library has no limit. Its blocks tell how much they hold:
//
//   frame   magic u32 184D2204 | flags u8: version (2 bits, 1), independent, block checksums, content size, content
//           checksum, reserved, dictionary id | largest block u8: 4 to 7 in bits 4 to 6, 64 KiB to 4 MiB
//           | content size u64, if flagged | dictionary id u32, if flagged | header checksum u8 | blocks | 0 u32
//   block   size u32, the highest bit for one that is not compressed | that many bytes | checksum u32, if flagged
//   bytes   sequences of: lengths u8 (literals, match) | further bytes of the first | literals | offset u16 | further
//           bytes of the second; the last one ends with its literals

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
  decompress: async (bytes) => {
    try {
      return await unzip(bytes, { maxOutputLength: contentBytesMax })
    } catch (error) {
      const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
      throw isTooLarge ? tooLarge('gzip') : error
    }
  },
}

export const snappyCodec: Codec = {
  compress: ({ buffer }) => snappy.compress(buffer),
  decompress: async (bytes) => {
    if (!bytes.subarray(0, xerialMagic.length).equals(xerialMagic)) return rawSnappy(bytes)
    const blocks = xerialBlocks(bytes)
    if (sum(blocks.map(snappySize)) > contentBytesMax) throw tooLarge('snappy')
    const contents: Buffer[] = []
    for (const block of blocks) contents.push(await rawSnappy(block))
    return Buffer.concat(contents)
  },
}

function tooLarge(codec: string): Error {
  return new Error(
    `a compressed record batch holds more bytes than are allowed [codec=${codec}, max=${contentBytesMax}]`,
  )
}

function xerialBlocks(bytes: Buffer): Buffer[] {
  const blocks: Buffer[] = []
  for (let at = xerialHeaderBytes; at < bytes.length; ) {
    const end = at + 4 <= bytes.length ? at + 4 + bytes.readUInt32BE(at) : Number.POSITIVE_INFINITY
    if (end > bytes.length) throw new Error('a record batch is cut off [codec=snappy]')
    blocks.push(bytes.subarray(at + 4, end))
    at = end
  }
  return blocks
}

async function rawSnappy(bytes: Buffer): Promise<Buffer> {
  if (snappySize(bytes) > contentBytesMax) throw tooLarge('snappy')
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
  decompress: async (bytes) => {
    const { blocks, blockBytesMax } = lz4Frame(bytes)
    const limits = blocks.map(({ content, isPacked }) => (isPacked ? content.length * lz4RatioMax : content.length))
    if (sum(limits) > contentBytesMax) {
      // The cheap bound does not suffice.
      const sizes = blocks.map(({ content, isPacked }) => (isPacked ? lz4Size(content) : content.length))
      if (sum(sizes.map((size) => Math.min(size, blockBytesMax))) > contentBytesMax) throw tooLarge('lz4')
    }
    return decompressFrame(bytes)
  },
}

/** A byte of a length adds at most 255 bytes. */
const lz4RatioMax = 255
const lz4Magic = 0x184d2204
const lz4Flags = { blockChecksums: 16, contentSize: 8, dictionary: 1 } as const

interface Lz4Block {
  readonly content: Buffer
  readonly isPacked: boolean
}

/** The blocks of the first frame: the library ignores what follows it. */
function lz4Frame(bytes: Buffer): { readonly blocks: readonly Lz4Block[]; readonly blockBytesMax: number } {
  const cutOff = (): Error => new Error('a record batch is cut off [codec=lz4]')
  if (bytes.length < 7) throw cutOff()
  if (bytes.readUInt32LE(0) !== lz4Magic) throw new Error('a record batch does not begin as an LZ4 frame')
  const [flags, largest] = [bytes.readUInt8(4), (bytes.readUInt8(5) >> 4) & 7]
  if (largest < 4) throw new Error(`an LZ4 frame has an unknown size of blocks [code=${largest}]`)
  const blocks: Lz4Block[] = []
  let at = 7 + ((flags & lz4Flags.contentSize) !== 0 ? 8 : 0) + ((flags & lz4Flags.dictionary) !== 0 ? 4 : 0)
  for (;;) {
    if (at + 4 > bytes.length) throw cutOff()
    const word = bytes.readUInt32LE(at)
    if (word === 0) return { blocks, blockBytesMax: 1 << (8 + 2 * largest) }
    const end = at + 4 + (word & 0x7fffffff)
    if (end > bytes.length) throw cutOff()
    blocks.push({ content: bytes.subarray(at + 4, end), isPacked: word < 2 ** 31 })
    at = end + ((flags & lz4Flags.blockChecksums) !== 0 ? 4 : 0)
  }
}

/** Bytes that a block declares to hold; no less than the library finds in it. */
function lz4Size(block: Buffer): number {
  let size = 0
  let at = 0
  const more = (): number => {
    let length = 0
    for (;;) {
      const byte = block[at++] ?? 0
      length += byte
      if (byte < 255) return length
    }
  }
  while (at < block.length) {
    const token = block[at++]!
    const literals = (token >> 4) + (token >> 4 === 15 ? more() : 0)
    at += literals
    size += literals
    if (at >= block.length) break
    at += 2
    size += 4 + (token & 15) + ((token & 15) === 15 ? more() : 0)
  }
  return size
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

export const zstdCodec: Codec = {
  compress: async ({ buffer }) => asBuffer(zstd().compress(buffer, zstdLevel)),
  decompress: async (bytes) => asBuffer(zstd().decompress(bytes, contentBytesMax)),
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
