// XXH64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), the hash of Parquet's Bloom
// filters.

const P1: u64 = 0x9E3779B185EBCA87
const P2: u64 = 0xC2B2AE3D27D4EB4F
const P3: u64 = 0x165667B19E3779F9
const P4: u64 = 0x85EBCA77C2B2AE63
const P5: u64 = 0x27D4EB2F165667C5

@inline
function round(lane: u64, input: u64): u64 {
  return rotl<u64>(lane + input * P2, 31) * P1
}

function xxh64(at: usize, bytes: i32): u64 {
  let p = at
  const end = at + <usize>bytes
  let h: u64
  if (bytes >= 32) {
    let a: u64 = P1 + P2, b: u64 = P2, c: u64 = 0, d: u64 = 0 - P1
    for (; p + 32 <= end; p += 32) {
      a = round(a, load<u64>(p))
      b = round(b, load<u64>(p, 8))
      c = round(c, load<u64>(p, 16))
      d = round(d, load<u64>(p, 24))
    }
    h = rotl<u64>(a, 1) + rotl<u64>(b, 7) + rotl<u64>(c, 12) + rotl<u64>(d, 18)
    h = (h ^ round(0, a)) * P1 + P4
    h = (h ^ round(0, b)) * P1 + P4
    h = (h ^ round(0, c)) * P1 + P4
    h = (h ^ round(0, d)) * P1 + P4
  } else h = P5
  h += <u64>bytes
  for (; p + 8 <= end; p += 8) h = rotl<u64>(h ^ round(0, load<u64>(p)), 27) * P1 + P4
  if (p + 4 <= end) {
    h = rotl<u64>(h ^ (<u64>load<u32>(p) * P1), 23) * P2 + P3
    p += 4
  }
  for (; p < end; p++) h = rotl<u64>(h ^ (<u64>load<u8>(p) * P5), 11) * P1
  h = (h ^ (h >> 33)) * P2
  h = (h ^ (h >> 29)) * P3
  return h ^ (h >> 32)
}

export function hashPlain(values: usize, count: i32, width: i32, target: usize): void {
  let at = values
  for (let i = 0; i < count; i++) {
    let bytes = width
    if (width == 0) {
      bytes = load<i32>(at)
      at += 4
    }
    store<u64>(target + <usize>i * 8, xxh64(at, bytes))
    at += bytes
  }
}
