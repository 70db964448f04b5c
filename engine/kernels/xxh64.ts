// XXH64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) in TypeScript, for the few strings
// of a dictionary in a Bloom filter. The kernel in as/shared/hash64.ts hashes pages of values.

const mask = 0xffff_ffff_ffff_ffffn
const p1 = 0x9e37_79b1_85eb_ca87n
const p2 = 0xc2b2_ae3d_27d4_eb4fn
const p3 = 0x1656_67b1_9e37_79f9n
const p4 = 0x85eb_ca77_c2b2_ae63n
const p5 = 0x27d4_eb2f_1656_67c5n

const times = (x: bigint, y: bigint): bigint => (x * y) & mask
const turned = (x: bigint, bits: bigint): bigint => ((x << bits) | (x >> (64n - bits))) & mask
const round = (lane: bigint, input: bigint): bigint => times(turned((lane + input * p2) & mask, 31n), p1)

export function xxh64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  let hash = p5
  if (bytes.length >= 32) {
    const lanes = [(p1 + p2) & mask, p2, 0n, -p1 & mask]
    for (; at + 32 <= bytes.length; at += 32)
      for (let lane = 0; lane < 4; lane++)
        lanes[lane] = round(lanes[lane] as bigint, view.getBigUint64(at + lane * 8, true))
    hash = lanes.reduce((sum, lane, index) => (sum + turned(lane, [1n, 7n, 12n, 18n][index] as bigint)) & mask, 0n)
    for (const lane of lanes) hash = (times(hash ^ round(0n, lane), p1) + p4) & mask
  }
  hash = (hash + BigInt(bytes.length)) & mask
  for (; at + 8 <= bytes.length; at += 8)
    hash = (times(turned(hash ^ round(0n, view.getBigUint64(at, true)), 27n), p1) + p4) & mask
  if (at + 4 <= bytes.length) {
    hash = (times(turned(hash ^ times(BigInt(view.getUint32(at, true)), p1), 23n), p2) + p3) & mask
    at += 4
  }
  for (; at < bytes.length; at++) hash = times(turned(hash ^ times(BigInt(bytes[at]!), p5), 11n), p1)
  hash = times(hash ^ (hash >> 33n), p2)
  hash = times(hash ^ (hash >> 29n), p3)
  return hash ^ (hash >> 32n)
}
