// Iceberg's partition transform bucket[n]: the hash of a value (murmur3, 32 bits, seed 0, appendix B of the
// specification) without its sign, modulo n. Integers and timestamps in microseconds are hashed as 64-bit integers,
// dates as their days, and strings as UTF-8. The bucket of other types is unknown.

import type { Bound } from '../types/bounds.js'
import type { ForeignType } from './foreign-types.js'

const dayMs = 86_400_000n
const wholeNumbers: ReadonlySet<ForeignType> = new Set(['int', 'long', 'timestamp', 'timestamptz'])

/** The bucket of a constant as conditions have it; null: unknown. */
export function bucketOf(type: ForeignType, value: Bound | Uint8Array, buckets: number): number | null {
  const bytes = hashedBytes(type, value)
  return bytes === null ? null : (murmur3(bytes) & 0x7fffffff) % buckets
}

function hashedBytes(type: ForeignType, value: Bound | Uint8Array): Uint8Array | null {
  if (value instanceof Uint8Array) return type === 'string' ? value : null
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return null
  const whole = BigInt(value)
  if (wholeNumbers.has(type)) return longBytes(whole)
  return type === 'date' && whole % dayMs === 0n ? longBytes(whole / dayMs) : null
}

function longBytes(value: bigint): Uint8Array | null {
  if (BigInt.asIntN(64, value) !== value) return null
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}

function murmur3(bytes: Uint8Array): number {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const whole = bytes.length & ~3
  let hash = 0
  for (let at = 0; at < whole; at += 4) {
    hash ^= mixed(view.readInt32LE(at))
    hash = (Math.imul(rotated(hash, 13), 5) + 0xe6546b64) | 0
  }
  if (whole < bytes.length) hash ^= mixed(view.readUIntLE(whole, bytes.length - whole))
  hash ^= bytes.length
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

function mixed(word: number): number {
  return Math.imul(rotated(Math.imul(word, 0xcc9e2d51), 15), 0x1b873593)
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
