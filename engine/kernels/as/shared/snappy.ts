// Snappy's raw format.
//
//   block      bytes before compression, varint | elements
//   literal    (length - 1) << 2 | 0, from 60 on in the 1 to 4 bytes that follow | the bytes
//   copy       (length - 1) << 2 | 2 | offset u16, of 1 to 64 bytes

const HASH_BITS: u32 = 14

@inline
function slotOf(value: u32): usize {
  return <usize>((value * 2654435761) >> (32 - HASH_BITS)) << 2
}

@inline
function putLiteral(out: usize, from: usize, length: usize): usize {
  const n = length - 1
  if (n < 60) store<u8>(out++, <u8>(n << 2))
  else if (n < 256) {
    store<u8>(out, 60 << 2)
    store<u8>(out, <u8>n, 1)
    out += 2
  } else if (n < 65536) {
    store<u8>(out, 61 << 2)
    store<u16>(out + 1, <u16>n)
    out += 3
  } else {
    store<u8>(out, 63 << 2)
    store<u32>(out + 1, <u32>n)
    out += 5
  }
  memory.copy(out, from, length)
  return out + length
}

@inline
function putCopies(out: usize, offset: usize, length: usize): usize {
  while (length > 0) {
    const n = length > 64 ? 64 : length
    store<u8>(out, <u8>(((n - 1) << 2) | 2))
    store<u16>(out + 1, <u16>offset)
    out += 3
    length -= n
  }
  return out
}

/** Bytes written: at most bytes + bytes / 6 + 32 are. `table`: 64 KiB of scratch. */
export function snappyCompress(source: usize, bytes: i32, target: usize, table: usize): i32 {
  const end = source + <usize>bytes
  let out = target
  let rest = <u32>bytes
  while (rest >= 128) {
    store<u8>(out++, <u8>(rest | 128))
    rest >>= 7
  }
  store<u8>(out++, <u8>rest)
  let anchor = source
  if (bytes > 16) {
    const matchLast = end - 12
    memory.fill(table, 0, 4 << HASH_BITS)
    let at = source + 1
    let misses: u32 = 64
    while (at <= matchLast) {
      const value = load<u32>(at)
      const slot = table + slotOf(value)
      const candidate = source + <usize>load<u32>(slot)
      store<u32>(slot, <u32>(at - source))
      if (candidate + 65535 < at || candidate >= at || load<u32>(candidate) != value) {
        at += <usize>(misses++ >> 6)
        continue
      }
      misses = 64
      let from = candidate
      while (at > anchor && from > source && load<u8>(at - 1) == load<u8>(from - 1)) {
        at--
        from--
      }
      let length: usize = 4
      while (at + length + 8 <= end) {
        const difference = load<u64>(at + length) ^ load<u64>(from + length)
        if (difference == 0) {
          length += 8
          continue
        }
        length += <usize>(ctz<u64>(difference) >> 3)
        break
      }
      if (at + length + 8 > end) while (at + length < end && load<u8>(at + length) == load<u8>(from + length)) length++
      if (at > anchor) out = putLiteral(out, anchor, at - anchor)
      out = putCopies(out, at - from, length)
      at += length
      anchor = at
      if (at <= matchLast) store<u32>(table + slotOf(load<u32>(at - 2)), <u32>(at - 2 - source))
    }
  }
  if (end > anchor) out = putLiteral(out, anchor, end - anchor)
  return <i32>(out - target)
}
