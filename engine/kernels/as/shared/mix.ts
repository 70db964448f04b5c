/**
 * 32 bits of 64, for tables by their lowest bits and parts by their highest. A product alone would carry nothing down: numbers
 * without low bits, as doubles of whole numbers are, would meet in one slot.
 */
@inline
export function mix(key: u64): u32 {
  const h = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15
  return <u32>(h >> 32) ^ <u32>(h >> 15)
}
