// Reads deletion vectors of Iceberg tables (format version 3): the positions of deleted rows of a data file as a
// bitmap, stored as a blob in a Puffin file. All sizes are checked against the blob.
//
//   blob        length u32 big-endian, of magic and bitmap | magic D1 D3 39 64 | bitmap |
//               CRC-32 u32 big-endian, of magic and bitmap
//   bitmap      count u64 | for each: high 32 bits of positions u32, a Roaring bitmap of their low 32 bits
//   Roaring     cookie u32: 12346, then the number of containers u32; or 12347, with the number of containers - 1 in
//               its high half, then a bit for each container: whether it consists of runs |
//               for each container: high half of its values u16, number of values - 1 u16 |
//               offsets u32 (cookie 12346, or from 4 containers on) | the containers
//   container   array of up to 4096 values u16 | bitmap of 8192 bytes | runs: count u16, for each: first value u16,
//               length - 1 u16

import { crc32 } from '../base/checksum.js'

const magic = 0x64_39_d3_d1
const cookies = { plain: 12_346, runs: 12_347 } as const
const arrayMax = 4096
const offsetsMin = 4

/** The positions in ascending order. Throws Error for other bytes. */
export function decodeDeletionVector(blob: Uint8Array): Float64Array {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const length = view.getUint32(0)
  if (length < 12 || blob.length !== length + 8 || view.getUint32(4, true) !== magic)
    throw new Error('no deletion vector')
  if (crc32(blob.subarray(4, 4 + length)) !== view.getUint32(4 + length)) throw new Error('its checksum does not match')
  const positions: number[] = []
  const count = view.getUint32(8, true)
  if (view.getUint32(12, true) !== 0) throw new Error('too many bitmaps')
  let at = 16
  for (let index = 0; index < count; index++) {
    const high = view.getUint32(at, true)
    at = readRoaring(view, at + 4, high * 2 ** 32, positions)
  }
  return Float64Array.from(positions)
}

/** Appends the values; returns where the bitmap ends. */
function readRoaring(view: DataView, start: number, base: number, positions: number[]): number {
  const cookie = view.getUint32(start, true)
  const hasRuns = (cookie & 0xffff) === cookies.runs
  if (!hasRuns && cookie !== cookies.plain) throw new Error(`a bitmap begins with ${cookie}`)
  const containers = hasRuns ? (cookie >>> 16) + 1 : view.getUint32(start + 4, true)
  const flags = start + (hasRuns ? 4 : 8)
  const keys = flags + (hasRuns ? (containers + 7) >>> 3 : 0)
  let at = keys + containers * 4 + (hasRuns && containers < offsetsMin ? 0 : containers * 4)
  for (let index = 0; index < containers; index++) {
    const first = base + view.getUint16(keys + index * 4, true) * 0x1_0000
    const isRun = hasRuns && ((view.getUint8(flags + (index >>> 3)) >>> (index & 7)) & 1) === 1
    const count = view.getUint16(keys + index * 4 + 2, true) + 1
    if (isRun) at = readRuns(view, at, first, positions)
    else at = count <= arrayMax ? readArray(view, at, count, first, positions) : readBits(view, at, first, positions)
  }
  return at
}

function readArray(view: DataView, at: number, count: number, first: number, positions: number[]): number {
  for (let index = 0; index < count; index++) positions.push(first + view.getUint16(at + index * 2, true))
  return at + count * 2
}

function readBits(view: DataView, at: number, first: number, positions: number[]): number {
  for (let byte = 0; byte < 8192; byte++) {
    const bits = view.getUint8(at + byte)
    for (let bit = 0; bit < 8; bit++) if (((bits >>> bit) & 1) === 1) positions.push(first + byte * 8 + bit)
  }
  return at + 8192
}

function readRuns(view: DataView, at: number, first: number, positions: number[]): number {
  const runs = view.getUint16(at, true)
  for (let run = 0; run < runs; run++) {
    const from = view.getUint16(at + 2 + run * 4, true)
    const length = view.getUint16(at + 4 + run * 4, true) + 1
    for (let index = 0; index < length; index++) positions.push(first + from + index)
  }
  return at + 2 + runs * 4
}
