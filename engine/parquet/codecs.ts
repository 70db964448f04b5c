// Codecs of foreign Parquet pages. No decompressor is given room for more than a page says, and no page is believed that
// says more than its codec can make of its bytes. LZO has no decoder here.

import * as zlib from 'node:zlib'
import type { ForeignKernel } from '../kernels/foreign.js'
import type { ParquetKernel } from '../kernels/parquet.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { zstd } from '../storage/zstd.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'

export interface ForeignCodecs {
  readonly parquet: ParquetKernel
  readonly foreign: ForeignKernel
}

export interface PackedBytes {
  readonly address: number
  readonly bytes: number
  /** What it must become. */
  readonly wanted: number
  /** Bytes in front of the result. */
  readonly ahead: number
  /** Makes room for both. */
  readonly take: () => number
}

const codecs = { none: 0, snappy: 1, gzip: 2, lzo: 3, brotli: 4, lz4: 5, zstd: 6, lz4Raw: 7 } as const

/** How many bytes one byte of a codec can stand for: 64 of 3 bytes, 258 of 2 bits, 255 of one, a block of 128 KiB of 4. */
const ratios: Readonly<Record<number, number>> = {
  [codecs.none]: 1,
  [codecs.snappy]: 22,
  [codecs.gzip]: 1032,
  [codecs.brotli]: Number.POSITIVE_INFINITY,
  [codecs.lz4]: 255,
  [codecs.zstd]: 32_768,
  [codecs.lz4Raw]: 255,
}
/** What headers and first blocks add. */
const ratioSlack = 256 * 1024

export function largestOf(codec: number, bytes: number, file: ForeignFile, place: ForeignPlace): number {
  const ratio = ratios[codec]
  if (ratio === undefined)
    throw file.error(codec === codecs.lzo ? 'pages in LZO are not read' : `its codec ${codec} is not known`, place)
  return bytes * ratio + ratioSlack
}

/** Address of the bytes ahead and the result; -1 when the input is no such page. */
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

/** The size that a block of Snappy says; -1 when it says none. */
function snappySize(u8: Uint8Array, address: number, bytes: number): number {
  let size = 0
  for (let i = 0; i < Math.min(5, bytes); i++) {
    const byte = u8[address + i] as number
    size += (byte & 127) * 2 ** (i * 7)
    if (byte < 128) return size
  }
  return -1
}

/** Frames of {length, packed length}, big-endian, as Hadoop writes them; false when the bytes are no such frames. */
function hadoopLz4(
  u8: Uint8Array,
  { address, bytes, wanted }: PackedBytes,
  target: number,
  unpack: (from: number, size: number, to: number, whole: number) => boolean,
): boolean {
  const word = (at: number): number =>
    (u8[at] as number) * 2 ** 24 +
    ((u8[at + 1] as number) << 16) +
    ((u8[at + 2] as number) << 8) +
    (u8[at + 3] as number)
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
    return unpackZstd(input, wanted)
  } catch {
    return null
  }
}

/** Frames one behind the other; they are walked to their end first, so that none is given room for what only a header says. */
function unpackZstd(input: Uint8Array, wanted: number): Uint8Array | null {
  const frames: ZstdFrame[] = []
  for (let from = 0; from < input.length; ) {
    const frame = zstdFrame(input, from)
    if (frame === null) return null
    frames.push(frame)
    from = frame.end
  }
  if (frames.reduce((sum, { blocks }) => sum + blocks, 0) * zstdBlockBytesMax < wanted) return null
  const output = new Uint8Array(wanted)
  let done = 0
  for (const { start, end, size, blocks } of frames) {
    if (size > wanted - done) return null
    if (blocks === 0) continue
    const bytes = zstd().decompress(input.subarray(start, end), wanted - done)
    if (bytes.length > wanted - done) return null
    output.set(bytes, done)
    done += bytes.length
  }
  return done === wanted ? output : null
}

const zstdBlockBytesMax = 128 * 1024

interface ZstdFrame {
  readonly start: number
  readonly end: number
  /** As its header says; 0 when it says none. */
  readonly size: number
  /** 0: the frame is to be passed over. */
  readonly blocks: number
}

/**
 * magic u32 | flags | window (without the flag 32) | dictionary id of 0, 1, 2 or 4 bytes | size of 0 or 1, 2, 4 or 8 bytes |
 * blocks {last 1 bit, type 2 bits, size 21 bits; the bytes, one when they are a run} | checksum u32 (flag 4).
 * Frames that are passed over: magic | length u32 | so many bytes.
 */
function zstdFrame(input: Uint8Array, from: number): ZstdFrame | null {
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength)
  if (input.length - from < 8) return null
  const magic = view.getUint32(from, true)
  if (magic >>> 4 === 0x184d2a5) {
    const end = from + 8 + view.getUint32(from + 4, true)
    return end > input.length ? null : { start: from, end, size: 0, blocks: 0 }
  }
  if (magic !== 0xfd2fb528) return null
  const flags = input[from + 4] as number
  const isSingle = (flags & 32) !== 0
  const place = from + 5 + (isSingle ? 0 : 1) + ([0, 1, 2, 4][flags & 3] as number)
  const bytes = [isSingle ? 1 : 0, 2, 4, 8][flags >>> 6] as number
  const size = sizeIn(view, place, bytes)
  let at = place + bytes
  let blocks = 0
  for (let last = false; !last; ) {
    if (at + 3 > input.length) return null
    const block = (input[at] as number) | ((input[at + 1] as number) << 8) | ((input[at + 2] as number) << 16)
    last = (block & 1) === 1
    blocks++
    at += 3 + (((block >>> 1) & 3) === 1 ? 1 : block >>> 3)
  }
  const end = at + ((flags & 4) === 0 ? 0 : 4)
  return end > input.length ? null : { start: from, end, size, blocks }
}

function sizeIn(view: DataView, at: number, bytes: number): number {
  if (bytes === 0 || at + bytes > view.byteLength) return 0
  if (bytes === 1) return view.getUint8(at)
  if (bytes === 2) return view.getUint16(at, true) + 256
  return bytes === 4 ? view.getUint32(at, true) : Number(view.getBigUint64(at, true))
}
