// Multiplies 64-bit integers to products of 128 bits.

/** High 64 bits of a 128-bit product. */
@inline
export function mulHigh(a: u64, b: u64): u64 {
  const al = a & 0xffffffff
  const ah = a >> 32
  const bl = b & 0xffffffff
  const bh = b >> 32
  const ll = al * bl
  const lh = al * bh
  const hl = ah * bl
  const mid = (ll >> 32) + (lh & 0xffffffff) + (hl & 0xffffffff)
  return ah * bh + (lh >> 32) + (hl >> 32) + (mid >> 32)
}
