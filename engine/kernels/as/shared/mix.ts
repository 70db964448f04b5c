// A hash function from 64-bit keys to 32 bits in the WebAssembly kernels.

/**
 * Hashes 64 bits to 32, for tables that use the lowest bits and partitions that use the highest. A multiplication alone
 * would not spread high bits to low ones: doubles of integers, whose low bits are zero, would all collide.
 */
@inline
export function mix(key: u64): u32 {
  const h = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15
  return <u32>(h >> 32) ^ <u32>(h >> 15)
}
