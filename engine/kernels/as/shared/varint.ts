// Encodes integers as LEB128 varints: groups of seven bits, as many as necessary.

@inline
export function putVarint(target: usize, value: u32): usize {
  while (value > 127) {
    store<u8>(target++, <u8>(value | 128))
    value >>= 7
  }
  store<u8>(target, <u8>value)
  return target + 1
}
