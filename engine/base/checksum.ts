// CRC-32 as zlib computes it, the checksum of all of our file formats, and the CRC of joined bytes from the CRCs of their
// pieces. A call has a fixed cost, so one call over joined bytes is cheaper than one per chunk. Views of shared memory are
// accepted.

import { crc32 as zlibCrc32 } from 'node:zlib'

/** CRC-32 of the bytes; `seed` is the checksum of the bytes before them. */
export function crc32(bytes: Uint8Array, seed = 0): number {
  return zlibCrc32(bytes, seed)
}

/** CRC-32 of a concatenation, from the checksums of both parts and the length of the second. */
export function combineCrc32(first: number, second: number, secondBytes: number): number {
  // Appending n bytes multiplies the first remainder by x^(8n) modulo the polynomial.
  let factor = 0x80000000
  for (let rest = secondBytes, power = 3; rest > 0; rest >>>= 1, power++) {
    if ((rest & 1) === 1) factor = timesModulo(powers[power & 31] as number, factor)
  }
  return (timesModulo(factor, first) ^ second) >>> 0
}

/** Product of two bit-reversed polynomials modulo the polynomial of the checksum. */
function timesModulo(a: number, b: number): number {
  let product = 0
  let shifted = b
  for (let bit = 31; bit >= 0; bit--) {
    if (((a >>> bit) & 1) === 1) product ^= shifted
    shifted = (shifted & 1) === 1 ? (shifted >>> 1) ^ 0xedb88320 : shifted >>> 1
  }
  return product >>> 0
}

/** x^(2^n) at index n. */
const powers = powersOfX()

function powersOfX(): number[] {
  const all = [0x40000000]
  for (let last = all[0] as number; all.length < 32; all.push(last)) last = timesModulo(last, last)
  return all
}
