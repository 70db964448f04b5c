// Decompresses Snappy's raw format.
//
//   block      uncompressed size, varint | elements
//   literal    (length - 1) << 2 | 0; lengths from 60 on in the 1 to 4 bytes that follow | the bytes
//   copy 1     (length - 4) << 2 | 1 | the offset's high bits << 5, then its low byte; for 4 to 11 bytes
//   copy 2, 4  (length - 1) << 2 | 2 or 3 | offset u16 or u32; for 1 to 64 bytes

/** Returns the bytes written, which are `targetBytes`, or -1 if the input is not a whole block of that size. */
export function snappyDecompress(source: usize, bytes: i32, target: usize, targetBytes: i32): i32 {
  if (bytes < 1 || targetBytes < 0) return -1
  let at = <u64>source
  const end = at + <u64>bytes
  let size: u64 = 0
  for (let shift: u64 = 0; ; shift += 7) {
    if (at >= end || shift > 28) return -1
    const byte = <u64>load<u8>(<usize>(at++))
    size |= (byte & 127) << shift
    if (byte < 128) break
  }
  if (size != <u64>targetBytes) return -1
  let out = <u64>target
  const bound = out + size
  while (at < end) {
    const tag = <u64>load<u8>(<usize>(at++))
    let length = (tag >> 2) + 1
    const kind = tag & 3
    if (kind == 0) {
      if (length > 60) {
        const extra = length - 60
        if (at + extra > end) return -1
        length = (<u64>load<u32>(<usize>at) & (0xffffffff >> (32 - (extra << 3)))) + 1
        at += extra
      }
      if (length > end - at || length > bound - out) return -1
      memory.copy(<usize>out, <usize>at, <usize>length)
      at += length
      out += length
      continue
    }
    let offset: u64
    if (kind == 1) {
      if (at + 1 > end) return -1
      length = ((tag >> 2) & 7) + 4
      offset = ((tag >> 5) << 8) | <u64>load<u8>(<usize>(at++))
    } else {
      const width: u64 = kind == 2 ? 2 : 4
      if (at + width > end) return -1
      offset = kind == 2 ? <u64>load<u16>(<usize>at) : <u64>load<u32>(<usize>at)
      at += width
    }
    if (offset == 0 || offset > out - <u64>target || length > bound - out) return -1
    const from = out - offset
    if (offset >= length) memory.copy(<usize>out, <usize>from, <usize>length)
    else for (let i: u64 = 0; i < length; i++) store<u8>(<usize>(out + i), load<u8>(<usize>(from + i)))
    out += length
  }
  return out == bound ? targetBytes : -1
}
